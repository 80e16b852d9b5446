"""A signal handler that raises, logs or asks in the middle of a frame harms nothing that comes after it."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
import time
import unittest

from airflow_handoff_sdk.client import Client
from airflow_handoff_sdk.errors import SdkError
from airflow_handoff_sdk.logs import WireHandler
from airflow_handoff_sdk.msgpack import unpackb
from supervisor import read_exactly, write_frame

BIG = "x" * (4 << 20)


class TooLate(BaseException):
    """Raised by the handlers of these tests; logging swallows an ``Exception`` of any handler."""


@unittest.skipUnless(os.name == "posix", "this system has no interval timers")
class Signals(unittest.TestCase):
    """Python's handlers run in the main thread, between any two of its steps."""

    def setUp(self):
        """Connect both ends and remember the handler."""
        self.near, self.far = socket.socketpair()
        self.before = signal.getsignal(signal.SIGALRM)
        self.threads = []

    def tearDown(self):
        """Leave no timer, no thread and no socket."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
        self.near.close()
        for thread in self.threads:
            thread.join(30)
        self.far.close()

    def start(self, target):
        """Run a function in a thread that ends with the test."""
        thread = threading.Thread(target=target)
        thread.start()
        self.threads.append(thread)

    def ring(self, handler, delay):
        """Call a handler once, after so many seconds."""
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, delay)

    def interrupted(self, call, delay):
        """Call a function and say whether a handler that raises has interrupted it."""
        try:
            self.ring(self.raising, delay)
            call()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except TooLate:
            return True
        return False

    def interrupt_everywhere(self, call, wanted):
        """Interrupt a function at each fortieth of its length until that has hit often enough.

        Its length is measured first, so that a fast machine is interrupted as well.
        """
        began = time.monotonic()
        call()
        whole = time.monotonic() - began
        hits = rounds = 0
        while hits < wanted and rounds < 50:
            rounds += 1
            for number in range(1, 40):
                hits += self.interrupted(call, whole * number / 40)
        return hits

    def raising(self, number, frame):
        """Raise."""
        raise TooLate

    def test_frames_stay_whole(self):
        """However often a big request is interrupted, every frame is whole and every reply its own."""
        frames = []

        def supervise():
            while True:
                head = read_exactly(self.far, 4)
                if len(head) < 4:
                    return
                frame = unpackb(read_exactly(self.far, int.from_bytes(head, "big")))
                frames.append(frame)
                write_frame(self.far, [frame[0], {"said": frame[1]["n"], "pad": BIG[:300000]}, None])

        self.start(supervise)
        client = Client(self.near)
        body = {"type": "SetXCom", "n": 0, "value": BIG}
        hits = self.interrupt_everywhere(lambda: client.request(body), 5)
        client.settle()
        self.assertEqual(client.request({"type": "SucceedTask", "n": -1})["said"], -1)
        self.assertGreaterEqual(hits, 5)
        self.assertEqual(frames[-1][1], {"type": "SucceedTask", "n": -1})
        self.assertTrue(all(len(frame[1]["value"]) == len(BIG) for frame in frames[:-1]))

    def test_no_lock_stays_taken(self):
        """A handler may raise where a lock was just taken or not yet released: the others get their turn."""

        def supervise():
            while True:
                head = read_exactly(self.far, 4)
                if len(head) < 4:
                    return
                frame = unpackb(read_exactly(self.far, int.from_bytes(head, "big")))
                write_frame(self.far, [frame[0], {"said": frame[1]["n"]}, None])

        self.start(supervise)
        client = Client(self.near)
        said = []

        def ask(number):
            said.append(client.request({"type": "GetVariable", "n": number})["said"])

        # As an interrupted request leaves them.
        client._waiting.acquire()
        client._writing.acquire()
        client._reader = threading.get_ident()
        self.assertFalse(self.interrupted(lambda: ask(1), 20), "the next request waits for ever")
        self.assertEqual(said, [1])
        other = threading.Thread(target=ask, args=(2,), daemon=True)
        other.start()
        other.join(20)
        self.assertEqual(said, [1, 2])

    def test_a_handler_that_asks_is_refused(self):
        """A request inside of a request is an error that says what to do, and not a wait without an end."""
        seen = []

        def supervise():
            frame = unpackb(read_exactly(self.far, int.from_bytes(read_exactly(self.far, 4), "big")))
            while not seen:
                time.sleep(0.005)
            write_frame(self.far, [frame[0], {"said": "first"}, None])

        def ask(number, frame):
            try:
                client.request({"type": "GetVariable", "key": "k"})
            except SdkError as error:
                seen.append(str(error))

        client = Client(self.near)
        self.start(supervise)
        self.ring(ask, 0.05)
        self.assertEqual(client.request({"type": "GetVariable", "key": "j"}), {"said": "first"})
        self.assertIn("raise in the handler", seen[0])

    def test_a_handler_that_logs(self):
        """Its record follows the one that it interrupted; none is torn, and the last one is kept."""
        lines = []

        def collect():
            with self.far.makefile("rb") as stream:
                for line in stream:
                    lines.append(json.loads(line)["event"])
                    # So that the next line is still on its way when the signal comes.
                    time.sleep(0.06)

        self.start(collect)
        handler = WireHandler()
        handler.connect(self.near)
        log = logging.Logger("signals")
        log.addHandler(handler)
        for number in range(1, 21):
            self.ring(lambda number, frame: log.warning("in the handler"), (10 + 2 * number) / 1000)
            log.error(BIG)
        signal.setitimer(signal.ITIMER_REAL, 0)
        log.error("last")
        self.near.shutdown(socket.SHUT_WR)
        self.threads[0].join(30)
        self.assertEqual((lines[-1], lines.count(BIG)), ("last", 20))
        self.assertIn("in the handler", lines)

    def test_a_handler_that_raises_tears_no_line(self):
        """What it interrupted is sent before the next record, or when the handler is flushed."""
        lines = []

        def collect():
            with self.far.makefile("rb") as stream:
                lines.extend(json.loads(line)["event"] for line in stream)

        self.start(collect)
        handler = WireHandler()
        handler.connect(self.near)
        record = logging.LogRecord("signals", logging.ERROR, __file__, 1, BIG, None, None)
        hits = self.interrupt_everywhere(lambda: handler.emit(record), 3)
        handler.flush()
        self.near.shutdown(socket.SHUT_WR)
        self.threads[0].join(30)
        self.assertGreaterEqual(hits, 3)
        self.assertTrue(lines and set(lines) == {BIG})


if __name__ == "__main__":
    unittest.main()
