"""One machine's view of the server, with the lies that NFS and SMB clients were seen to tell.

Survivable, and therefore injected:
  slow, stall    a call that takes long; while the network is away, one that blocks until it is back (hard mounts)
  down           the same on SMB: EHOSTDOWN, not done
  lost           a call that was carried out though its reply was lost: EIO, EAGAIN, ENOENT, EEXIST; also of a write
  late           a change that was reported as failed and happens later, also after its caller is gone
  orphan         a change whose caller was killed while it waited, and that happens later
  busy           a sharing violation: EACCES, EBUSY, ETXTBSY, EIO, and EINVAL of a read
  eio, estale, eintr   a call that failed in the ways of a network, and was not carried out
  full, quota    no room: ENOSPC, EDQUOT, now and then with half a file left behind
  negative       a name once seen absent that stays absent until its directory is listed
  positive       a file that another machine moved and that can still be read by its old name
  attributes     a stat that is old
  scan           a listing of names that are renamed meanwhile: two moments, and a name may be in both or in neither
  nap, fall      a machine that stands still, or dies, just before or after the change that the seed aims at
  outage         a power cut of the server just after the change that the seed aims at
  torn           a file half written when its writer died
  unmounted      the empty folder below: nothing is in it, and nothing is found (while the machine's share is away)
  away           a share that is unmounted, and mounted again after a few calls
  alias          a rename that a server forgot with its power: the client still has the entry that it made, and
                 refuses to rename onto it, since the file has that name already as far as it knows
  nolock         a lock that the server has none of just now, in a spool that claims by lock
Not survivable, and therefore not injected here: a listing that does not show what stood there before it began and
stands there still, a rename that two machines both win, a durable file that is lost. Such a mount is not fit for a
spool; unfit.py tells them, and test_unfit.py shows what comes of it.
Not injected, since no node ever asks for it: a replace that is not atomic. That nothing is ever renamed onto an
existing name is a law here (`laws`).
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol

from spoold.system.errnos import ERESTARTSYS
from spoold.system.filesystem import Stat, Usage
from tests.sim.scheduler import Killed, Scheduler
from tests.sim.server import Server
from tests.sim.weather import ANYWHERE, Weather

NEGATIVE_S = 30.0
POSITIVE_S = 10.0
ATTRIBUTES_S = 5.0
BLOCK_LOOK_S = 0.5
DOWN_AFTER_S = 3.0
CHANGES = ("rename", "unlink", "mkdir", "rmdir")
BUSY = (errno.EACCES, errno.EBUSY, errno.ETXTBSY, errno.EIO)
NETWORK = (errno.EIO, errno.EIO, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, ERESTARTSYS)
LOST = {
    "nfs": {
        "rename": (errno.EIO, errno.ENOENT),
        "mkdir": (errno.EEXIST,),
        "unlink": (errno.ENOENT,),
        "rmdir": (errno.ENOENT,),
        "write": (errno.EIO,),
        "append": (errno.EIO,),
    },
    "smb": {
        "rename": (errno.EAGAIN, errno.EIO),
        "mkdir": (errno.EEXIST, errno.EAGAIN),
        "unlink": (errno.EAGAIN,),
        "rmdir": (errno.ENOENT, errno.EAGAIN),
        "write": (errno.EIO,),
        "append": (errno.EAGAIN,),
    },
}


class Machine(Protocol):
    """What a mount knows of the machine it is on."""

    name: str
    cut_until: float
    away_until: float

    def freeze(self, seconds: float) -> None:
        """It stands still for a while."""
        ...

    def fall(self) -> None:
        """Its process dies here and now, and is started again later."""
        ...


class Mount:
    """The file-system port of one process. Every call is a turn, takes time, and may go wrong."""

    def __init__(self, scheduler: Scheduler, server: Server, weather: Weather, machine: Machine) -> None:
        self._scheduler = scheduler
        self._server = server
        self._weather = weather
        self._machine = machine
        self._calls = 0
        self._aimed = self._dwells = False
        self._absent: dict[str, float] = {}
        self._content: dict[str, tuple[float, bytes]] = {}
        self._attributes: dict[str, tuple[float, Stat]] = {}
        self._made: dict[str, int] = {}

    def list(self, path: str) -> list[str]:
        began = self._scheduler.now
        names: list[str] = self._call("list", path)
        # A directory that was opened is of one mount: it cannot be the empty folder first and the share's then.
        if self._machine.away_until <= began and self._strikes("scan"):
            names = [*self._scan(path, names)]
        for absent in [p for p in self._absent if p.rpartition("/")[0] == path]:
            del self._absent[absent]
        return names

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        self._believe(path)
        kept = self._content.get(path)
        try:
            data: bytes = self._call("read", path)
        except FileNotFoundError:
            if kept is None or self._scheduler.now - kept[0] > POSITIVE_S or not self._strikes("positive"):
                self._remember_absent(path)
                raise
            data = kept[1]
        self._content[path] = (self._scheduler.now, data)
        return data[offset:] if limit is None else data[offset : offset + max(limit, 0)]

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        self._calls += 1
        self._pause(path)
        for kind, code in (("full", errno.ENOSPC), ("quota", errno.EDQUOT)):
            if self._strikes(kind):
                if self._weather.draw("half", *self._key()) < 0.5:
                    self._tear(path, data)
                raise _error(code, path)
        if self._strikes("torn"):
            self._tear(path, data)
            self._machine.fall()
            raise _error(errno.EIO, path)
        self._call("write", path, data, durable=durable)
        self._absent.pop(path, None)

    def append(self, path: str, data: bytes) -> None:
        self._call("append", path, data)

    def rename(self, src: str, dst: str) -> None:
        self._believe(src)
        self._disbelieve(src, dst)
        try:
            self._call("rename", src, dst)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                self._remember_absent(src)
            # The new name was looked up first, and was not there; only a success tells the client better.
            self._remember_absent(dst)
            raise
        self._absent.pop(dst, None)
        self._content.pop(src, None)
        self._made.pop(src, None)
        self._made[dst] = self._server.cuts

    def unlink(self, path: str) -> None:
        self._call("unlink", path)

    def mkdir(self, path: str) -> None:
        self._call("mkdir", path)

    def rmdir(self, path: str) -> None:
        self._call("rmdir", path)

    def stat(self, path: str) -> Stat:
        self._believe(path)
        kept = self._attributes.get(path)
        if kept is not None and self._scheduler.now - kept[0] < ATTRIBUTES_S and self._strikes("attributes"):
            return kept[1]
        try:
            found: Stat = self._call("stat", path)
        except FileNotFoundError:
            self._remember_absent(path)
            raise
        self._attributes[path] = (self._scheduler.now, found)
        return found

    def persist(self, path: str) -> None:
        self._call("persist", path)

    def has_writer(self, path: str) -> bool | None:
        found: bool | None = self._call("has_writer", path)
        return found if self._weather.flavour == "local" else None

    def sync(self, path: str) -> None:
        self._call("sync", path)

    @property
    def remote(self) -> bool:
        return not self._server.rolls_back

    @property
    def forgets(self) -> bool:
        return self._server.forgets and self.remote

    def flush(self) -> None:
        self._call("flush")

    def usage(self) -> Usage:
        return self._server.usage()

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        """The lock of the spool, as a kernel gets it from the server: asking is a call, and can go wrong like one."""
        process, until = self._scheduler.current, self._scheduler.now + wait_s
        assert process is not None
        while not self._call("lock", process):
            if self._scheduler.now >= until:
                raise _error(errno.EAGAIN, "spool.lock")
            self._scheduler.sleep(0.02)
        try:
            if self._strikes("nolock"):
                raise _error(errno.ENOLCK, "spool.lock")
            yield
        finally:
            # Giving it back cannot fail, but may take until the network is there. Who dies first has given it back.
            while not process.dead and self._machine.cut_until > self._scheduler.now:
                self._scheduler.sleep(BLOCK_LOOK_S)
            self._server.unlock(process)

    def _call(self, verb: str, *args: object, **options: object) -> Any:
        """One call: it travels, it happens or not, and the answer travels back."""
        self._calls += 1

        def act() -> Any:
            return self._server.call(verb, *args, **options)

        self._aim(verb, [str(path).partition("/")[0] for path in args])
        try:
            if self._strikes("nap"):
                self._machine.freeze(8.0 * self._weather.draw("how long a nap", *self._key()))
            falls = self._strikes("fall")
            if falls and self._weather.draw("falls before", *self._key()) < 0.5:
                self._machine.fall()
            self._pause(str(args[0]) if args else "")
        except Killed:
            if verb in CHANGES and self._strikes("orphan"):
                self._later(act)
            raise
        if self._away():
            return _below(verb, args)
        if verb in ("write", "append", "mkdir") and self._server.full:
            raise _error(errno.ENOSPC, str(args[0]))
        self._refuse(verb, args)
        if verb in CHANGES and self._strikes("late"):
            self._later(act)
            raise _error(errno.EIO, str(args[0]))
        answer = act()
        self._strike_after(falls)
        codes = LOST.get(self._weather.flavour, {}).get(verb)
        if codes and self._strikes("lost"):
            raise _error(codes[int(self._weather.draw("code", *self._key()) * len(codes))], str(args[0]))
        if self._weather.draw("reply", *self._key()) < 0.15:
            self._scheduler.sleep(0.02 * self._weather.draw("back", *self._key()))
        return answer

    def _strike_after(self, falls: bool) -> None:
        """What may happen to others, or to this machine, once a change was carried out."""
        if self._strikes("outage"):
            draws = count()
            self._server.cut_power(lambda: self._weather.draw("outage", *self._key(), next(draws)))
        if falls:
            self._machine.fall()

    def _away(self) -> bool:
        """Whether the share is not mounted."""
        now = self._scheduler.now
        if self._strikes("away"):
            moment = 0.02 * self._weather.draw("how long away", *self._key())
            self._machine.away_until = max(self._machine.away_until, now + moment)
        return self._machine.away_until > now

    def _aim(self, verb: str, rooms: Sequence[str]) -> None:
        """Whether this is the change that the seed aims at, or a look at where that begins or ends."""
        aim = self._weather.aim
        self._aimed = verb == "rename" and aim is not None and aim[0] == rooms[0] and aim[1] in (ANYWHERE, rooms[1])
        self._dwells = verb == "list" and aim is not None and rooms[0] in aim

    def _scan(self, path: str, earlier: Sequence[str]) -> Sequence[str]:
        """A directory is read piece by piece: some of its names are those of a moment ago."""
        began = self._scheduler.now
        later: Sequence[str] = self._call("list", path)
        if self._machine.away_until > began:
            return earlier
        split = self._weather.draw("split", *self._key())

        def first(name: str) -> bool:
            return zlib.crc32(name.encode()) < split * (1 << 32)

        return [*filter(first, earlier), *(name for name in later if not first(name))]

    def _pause(self, path: str) -> None:
        """The way to the server; a cut machine's calls stand still until the network is back."""
        way_s = 0.003 * self._weather.draw("way", *self._key())
        if self._strikes("slow"):
            way_s += 0.5 * self._weather.draw("how slow", *self._key())
        if self._strikes("stall"):
            way_s += 8.0 * self._weather.draw("how long", *self._key())
        self._scheduler.sleep(way_s)
        if self._machine.cut_until > self._scheduler.now and self._strikes("down"):
            self._scheduler.sleep(DOWN_AFTER_S)
            raise _error(errno.EHOSTDOWN, path)
        while self._machine.cut_until > self._scheduler.now:
            self._scheduler.sleep(min(BLOCK_LOOK_S, self._machine.cut_until - self._scheduler.now + 0.001))

    def _refuse(self, verb: str, args: tuple[object, ...]) -> None:
        path = str(args[0]) if args else ""
        if self._strikes("eio"):
            raise _error(NETWORK[int(self._weather.draw("eio code", *self._key()) * len(NETWORK))], path)
        for kind, code in (("estale", errno.ESTALE), ("eintr", errno.EINTR)):
            if self._strikes(kind):
                raise _error(code, path)
        if verb in (*CHANGES, "read") and self._strikes("busy"):
            codes = (*BUSY, errno.EINVAL) if verb == "read" else BUSY
            raise _error(codes[int(self._weather.draw("busy code", *self._key()) * len(codes))], path)

    def _later(self, act: Callable[[], Any]) -> None:
        """The network keeps the change and carries it out when it likes, whoever is still there to care."""
        cuts = self._server.cuts

        def deliver() -> None:
            if self._server.forgets and self._server.cuts != cuts:
                return  # what it had not carried out yet it forgot first
            try:
                act()
            except OSError:
                return  # its source is gone, or no room is left: it came too late

        after_s = 40.0 * self._weather.draw("how late", *self._key())
        self._scheduler.spawn(f"late {self._machine.name}", deliver, after_s)

    def _tear(self, path: str, data: bytes) -> None:
        """The writer died in the middle: some of the file is there."""
        try:
            self._server.call("write", path, data[: len(data) // 2], durable=False)
        except OSError:
            return

    def _believe(self, path: str) -> None:
        """A name that is believed to be absent is not asked for at the server."""
        if self._absent.get(path, 0.0) > self._scheduler.now:
            self._calls += 1
            self._pause(path)
            raise _error(errno.ENOENT, path)

    def _disbelieve(self, src: str, dst: str) -> None:
        """A name that this client made, and that a power cut undid since: the entry is there, the file is not."""
        undone = self._made.get(dst, self._server.cuts) != self._server.cuts and not self._server.exists(dst)
        if self.forgets and undone and self._server.exists(src):
            if self._strikes("alias"):
                self._calls += 1
                self._pause(src)
                raise _error(errno.EEXIST, src)
            del self._made[dst]

    def _remember_absent(self, path: str) -> None:
        if self._strikes("negative"):
            self._absent[path] = self._scheduler.now + NEGATIVE_S

    def _strikes(self, kind: str) -> bool:
        # Asked several times a call: what this seed does not have need not be hashed.
        if self._weather.fair or kind not in self._weather.calls:
            return False
        return self._weather.strikes(kind, *self._key(), aimed=self._aimed or (self._dwells and kind == "stall"))

    def _key(self) -> tuple[object, ...]:
        return (self._machine.name, self._calls)


def _below(verb: str, args: tuple[object, ...]) -> list[str]:
    """A call that meets the folder on which the share is mounted, while it is not."""
    if args == ("",) and verb == "list":
        return []
    raise _error(errno.ENOENT, str(args[0]) if args else "")


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
