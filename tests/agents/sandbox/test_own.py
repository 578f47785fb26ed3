"""No name leads to this machine itself, whatever addresses it has: in a network of its own, with addresses as on the
internet.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from spoold.agents.sandbox.proxy import is_own

SERVE = """
import json, socket, sys, threading
from spoold.agents.sandbox import proxy as module

module.CONNECT_S = 0.2

def serve(door):
    while True:
        near, _ = door.accept()
        with near:
            near.sendall(b"reached")

door = socket.create_server(("::", 443), family=socket.AF_INET6, dualstack_ipv6=True)
threading.Thread(target=serve, args=(door,), daemon=True).start()
true = socket.getaddrinfo
led = {}

def resolve(host, port, *words, **more):
    return true(led.get(host, host), port, *words, **more)

socket.getaddrinfo = resolve
found = {}
addresses = sys.argv[1:]
led.update({f"n{number}.t.test": address for number, address in enumerate(addresses)})
with module.Proxy(["*.t.test", "localhost", "9.9.0.1", "[2a01:4f8:99::1]"]) as proxy:
    for name in [*led, "localhost", "9.9.0.1", "[2a01:4f8:99::1]"]:
        with socket.socket(socket.AF_UNIX) as near:
            near.connect(proxy.path)
            near.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\n\\r\\n".encode())
            found[led.get(name, f"listed {name}")] = near.recv(1000).split()[1].decode()
print(json.dumps(found))
"""
NETWORK = """set -e
ip link set lo up
ip address add 9.9.0.1/32 dev lo
ip address add 2a01:4f8:99::1/128 dev lo nodad
ip route add local 8.8.4.0/24 dev lo
ip -6 route add local 2a01:4f8:98::/64 dev lo
ip route add local 8.8.5.0/24 dev lo src 9.9.0.1
[ -z "$BINDS_ANY" ] || echo 1 | tee /proc/sys/net/ipv4/ip_nonlocal_bind /proc/sys/net/ipv6/ip_nonlocal_bind >&2
(ip link add d0 type dummy && ip link set d0 up && ip route add default dev d0 && ip -6 route add default dev d0) || :
exec "$@"
"""
OWN = ["9.9.0.1", "2a01:4f8:99::1", "8.8.4.4", "8.8.4.200", "2a01:4f8:98::77", "8.8.5.9", "::ffff:9.9.0.1"]
OWN += ["64:ff9b::909:1", "2002:909:1::1"]
FOREIGN = ["9.9.0.2", "2a01:4f8:99::2", "8.8.8.8"]


@pytest.mark.parametrize("binds_any", ["", "1"])
def test_a_name_that_leads_to_an_address_of_this_machine_is_refused(binds_any: str) -> None:
    """Only special addresses were: one of the internet on an interface of this machine, or routed to it, was not."""
    if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs Linux, unshare and iproute2")
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", NETWORK, "sh"]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "BINDS_ANY": binds_any, "PYTHONPATH": ":".join(sys.path)}
    if subprocess.run([*command, "true"], env=environ, capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("no network of its own can be made here")
    script = [sys.executable, "-c", SERVE, *OWN, *FOREIGN]
    done = subprocess.run([*command, *script], env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    listed = {f"listed {one}": "200" for one in ("localhost", "9.9.0.1", "[2a01:4f8:99::1]")}
    assert found == dict.fromkeys(OWN, "403") | dict.fromkeys(FOREIGN, "502") | listed


def test_what_has_no_interface_is_own_too() -> None:
    if sys.platform != "linux":
        pytest.skip("it asks the kernel of Linux")
    assert is_own("127.0.0.1")
    assert is_own("127.5.5.5")
