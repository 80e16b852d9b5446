"""Whose a connection is."""

import os
import socket

import pytest

from airflow_handoff.process import peers
from airflow_handoff.process.peers import Address, Connection, address, owned_by_process, owned_by_tree


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


@pytest.mark.parametrize("portable", [False, True], ids=["proc", "psutil"])
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_process_owns_its_connection(
    family: socket.AddressFamily, portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client end is found in the process that holds it, over IPv4 and over a dual-stack socket."""
    if portable:
        monkeypatch.setattr(peers, "_inodes", lambda wanted: None)
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
