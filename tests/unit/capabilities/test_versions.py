"""An order over the versions of every language."""

from __future__ import annotations

from itertools import pairwise

from airflow_handoff.capabilities.versions import is_older, newest, parse_version, release_of

ASCENDING = [
    "0.9",
    "1.0.0-SNAPSHOT",
    "1.0.0-alpha.2",
    "1.0.0b3",
    "1.0.0-beta10",
    "1.0.0-rc.1",
    "1.0",
    "1.0.1",
]


def test_versions_are_ordered() -> None:
    """Pre-releases come before their release, and ten after three."""
    for one, other in pairwise(ASCENDING):
        assert is_older(one, other), (one, other)
        assert not is_older(other, one)


def test_spellings_of_one_version_are_equal() -> None:
    """Maven, npm, Python and Go write the same release in four ways."""
    keys = {
        parse_version(text)
        for text in ("1.0.0-beta3", "1.0.0-beta.3", "1.0.0b3", "v1.0.0-beta3", "1.0-beta3+exp")
    }
    assert len(keys) == 1


def test_a_text_without_order_is_older_when_it_differs() -> None:
    """Evidence of an unknown release proves nothing of another one."""
    assert is_older("nightly", "1.0")
    assert not is_older("nightly", "nightly")
    assert newest(["nightly"]) is None
    assert newest(["1.9", "1.10", "nightly"]) == "1.10"


def test_the_release_of_an_airflow_version() -> None:
    """Patches and pre-releases belong to it."""
    assert [release_of(text) for text in ("3.3", "3.10.2", "3.4rc1")] == [(3, 3), (3, 10), (3, 4)]
