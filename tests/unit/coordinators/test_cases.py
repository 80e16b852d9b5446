"""The cases of language.yaml, each against Airflow's own supervisor code."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import statistics
import sys
import threading
import time
from typing import Any

import psutil
import pytest

from airflow_handoff.compat.versions import HAS_COORDINATORS
from airflow_handoff.process import Host

pytestmark = pytest.mark.skipif(not HAS_COORDINATORS, reason="coordinators exist from Airflow 3.3 on")

LINGER = 'subprocess.Popen(["sleep", "600"]); subprocess.Popen(["sleep", "600"], start_new_session=True)\n'


def below(pid: int) -> list[psutil.Process]:
    """The living processes below a pid."""
    try:
        return [p for p in psutil.Process(pid).children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(autouse=True)
def nobody_is_left() -> Any:
    """After every case this process has the children that it had before."""
    before = {process.pid for process in below(os.getpid())}
    yield
    left = [process for process in below(os.getpid()) if process.pid not in before]
    assert left == []


# -- requests


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ('ask("NoSuchThing", a=1)', 400),
        ('ask("GetVariable", key=[1])', 422),
        ('ask("SucceedTask", end_date=NOW, state="success", surplus=1)', 422),
        ('ask("TaskState", state="success")', 422),
        ('ask("ResendLoggingFD")', 400),
        ('ask("GetHITLDetailResponse", ti_id=ti["id"])', 400),
        ('ask("SetXCom", key="k", dag_id="d", run_id="r", task_id="t", value=b"raw")', 422),
    ],
)
def test_case_unknown_request(stage: Any, request_: str, status: int) -> None:
    """unknown-request: an ErrorResponse with the same id; the connection stays usable."""
    stage.api.variables["v"] = "7"
    result = stage.script(f"""
        body, error = {request_}
        said = error or body
        print(said["type"], said["detail"]["status_code"])
        print(ask("GetVariable", key="v")[0]["value"])
        succeed()
    """)
    assert f"ErrorResponse {status}" in result.lines()
    assert "7" in result.lines()
    assert result.state == "success"


@pytest.mark.parametrize(
    "body",
    ["None", "[]", "{'no': 'type'}", "{'type': 7}", "'text'"],
    ids=["nil", "list", "untyped", "int", "str"],
)
def test_case_unknown_request_without_a_type(stage: Any, body: str) -> None:
    """unknown-request: a body that has no usable type gets its reply, too."""
    result = stage.script(f"""
        comm.sendall(frame([41, {body}])); answer = read()
        print(answer[0], answer[2]["type"], answer[2]["detail"]["status_code"])
        succeed()
    """)
    assert "41 ErrorResponse 400" in result.lines()
    assert result.state == "success"


def test_a_failure_of_the_api_is_the_answer(stage: Any) -> None:
    """An API server that fails is reported to the runtime, which can go on."""
    stage.api.refuse["/variables/broken"] = (403, "not yours")
    result = stage.script("""
        print(ask("GetVariable", key="broken"))
        succeed()
    """)
    assert "403" in result.text
    assert result.state == "success"


# -- frames


@pytest.mark.parametrize(
    "bad",
    [
        "struct.pack('>I', 3) + bytes([0xc1] * 3)",
        "frame({'a': 'map'})",
        "frame(['text', None])",
        "struct.pack('>I', 0)",
        "struct.pack('>I', 0xffffffff) + b'x' * 100",
    ],
    ids=["c1", "map", "text-id", "zero", "4-GiB"],
)
@pytest.mark.parametrize("retry", [False, True])
def test_case_broken_frame(stage: Any, bad: str, retry: bool) -> None:
    """broken-frame: little memory, the tree gone, a terminal state and one line with offset and reason."""
    stage.api.should_retry = retry
    before = psutil.Process().memory_info().rss
    result = stage.script(LINGER + f'ask("GetVariable", key="v")\ncomm.sendall({bad})\ntime.sleep(600)')
    assert psutil.Process().memory_info().rss - before < 100_000_000
    assert result.state == ("up_for_retry" if retry else "failed")
    (line,) = [line for line in result.lines("error") if "broke the wire" in line]
    assert "at byte " in line
    assert len(result.api.states) == 1


def test_case_broken_frame_after_the_report(stage: Any) -> None:
    """broken-frame: what was reported counts, and the task log says why the program was stopped."""
    result = stage.script("succeed()\ncomm.sendall(struct.pack('>I', 0))\ntime.sleep(600)")
    assert result.state == "success"
    (line,) = [line for line in result.lines("warning") if "broke the wire" in line]
    assert "at byte " in line


def test_the_cap_of_a_frame_is_the_coordinators(stage: Any) -> None:
    """A message above ``max_frame`` ends the task; a reply above it is an error that the program gets."""
    result = stage.script('ask("SetXCom", key="k", value="x" * 5000)', max_frame=4000)
    assert result.state == "failed"
    assert "broke the wire" in result.text
    stage.api.variables["large"] = "x" * 5000
    result = stage.script("say('got', reply=ask('GetVariable', key='large')); succeed()", max_frame=4000)
    assert result.state == "success"
    body, error = next(one for one in result.log if one["event"] == "got")["reply"]
    assert body is None
    assert "4000" in json.dumps(error)


def test_a_frame_cut_short(stage: Any) -> None:
    """A channel that ends inside a frame is a broken frame."""
    result = stage.script("comm.sendall(struct.pack('>I', 100) + b'x'); comm.shutdown(1); time.sleep(600)")
    assert result.state == "failed"
    assert "ended inside a frame" in result.text


# -- logs


def test_case_bad_log_line(stage: Any) -> None:
    """bad-log-line: every line is in the task log; what is not understood is kept as text."""
    result = stage.script(r"""
        for line in ['{"event":"no level"}', '[1]', '{"event":"list level","level":["info"]}',
                     '{"event":"number time","level":"info","timestamp":12}',
                     '{"event":"bad time","level":"info","timestamp":"yesterday"}',
                     '{"event":"keys","level":"info","msg":1,"target":2,"self":3,"positional_args":[4]}',
                     '{"event":"more keys","level":"info","exc_info":5,"stack_info":6,"event_":7}',
                     '{"event":"args %s %d","level":"info","positional_args":["x"]}',
                     'not json at all', '', '"text"', 'null', '{"level":"info"}',
                     '{"event":{"a":1},"level":"info"}']:
            log(line)
        log(b'\xff\xfe binary')
        succeed()
    """)
    for text in (
        "no level",
        "[1]",
        "list level",
        "number time",
        "bad time",
        "keys",
        "not json at all",
        "binary",
    ):
        assert text in result.text, text
    record = next(one for one in result.log if one["event"] == "keys")
    assert {record[key] for key in record if key.rstrip("_") in ("msg", "target", "self")} == {1, 2, 3}
    assert result.state == "success"


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("INFO", "info"),
        ("trace", "debug"),
        ("notset", "debug"),
        ("fatal", "critical"),
        ("WARN", "warning"),
        ("severe", "error"),
    ],
)
def test_case_log_levels(stage: Any, level: str, shown: str) -> None:
    """log-levels: any level is mapped to the nearest that Airflow has, and never dropped."""
    result = stage.script(f"""log(json.dumps({{"event": "at {level}", "level": "{level}"}})); succeed()""")
    assert f"at {level}" in result.lines(shown)


def test_case_log_levels_of_slf4j(stage: Any) -> None:
    """log-levels: an SLF4J line on standard error has the level that it names."""
    result = stage.script("""
        print("[main] INFO org.example.Main - started", file=sys.stderr)
        print("plain complaint", file=sys.stderr)
        succeed()
    """)
    assert any("org.example.Main" in line for line in result.lines("info"))
    assert "plain complaint" in result.lines("error")


def test_case_long_line(stage: Any) -> None:
    """long-line: 50 MB are cut at the cap with a mark, fast; a last line without a newline is kept."""
    started = time.monotonic()
    result = stage.script(
        """
        logs.sendall(b'{"event":"' + b"x" * 50_000_000 + b'","level":"info"}\\n')
        sys.stdout.write("y" * 5_000_000 + "\\n")
        logs.sendall(b'{"event":"the tail","level":"info"}')
        sys.stdout.write("the end"); sys.stdout.flush()
        succeed()
        """,
        max_line=100_000,
    )
    # Rescanning takes minutes.
    assert time.monotonic() - started < 60
    assert "more bytes]" in result.text
    assert "the tail" in result.lines()
    assert "the end" in result.lines()
    assert len(result.text) < 1_000_000


def test_case_early_log(stage: Any) -> None:
    """early-log: what a runtime prints before it connects, or dies, is in the task log, in order."""
    result = stage.script(
        'import sys\nfor n in range(5): print("early", n)\nprint("why", file=sys.stderr)\nsys.exit(9)',
        plain=True,
    )
    assert [line for line in result.lines() if line.startswith("early")] == [f"early {n}" for n in range(5)]
    assert "why" in result.lines("error")
    assert any("ended with exit code 9 before it connected" in line for line in result.lines("error"))
    assert result.state == "failed"


def test_case_early_log_of_a_connected_runtime(stage: Any) -> None:
    """early-log: records that a runtime buffered come first, in order."""
    result = stage.script('for n in range(100): say(f"record {n}")\nsucceed()')
    found = [line for line in result.lines() if line.startswith("record")]
    assert found == [f"record {n}" for n in range(100)]


def test_the_exception_key_is_kept(stage: Any) -> None:
    """What an SDK sends under ``exception`` is shown as Airflow shows errors."""
    result = stage.script(
        'say("boom", exception=[{"exc_type": "E"}]); say("text", exception="trace"); succeed()'
    )
    assert next(one for one in result.log if one["event"] == "boom")["error_detail"] == [{"exc_type": "E"}]
    assert "trace" in result.text


# -- the tree


@pytest.mark.parametrize("how", ["timeout", "sigterm", "clear", "startup", "broken"])
def test_case_grandchild(stage: Any, how: str) -> None:
    """grandchild: the whole tree is gone within the grace period, on every path."""
    keywords: dict[str, Any] = {"kill_grace": 1.0}
    body = LINGER + 'say("ready"); time.sleep(600)'
    plain = False
    if how == "timeout":
        keywords["execution_timeout"] = 0.5
    elif how == "sigterm":
        timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGTERM])
        timer.start()
    elif how == "clear":
        stage.api.refuse["/heartbeat"] = (410, {"reason": "not_found"})
        stage.impatient()
    elif how == "startup":
        body, plain, keywords["task_startup_timeout"] = f"import subprocess, time\n{body}", True, 0.5
        body = body.replace('say("ready"); ', "")
    else:
        body = LINGER + 'comm.sendall(b"\\0\\0\\0\\0"); time.sleep(600)'
    started = time.monotonic()
    result = stage.script(body, plain=plain, **keywords)
    assert time.monotonic() - started < 40  # the fault cost a minute
    if how == "clear":
        assert "Server indicated the task shouldn't be running anymore" in result.text
        assert result.state is None
    else:
        assert result.state == "failed"


def test_case_grandchild_that_shares_the_output(stage: Any) -> None:
    """grandchild: one that holds standard output costs no minute."""
    started = time.monotonic()
    result = stage.script('subprocess.Popen(["sleep", "600"]); succeed()')
    assert time.monotonic() - started < 30  # the fault cost a minute
    assert result.state == "success"


def test_case_exit_tail(stage: Any) -> None:
    """exit-tail: a process's end is seen at once, not at the next tick, 30 times."""
    tails = []
    for _ in range(30):
        result = stage.script('succeed(); print("left at", time.monotonic(), flush=True); os._exit(0)')
        ended = time.monotonic()
        left = next(float(line.split()[-1]) for line in result.lines() if line.startswith("left at"))
        tails.append(ended - left)
    # The fault cost five seconds in a third of them. On a busy machine one may be late, but not half of them.
    assert max(tails) < 4
    assert statistics.median(tails) < 0.5


@pytest.mark.parametrize("retry", [False, True])
def test_case_silent_success(stage: Any, retry: bool) -> None:
    """silent-success: exit 0 without a terminal message is a failure that says so."""
    stage.api.should_retry = retry
    result = stage.script("sys.exit(0)")
    assert result.state == ("up_for_retry" if retry else "failed")
    assert any("ended without reporting a result (exit code 0)" in line for line in result.lines("error"))


@pytest.mark.parametrize(
    ("code", "words"), [("sys.exit(3)", "exit code 3"), ("os.kill(os.getpid(), 9)", "SIGKILL")]
)
def test_an_exit_without_a_report_says_how(stage: Any, code: str, words: str) -> None:
    """Any other end without a report is a failure, and the log says how it ended."""
    result = stage.script(code)
    assert result.state == "failed"
    assert words in result.text


# -- states


@pytest.mark.parametrize(("left", "state"), [(True, "up_for_retry"), (False, "failed")])
def test_case_retries(stage: Any, left: bool, state: str) -> None:
    """retries: RetryTask with its reason, and failed where no retry is left."""
    stage.api.should_retry = left
    result = stage.script(
        'print(ask("RetryTask", end_date=NOW, state="up_for_retry", retry_reason="boom: no luck"))'
    )
    assert result.state == state
    if left:
        assert result.api.bodies("/state")[0]["retry_reason"] == "boom: no luck"
    else:
        assert "boom: no luck" in result.text
    assert "(None, None)" in result.lines()


def test_case_null_lists(stage: Any) -> None:
    """null-lists: SucceedTask without lists reaches the API server with empty ones."""
    result = stage.script('print(ask("SucceedTask", end_date=NOW, state="success"))')
    assert result.state == "success"
    assert result.api.bodies("/state")[0]["outlet_events"] == []


@pytest.mark.parametrize("state", ["failed", "skipped", "removed"])
def test_a_reported_state_counts_whatever_the_exit_code(stage: Any, state: str) -> None:
    """A skip is not lost when the process ends with an error afterwards."""
    result = stage.script(f'ask("TaskState", state="{state}", end_date=NOW); sys.exit(5)')
    assert result.api.states == [state]
    assert any("exit code 5" in line for line in result.lines("warning"))


@pytest.mark.parametrize(
    ("message", "state"),
    [
        (
            '"RescheduleTask", reschedule_date=NOW, end_date=NOW, state="up_for_reschedule"',
            "up_for_reschedule",
        ),
        (
            '"DeferTask", state="deferred", classpath="x.Y", trigger_kwargs={"a": 1}, '
            'trigger_timeout="PT5S", next_method="go", next_kwargs={"n": [1]}',
            "deferred",
        ),
        (
            '"AwaitInputTask", state="awaiting_input", timeout=None, next_method="go", next_kwargs={"n": 1}',
            "awaiting_input",
        ),
    ],
)
def test_parking(stage: Any, message: str, state: str) -> None:
    """A task that parks is parked, and is not waited for when it lingers."""
    started = time.monotonic()
    result = stage.script(f"print(ask({message})); time.sleep(600)")
    assert result.api.states == [state]
    assert time.monotonic() - started < 60  # the program would sleep for ten minutes
    assert "(None, None)" in result.text or "still ran after it had reported" in result.text


def test_a_question_is_asked_before_the_park(stage: Any) -> None:
    """CreateHITLDetailPayload is answered with the question as Airflow stored it."""
    result = stage.script("""
        question = {"ti_id": ti["id"], "subject": "Ship it?", "options": ["yes", "no"]}
        body, error = ask("CreateHITLDetailPayload", **question)
        print(body["type"], body["options"], error)
        ask("AwaitInputTask", state="awaiting_input", next_method="go", next_kwargs={})
    """)
    assert "HITLDetailRequestResult ['yes', 'no'] None" in result.lines()


def test_resume_details_arrive(stage: Any) -> None:
    """A resumed task gets its method and kwargs."""
    stage.api.next_method, stage.api.next_kwargs = "go", {"n": 1, "event": {"chosen_options": ["yes"]}}
    result = stage.script('print(context["next_method"], context["next_kwargs"]); succeed()')
    assert "go {'n': 1, 'event': {'chosen_options': ['yes']}}" in result.lines()


def test_a_second_report_is_refused(stage: Any) -> None:
    """Once a task has reported, another report changes nothing."""
    result = stage.script('succeed(); print(ask("TaskState", state="failed", end_date=NOW)[1]["detail"])')
    assert result.api.states == ["success"]
    assert "409" in result.text


def test_a_result_that_airflow_does_not_take(stage: Any) -> None:
    """A refused result is told to the runtime, tried once more, and then fails the task with the reason."""
    stage.api.refuse["/state"] = (409, {"reason": "nope"})
    result = stage.script('print("told", succeed()[1]["detail"]["status_code"])')
    assert "told 409" in result.lines()
    assert any("did not accept the task's result" in line for line in result.lines("error"))


def test_a_start_that_airflow_refuses(stage: Any) -> None:
    """A task that must not start does not start, and leaves nothing running."""
    stage.api.refuse["/run"] = (409, {"reason": "invalid_state", "previous_state": "running"})
    with pytest.raises(Exception, match="already running"):
        stage.script('say("user code"); succeed()')


# -- limits


@pytest.mark.parametrize("retry", [False, True])
def test_case_deadline(stage: Any, retry: bool) -> None:
    """deadline: stopped at the limit with its tree, retried or failed, and the log says why."""
    stage.api.should_retry = retry
    started = time.monotonic()
    result = stage.script(LINGER + "time.sleep(600)", execution_timeout=0.7, kill_grace=0.5)
    assert time.monotonic() - started < 60  # the program would sleep for ten minutes
    assert result.state == ("up_for_retry" if retry else "failed")
    assert any("ran past its execution_timeout of 0.7 s" in line for line in result.lines("error"))


def test_case_deadline_of_the_bundle(stage: Any) -> None:
    """deadline: the bundle's own limit goes before the coordinator's."""
    result = stage.script("time.sleep(600)", execution_timeout=300, launch={"execution_timeout": 0.5})
    assert "execution_timeout of 0.5 s" in result.text


def test_case_deadline_is_not_beaten_by_a_late_success(stage: Any) -> None:
    """deadline: a success that comes after the limit does not count."""
    result = stage.script(
        "signal.signal(signal.SIGTERM, lambda *_: (succeed(), sys.exit(0)))\ntime.sleep(600)",
        execution_timeout=0.5,
        kill_grace=1,
    )
    assert result.api.states == ["failed"]


def test_case_slow_start(stage: Any) -> None:
    """slow-start: a configurable limit; the failure says it and shows what was printed."""
    result = stage.script(
        'import time; print("loading classes", flush=True); time.sleep(600)',
        plain=True,
        task_startup_timeout=0.7,
    )
    assert "loading classes" in result.lines("info")
    (line,) = [line for line in result.lines("error") if "did not connect within 0.7 s" in line]
    assert "loading classes" in line
    assert result.state == "failed"


def test_case_slow_start_within_the_limit(stage: Any) -> None:
    """slow-start: a runtime that needs its time gets it."""
    result = stage.script("import time; time.sleep(1.5)\n" + stage.runtime + "succeed()", plain=True)
    assert result.state == "success"


def test_case_stray_peer(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """stray-peer: fifteen strangers at each door are refused and do not delay the start."""
    strangers: list[socket.socket] = []
    launch = Host.launch

    def crowded(host: Host, *arguments: Any) -> None:
        for door in ("comm", "logs"):
            name, port = host.doors.address(door).split(":")
            strangers.extend(socket.create_connection((name, int(port))) for _ in range(15))
        launch(host, *arguments)

    stage.script("succeed()")  # imports what a first task imports
    monkeypatch.setattr(Host, "launch", crowded)
    started = time.monotonic()
    result = stage.script("succeed()")
    assert time.monotonic() - started < 12  # the fault cost a second for each stranger
    assert result.state == "success"
    for stranger in strangers:
        stranger.settimeout(5)
        assert stranger.recv(1) == b""
        stranger.close()


# -- environment, schema, secrets


def test_case_environment(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """environment: only the allow-list; the names that were withheld are said once."""
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "t0psecret")
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "f3rnet")
    monkeypatch.setenv("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "a.b=DEBUG")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("LC_TIME", "C")
    from airflow_handoff.coordinators.base import SubprocessCoordinator
    from airflow_handoff.coordinators.launch import Launch

    path = stage.folder / "env.py"
    path.write_text(stage.runtime + "say('env', env=dict(os.environ)); succeed()")

    class Printer(SubprocessCoordinator):
        """Prints its environment."""

        def launch(self, what: Any, **kwargs: Any) -> Launch:
            """Run the printer."""
            return Launch(command=[sys.executable, str(path)])

    coordinator = Printer(env={"MINE": "1"}, pass_env=["AWS_*"], logging_settings=["fab_logging_level"])
    result = stage.run(coordinator)
    seen = next(one for one in result.log if one["event"] == "env")["env"]
    allowed = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "MINE", "AWS_REGION", "LC_TIME", "LC_CTYPE"}
    unexpected = {
        name
        for name in seen
        if name not in allowed
        and not name.lower().endswith("_proxy")
        and not name.startswith(("AIRFLOW__LOGGING__", "AWS_", "LC_", "TRACE"))
    }
    assert unexpected == set()
    assert seen["AIRFLOW__LOGGING__NAMESPACE_LEVELS"] == "a.b=DEBUG"
    assert seen["AIRFLOW__LOGGING__LOGGING_LEVEL"]
    assert seen["AIRFLOW__LOGGING__FAB_LOGGING_LEVEL"]
    assert "AIRFLOW__API_AUTH__JWT_SECRET" in result.text
    assert "t0psecret" not in result.text
    assert "Withheld" not in stage.run(coordinator).text


@pytest.mark.parametrize(
    ("policy", "schema", "state", "words"),
    [
        ("newest-known", "2026-10-30", "success", "served as 2026-06-16 (schema_policy newest-known)"),
        ("newest-known", "2026-06-16", "success", "it speaks schema 2026-06-16"),
        ("newest-known", None, "success", "it names no schema, served as 2026-06-16"),
        ("newest-known", "2025-01-01", "success", "served as 2026-06-16"),
        ("unmigrated", "2026-10-30", "success", "not translated (schema_policy unmigrated)"),
        ("strict", "2026-06-16", "success", "(schema_policy strict)"),
        ("strict", "2026-10-30", "failed", "this Airflow knows 2026-06-16: rebuild it"),
        ("strict", None, "failed", "names no schema"),
    ],
)
def test_case_schema_skew(stage: Any, policy: str, schema: str | None, state: str, words: str) -> None:
    """schema-skew: a policy per coordinator; the log says which was applied."""
    result = stage.script("succeed()", schema=schema, schema_policy=policy)
    assert result.state == state
    assert words in result.text


def test_what_a_task_fetches_is_masked(stage: Any) -> None:
    """A password, a sensitive extra and a sensitive variable do not appear in the task log."""
    stage.api.connections["db"] = {
        "conn_type": "http", "host": "h", "login": "ada", "password": "pw-12345",
        "extra": '{"api_key": "key-98765", "region": "eu"}', "schema": None, "port": 1,
    }  # fmt: skip
    stage.api.variables["my_secret"] = "var-55555"
    stage.api.variables["my_settings"] = '{"token": "tok-77777", "size": "large"}'
    result = stage.script("""
        password = ask("GetConnection", conn_id="db")[0]["password"]
        secret = ask("GetVariable", key="my_secret")[0]["value"]
        ask("GetVariable", key="my_settings")
        ask("MaskSecret", value="own-33333", name=None)
        say("record", a=password, b="key-98765", c=[secret], d="tok-77777 own-33333", size="large")
        print("printed", password, "key-98765", secret, "tok-77777")
        print("complained", password, file=sys.stderr)
        succeed()
    """)
    for secret in ("pw-12345", "key-98765", "var-55555", "tok-77777", "own-33333"):
        assert secret not in result.text
    assert "***" in result.text
    assert "large" in result.text


def test_a_reason_for_a_retry_is_masked(stage: Any) -> None:
    """What a program gives as its reason is stored by Airflow, without what the program fetched."""
    stage.api.should_retry = True
    stage.api.variables["my_secret"] = "var-55555"
    stage.script("""
        secret = ask("GetVariable", key="my_secret")[0]["value"]
        ask("RetryTask", end_date=NOW, state="up_for_retry", retry_reason=f"refused for {secret}")
    """)
    assert stage.api.bodies("/state")[0]["retry_reason"] == "refused for ***"


# -- a worker at its limits


def test_a_worker_without_a_process_left(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no guard can be started the task fails, its log says why, and nothing stays open."""
    from airflow_handoff.process import host

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    stage.script("succeed()")  # what the first task of a process opens for good is open now
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(host.subprocess, "Popen", refuse)
    result = stage.script("succeed()")
    assert result.state == "failed"
    assert "no guard process could be started: Resource temporarily unavailable" in result.text
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_log_that_cannot_be_written_ends_no_task() -> None:
    """A full disk loses the line and not the task."""
    from airflow_handoff.compat import coordinator

    class Full:
        """A logger on a full disk."""

        tried = 0

        def log(self, *args: Any, **kwargs: Any) -> None:
            """Fail."""
            self.tried += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    logger = Full()
    coordinator._emitter((logger,))(20, "a line", {"a": 1})
    assert logger.tried == 2


# -- configuration


def test_case_misspelt_queue_keyword(stage: Any) -> None:
    """misspelt-queue: a keyword that the class does not take is named in the task log, with the nearest."""
    result = stage.script(
        "succeed()", execution_timout=5, zzz=1, schema_policy="newest_known", kill_grace="long"
    )
    assert result.state == "failed"
    (line,) = [line for line in result.lines("error") if "cannot run tasks" in line]
    assert "'execution_timout', did you mean 'execution_timeout'?" in line
    assert "'zzz', it takes" in line
    assert "did you mean 'newest-known'?" in line
    assert "kill_grace is 'long', a number of seconds was expected" in line


def test_a_coordinator_with_a_fault_fails_the_task(stage: Any) -> None:
    """An exception in a coordinator's own code is in the task log and fails the task."""
    from airflow_handoff.coordinators.base import SubprocessCoordinator

    class Broken(SubprocessCoordinator):
        """Has a fault."""

        def launch(self, what: Any, **kwargs: Any) -> Any:
            """Divide by zero."""
            return 1 / 0

    result = stage.run(Broken())
    assert result.state == "failed"
    assert "ZeroDivisionError" in result.text
