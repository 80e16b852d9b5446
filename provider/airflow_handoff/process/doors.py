"""The two loopback doors that a runtime comes back through; strangers are shown out and delay nobody."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import time
from dataclasses import dataclass

from airflow_handoff.process.inodes import Connection
from airflow_handoff.process.peers import address, owned_by_process, owned_by_tree

NAMES = ("comm", "logs")
#: Seconds between two looks at whose the waiting connections are.
LOOK_INTERVAL = 0.01
#: Seconds after which a connection that belongs to nobody in the tree is a stranger's.
STRANGER_AFTER = 2.0
#: Connections that are examined at a time; beyond it the oldest is dropped.
MOST_WAITING = 64


@dataclass(frozen=True)
class Visitor:
    """A connection that nobody has vouched for yet."""

    door: str
    conn: socket.socket
    seen_as: Connection
    came: float


class Doors:
    """Two listening sockets on 127.0.0.1 and those who came through them.

    :param selector: where the doors are watched.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.strangers = 0
        self._selector = selector
        self._accepted: dict[str, socket.socket] = {}
        self._waiting: list[Visitor] = []
        self._root: int | None = None
        self._runtime: int | None = None
        self._next_look = 0.0
        self._doors = {name: self._listen(name) for name in NAMES}
        self._addresses = {name: door.getsockname() for name, door in self._doors.items()}

    def _listen(self, name: str) -> socket.socket:
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        door.bind(("127.0.0.1", 0))
        door.listen(128)
        door.setblocking(False)
        self._selector.register(door, selectors.EVENT_READ, lambda: self._let_in(name, door))
        return door

    def address(self, name: str) -> str:
        """Return where a door is, as ``HOST:PORT``."""
        host, port = self._addresses[name]
        return f"{host}:{port}"

    def expect(self, *, root: int, runtime: int) -> None:
        """Say whose connections are welcome.

        :param root: the process above the whole tree.
        :param runtime: the process in it that most probably connects.
        """
        self._root, self._runtime = root, runtime

    @property
    def patience(self) -> float:
        """Seconds until it is worth looking again."""
        return LOOK_INTERVAL if self._waiting else float("inf")

    def _let_in(self, name: str, door: socket.socket) -> None:
        for _ in range(MOST_WAITING):
            try:
                conn, peer = door.accept()
            except OSError as error:  # nobody more, or gone before it was let in
                if error.errno in (errno.EMFILE, errno.ENFILE):  # the door stays knocked at: nobody spins
                    time.sleep(LOOK_INTERVAL)
                return
            seen_as = Connection(address(peer) or address(("", 0)), address(conn.getsockname()))  # type: ignore[arg-type]
            self._waiting.append(Visitor(name, conn, seen_as, time.monotonic()))
            self._next_look = 0.0
            if len(self._waiting) > MOST_WAITING:
                self._turn_away(self._waiting[0])

    def _turn_away(self, visitor: Visitor) -> None:
        self._waiting.remove(visitor)
        visitor.conn.close()
        self.strangers += 1

    def admit(self) -> dict[str, socket.socket] | None:
        """Look at who is waiting; return the two connections of the tree once both are there."""
        now = time.monotonic()
        if self._root is not None and self._waiting and now >= self._next_look:
            self._look(self._root)
            self._next_look = time.monotonic() + LOOK_INTERVAL
            for visitor in [one for one in self._waiting if now - one.came > STRANGER_AFTER]:
                self._turn_away(visitor)
        if len(self._accepted) < len(NAMES):
            return None
        accepted, self._accepted = self._accepted, {}
        return accepted

    def _look(self, root: int) -> None:
        wanted = {visitor.seen_as for visitor in self._waiting}
        owned = owned_by_process(self._runtime, wanted) if self._runtime else set()
        if not owned:
            owned = owned_by_tree(root, wanted)
        for visitor in [one for one in self._waiting if one.seen_as in owned]:
            if visitor.door in self._accepted:
                continue
            self._waiting.remove(visitor)
            visitor.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted[visitor.door] = visitor.conn

    def close(self) -> None:
        """Close the doors and show out everybody who is still waiting."""
        for door in self._doors.values():
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(door)
            door.close()
        for visitor in self._waiting:
            visitor.conn.close()
        for conn in self._accepted.values():
            conn.close()
        self._waiting.clear()
        self._accepted.clear()
