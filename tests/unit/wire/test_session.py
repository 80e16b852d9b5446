"""Both ends of a run, against each other and against a peer that misbehaves."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

import pytest
from tests.unit.wire.vectors import MALFORMED, VECTORS, WELL_FORMED, Vector, read

from airflow_handoff.wire.ending import Outcome, describe_exit
from airflow_handoff.wire.frames import FrameDecoder, UnencodableFrame, decode_payload, encode_frame
from airflow_handoff.wire.logs import LogRecord
from airflow_handoff.wire.requests import (
    GetVariable,
    MaskSecret,
    RescheduleTask,
    RetryTask,
    SucceedTask,
    TaskState,
)
from airflow_handoff.wire.responses import ErrorResponse, StartupDetails, VariableResult
from airflow_handoff.wire.session import RequestReceived, RequestRefused, SupervisorSession
from airflow_handoff.wire.states import Limits, SessionMisuse, State, Violation
from airflow_handoff.wire.task_session import ReplyReceived, Started, TaskSession

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=timezone.utc)
STARTUP: dict[str, Any] = read(VECTORS / "StartupDetails.json")[0].decoded[1]


def supervisor(**arguments: Any) -> SupervisorSession:
    """Return a supervisor's session whose task is running."""
    should_retry = arguments.pop("should_retry", False)
    session = SupervisorSession(**arguments)
    session.start({**STARTUP, "ti_context": {**STARTUP["ti_context"], "should_retry": should_retry}})
    session.data_to_send()
    return session


def pair(**arguments: Any) -> tuple[SupervisorSession, TaskSession]:
    """Return both ends of a run that has started."""
    ours, theirs = SupervisorSession(**arguments), TaskSession()
    ours.start(STARTUP)
    (started,) = carry_back(ours, theirs)
    assert isinstance(started, Started)
    return ours, theirs


def carry(theirs: TaskSession, ours: SupervisorSession) -> list[Any]:
    """Bring what the task wrote to the supervisor."""
    return [event for data in theirs.data_to_send() for event in ours.receive_comm(data)]


def carry_back(ours: SupervisorSession, theirs: TaskSession) -> list[Any]:
    """Bring what the supervisor wrote to the task."""
    return [event for data in ours.data_to_send() for event in theirs.receive_comm(data)]


def send(session: SupervisorSession, *content: Any) -> Any:
    """Let a task send one frame and return the one event it causes."""
    (event,) = session.receive_comm(encode_frame(content))
    return event


def sent(session: SupervisorSession) -> list[list[Any]]:
    """Return what the supervisor wrote, as a task decodes it."""
    return [decode_payload(frame) for data in session.data_to_send() for frame in FrameDecoder().feed(data)]


def succeed(**fields: Any) -> dict[str, Any]:
    """Return the body of a success."""
    return {"type": "SucceedTask", "end_date": NOW, **fields}


# -- the ordinary run -------------------------------------------------------------------------------------


def test_a_run_from_start_to_end() -> None:
    """Startup, a request, its answer, and a success that both ends agree on."""
    ours, theirs = pair()
    number = theirs.request(GetVariable(key="k"), carrier={"traceparent": "00-1"})
    (asked,) = carry(theirs, ours)
    assert (asked.message, asked.carrier, ours.open_requests) == (
        GetVariable(key="k"),
        {"traceparent": "00-1"},
        (asked,),
    )
    ours.reply(asked, VariableResult(key="k", value="v"))
    (answer,) = carry_back(ours, theirs)
    assert answer == ReplyReceived(number, VariableResult(key="k", value="v"), None, answer.body)
    theirs.request(SucceedTask(end_date=NOW))
    (told,) = carry(theirs, ours)
    assert (told.terminal, ours.state, theirs.state) == (True, State.REPORTING, State.REPORTING)
    ours.reply(told)
    carry_back(ours, theirs)
    assert (ours.state, theirs.state) == (State.REPORTED, State.REPORTED)
    assert ours.receive_comm(b"") == []
    outcome = ours.finish(0)
    assert isinstance(outcome.report, SucceedTask)
    assert outcome.failure is None
    assert theirs.receive_comm(b"") == []
    assert (ours.state, theirs.state) == (State.ENDED, State.ENDED)


def test_the_startup_frame_has_id_zero_and_may_clash_with_the_first_request() -> None:
    """Both count from zero, as on the real wire."""
    ours, theirs = SupervisorSession(), TaskSession()
    ours.start(STARTUP)
    (data,) = ours.data_to_send()
    assert decode_payload(next(iter(FrameDecoder().feed(data))))[0] == 0
    (started,) = theirs.receive_comm(data)
    assert isinstance(started.details, StartupDetails)
    assert started.body == STARTUP
    assert theirs.request(GetVariable(key="k")) == 0


def test_an_error_reaches_the_task_from_both_places() -> None:
    """A body of type ErrorResponse and a third element are the same to the caller."""
    ours, theirs = pair()
    for place in ("body", "error"):
        theirs.request(GetVariable(key="k"))
        (asked,) = carry(theirs, ours)
        ours.reply(asked, **{place: ErrorResponse(error="VARIABLE_NOT_FOUND", detail={"key": "k"})})
        (answer,) = carry_back(ours, theirs)
        assert answer.error == ErrorResponse(error="VARIABLE_NOT_FOUND", detail={"key": "k"})
        assert answer.message is None


def test_two_open_requests_may_share_an_id_and_each_has_one_reply() -> None:
    """Replies belong to requests and not to ids, and a second reply is a mistake of the caller."""
    session = supervisor()
    first = send(session, 3, {"type": "GetVariable", "key": "a"})
    second = send(session, 3, {"type": "GetVariable", "key": "b"})
    session.reply(second, VariableResult(key="b", value="2"))
    session.reply(first, VariableResult(key="a", value="1"))
    assert [(number, body["key"]) for number, body, _ in sent(session)] == [(3, "b"), (3, "a")]
    with pytest.raises(SessionMisuse, match=r"request 3 \(GetVariable\) already has its reply"):
        session.reply(first)


def test_should_retry_is_taken_from_the_startup_details() -> None:
    """The API server's word counts where it is there."""
    assert supervisor(should_retry=True).should_retry is True
    session = SupervisorSession(should_retry=True)
    session.start({"type": "StartupDetails", "ti_context": {}})
    assert session.should_retry is True


@pytest.mark.parametrize(
    "vector", [vector for vector in WELL_FORMED if vector.from_task], ids=lambda vector: vector.name
)
def test_every_captured_request_is_handed_out_or_refused(vector: Vector) -> None:
    """What real runtimes sent causes one event each, with the id and the body that were captured."""
    session = supervisor(should_retry=True)
    (event,) = session.receive_comm(vector.frame)
    assert event.id == vector.decoded[0]
    if isinstance(event, RequestReceived):
        assert {**event.body, **vector.decoded[1]} == event.body
        session.reply(event)
    assert len(session.data_to_send()) == 1


def test_neither_room_imports_airflow() -> None:
    """An SDK author installs the package without it."""
    rooms = "wire.session, airflow_handoff.wire.task_session, airflow_handoff.bundles.index"
    code = f"import sys, airflow_handoff.{rooms}; print('airflow' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


# -- requests that cannot be served -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"type": "NoSuchThing"}, 400),
        ({"x": 1}, 400),
        (None, 400),
        ([], 400),
        ({"type": "GetVariable", "key": 7}, 422),
        ({"type": "RetryTask", "end_date": NOW, "zzz": 1}, 422),
        ({"type": "SetXCom", "key": "k", "dag_id": "d", "run_id": "r", "task_id": "t", "value": b"x"}, 422),
        ({"type": "TaskState", "state": "success"}, 422),
    ],
)
def test_case_unknown_request_is_answered_and_the_connection_stays(body: Any, status: int) -> None:
    """The answer has the same id and says what is wrong; the next request is served."""
    session = supervisor()
    refused = send(session, 41, body)
    assert isinstance(refused, RequestRefused)
    ((number, nothing, error),) = sent(session)
    assert (number, nothing, error["type"], error["error"]) == (41, None, "ErrorResponse", "GENERIC_ERROR")
    assert error["detail"]["status_code"] == status
    assert refused.reason in error["detail"]["message"]
    assert isinstance(send(session, 42, {"type": "GetVariable", "key": "k"}), RequestReceived)
    assert session.state is State.RUNNING


def test_another_schema_is_served_by_another_parser() -> None:
    """What types a request is an argument; what it returns is handed out with the map as sent."""
    session = supervisor(parse=lambda body: MaskSecret(value=body))
    asked = send(session, 1, {"type": "FromTheFuture"})
    assert asked.message == MaskSecret(value={"type": "FromTheFuture"})
    assert asked.body == {"type": "FromTheFuture"}


def test_a_reply_that_cannot_be_sent_is_an_error_reply() -> None:
    """The task is told, instead of waiting for ever."""
    session = supervisor(limits=Limits(max_frame=2000))
    for value in ("x" * 5000, object(), 2**70):
        asked = send(session, 5, {"type": "GetVariable", "key": "k"})
        session.reply(asked, {"type": "VariableResult", "key": "k", "value": value})
        ((number, nothing, error),) = sent(session)
        assert (number, nothing, error["detail"]["status_code"]) == (5, None, 500)


# -- violations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", ["final", "provisional"])
@pytest.mark.parametrize("vector", MALFORMED, ids=lambda vector: vector.name)
def test_case_broken_frame_ends_the_session_with_one_line(vector: Vector, terminal: Any) -> None:
    """One violation, nothing written behind it, nothing read behind it, and the outcome gives the reason."""
    session = supervisor(terminal=terminal)
    good = encode_frame([1, {"type": "GetVariable", "key": "k"}])
    asked, violation = session.receive_comm(bytes(good) + vector.frame)
    assert isinstance(asked, RequestReceived)
    assert isinstance(violation, Violation)
    assert violation.offset == len(good)
    assert session.state is State.BROKEN
    session.reply(asked, VariableResult(key="k", value="v"))
    assert session.data_to_send() == []
    assert session.receive_comm(good) == []
    outcome = session.finish(-9)
    assert outcome.report is None
    assert outcome.failure == violation.reason
    assert "\n" not in violation.reason


def test_a_recording_session_reads_on_while_the_stream_is_in_step() -> None:
    """The conformance kit sees every fault of a runtime and not only the first."""
    session = supervisor(on_violation="record")
    faults = encode_frame({"a": 1})  # type: ignore[arg-type]
    events = session.receive_comm(
        bytes(faults) + bytes(encode_frame([1, {"type": "GetVariable", "key": "k"}]))
    )
    assert [type(event) for event in events] == [Violation, RequestReceived]
    assert not events[0].fatal
    (fatal,) = session.receive_comm(b"\x00\x00\x00\x00")
    assert fatal.fatal
    assert session.violation is fatal
    assert session.state is State.BROKEN


def test_a_request_before_the_startup_details_is_a_violation() -> None:
    """A runtime that speaks first is broken."""
    session = SupervisorSession()
    event = send(session, 0, {"type": "GetVariable", "key": "k"})
    assert isinstance(event, Violation)
    assert "before the startup details" in event.reason


def test_a_caller_can_declare_a_violation_of_its_own() -> None:
    """What only the caller can see ends the session the same way."""
    session = supervisor()
    violation = session.break_off("too many connections")
    assert session.state is State.BROKEN
    assert session.finish(None).failure == violation.reason == "too many connections"
    assert session.break_off("again").reason == "again"
    assert session.finish(None).failure == "too many connections"


def test_a_channel_that_ends_inside_a_frame_is_a_violation() -> None:
    """A runtime that dies while it writes is told from one that ends in order."""
    session = supervisor()
    assert session.receive_comm(b"\x00\x00") == []
    (violation,) = session.receive_comm(b"")
    assert "ended inside a frame" in violation.reason
    assert session.receive_comm(b"") == []


# -- how a run ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exit_code", "words"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by SIGKILL")]
)
@pytest.mark.parametrize("terminal", ["final", "provisional"])
def test_case_silent_success_is_a_failure_that_says_so(exit_code: int, words: str, terminal: Any) -> None:
    """Exit code zero proves nothing; only a report does."""
    session = supervisor(terminal=terminal)
    session.receive_comm(b"")
    outcome = session.finish(exit_code)
    assert outcome == Outcome(
        None, f"The program ended without reporting a result ({words}).", exit_code, should_retry=False
    )
    assert outcome.terminal(NOW) == TaskState(state="failed", end_date=NOW)


def test_a_failed_attempt_with_retries_left_is_retried() -> None:
    """The message that stands for a failure asks for a retry where Airflow would grant one."""
    session = supervisor(should_retry=True)
    outcome = session.finish(1)
    assert outcome.terminal(NOW) == RetryTask(end_date=NOW, retry_reason=outcome.failure)


@pytest.mark.parametrize("terminal", ["final", "provisional"])
def test_case_null_lists_are_filled(terminal: Any) -> None:
    """A success without outlets, or with null ones, carries empty lists to the API server."""
    for fields in ({}, {"task_outlets": None, "outlet_events": None}):
        session = supervisor(terminal=terminal)
        told = send(session, 1, succeed(**fields))
        assert (told.message.task_outlets, told.message.outlet_events) == ([], [])
        assert (told.body["task_outlets"], told.body["outlet_events"]) == ([], [])
    session = supervisor(terminal=terminal)
    outlet = {"name": "a", "uri": "u", "type": "Asset"}
    told = send(session, 1, succeed(task_outlets=[outlet], outlet_events=[{"x": 1}]))
    assert (told.body["task_outlets"], told.body["outlet_events"]) == ([outlet], [{"x": 1}])


def test_case_retries_are_gated_on_what_the_server_allows() -> None:
    """A retry stays one where retries are left, and is a failure with a note where none is."""
    body = {"type": "RetryTask", "end_date": NOW, "retry_reason": "because"}
    granted = send(supervisor(should_retry=True), 1, body)
    assert isinstance(granted.message, RetryTask)
    assert granted.message.retry_reason == "because"
    assert granted.body == body
    assert granted.note is None
    session = supervisor(should_retry=False)
    denied = send(session, 1, body)
    assert denied.message == TaskState(state="failed", end_date=NOW)
    assert denied.body["type"] == "TaskState"
    assert "because" in denied.note
    session.reply(denied)
    assert session.finish(1).terminal(NOW) == TaskState(state="failed", end_date=NOW)


def test_a_final_report_counts_when_the_caller_accepts_it() -> None:
    """What the API server refused does not count, and the task may report something else."""
    session = supervisor()
    told = send(session, 1, succeed())
    session.reply(told, error={"type": "ErrorResponse", "error": "API_SERVER_ERROR"})
    assert (session.report, session.state) == (None, State.RUNNING)
    told = send(session, 2, succeed())
    session.reply(told, ErrorResponse())
    assert session.report is None
    told = send(session, 3, {"type": "TaskState", "state": "failed"})
    session.reply(told)
    assert session.report == TaskState(state="failed")


def test_a_final_report_stands_whatever_follows() -> None:
    """Airflow has it already; a later crash or violation only adds a line to the log."""
    session = supervisor()
    session.reply(send(session, 1, succeed()))
    session.receive_comm(b"\x00\x00\x00\x00")
    outcome = session.finish(-11)
    assert isinstance(outcome.report, SucceedTask)
    assert session.violation is not None


def test_a_provisional_report_is_acknowledged_by_the_session_and_held() -> None:
    """The caller hears of it, answers nothing, and takes it from the outcome when the process has ended."""
    session = supervisor(terminal="provisional")
    told = send(session, 8, succeed())
    assert told.terminal
    assert session.open_requests == ()
    assert sent(session) == [[8, None, None]]
    assert session.state is State.REPORTED
    assert isinstance(session.finish(0).report, SucceedTask)


def test_a_violation_takes_a_provisional_report_back() -> None:
    """Nothing was sent to Airflow yet, and the peer cannot be believed."""
    session = supervisor(terminal="provisional")
    send(session, 8, succeed())
    session.receive_comm(b"\x00\x00\x00\x00")
    outcome = session.finish(0)
    assert outcome.report is None
    assert outcome.failure is not None
    assert "broken frame" in outcome.failure


@pytest.mark.parametrize("terminal", ["final", "provisional"])
def test_the_first_report_stands_and_late_requests_are_served(terminal: Any) -> None:
    """After the report a second one gets a 409; anything else is handed out, marked late."""
    session = supervisor(terminal=terminal)
    told = send(session, 1, succeed())
    if terminal == "final":
        session.reply(told)
    session.data_to_send()
    again = send(session, 2, {"type": "TaskState", "state": "failed"})
    assert isinstance(again, RequestRefused)
    ((number, _, error),) = sent(session)
    assert (number, error["detail"]["status_code"]) == (2, 409)
    late = send(session, 3, {"type": "GetVariable", "key": "k"})
    assert late.late
    session.reply(late, VariableResult(key="k", value="v"))
    assert sent(session)[0][0] == 3
    assert isinstance(session.finish(0).report, SucceedTask)


def test_a_report_accepted_after_the_channel_ended_counts() -> None:
    """A runtime may exit while its report is still on the way to the API server."""
    session = supervisor()
    told = send(session, 1, {"type": "RescheduleTask", "end_date": NOW, "reschedule_date": NOW})
    session.receive_comm(b"")
    session.reply(told)
    assert isinstance(session.finish(0).report, RescheduleTask)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, "its exit code is not known"),
        (137, "exit code 137"),
        (-15, "killed by SIGTERM"),
        (-99, "signal 99"),
    ],
)
def test_an_exit_is_described_in_words(code: int | None, words: str) -> None:
    """Signals have names where they have one."""
    assert words in describe_exit(code)


# -- logs and output --------------------------------------------------------------------------------------


def test_logs_and_output_come_out_of_the_session_until_their_last_line() -> None:
    """All three streams keep their unfinished last line, also after the comm channel has broken."""
    session = supervisor()
    assert session.receive_logs(b'{"event":"a","level":"error"}\n{"event"') == [LogRecord("a", "error")]
    session.receive_comm(b"\x00\x00\x00\x00")
    assert session.receive_logs(b':"b"}') == []
    assert session.receive_logs(b"") == [LogRecord("b")]
    assert session.receive_output("stderr", b"x\ny") == [LogRecord("x", "error", "task.stderr")]
    assert session.receive_output("stderr", b"") == [LogRecord("y", "error", "task.stderr")]
    assert session.receive_output("stdout", b"z\n") == [LogRecord("z", "info", "task.stdout")]


# -- misuse by the local caller ---------------------------------------------------------------------------


def test_a_supervisor_cannot_start_twice_or_with_what_cannot_be_sent() -> None:
    """Nothing is written where the caller is wrong."""
    session = SupervisorSession()
    with pytest.raises(UnencodableFrame):
        session.start({"type": "StartupDetails", "ti": object()})
    session.start(STARTUP)
    with pytest.raises(SessionMisuse, match="startup details: not possible while the session is running"):
        session.start(STARTUP)
    assert len(session.data_to_send()) == 1


def test_a_task_cannot_ask_before_the_start_after_the_end_or_report_twice() -> None:
    """The task's table refuses what the supervisor would."""
    theirs = TaskSession()
    with pytest.raises(SessionMisuse, match="request: not possible while the session is new"):
        theirs.request(GetVariable(key="k"))
    ours, theirs = pair()
    theirs.request(SucceedTask(end_date=NOW))
    with pytest.raises(SessionMisuse, match="terminal message: not possible while the session is reporting"):
        theirs.request(TaskState(state="failed"))
    theirs.request(GetVariable(key="k"))
    assert theirs.open_requests == (0, 1)
    theirs.receive_comm(b"")
    with pytest.raises(SessionMisuse, match="while the session is ended"):
        theirs.request(GetVariable(key="k"))
    del ours


def test_a_task_may_report_again_where_its_report_was_refused() -> None:
    """Both ends go back to running together."""
    ours, theirs = pair()
    theirs.request(SucceedTask(end_date=NOW))
    (told,) = carry(theirs, ours)
    ours.reply(told, error=ErrorResponse(error="API_SERVER_ERROR"))
    (answer,) = carry_back(ours, theirs)
    assert answer.error.error == "API_SERVER_ERROR"
    assert (ours.state, theirs.state) == (State.RUNNING, State.RUNNING)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([0, {"type": "VariableResult", "key": "k", "value": "v"}, None], "StartupDetails were expected"),
        ([0, {"type": "NoSuch"}, None], "NoSuch"),
        ([0, None, {"type": "ErrorResponse"}], "StartupDetails were expected and ErrorResponse came"),
    ],
)
def test_a_task_that_hears_no_startup_details_first_breaks_off(content: list[Any], reason: str) -> None:
    """The runtime sees the supervisor's fault as its own kind of violation."""
    theirs = TaskSession()
    (violation,) = theirs.receive_comm(encode_frame(content))
    assert reason in violation.reason
    assert theirs.state is State.BROKEN
    assert theirs.receive_comm(b"x") == []


def test_an_answer_to_nothing_is_a_violation_and_an_unknown_answer_is_not() -> None:
    """A newer supervisor may know more answers; an id that was never sent is another matter."""
    ours, theirs = pair()
    number = theirs.request(GetVariable(key="k"))
    (answer,) = theirs.receive_comm(encode_frame([number, {"type": "FromTheFuture"}, None]))
    assert "FromTheFuture" in answer.error.detail["message"]
    assert answer.body == {"type": "FromTheFuture"}
    (violation,) = theirs.receive_comm(encode_frame([number, None, None]))
    assert "nothing was asked under the id 0" in violation.reason
    del ours
