"""What a subclass that was written for the standard operators may override: its own rules still count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_handoff.hitl.question import Answer


class OwnRules:
    """The standard operators' hooks; they do nothing here: a request's own rules are checked anyway."""

    def validate_options(self) -> None:
        """Check the options when the operator is made.

        :raises ValueError: if they cannot be asked.
        """

    def validate_params(self) -> None:
        """Check the form when the operator is made.

        :raises ValueError: if it cannot be asked.
        """

    def validate_defaults(self) -> None:
        """Check the defaults when the operator is made.

        :raises ValueError: if they cannot stand in for an answer.
        """

    def validate_chosen_options(self, chosen_options: list[str]) -> None:
        """Check what was chosen, beyond the rules of the question.

        :raises ValueError: to refuse the answer; the request opens again.
        """

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Check what was filled in, beyond the schemas of the form.

        :raises ValueError: to refuse the answer; the request opens again.
        """

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Raise another error than ours for a wait that ended without an answer.

        :param event: with ``error`` and ``error_type``.
        """

    def _own_reasons(self, answer: Answer) -> tuple[str, ...]:
        """Return what the subclass has against an answer that keeps all other rules."""
        try:
            self.validate_chosen_options(list(answer.chosen_options))
            self.validate_params_input(answer.params_input)
        except ValueError as error:
            return (str(error)[:1000] or type(error).__name__,)
        return ()
