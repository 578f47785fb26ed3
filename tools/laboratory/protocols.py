"""The protocols that a laptop can mount the share with, and their mount options.

Law: nothing but what a user would type. The defaults of mount(8) hold unless options are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVER = "10.98.0.2"
SHARE = "/mnt/share"
EXPORT = "/srv/disk/share"
USER, PASSWORD = "nobody", "spool"  # of the Samba share, inside the lab's own namespace


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way to mount the share: mount(8)'s type, its source, and the options that select the protocol."""

    name: str
    fstype: str
    source: str
    options: str

    def command(self, extra: str = "", where: str = SHARE) -> list[str]:
        """The mount command; `extra` are more options, separated by commas, which win over ours."""
        options = ",".join(part for part in (self.options, extra) if part)
        return ["mount", "-t", self.fstype, "-o", options, self.source, where]

    @property
    def apart(self) -> str:
        """The option that gives a second mount of one laptop caches of its own, as if on another laptop."""
        return "nosharecache" if self.name in NFS else ""


NFS, SMB = ("nfs3", "nfs4.0", "nfs4.1", "nfs4.2"), ("smb3",)
_SMB = f"vers=3.1.1,username={USER},password={PASSWORD},uid=0,gid=0,file_mode=0664,dir_mode=0775"

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("nfs3", "nfs", f"{SERVER}:{EXPORT}", "vers=3"),
        Protocol("nfs4.0", "nfs4", f"{SERVER}:/", "vers=4.0"),
        Protocol("nfs4.1", "nfs4", f"{SERVER}:/", "vers=4.1"),
        Protocol("nfs4.2", "nfs4", f"{SERVER}:/", "vers=4.2"),
        Protocol("smb3", "cifs", f"//{SERVER}/share", _SMB),
    )
}
