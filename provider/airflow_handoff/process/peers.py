"""Who is at the other end of a loopback connection: a process of the tree, or a stranger."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

import psutil


class Address(NamedTuple):
    """A host and a port, the host in its plain IPv4 form where it has one."""

    host: str
    port: int


class Connection(NamedTuple):
    """A TCP connection as its client sees it."""

    local: Address
    remote: Address


def address(value: Any) -> Address | None:
    """Bring a socket address into one form.

    A runtime with IPv6 sockets shows 127.0.0.1 as ``::ffff:127.0.0.1`` or ``::127.0.0.1``.

    :param value: what ``getpeername``, ``getsockname`` or psutil returned.
    :returns: None for anything that is not an IP address with a port.
    """
    if not isinstance(value, tuple) or len(value) < 2:
        return None
    host, port = str(value[0]), int(value[1])
    if ":" in host:
        try:
            parsed = ipaddress.IPv6Address(host)
        except ValueError:
            return None
        if parsed.ipv4_mapped is not None:
            host = str(parsed.ipv4_mapped)
        elif 1 < int(parsed) < 2**32:
            host = str(ipaddress.IPv4Address(int(parsed)))
    return Address(host, port)


def owned_by_process(process: psutil.Process, wanted: Set[Connection]) -> set[Connection]:
    """Return which of the wanted connections a process holds; a process that is gone holds none."""
    try:
        held = process.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return set()
    found = set()
    for entry in held:
        local, remote = address(entry.laddr), address(entry.raddr)
        if local and remote and Connection(local, remote) in wanted:
            found.add(Connection(local, remote))
    return found


def owned_by_tree(root: int, wanted: Iterable[Connection]) -> set[Connection]:
    """Return which of the wanted connections belong to processes below ``root``.

    :param root: the pid of a process that adopts the orphans of its tree, so that nobody gets out of it.
    """
    missing = set(wanted)
    found: set[Connection] = set()
    for process in _below(root):
        if not missing:
            break
        held = owned_by_process(process, missing)
        found |= held
        missing -= held
    return found


def _below(root: int) -> Iterator[psutil.Process]:
    try:
        yield from psutil.Process(root).children(recursive=True)
    except (psutil.Error, OSError):
        return
