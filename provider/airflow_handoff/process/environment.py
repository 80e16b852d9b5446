"""What a runtime may see of its host's environment: an allow-list, and the names that stayed behind."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Passed on to every runtime where the host has them; ``*`` stands for any characters.
ALWAYS_PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("TRACEPARENT", "TRACESTATE", "BAGGAGE", "traceparent", "tracestate", "baggage"),
)


@dataclass(frozen=True)
class Environment:
    """The environment of a runtime.

    :param values: what the runtime gets.
    :param withheld: the names of the host that it does not get, sorted.
    """

    values: Mapping[str, str]
    withheld: tuple[str, ...]


def allowed_environment(
    host: Mapping[str, str], *, pass_env: Iterable[str] = (), env: Mapping[str, str] | None = None
) -> Environment:
    """Choose what a runtime may see.

    :param host: the environment of the process that starts it.
    :param pass_env: further names to pass on; ``*`` and ``?`` are wildcards, case matters.
    :param env: values that are set whatever the host has.
    """
    patterns = (*ALWAYS_PASSED, *pass_env)
    exact = frozenset(pattern for pattern in patterns if not any(mark in pattern for mark in "*?["))
    wild = tuple(pattern for pattern in patterns if pattern not in exact)
    values: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in host.items():
        if name in exact or any(fnmatch.fnmatchcase(name, pattern) for pattern in wild):
            values[name] = value
        else:
            withheld.append(name)
    values.update(env or {})
    return Environment(values, tuple(sorted(name for name in withheld if name not in values)))
