"""A directory of a test's own as if it lay on some other mount."""

from spoold.system.mounts import Ground, Mount
from spoold.system.posix import PosixFileSystem


def lie_on(fs: PosixFileSystem, mount: Mount) -> None:
    """From now on, as far as this port knows."""
    fs._ground = Ground(fs.root, lambda _: mount)
