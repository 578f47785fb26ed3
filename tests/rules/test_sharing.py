"""What is said of owners, groups and umasks: nothing where all is well, else one sentence with the fix."""

import pytest

from spoold.rules.share.permissions import init_remark, node_remark

ME, OTHER = 1000, 1001


def remark(mode: int, umask: int | None, *, owner: int = ME, member: bool = True, primary: bool = True) -> str | None:
    return node_remark(ME, owner, "agents", mode, umask, member=member, primary=primary, where="/mnt/s")


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077, None])
def test_in_a_spool_that_a_group_shares_no_umask_matters(umask: int | None) -> None:
    assert remark(0o2775, umask, owner=OTHER) is None
    assert remark(0o2770, umask, owner=ME, member=False) is None


def test_a_directory_that_is_not_shared_as_the_root_is_said_with_the_fix() -> None:
    said = node_remark(
        ME, OTHER, "agents", 0o2775, 0o022, ("claimed", "returned"), member=True, primary=True, where="/mnt/s"
    )
    assert said is not None
    assert said.startswith("group agents shares this spool, but not claimed/, returned/: ")
    assert said.endswith("the owner runs `chgrp agents /mnt/s/*/; chmod g+ws /mnt/s/*/`")


def test_a_user_of_another_group_is_told() -> None:
    told = remark(0o2775, 0o002, owner=OTHER, member=False)
    assert told is not None
    assert "add the user to the group" in told


def test_ones_own_spool_is_fine() -> None:
    assert remark(0o755, 0o022) is None
    assert remark(0o775, 0o002) is None, "a umask of 002 with a group of one's own is usual"
    assert remark(0o775, None) is None


def test_a_umask_that_keeps_the_group_out_of_a_spool_that_it_may_write_is_told() -> None:
    told = remark(0o775, 0o022)
    assert told is not None
    assert told.startswith(
        "umask 022: files of this node cannot be moved by others of group agents; start it with umask"
    )
    assert "`chmod g+ws /mnt/s /mnt/s/*/`" in told


def test_a_group_that_is_not_inherited_is_told() -> None:
    told = remark(0o775, 0o002, primary=False)
    assert told is not None
    assert "belong to another group" in told


def test_a_node_of_another_user_is_told() -> None:
    told = remark(0o755, 0o022, owner=OTHER)
    assert told is not None
    assert "runs as user 1000, and user 1001, who owns the spool" in told
    assert told.endswith("or share the spool by a group (`chgrp -R GROUP /mnt/s; chmod g+ws /mnt/s /mnt/s/*/`)")


def test_a_new_spool_says_for_whom_it_is() -> None:
    assert init_remark("ada", None, 0o022).startswith("only user ada can use this spool (umask 022)")
    assert "`spool init --group GROUP DIR`" in init_remark("ada", None, None)
    assert init_remark("ada", None, 0o002).startswith("the group of user ada may write to this spool (umask 002)")
    assert init_remark("ada", "agents", 0o022).startswith("members of group agents can use this spool")
