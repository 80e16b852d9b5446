"""Tell new requests from those already seen, between one look at the list and the next."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_handoff.client.request import Request


class NewRequests:
    """Remembers what is open, so that each question is announced once.

    A question that disappears and comes back (it was re-opened after a refused answer, say) is new again:
    whoever watches has to answer it again.
    """

    def __init__(self) -> None:
        self._open: frozenset[tuple[object, ...]] = frozenset()

    def among(self, requests: Iterable[Request]) -> list[Request]:
        """Return those that were not open at the last look, in the order given."""
        listed = {(*request.identity, request.ref): request for request in requests}
        fresh = [request for key, request in listed.items() if key not in self._open]
        self._open = frozenset(listed)
        return fresh
