"""Where the api-server is and who is asking: from options, then the environment, then a profile file.

The file holds tokens, so it is refused while anybody but its owner can read it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from airflow_handoff.client.errors import InvalidUse

URL_VARIABLE = "HANDOFF_URL"
TOKEN_VARIABLE = "HANDOFF_TOKEN"  # noqa: S105 - the name of a variable, not a token
PROFILE_VARIABLE = "HANDOFF_PROFILE"
FILE_VARIABLE = "HANDOFF_PROFILES"


@dataclass(frozen=True)
class Connection:
    """An api-server and the credential to use there.

    :param url: the server's base URL, a path included where it is served below one; no trailing slash.
    :param token: a bearer token of Airflow's own API.
    """

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Connection(url={self.url!r}, token='***')"


def profiles_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where profiles are kept: ``HANDOFF_PROFILES``, else below the user's configuration folder."""
    if named := environ.get(FILE_VARIABLE):
        return Path(named)
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "handoff" / "profiles.yaml"


def read_profiles(path: Path) -> dict[str, dict[str, str]]:
    """Read every profile; none where the file does not exist.

    :raises InvalidUse: if others can read the file, or it does not have the expected shape.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidUse(f"{path} cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise InvalidUse(f"{path} holds tokens and others can read it: run `chmod 600 {path}`")
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidUse(f"{path} is not YAML: {error}") from None
    except OSError as error:
        raise InvalidUse(f"{path} cannot be read: {error.strerror}") from None
    if not isinstance(document, dict) or not all(map(_is_entry, document.values())):
        raise InvalidUse(f"{path}: expected a mapping of profile names to `url` and `token`, both texts")
    return document


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, ""), str) for name in ("url", "token"))


def write_profile(path: Path, name: str, connection: Connection) -> None:
    """Add or replace one profile, keeping the file readable by its owner alone.

    :raises InvalidUse: if the file cannot be read or written.
    """
    profiles: dict[str, Any] = read_profiles(path)
    profiles[name] = {"url": connection.url, "token": connection.token}
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yaml.safe_dump(profiles, stream)
        fresh.replace(path)
    except OSError as error:
        raise InvalidUse(f"{path} cannot be written: {error.strerror}") from None


def resolve(
    url: str | None = None,
    token: str | None = None,
    profile: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """Settle on one server and token: each from its option, else its variable, else the profile.

    :param profile: name in the profile file; default ``HANDOFF_PROFILE``, else ``default``.
    :raises InvalidUse: if either is missing, naming the three places it can come from.
    """
    named = profile or environ.get(PROFILE_VARIABLE)
    if not profile:  # which is named for this one call
        url = url or environ.get(URL_VARIABLE)
        token = token or environ.get(TOKEN_VARIABLE)
    if url and token:
        return Connection(url.rstrip("/"), token)
    path = profiles_path(environ)
    profiles = read_profiles(path)
    if named and named not in profiles:
        known = ", ".join(sorted(map(str, profiles))) or "none"
        raise InvalidUse(f"no profile {named!r} in {path} (there: {known})")
    entry = profiles.get(named or "default", {})
    # A stored token belongs to its server: never send it to another one that was named for this call.
    if url and entry.get("url", "").rstrip("/") != url.rstrip("/"):
        entry = {}
    url, token = url or entry.get("url"), token or entry.get("token")
    if not url:
        raise InvalidUse(f"no server: give --url, set {URL_VARIABLE}, or run `handoff login --url URL`")
    if not token:
        raise InvalidUse(f"no token for {url}: give --token, set {TOKEN_VARIABLE}, or run `handoff login`")
    return Connection(url.rstrip("/"), token)
