"""Who is at the other end of a loopback connection: a process of the tree, or a stranger."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import psutil

from airflow_handoff.process.inodes import Address, Connection, links


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


def owned_by_process(pid: int, wanted: Set[Connection]) -> set[Connection]:
    """Return which of the wanted connections a process holds; a process that is gone holds none."""
    inodes = links(wanted)
    return _held_by_psutil(pid, wanted) if inodes is None else _held(pid, inodes)


def owned_by_tree(root: int, wanted: Iterable[Connection]) -> set[Connection]:
    """Return which of the wanted connections belong to processes below ``root``.

    :param root: the pid of a process that adopts the orphans of its tree, so that nobody gets out of it.
    """
    missing = set(wanted)
    found: set[Connection] = set()
    inodes = links(missing)
    for pid in _below(root):
        if not missing:
            break
        held = _held_by_psutil(pid, missing) if inodes is None else _held(pid, inodes)
        found |= held
        missing -= held
    return found


def _below(root: int) -> Iterator[int]:
    try:
        yield from (process.pid for process in psutil.Process(root).children(recursive=True))
    except (psutil.Error, OSError):
        return


def _held(pid: int, inodes: Mapping[str, Connection]) -> set[Connection]:
    found: set[Connection] = set()
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue
        if link in inodes:
            found.add(inodes[link])
    return found


# -- elsewhere


def _held_by_psutil(pid: int, wanted: Set[Connection]) -> set[Connection]:
    try:
        held = psutil.Process(pid).net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return set()
    found = set()
    for entry in held:
        local, remote = address(entry.laddr), address(entry.raddr)
        if local and remote and Connection(local, remote) in wanted:
            found.add(Connection(local, remote))
    return found
