"""Whose a connection is."""

import os
import socket
from collections.abc import Callable

import pytest

from airflow_handoff.process import inodes, peers
from airflow_handoff.process.inodes import Address, Connection
from airflow_handoff.process.peers import address, owned_by_process, owned_by_tree


@pytest.mark.parametrize(
    ("seen", "host"),
    [
        (("127.0.0.1", 80), "127.0.0.1"),
        (("::ffff:127.0.0.1", 80, 0, 0), "127.0.0.1"),
        (("::127.0.0.1", 80, 0, 0), "127.0.0.1"),
        (("::1", 80, 0, 0), "::1"),
        (("::", 80, 0, 0), "::"),
    ],
)
def test_addresses_have_one_form(seen: tuple[object, ...], host: str) -> None:
    """A dual-stack runtime's address is recognised as the IPv4 address that it is."""
    assert address(seen) == Address(host, 80)


def test_what_is_not_an_address() -> None:
    """A Unix socket's peer and a broken address are nobody's."""
    assert address("") is None
    assert address(("::zz", 1)) is None


def by_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux's look-up, which must not fall back to the table."""
    if not hasattr(socket, "AF_NETLINK"):
        pytest.skip("only Linux looks connections up")
    monkeypatch.setattr(inodes, "_in_table", lambda wanted: {})


def by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without the look-up."""
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)


def by_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without /proc."""
    monkeypatch.setattr(peers, "links", lambda wanted: None)


@pytest.mark.parametrize("way", [by_look_up, by_table, by_psutil])
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_process_owns_its_connection(
    family: socket.AddressFamily,
    way: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client end is found in the process that holds it, over IPv4 and over a dual-stack socket."""
    way(monkeypatch)
    with socket.socket() as door, socket.socket(family) as client:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = door.getsockname()[1]
        client.connect(("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", port))
        conn, peer = door.accept()
        with conn:
            wanted = Connection(Address(*peer), Address("127.0.0.1", port))
            stranger = Connection(Address("127.0.0.1", 1), Address("127.0.0.1", port))
            assert owned_by_process(os.getpid(), {wanted, stranger}) == {wanted}
            assert owned_by_process(os.getppid(), {wanted}) == set()
            assert owned_by_tree(os.getpid(), {wanted}) == set()
            assert owned_by_tree(os.getppid(), {wanted}) == {wanted}


def test_a_process_that_is_gone_owns_nothing() -> None:
    """A pid that nobody has is no error."""
    assert (
        owned_by_process(2**22 - 1, {Connection(Address("127.0.0.1", 1), Address("127.0.0.1", 2))}) == set()
    )


def test_a_door_is_not_taken_for_the_connection_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the client is gone, the kernel finds whoever listens on its port, which is not the client."""
    by_look_up(monkeypatch)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        gone = Connection(Address(*door.getsockname()), Address("127.0.0.1", 1))
        assert inodes.links({gone}) == {}


def test_a_kernel_that_refuses_the_look_up_is_asked_for_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the look-up other than "no such connection" costs nothing but time."""

    def refuse(kernel: socket.socket, connection: Connection) -> int:
        raise PermissionError("no look-up in this sandbox")

    monkeypatch.setattr(inodes, "_ask", refuse)
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        socket.create_connection(door.getsockname()) as client,
    ):
        wanted = Connection(Address(*client.getsockname()), Address(*door.getsockname()))
        assert owned_by_process(os.getpid(), {wanted}) == {wanted}
