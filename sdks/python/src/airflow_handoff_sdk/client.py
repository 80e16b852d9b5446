"""The channel to the supervisor: one request at a time or many threads at once.

A signal handler may raise between any two steps of a request, ``KeyboardInterrupt`` for one, and the task
still has to report how it ended. So what was sent and received is counted inside of the same C call that
sends and receives: Python runs no handler in the middle of one. Whoever comes next finishes the frame.
"""

from __future__ import annotations

import os
import threading
from itertools import count

from airflow_handoff_sdk.errors import ConnectionLost, SdkError, WireError, refusal
from airflow_handoff_sdk.msgpack import packb, unpackb

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any, Dict

    Body = Dict[str, Any]

_MAX_FRAME = 0xFFFFFFFF


class Client:
    """Asks the supervisor and matches its replies to the requests by their id.

    :param sock: a connected stream socket; the client owns it.
    :param carrier: a trace context that travels with every request.
    """

    def __init__(self, sock: socket.socket, carrier: dict[str, str] | None = None) -> None:
        self.carrier = carrier
        self._sock = sock
        self._pid = os.getpid()
        # The unsolicited first frame has id 0: our ids start above it.
        self._ids = count(1)
        self._asking: set[int] = set()
        # Reentrant: a thread that was interrupted where it took one, or gave it back, can tell; see _let_go.
        self._writing = threading.RLock()
        #: The frame that was written last, and how many bytes of it each call has sent.
        self._outbox: tuple[memoryview, list[int]] = (memoryview(b""), [])
        self._waiting = threading.Condition(threading.RLock())
        self._replies: dict[int, list[Any] | None] = {}
        #: Requests whose function was interrupted: their replies are still to come.
        self._owed: list[int] = []
        self._reader: int | None = None
        self._inbox = bytearray()
        self._broken: Exception | None = None

    def read_startup(self) -> Body:
        """Return the body of the first frame, which nobody asked for.

        :raises WireError: where it is anything but ``StartupDetails``.
        """
        frame, size = self._read_frame()
        del self._inbox[:size]
        body = frame[1]
        if not isinstance(body, dict) or body.get("type") != "StartupDetails":
            raise WireError(f"expected StartupDetails as the first frame, got {body!r}")
        return body

    def request(self, body: Body) -> Body:
        """Send a request and return the body of its reply, ``{}`` where the reply is empty.

        :raises SupervisorError: where the supervisor refuses it.
        :raises ConnectionLost: where the channel has ended, or this is a forked child of the task.
        :raises SdkError: in a signal handler that interrupted a request.
        """
        kind = body.get("type", "?")
        if os.getpid() != self._pid:
            raise ConnectionLost(
                "a forked process cannot use the channel of its parent; ask in the task process"
            )
        me = threading.get_ident()
        if me in self._asking:
            raise SdkError(
                f"{kind} was asked for by a signal handler in the middle of another request, which cannot go "
                "on before the handler returns: raise in the handler, and ask where the function catches it"
            )
        self._let_go(me)
        try:
            self._asking.add(me)
            reply = self._exchange(body, me)
        finally:
            self._asking.discard(me)
            self._let_go(me)
        error = reply[2] if len(reply) > 2 else None
        if error:
            raise refusal(error, kind)
        answer = reply[1]
        if answer is None:
            return {}
        if answer.get("type") == "ErrorResponse":
            raise refusal(answer, kind)
        return answer  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Count this thread's last request as over, however it was interrupted."""
        self._asking.discard(threading.get_ident())

    def _let_go(self, me: int) -> None:
        """Give up what an interrupted request of this thread has kept from the others."""
        if self._reader == me:
            with self._waiting:
                self._reader = None
                self._waiting.notify_all()
        for lock in (self._waiting, self._writing):
            try:
                while True:
                    lock.release()
            except RuntimeError:  # it is not held
                pass

    def close(self) -> None:
        """Close the channel."""
        self._sock.close()

    def _exchange(self, body: Body, me: int) -> list[Any]:
        ident = next(self._ids)
        payload = packb([ident, body, self.carrier] if self.carrier else [ident, body])
        if len(payload) > _MAX_FRAME:
            raise WireError(f"a frame of {len(payload)} bytes, and 4294967295 is the most")
        try:
            with self._writing:
                self._flush()
                # A supervisor that cannot get rid of a reply would not read the next request either.
                while self._owed:
                    self._wait_for(self._owed[0], me)
                    del self._owed[0]
                self._outbox = (memoryview(len(payload).to_bytes(4, "big") + payload), [])
                self._replies[ident] = None
                self._flush()
            return self._wait_for(ident, me)
        except BaseException:
            if self._replies.get(ident, ident) is None:
                self._owed.append(ident)
            raise

    def _flush(self) -> None:
        """Send the rest of the frame in the outbox."""
        frame, sent = self._outbox
        try:
            while sum(sent) < len(frame):
                sent.extend(map(self._sock.send, (frame[sum(sent) :],)))
        except OSError as error:
            raise ConnectionLost(f"the supervisor has closed the channel: {error}") from error
        self._outbox = (memoryview(b""), [])

    def _wait_for(self, ident: int, me: int) -> list[Any]:
        """Read frames, or let another thread read them, until the reply to ``ident`` is there."""
        # No ``with``: it would complain of a lock that is not held where a handler interrupts the release.
        self._waiting.acquire()
        try:
            while True:
                # It is gone where a signal came between this look and the last.
                reply = self._replies.get(ident, [])
                if reply is not None:
                    self._replies.pop(ident, None)
                    return reply
                if self._broken is not None:
                    raise ConnectionLost(str(self._broken)) from self._broken
                if self._reader not in (None, me):
                    self._waiting.wait()
                    continue
                self._reader = me
                self._waiting.release()
                frame: list[Any] = []
                size = 0
                broken: Exception | None = None
                try:
                    frame, size = self._read_frame()
                except (WireError, ConnectionLost) as error:
                    broken = error
                finally:
                    self._waiting.acquire()
                    self._reader = None
                    self._waiting.notify_all()
                if broken is not None:
                    self._broken = broken
                    continue
                if frame[0] in self._replies:
                    self._replies[frame[0]] = frame
                # Only now: an interrupted thread may have read the reply of another.
                del self._inbox[:size]
        finally:
            try:
                self._waiting.release()
            except RuntimeError:  # interrupted while it was not held
                pass

    def _read_frame(self) -> tuple[list[Any], int]:
        """Return the first frame of the inbox, and how many bytes of it that frame takes."""
        self._fill(4)
        end = 4 + int.from_bytes(self._inbox[:4], "big")
        self._fill(end)
        frame = unpackb(bytes(memoryview(self._inbox)[4:end]))
        if not isinstance(frame, list) or len(frame) < 2 or not isinstance(frame[0], int):
            raise WireError(f"expected [id, body, error], got {frame!r}")
        if not isinstance(frame[1], (dict, type(None))):
            raise WireError(f"expected a map or null as body, got {frame[1]!r}")
        return frame, end

    def _fill(self, size: int) -> None:
        """Read until the inbox holds ``size`` bytes; what an interrupted read has brought stays there."""
        while len(self._inbox) < size:
            before = len(self._inbox)
            least = max(65536, min(size - before, 1 << 20))
            try:
                list(map(self._inbox.__iadd__, map(self._sock.recv, (least,))))
            except OSError as error:
                raise ConnectionLost(f"the channel broke: {error}") from error
            if len(self._inbox) == before:
                raise ConnectionLost("the supervisor has closed the channel")
