"""A language model drafts an answer, a person corrects it, and only the corrected text is sent."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Context, Param, dag, task

from airflow_handoff.operators.hitl import ApprovalOperator, HITLEntryOperator


# [START prefilled_link]
def log_the_prefilled_link(context: Context) -> None:
    """Writes a link that opens the form with the draft filled in to the task log; a real one sends it."""
    draft = context["ti"].xcom_pull("draft")["text"]
    link = HITLEntryOperator.generate_link_to_ui_from_context(
        context=context, base_url="http://localhost:8080", options="OK", params_input={"text": draft}
    )
    logging.getLogger(__name__).info("Correct the draft: %s", link)


# [END prefilled_link]


@dag(
    schedule=None,
    tags=["handoff", "example"],
    params={"question": Param("When will my parcel arrive?", type="string")},
)
def draft_review() -> None:
    @task
    def draft(params: dict[str, Any]) -> dict[str, Any]:
        """Stands for the call of a model: the text, and how sure it is."""
        return {"text": f"Thank you for asking: {params['question']} It arrives tomorrow.", "score": 0.62}

    # [START draft_review]
    correction = HITLEntryOperator(
        task_id="correction",
        subject="Correct the draft",
        body="""
The customer asked: *{{ params.question }}*

The draft, of which the model is {{ (ti.xcom_pull('draft')['score'] * 100) | int }} % sure:

> {{ ti.xcom_pull('draft')['text'] }}
""",
        params={
            "text": Param(
                type="string",
                minLength=10,
                format="multiline",
                title="Answer",
                description="Write the text that is to be sent. There is no default: a draft that nobody has "
                "read is never sent.",
            ),
            "tone": Param("friendly", type="string", enum=["friendly", "formal"]),
        },
        notifiers=log_the_prefilled_link,
    )
    release = ApprovalOperator(
        task_id="release",
        subject="Send this answer?",
        body="{{ ti.xcom_pull('correction')['params_input']['text'] }}",
    )
    # [END draft_review]

    @task
    def send(corrected: dict[str, Any]) -> str:
        return f"sent: {corrected['params_input']['text']}"

    @task
    def learn(first: dict[str, Any], corrected: dict[str, Any]) -> dict[str, str]:
        """Keeps draft and correction side by side: what the next model is trained with."""
        return {"draft": first["text"], "correction": corrected["params_input"]["text"]}

    first = draft()
    first >> correction >> release >> send(correction.output)
    learn(first, correction.output)


draft_review()
