"""Who is at the other end of a loopback connection: a process of the tree, or a stranger."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
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


def owned_by_process(pid: int, wanted: Set[Connection]) -> set[Connection]:
    """Return which of the wanted connections a process holds; a process that is gone holds none."""
    inodes = _inodes(wanted)
    return _held_by_psutil(pid, wanted) if inodes is None else _held(pid, inodes)


def owned_by_tree(root: int, wanted: Iterable[Connection]) -> set[Connection]:
    """Return which of the wanted connections belong to processes below ``root``.

    :param root: the pid of a process that adopts the orphans of its tree, so that nobody gets out of it.
    """
    missing = set(wanted)
    found: set[Connection] = set()
    inodes = _inodes(missing)
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


# -- Linux: the kernel's table is searched for the few wanted connections, which psutil would read as a whole


def _inodes(wanted: Iterable[Connection]) -> Mapping[str, Connection] | None:
    """Return the wanted connections by the link that a holder has to them; None where there is no /proc."""
    try:
        with open("/proc/net/tcp", "rb") as file:
            table = file.read()
        with open("/proc/net/tcp6", "rb") as file:
            table6 = file.read()
    except FileNotFoundError as error:
        if error.filename == "/proc/net/tcp":
            return None
        table6 = b""
    except OSError:
        return None
    found: dict[str, Connection] = {}
    for connection in wanted:
        try:
            ends = [(_word(end.host), b"%04X" % end.port) for end in connection]
        except OSError:  # not IPv4, so not one of ours
            continue
        for rows, prefix in ((table, b""), (table6, b"0000000000000000" + _mapped())):
            at = rows.find(
                b" %b:%b %b:%b " % tuple(part for word, port in ends for part in (prefix + word, port))
            )
            if at >= 0:
                inode = rows[at : rows.find(b"\n", at)].split()[8].decode()
                found[f"socket:[{inode}]"] = connection
    return found


def _word(host: str) -> bytes:
    return b"%08X" % int.from_bytes(socket.inet_aton(host), sys.byteorder)


def _mapped() -> bytes:
    return b"%08X" % int.from_bytes(b"\0\0\xff\xff", sys.byteorder)


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
