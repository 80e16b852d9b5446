"""Requests whose links are opened in a browser."""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import DAG, BaseNotifier, Param, TaskGroup, task_group

from airflow_handoff.operators.hitl import HITLOperator

OPTIONS = ["a b", '100 % "sure"', "no"]
ASKED = {"city": "Ærø & Søn", "amount": 12, "code": "007", "urgent": True}


class LinkToXCom(BaseNotifier):
    """Puts the link that a message would carry where the test can read it."""

    def notify(self, context):
        """Build the link as a notifier written for the standard operators does."""
        from airflow.providers.standard.operators.hitl import HITLOperator as StandardOperator

        link = StandardOperator.generate_link_to_ui_from_context(
            context=context, options=[OPTIONS[1]], params_input=ASKED
        )
        context["ti"].xcom_push(key="link", value=link)
        elsewhere = StandardOperator.generate_link_to_ui_from_context(
            context=context,
            base_url=context["dag_run"].conf["base_url"],
            options=OPTIONS[1],
            params_input=ASKED,
        )
        context["ti"].xcom_push(key="prefixed", value=elsewhere)


def ask(subject: str) -> HITLOperator:
    """Ask with a form: two fields without a default and two with one."""
    return HITLOperator(
        task_id="ask",
        subject=subject,
        options=OPTIONS,
        params={
            "city": Param(type="string"),
            "amount": Param(5, type="integer"),
            "code": Param(type="string"),
            "urgent": Param(False, type="boolean"),
        },
        notifiers=[LinkToXCom()],
    )


with DAG("links_pages", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    with TaskGroup("group"):
        ask("Unmapped?")

    @task_group
    def each(subject: str) -> None:
        """Ask once per subject."""
        ask(subject)

    each.expand(subject=["Mapped 0?", "Mapped 1?"])
