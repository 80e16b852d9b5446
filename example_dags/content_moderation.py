"""Content moderation: a filter sorts out the obvious, a person decides on the rest, one branch runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task, task_group

from airflow_handoff.operators.hitl import HITLBranchOperator


@dag(
    schedule=None,
    tags=["handoff", "example"],
    params={
        "posts": Param(
            ["The train was late again.", "Buy these pills now!!!", "Lovely pictures from the lake."],
            type="array",
            items={"type": "string"},
        ),
    },
)
def content_moderation() -> None:
    @task
    def doubtful_posts(params: dict[str, Any]) -> list[str]:
        return [post for post in params["posts"] if "!" in post or "late" in post]

    # [START content_moderation]
    @task_group
    def moderate(post: str) -> None:
        """Each post is decided on by itself: its branch touches no other post."""
        decision = HITLBranchOperator(
            task_id="decision",
            subject="What shall happen to this post?",
            body=post,
            options=["Publish", "Hide", "Block the author"],
            options_mapping={"Publish": "publish", "Hide": "hide", "Block the author": "block"},
            # Nobody decided: what is doubtful stays hidden. That is written here, not assumed.
            defaults="Hide",
            response_timeout=timedelta(hours=12),
            comment=True,
        )

        @task
        def publish() -> str:
            return "published"

        @task
        def hide() -> str:
            return "hidden"

        @task
        def block() -> str:
            return "blocked"

        decision >> [publish(), hide(), block()]

    # [END content_moderation]

    @task(trigger_rule="all_done")
    def report() -> str:
        return "done"

    moderate.expand(post=doubtful_posts()) >> report()


content_moderation()
