"""The Airflow-free base of every error of this package, told as a story.

A Dag author describes a question. If the description cannot be asked, :class:`InvalidQuestion` says which
part, when the Dag is parsed where that is possible. A person answers. An answer that breaks the question's
rules is an :class:`AnswerRefused`: the request stays open and the respondent is told what would have been
accepted. A decision that cannot be carried out, because Airflow has not made the tasks that it rules out,
fails as ``SkipImpossible``, so that they do not run. Between question and answer the request lies in
Airflow's database; a package that is older than the one that wrote it there raises
:class:`UnknownStateVersion`. When the package itself cannot do its work where it stands, because Airflow is
missing or too old, :class:`EnvironmentUnfit` says in one sentence what to install.

A task may leave for another language instead. The runtime then speaks a wire; a frame or a message that
breaks its rules is a :class:`WireError` and says whose fault it was: the peer's (``FrameViolation``,
``InvalidMessage``) or our own (``UnencodableFrame``, ``SessionMisuse``). The program it runs comes out of a
bundle; one that cannot be used is a :class:`BundleError` and names the file and the reason, none that holds
the Dag is a ``BundleNotFound``, and more than one a ``DuplicateBundle`` that names them all. A program that
cannot be started, or that does not come back to its host in time, is a :class:`LaunchError` and repeats what
it printed.

Before a team bets on a language it reads what that language's SDK claims. A claim, evidence, build or target
file that cannot be used is a :class:`CapabilitiesError` and names the file, the line and the reason.

Facts are attributes; the message says what was expected, what came, and what to do next. Errors that
Airflow must recognise (``HumanRejected``, ``HumanTimeout``, ``SkipImpossible``) are built on these in
``airflow_handoff.operators.hitl``.
"""

from __future__ import annotations


class HandoffError(Exception):
    """Base of every error that this package raises on purpose."""


class EnvironmentUnfit(HandoffError, ImportError):
    """The installed Airflow (or its absence) does not allow what was imported."""


class InvalidQuestion(HandoffError, ValueError):
    """The question as written by the Dag author cannot be asked."""


class AnswerRefused(HandoffError, ValueError):
    """An answer that breaks the rules of its question.

    :param reasons: one sentence for each rule that was broken.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class UnknownStateVersion(HandoffError, ValueError):
    """A waiting task was parked by a newer version of this package.

    :param found: the version of its state.
    :param known: the newest version that this package reads.
    """

    def __init__(self, found: object, known: int) -> None:
        super().__init__(
            f"the waiting task's state has version {found!r} and this package reads up to {known}: "
            "upgrade airflow-provider-handoff here."
        )
        self.found = found
        self.known = known


class WireError(HandoffError):
    """A frame, message or log line that breaks the rules of the wire."""


class BundleError(HandoffError):
    """An artifact that cannot be used.

    :param path: the file as the reader was given it.
    :param reason: one sentence: what was expected and what was found.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class LaunchError(HandoffError):
    """A runtime that did not start, or did not connect.

    :param reason: what happened, without a full stop.
    :param said: the last of what it printed before.
    :param fix: what to do, without a full stop.
    """

    def __init__(self, reason: str, *, said: str = "", fix: str = "") -> None:
        text = reason + (f"; {fix}" if fix else "")
        super().__init__(f"{text}; it printed: {said}" if said else f"{text}; it printed nothing")
        self.reason = reason
        self.said = said
        self.fix = fix


class CapabilitiesError(HandoffError):
    """A claim, evidence, configuration or target file that cannot be used.

    :param path: the file as the reader was given it.
    :param reason: what was expected, what was found, and what to do.
    :param line: where, counted from 1; ``None`` when it concerns the whole file.
    """

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.line = line
