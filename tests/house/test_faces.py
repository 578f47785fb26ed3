"""A face asks the client, has pictures drawn, and asks nothing else below: what one can show, all and programs can.

Left out are the verbs that run or repair a spool: they need nodes, trials and the bare tree.
"""

from tests.house.sources import modules
from tests.house.test_cycles import imported, module_name

# Agents are a program on top of the client, as a face is.
ALLOWED = ("spoold.faces", "spoold.client", "spoold.protocol", "spoold.pictures", "spoold.agents")
ADMINISTER = frozenset({"daemons", "doctor", "housekeeping", "init", "install_units"})
# How an error of the system is said, whoever met it.
WORDS = "spoold.system.errnos"


def test_a_face_imports_the_client_and_the_protocol_alone() -> None:
    trees = {module_name(path): tree for path, _, tree in modules()}
    faces = {
        name: imported(tree, set(trees)) - {"spoold", WORDS}
        for name, tree in trees.items()
        if name.startswith("spoold.faces.") and name.rpartition(".")[2] not in ADMINISTER
    }
    assert len(faces) > 20
    below = {name: sorted(m for m in used if not m.startswith(ALLOWED)) for name, used in faces.items()}
    assert not {name: used for name, used in below.items() if used}
