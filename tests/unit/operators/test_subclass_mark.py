"""A subclass with template fields of its own is still told to be ours by the api-server."""

from __future__ import annotations

import pytest

pytest.importorskip("airflow.sdk", reason="needs Airflow")

from airflow_handoff.operators.hitl import ApprovalOperator


def test_the_api_server_tells_a_subclass_with_fields_of_its_own() -> None:
    """Else an answer after a clear would get 200 and be lost."""

    class Own(ApprovalOperator):
        template_fields = ("subject", "body")

    class Inherits(Own):
        pass

    assert tuple(Own.template_fields) == ("subject", "body", "approval_key")
    assert tuple(Inherits.template_fields) == ("subject", "body", "approval_key")
