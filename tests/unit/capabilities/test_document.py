"""Claim files as data that remembers its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_handoff.capabilities.document import parse_document, read_document
from airflow_handoff.exceptions import CapabilitiesError


def test_each_key_of_yaml_knows_its_line() -> None:
    """Also below an anchor, and a key that is missing is on the line of what is around it."""
    document = parse_document("a: &x\n  b: 1\n\n  c: 3.10\nd: *x\n", "x.yaml")
    assert document.data["d"] == {"b": 1, "c": 3.1}
    assert (document.line("a", "b"), document.line("a", "c"), document.line("d")) == (2, 4, 5)
    assert (document.line("a", "nope"), document.line("d", "b"), document.line("nope")) == (1, 5, 1)
    assert document.written["a", "c"] == "3.10"


def test_each_key_of_json_knows_its_line() -> None:
    """Also where it is indented with tabs, which YAML does not allow."""
    document = parse_document('{\n\t"a": {\n\t\t"b": "\\u00e9 \\/"\n\t}\n}\n', "x.json")
    assert document.data == {"a": {"b": "é /"}}
    assert document.line("a", "b") == 3


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("x.yaml", "a: 1\nb: [1,\n", 3, "expected YAML"),
        ("x.yaml", "a: 1\n\tb: 2\n", 2, "expected YAML"),
        ("x.yaml", "a: 1\n---\nb: 2\n", 2, "expected YAML"),
        ("x.yaml", "a: !!python/object:os.system {}\n", 1, "expected YAML"),
        ("x.yaml", "a: 2026-13-45\n", None, "expected YAML"),
        ("x.json", '{\n"a": 1,\n}', 3, "expected JSON"),
        ("x.json", "[" * 100_000, None, "too deep"),
        ("x.json", '{"a": ' + "9" * 5_000 + "}", None, "a value cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    name: str, text: str, line: int | None, reason: str
) -> None:
    """Broken, hostile and merely wrong files end in one sentence."""
    with pytest.raises(CapabilitiesError, match=reason) as raised:
        parse_document(text, name)
    assert raised.value.line == line


def test_an_alias_bomb_is_read_in_no_time() -> None:
    """Shared nodes are walked once; nine levels of nine would be four hundred million."""
    levels = ["a0: &a0 {x: 1}"]
    levels += [
        f"a{n}: &a{n} {{" + ", ".join(f"k{i}: *a{n - 1}" for i in range(9)) + "}" for n in range(1, 10)
    ]
    assert parse_document("\n".join(levels), "x.yaml").line("a9") == 10


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Both are told with the path."""
    path = tmp_path / "capabilities.yaml"
    with pytest.raises(CapabilitiesError, match="No such file"):
        read_document(path)
    path.write_bytes(b"sdk: \xff\n")
    with pytest.raises(CapabilitiesError, match="byte 5 is not"):
        read_document(path)
    path.write_bytes(b"\xef\xbb\xbfsdk: zig\r\n")
    assert read_document(path).data == {"sdk": "zig"}
