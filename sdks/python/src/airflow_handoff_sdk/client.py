"""The channel to the supervisor: one request at a time or many threads at once."""

from __future__ import annotations

import os
import threading

from airflow_handoff_sdk.errors import ConnectionLost, WireError, refusal
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
        self._last_id = 0
        self._writing = threading.Lock()
        self._waiting = threading.Condition(threading.Lock())
        self._replies: dict[int, list[Any] | None] = {}
        self._reading = False
        self._inbox = bytearray()
        self._broken: Exception | None = None

    def read_startup(self) -> Body:
        """Return the body of the first frame, which nobody asked for.

        :raises WireError: where it is anything but ``StartupDetails``.
        """
        frame = self._read_frame()
        body = frame[1]
        if not isinstance(body, dict) or body.get("type") != "StartupDetails":
            raise WireError(f"expected StartupDetails as the first frame, got {body!r}")
        return body

    def request(self, body: Body) -> Body:
        """Send a request and return the body of its reply, ``{}`` where the reply is empty.

        :raises SupervisorError: where the supervisor refuses it.
        :raises ConnectionLost: where the channel has ended, or this is a forked child of the task.
        """
        kind = body.get("type", "?")
        if os.getpid() != self._pid:
            raise ConnectionLost(
                "a forked process cannot use the channel of its parent; ask in the task process"
            )
        with self._writing:
            ident = self._last_id + 1
            frame = [ident, body, self.carrier] if self.carrier else [ident, body]
            payload = packb(frame)
            self._last_id = ident
            with self._waiting:
                self._replies[ident] = None
            self._write(payload)
        reply = self._wait_for(ident)
        error = reply[2] if len(reply) > 2 else None
        if error:
            raise refusal(error, kind)
        answer = reply[1]
        if answer is None:
            return {}
        if answer.get("type") == "ErrorResponse":
            raise refusal(answer, kind)
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the channel."""
        self._sock.close()

    def _write(self, payload: bytes) -> None:
        if len(payload) > _MAX_FRAME:
            raise WireError(f"a frame of {len(payload)} bytes, and 4294967295 is the most")
        try:
            self._sock.sendall(len(payload).to_bytes(4, "big") + payload)
        except OSError as error:
            raise ConnectionLost(f"the supervisor has closed the channel: {error}") from error

    def _wait_for(self, ident: int) -> list[Any]:
        """Read frames, or let another thread read them, until the reply to ``ident`` is there."""
        with self._waiting:
            while True:
                reply = self._replies[ident]
                if reply is not None:
                    del self._replies[ident]
                    return reply
                if self._broken is not None:
                    raise ConnectionLost(str(self._broken)) from self._broken
                if self._reading:
                    self._waiting.wait()
                    continue
                self._reading = True
                self._waiting.release()
                frame: list[Any] | None = None
                broken: Exception | None = None
                try:
                    frame = self._read_frame()
                except (WireError, ConnectionLost) as error:
                    broken = error
                finally:
                    self._waiting.acquire()
                    self._reading = False
                    self._waiting.notify_all()
                if broken is not None:
                    self._broken = broken
                elif frame is not None and frame[0] in self._replies:
                    self._replies[frame[0]] = frame

    def _read_frame(self) -> list[Any]:
        self._fill(4)
        size = int.from_bytes(self._inbox[:4], "big")
        self._fill(4 + size)
        payload = bytes(memoryview(self._inbox)[4 : 4 + size])
        del self._inbox[: 4 + size]
        frame = unpackb(payload)
        if not isinstance(frame, list) or len(frame) < 2 or not isinstance(frame[0], int):
            raise WireError(f"expected [id, body, error], got {frame!r}")
        if not isinstance(frame[1], (dict, type(None))):
            raise WireError(f"expected a map or null as body, got {frame[1]!r}")
        return frame

    def _fill(self, size: int) -> None:
        """Read until the inbox holds ``size`` bytes; what an interrupted read has brought stays there."""
        while len(self._inbox) < size:
            try:
                chunk = self._sock.recv(max(65536, min(size - len(self._inbox), 1 << 20)))
            except OSError as error:
                raise ConnectionLost(f"the channel broke: {error}") from error
            if not chunk:
                raise ConnectionLost("the supervisor has closed the channel")
            self._inbox += chunk
