"""Where the server and the token come from."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from airflow_handoff.client.errors import InvalidUse
from airflow_handoff.client.identity import user_of
from airflow_handoff.client.profile import Connection, profiles_path, read_profiles, resolve, write_profile
from airflow_handoff.client.reference import RequestRef


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose profile file is in a fresh folder."""
    return {"HANDOFF_PROFILES": str(tmp_path / "deep" / "profiles.yaml")}


def test_options_win_over_the_environment_over_the_profile(home: dict[str, str]) -> None:
    """Each source is asked in turn, for the address and for the token."""
    write_profile(profiles_path(home), "default", Connection("http://c", "token-c"))
    assert resolve(environ=home) == Connection("http://c", "token-c")
    loud = {**home, "HANDOFF_URL": "http://b/", "HANDOFF_TOKEN": "token-b"}
    assert resolve(environ=loud) == Connection("http://b", "token-b")
    assert resolve("http://a", "token-a", environ=loud) == Connection("http://a", "token-a")


def test_a_stored_token_is_not_sent_to_another_server(home: dict[str, str]) -> None:
    """Naming another address does not carry the profile's token there."""
    write_profile(profiles_path(home), "default", Connection("http://c", "token-c"))
    with pytest.raises(InvalidUse, match="no token for http://elsewhere"):
        resolve("http://elsewhere", environ=home)


def test_a_profile_that_others_can_read_is_refused(home: dict[str, str]) -> None:
    """The sentence says what to run."""
    path = profiles_path(home)
    write_profile(path, "default", Connection("http://c", "token-c"))
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o644)
    with pytest.raises(InvalidUse, match="chmod 600"):
        resolve(environ=home)


def test_profiles_are_kept_side_by_side(home: dict[str, str]) -> None:
    """Writing one keeps the others; an unknown one is named with those that exist."""
    path = profiles_path(home)
    write_profile(path, "prod", Connection("http://p", "1"))
    write_profile(path, "test", Connection("http://t", "2"))
    assert sorted(read_profiles(path)) == ["prod", "test"]
    assert resolve(profile="prod", environ=home).url == "http://p"
    with pytest.raises(InvalidUse, match="there: prod, test"):
        resolve(profile="stage", environ=home)


@pytest.mark.parametrize("text", ["- a\n", "a: b\n", "a: [\n", "a: {url: 5}\n"])
def test_a_malformed_profile_file_is_one_sentence(home: dict[str, str], text: str) -> None:
    """Neither a list, nor scalars, nor broken YAML gets further."""
    path = profiles_path(home)
    write_profile(path, "x", Connection("http://p", "1"))
    path.write_text(text)
    with pytest.raises(InvalidUse, match=r"profiles\.yaml"):
        resolve(environ=home)


def test_a_profile_file_that_is_no_file_is_one_sentence(home: dict[str, str], tmp_path: Path) -> None:
    """Reading a folder and writing below a file say what is wrong."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    with pytest.raises(InvalidUse, match="cannot be read"):
        resolve(environ={**home, "HANDOFF_PROFILES": str(folder)})
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidUse, match="cannot be"):
        write_profile(tmp_path / "file" / "profiles.yaml", "x", Connection("http://p", "1"))


def test_a_connection_does_not_print_its_token() -> None:
    """A repr in a log gives nothing away."""
    assert "hush" not in repr(Connection("http://c", "hush"))


def test_the_bearer_is_read_from_the_token() -> None:
    """The claim is enough for a filter; a token without it asks for --user."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "ada"}).encode()).decode().rstrip("=")
    assert user_of(f"head.{claims}.signature") == "ada"
    for opaque in ("opaque", "a.b.c", "a.W10.c"):
        with pytest.raises(InvalidUse, match="--user"):
            user_of(opaque)


@pytest.mark.parametrize("text", ["d/r/t", "d/manual__2026-01-01T00:00:00+00:00/g.t/3"])
def test_a_reference_reads_as_it_is_written(text: str) -> None:
    """Parsing and printing are inverse."""
    assert str(RequestRef.parse(text)) == text


@pytest.mark.parametrize("text", ["", "d/r", "d//t", "d/r/t/x", "d/r/t/1/2"])
def test_a_malformed_reference_says_the_shape(text: str) -> None:
    """Anything else is refused with what was expected."""
    with pytest.raises(InvalidUse, match="expected"):
        RequestRef.parse(text)


def test_a_profile_that_is_named_for_this_call_wins_over_the_environment(tmp_path: Path) -> None:
    """Else `--profile prod` would answer elsewhere."""
    path = tmp_path / "profiles.yaml"
    write_profile(path, "prod", Connection("http://prod.test", "p"))
    environ = {"HANDOFF_PROFILES": str(path), "HANDOFF_URL": "http://dev.test", "HANDOFF_TOKEN": "d"}
    assert resolve(profile="prod", environ=environ).url == "http://prod.test"
    assert resolve(environ=environ).url == "http://dev.test"
    with pytest.raises(InvalidUse, match="no profile 'other'"):
        resolve(profile="other", environ=environ)
