"""Addresses of repositories: one spelling, which of them are the same, and which a pattern allows."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from spoold.agents.workspace.repository_config import fits, is_among, is_own, pattern, repository, same
from spoold.protocol.errors import WrongValue


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("/srv/git/r.git/", "/srv/git/r.git"),
        ("//srv/git/r", "/srv/git/r"),
        ("file:///srv/git//r", "/srv/git/r"),
        ("FILE://localhost/srv/git/%72", "/srv/git/r"),
        ("https://example.org/r.git/", "https://example.org/r.git"),
        ("HTTPS://example.org//team///r", "https://example.org/team/r"),
        ("ssh://git@example.org:22/r", "ssh://git@example.org:22/r"),
        ("ssh://[::1]:2222/r", "ssh://[::1]:2222/r"),
        ("git@example.org:team/r.git", "git@example.org:team/r.git"),
        ("host:r", "host:r"),
        ("https://example.org/a%20b", "https://example.org/a%20b"),
        ("https://example.org", "https://example.org"),
    ],
)
def test_a_repository_has_one_spelling(said: str, meant: str) -> None:
    assert repository(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "relative/path",
        "--upload-pack=touch x",
        "-oProxyCommand=x:y",
        "ext::sh -c x",
        "ext::sh",
        "fd::3",
        "foo://x/y",
        "https:///r",
        "https://ada:secret@example.org/r",
        "/srv/a b",
        "/srv/a\nb",
        "file:///srv/a%0ab",
        "file://elsewhere/srv/a",
        "file://",
        "https://example.org/team/../priv",
        "https://example.org/team/%2e%2E/priv",
        "https://example.org/team/%252e%252e/priv",
        "https://example.org/team/..%5cpriv",
        "https://example.org/team%2fpriv",
        "https://example.org/team/\\..\\priv",
        "https://exa%6dple.org/r",
        "https://example.org/a%00b",
        "git@example.org:team/../priv",
    ],
)
def test_what_git_could_read_otherwise_is_no_repository(said: str) -> None:
    with pytest.raises(WrongValue):
        repository(said)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://Git.Example.org:443/team/app.git", "https://git.example.org./team/app/"),
        ("https://ada@git.example.org/team/app", "https://git.example.org/team/%61pp"),
        ("ssh://git@example.org:22/~/team/app", "git@EXAMPLE.org:team/app.git"),
        ("ssh://git@example.org/srv/app", "git@example.org:/srv/app"),
        ("ssh://git@example.org/~ada/app", "git@example.org:~ada/app"),
        ("git://example.org:9418/app", "git://example.org/app"),
        ("/nowhere/app", "file:///nowhere//app/"),
    ],
)
def test_two_spellings_of_one_address_are_the_same(one: str, other: str) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ssh://git@example.org/srv/app", "git@example.org:srv/app"),
        ("ssh://git@example.org/srv/app", "ssh://root@example.org/srv/app"),
        ("https://example.org/app", "http://example.org/app"),
        ("https://example.org/app", "https://example.org:8443/app"),
        ("https://example.org/app", "https://example.org.evil.net/app"),
        ("https://example.org/app", "https://example.org@evil.net/app"),
        ("/nowhere/app", "/nowhere/App"),
    ],
)
def test_two_repositories_are_not_the_same(one: str, other: str) -> None:
    assert not same(one, other)


def folders(top: Path) -> Path:
    """Repositories of a team and of somebody else, with links to both."""
    for name in ("team/app.git", "team/lib", "home/x/priv", "home/x/app.git"):
        (top / name).mkdir(parents=True)
    (top / "work").symlink_to("team")
    (top / "team/out").symlink_to("../home/x/priv")
    (top / "elsewhere").symlink_to("home")
    return top


def test_an_allowed_repository_is_compared_after_it_is_normalised(tmp_path: Path) -> None:
    """G6: `/srv/git/team/../../home/x/priv` fitted `/srv/git/team/*`."""
    top = folders(tmp_path)
    allowed = f"{top}/team/*"
    assert fits(f"{top}/team/app.git", allowed)
    assert fits(f"{top}/team/app", allowed)
    assert fits(f"{top}/home/../team//lib/", allowed)
    assert not fits(f"{top}/team/../home/x/priv", allowed)
    assert not fits(f"file://{top}/team/%2e./home/x/priv", allowed)
    assert not fits(f"{top}/team/out", allowed)  # it leads to another's
    assert fits(f"{top}/work/lib", f"{top}/work/*")  # a link of the owner's


@pytest.mark.parametrize(
    ("wanted", "allowed", "may"),
    [
        ("https://anything.example.org/x", "*", True),
        ("https://git.example.org/team/app", "https://git.example.org/team/*", True),
        ("https://git.example.org/team/sub/app.git", "https://git.example.org/team/*", True),
        ("https://git.example.org:443/team/app.git", "https://git.example.org/team/app", True),
        ("https://git.example.org/team/app", "https://git.example.org/team/app.git", True),
        ("https://git.example.org/team/app", "https://*.example.org/team/*", True),
        ("https://evil.net/.example.org/team/app", "https://*.example.org/team/*", False),
        ("https://git.example.org@evil.net/team/app", "https://git.example.org*/team/*", False),
        ("https://admin@git.example.org/team/app", "https://git.example.org/team/*", False),
        ("ssh://git@example.org/team/app", "ssh://*@example.org/team/*", True),
        ("ssh://[::1]/team/app", "ssh://[::1]/team/*", True),
        ("ssh://[::2]/team/app", "ssh://[::1]/team/*", False),
        ("git@example.org:team/app", "git@example.org:team/*", True),
        ("git@example.org:team/app", "git@example.org:/team/*", False),
        ("root@example.org:team/app", "git@example.org:team/*", False),
        ("https://git.example.org:8443/team/app", "https://git.example.org/team/*", False),
        ("/srv/git/team/app", "https://git.example.org/*", False),
        ("/srv/git/team/app", "*team*", False),
        ("/nowhere/team/app", "/nowhere/team/app", True),
        ("/nowhere/team/app", "/*/team/app", True),
    ],
)
def test_a_pattern_fits_within_a_host_and_within_a_path(wanted: str, allowed: str, *, may: bool) -> None:
    assert fits(wanted, allowed) is may


@pytest.mark.parametrize("said", ["*team*", "/srv/git/../*", "https://git.example.org/../*", "team/*", ""])
def test_a_pattern_that_no_address_can_fit_is_refused(said: str) -> None:
    with pytest.raises(WrongValue):
        pattern(said)


@pytest.mark.parametrize("said", ["*", "/srv/git/*", "~/git/*", "https://*.example.org/*", "git@example.org:team/*"])
def test_a_pattern_stays_as_it_is(said: str) -> None:
    assert pattern(said) == said


def test_the_repository_of_the_profile_may_be_spelled_otherwise(tmp_path: Path) -> None:
    top = folders(tmp_path)
    assert is_own(f"file://{top}/team//app/", f"{top}/team/app.git")
    assert is_own("https://git.example.org:443/team/app.git", "https://GIT.example.org/team/app")
    assert not is_own(f"{top}/work/app.git", f"{top}/team/app.git")  # a link may lead elsewhere in a moment
    assert not is_own("https://git.example.org/a", "/a")
    assert same(f"{top}/work/app", f"{top}/team/app.git")


STEPS = ("team", "app.git", "lib", "..", "home", "x", "priv", "out", "work", "elsewhere", ".", "", "%2e%2e", "%2E.")


@pytest.mark.parametrize("seed", range(20))
def test_what_a_pattern_of_paths_allows_lies_there(tmp_path: Path, seed: int) -> None:
    """G6: any spelling of a path; the judge is where the kernel finds what git is given."""
    chance, top = random.Random(seed), folders(tmp_path)
    inside = os.path.realpath(top / "team") + os.sep
    for _ in range(300):
        steps = [chance.choice(STEPS) for _ in range(chance.randint(1, 7))]
        plain = f"{top}/{chance.choice(['team/', ''])}{'/'.join(steps)}"
        said = chance.choice([plain, f"file://{plain}", f"File://localhost{plain}"])
        used = repository(said)
        ends = {os.path.realpath(used), os.path.realpath(f"{used}.git")}
        if fits(said, f"{top}/team/*"):
            assert all(end.startswith(inside) for end in ends), said
        # the folder that a file address means, in yet another spelling
        again = f"file://{quote(used)}/" if chance.random() < 0.5 else used.replace("/", "//")
        assert same(said, again)
        assert fits(said, f"{top}/team/*") is fits(again, f"{top}/team/*")


PIECES = (
    "team",
    "app.git",
    "..",
    "%2e%2e",
    "%252E%252e",
    ".",
    "",
    "priv",
    "%2F",
    "\\",
    "..\\",
    "%5c..",
    "t%65am",
    "?",
    "*",
)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_pattern_of_urls_allows_lies_below_it_however_often_a_server_decodes(seed: int) -> None:
    """G6: any spelling of a URL; the judge decodes it as often as a server might."""
    chance = random.Random(seed)
    fitting = 0
    for _ in range(400):
        path = "/".join(chance.choice(PIECES) for _ in range(chance.randint(1, 5)))
        host = chance.choice(
            ["git.example.org", "GIT.example.org", "git.example.org:443", "u@git.example.org", "e.net"]
        )
        said = f"{chance.choice(['https', 'HTTPS', 'http'])}://{host}/{chance.choice(['team/', 'team//', ''])}{path}"
        try:
            may = fits(said, "https://git.example.org/team/*")
        except WrongValue:
            continue
        fitting += may
        assert not may or all(one.startswith("/team/") for one in decoded(said)), said
        assert not may or host.lower().startswith("git.example.org"), said
    assert fitting > 0


def decoded(said: str) -> list[str]:
    """Where an address leads, decoded once, twice and so on."""
    text, found = said, []
    for _ in range(4):
        steps: list[str] = []
        for step in re.split(r"[/\\]", text.partition("://")[2])[1:]:
            steps = steps[:-1] if step == ".." else [*steps, step] if step not in ("", ".") else steps
        found.append("/" + "/".join(steps))
        text = unquote(text)
    return found[1:]


@pytest.mark.parametrize("seed", range(10))
def test_every_spelling_of_an_allowed_url_fits(seed: int) -> None:
    """G6: what is refused for its spelling alone costs a person a look."""
    chance = random.Random(seed)
    for _ in range(100):
        letters = [f"%{ord(one):02x}" if one not in "/." and chance.random() < 0.2 else one for one in "/team/app"]
        path = "".join(letters).replace("/", chance.choice(["/", "//"])) + chance.choice(["", ".git", "/", ".git/"])
        host = "".join(chance.choice([one.upper(), one]) for one in "git.example.org")
        said = f"{chance.choice(['https', 'HTTPS'])}://{host}{chance.choice(['', '.', ':443', ':0443', ':'])}{path}"
        assert fits(said, "https://git.example.org/team/*"), said
        assert fits(said, "https://git.example.org/team/app"), said
        assert is_own(said, "https://git.example.org/team/app.git"), said
        assert same(said, "https://git.example.org/team/app"), said


@pytest.mark.parametrize("odd", ["https://[bad/x", "", "\0", "a b"])
def test_what_others_wrote_and_is_no_address_names_no_repository(odd: str) -> None:
    assert not is_among("/srv/git/app.git", [odd])
    assert is_among("/srv/git/app.git", [odd, "/srv//git/app.git"])
