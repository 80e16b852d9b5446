"""Which inode a connection has, asked of Linux: by a look-up where the kernel offers one, else by its table.

The kernel's table of connections is slow to read whoever has few (10 ms on a machine with much memory, for it
walks every empty bucket), and a task waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Address(NamedTuple):
    """A host and a port, the host in its plain IPv4 form where it has one."""

    host: str
    port: int


class Connection(NamedTuple):
    """A TCP connection as its client sees it."""

    local: Address
    remote: Address


def links(wanted: Iterable[Connection]) -> Mapping[str, Connection] | None:
    """Return the wanted connections by the link that a holder has to them.

    :returns: None where there is neither a look-up nor a ``/proc``; what is not in it is no connection.
    """
    wanted = [one for one in wanted if _is_ipv4(one)]
    found = _looked_up(wanted)
    # Nobody found may also mean that the kernel has no such look-up: it says "no such entry" to both.
    return found or _in_table(wanted)


def _is_ipv4(connection: Connection) -> bool:
    try:
        return all(socket.inet_aton(end.host) for end in connection)
    except OSError:  # so it is not one of ours
        return False


# -- the look-up: sock_diag(7)

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
#: nlmsghdr: length, type, flags, sequence, port.
_HEADER = struct.Struct("=IHHII")
#: inet_diag_req_v2: family, protocol, extensions, padding, states; then inet_diag_sockid with no cookie.
_QUESTION = struct.Struct("=BBBBI 4s16s16sIII")
#: inet_diag_msg: family and state; the ports; what is not needed; the inode.
_REPLY = struct.Struct("=BBBB 4s60xI")
_PORTS = struct.Struct("!HH")
_ANY = 0xFFFFFFFF
#: Seconds for a reply that the kernel gives before the question's call returns.
_PATIENCE = 1.0


def _looked_up(wanted: Iterable[Connection]) -> dict[str, Connection]:
    found: dict[str, Connection] = {}
    with (
        contextlib.suppress(OSError, AttributeError, struct.error),  # not offered here
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel,
    ):
        kernel.settimeout(_PATIENCE)
        for connection in wanted:
            inode = _ask(kernel, connection)
            if inode:
                found[f"socket:[{inode}]"] = connection
    return found


def _ask(kernel: socket.socket, connection: Connection) -> int:
    """Return a connection's inode, 0 where there is no such connection; a dual-stack socket's as well."""
    local, remote = connection
    ports = _PORTS.pack(local.port, remote.port)
    hosts = (socket.inet_aton(end.host) for end in connection)
    question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY, ports, *hosts, 0, _ANY, _ANY)
    kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
    reply = kernel.recv(8192)
    if _HEADER.unpack_from(reply)[1] != _BY_FAMILY:
        code = -struct.unpack_from("=i", reply, _HEADER.size)[0]
        if code != errno.ENOENT:
            raise OSError(code, "the kernel looks nothing up")
        return 0
    *_, seen, inode = _REPLY.unpack_from(reply, _HEADER.size)
    # Where the connection is gone, a door that listens on its port may have been found in its place.
    return int(inode) if seen == ports else 0


# -- the table


def _in_table(wanted: Iterable[Connection]) -> dict[str, Connection] | None:
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
        ends = [(_word(end.host), b"%04X" % end.port) for end in connection]
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
