"""The codec, on frames that were captured between real tasks and the real supervisor."""

from __future__ import annotations

import json
import unittest
from datetime import datetime, timezone
from pathlib import Path

from airflow_handoff_sdk.errors import WireError
from airflow_handoff_sdk.msgpack import Ext, packb, unpackb

VECTORS = Path(__file__).resolve().parents[3] / "tests" / "vectors"


def read_vectors():
    """Yield the name and each frame of every vector file."""
    for path in sorted(VECTORS.glob("*.json")):
        for vector in json.loads(path.read_text(encoding="utf-8")):
            yield path.stem, vector


def plain(value):
    """Return a decoded value in the notation of the vectors."""
    if isinstance(value, datetime):
        return {"$ts": value.isoformat(timespec="microseconds").replace("+00:00", "")}
    if isinstance(value, bytes):
        return {"$bin": value.hex()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value != value:
        return "NaN"
    return value


def expected(value):
    """Return the vectors' own notation with moments in one spelling."""
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"$ts"}:
            text = value["$ts"].replace("Z", "").replace("+00:00", "")
            return {"$ts": text if "." in text else text + ".000000"}
        return {key: expected(item) for key, item in value.items()}
    return "NaN" if value != value else value


@unittest.skipUnless(VECTORS.is_dir(), "the captured frames are in the repository, not in the sdist")
class Vectors(unittest.TestCase):
    """Captured frames."""

    def test_every_frame_decodes_to_what_was_sent(self):
        """Each well-formed frame decodes to the value that was captured with it."""
        count = 0
        for name, vector in read_vectors():
            if vector["decoded"] is None:
                continue
            data = bytes.fromhex(vector["hex"])
            self.assertEqual(int.from_bytes(data[:4], "big"), len(data) - 4, name)
            self.assertEqual(plain(unpackb(data[4:])), expected(vector["decoded"]), name)
            count += 1
        self.assertGreater(count, 150)

    def test_every_value_encodes_to_itself(self):
        """Each well-formed value survives encoding and decoding."""
        for name, vector in read_vectors():
            if vector["decoded"] is not None:
                value = unpackb(bytes.fromhex(vector["hex"])[4:])
                self.assertEqual(plain(unpackb(packb(value))), plain(value), name)

    def test_malformed_payloads_raise(self):
        """A payload that is no MessagePack is a WireError with an offset, never a crash."""
        with self.assertRaisesRegex(WireError, "offset 0"):
            unpackb(bytes.fromhex("c1c1c1"))


class Limits(unittest.TestCase):
    """The edges of each type."""

    def test_integers(self):
        """Every width of integer survives, and one too wide is refused."""
        edges = [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1]
        edges += [-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63)]
        self.assertEqual([unpackb(packb(n)) for n in edges], edges)
        for wide in (2**64, -(2**63) - 1):
            with self.assertRaises(OverflowError):
                packb(wide)

    def test_sizes(self):
        """Every width of text, bytes, list and map survives."""
        for size in (0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536):
            for value in ("é" * size, b"x" * size, [1] * size, {str(n): n for n in range(size)}):
                self.assertEqual(unpackb(packb(value)), value)

    def test_moments(self):
        """Moments of all three widths survive to the microsecond; one without a zone is refused."""
        for moment in (
            datetime(2026, 11, 30, tzinfo=timezone.utc),
            datetime(2026, 11, 30, 1, 2, 3, 456789, tzinfo=timezone.utc),
            datetime(1950, 1, 1, 1, 2, 3, 4, tzinfo=timezone.utc),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
        ):
            self.assertEqual(unpackb(packb(moment)), moment)
        with self.assertRaises(TypeError):
            packb(datetime(2026, 1, 1))

    def test_other_extensions(self):
        """An extension that is not a moment is kept as it is."""
        for size in (1, 2, 3, 4, 8, 16, 17, 300, 70000):
            value = Ext(5, b"x" * size)
            self.assertEqual(unpackb(packb(value)), value)

    def test_broken_payloads(self):
        """Cut, padded, deep and wrong payloads raise WireError."""
        for data in (b"", b"\xa5ab", b"\xd9", b"\x93\x01", b"\x01\x01", b"\xa1\xff", b"\x91" * 5000,
                     b"\x81\x90\x01", b"\xdf\xff\xff\xff\xff", b"\xd6\xff\x00"):  # fmt: skip
            with self.assertRaises(WireError, msg=data[:8]):
                unpackb(data)

    def test_values_that_hold_themselves(self):
        """A list inside itself is refused, not followed."""
        loop = []
        loop.append(loop)
        with self.assertRaises(TypeError):
            packb(loop)


if __name__ == "__main__":
    unittest.main()
