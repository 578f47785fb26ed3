"""A network laboratory on one machine: a file server and some laptops, each with a kernel and a mount of its own.

    the host              one network namespace, two bridges: `storage` (cables that can be pulled) and `control`
    server                a guest: kernel NFS server and Samba on one ext4 image, so that killing it is a power cut
    laptop1, laptop2, …   guests: the share mounted at /mnt/share through a real NFS or SMB client

A guest is User Mode Linux: a kernel that is a process. It sees the host's files read-only as its root, so it has the
checkout and its Python environment without any installation, and it boots in two seconds. It is told what to do by an
agent that listens on `control`, so a laptop whose storage cable is pulled still obeys.

With `up --systemd` the laptops have a disk of their own instead, a Debian that systemd runs.

The rooms: `needs` (packages, and what is missing), `network`, `guests` and `guest/` (one kernel, and what runs in
it), `registers` (processors that are younger than that kernel), `channel` (the host's end of an agent), `lab` (all of
it together, on disk, so that the next command finds it), `protocols`, `figures` and `wire` (what clients asked),
`verdicts` (what the doctor says of mounts), `matrix/` (`netlab test`), `agents/` (`test-agents`), `systemd_image`
(the disk of a laptop with systemd), `systemd_laptop`, `systemd_boot`, `systemd_service` and `systemd_checks`
(`test-systemd`).

Law: nothing outside the lab's namespace and its one folder is changed, and `down` leaves neither behind. Only the
disk of a laptop with systemd stays, in the user's cache.
"""
