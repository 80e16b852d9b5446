"""The real program against a scripted supervisor."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from supervisor import HERE, SOURCE, Refuse, missing, run_program, startup

ANSWER = {
    "chosen_options": ["yes"],
    "params_input": {"why": "tested"},
    "responded_at": {
        "__classname__": "datetime.datetime",
        "__version__": 2,
        "__data__": {"timestamp": 1796033109.25, "tz": {}},
    },
    "responded_by_user": {"id": "1", "name": "Ada"},
    "timedout": False,
}


class Terminal(unittest.TestCase):
    """Every way to end a task."""

    def test_success_names_its_empty_lists(self):
        """A task that returns nothing succeeds without an XCom and with the lists Airflow insists on."""
        run = run_program(startup("nothing"))
        self.assertEqual([b["type"] for b in run.bodies], ["SucceedTask"])
        self.assertEqual((run.last["task_outlets"], run.last["outlet_events"], run.code), ([], [], 0))

    def test_list_result_carries_its_length(self):
        """A returned list is pushed with the length that downstream tasks expand over."""
        run = run_program(startup("numbers"))
        pushed = run.of("SetXCom")[0]
        self.assertEqual(
            (pushed["key"], pushed["value"], pushed["mapped_length"]), ("return_value", [1, 2, 3], 3)
        )

    def test_mapped_instance_sends_no_length(self):
        """An instance of a mapped task cannot be expanded over by itself."""
        pushed = run_program(startup("numbers", map_index=2)).of("SetXCom")[0]
        self.assertNotIn("mapped_length", pushed)
        self.assertEqual(pushed["map_index"], 2)

    def test_long_list_is_pushed_without_length(self):
        """A list longer than Airflow lets anybody expand over is still a fine result."""
        detail = {"reason": "unmappable_return_value_length"}
        refusal = Refuse("API_SERVER_ERROR", status_code=400, detail=detail)
        run = run_program(
            startup("numbers"), {"SetXCom": lambda b: refusal if "mapped_length" in b else None}
        )
        self.assertEqual([len(run.of("SetXCom")), run.last["type"]], [2, "SucceedTask"])

    def test_skip(self):
        """Skip ends the task as skipped and the process with 0."""
        run = run_program(startup("skips"))
        self.assertEqual((run.last["type"], run.last["state"], run.code), ("TaskState", "skipped", 0))

    def test_fail_ignores_retries(self):
        """Fail is failed although a retry is left."""
        run = run_program(startup("fails", should_retry=True))
        self.assertEqual((run.last["type"], run.last["state"], run.code), ("TaskState", "failed", 0))

    def test_retry_says_when_and_why(self):
        """Retry carries its delay in seconds and its reason."""
        last = run_program(startup("retries", should_retry=True)).last
        self.assertEqual(
            (last["type"], last["retry_delay_seconds"], last["retry_reason"]), ("RetryTask", 90.0, "busy")
        )

    def test_retry_without_retries_left_fails(self):
        """RetryTask is never sent where no retry is left: Airflow 3.3 would repeat for ever."""
        last = run_program(startup("retries")).last
        self.assertEqual((last["type"], last["state"]), ("TaskState", "failed"))

    def test_case_retries(self):
        """A task body that raises is retried while it may be, with the reason, and fails when it may not."""
        run = run_program(startup("breaks", should_retry=True))
        self.assertEqual(run.last["type"], "RetryTask")
        self.assertIn("ValueError: broken", run.last["retry_reason"])
        self.assertEqual(run_program(startup("breaks")).last["state"], "failed")

    def test_exit_is_a_failure_with_a_report(self):
        """sys.exit() in a task is reported before the channel closes."""
        run = run_program(startup("exits"))
        self.assertEqual((run.last["state"], run.code), ("failed", 0))

    def test_every_error_ends_in_a_message(self):
        """An error without words, a policy that exits and a last message that cannot be sent are reported."""
        expected = {
            "raises_unspeakable": "Unspeakable",
            "retries_with_an_error": "busy",
            "retries_never": "got inf",
            "with_policy_that_exits": "SystemExit: 7",
            "defers_what_cannot_be_sent": "UTF-8 cannot carry",
            "defers_what_is_too_deep": "nested deeper",
        }
        for task_id, said in expected.items():
            run = run_program(startup(task_id, should_retry=True))
            self.assertEqual((run.last["type"], run.code), ("RetryTask", 0), task_id)
            self.assertIn(said, run.last["retry_reason"])
        for task_id in expected:
            run = run_program(startup(task_id))
            self.assertEqual((run.last["type"], run.last["state"], run.code), ("TaskState", "failed", 0))

    def test_unknown_task_is_removed(self):
        """A task that the program does not have is reported as removed, and the log says what it has."""
        run = run_program(startup("unheard_of"))
        self.assertEqual(run.last["state"], "removed")
        self.assertIn("dag.numbers", run.events()[-1])

    def test_policy_decides(self):
        """The retry policy turns an error into a retry, a failure, or leaves it to Airflow."""
        expected = {"later": "RetryTask", "never": "TaskState", "else": "RetryTask", "odd": "RetryTask"}
        for word, kind in expected.items():
            bindings = [{"name": "word", "kind": "literal", "value": word}]
            last = run_program(startup("with_policy", should_retry=True, arg_bindings=bindings)).last
            self.assertEqual(last["type"], kind, word)
            if word == "later":
                self.assertEqual(last["retry_delay_seconds"], 5.0)

    def test_file_that_cannot_be_loaded(self):
        """An import error is a failed task with the error in its log."""
        run = run_program(startup("nothing", should_retry=True), program="broken.py")
        self.assertEqual(run.last["type"], "RetryTask")
        self.assertIn("not_a_module_of_anybody", run.last["retry_reason"])

    def test_a_start_that_cannot_be_read(self):
        """A first frame without what a task needs ends in one sentence, not in a traceback."""
        first = startup("nothing")
        del first["ti"]["run_id"]
        run = run_program(first)
        self.assertEqual((run.code, run.stderr), (1, ""))
        self.assertIn("StartupDetails cannot be read", str(run.logs))

    def test_refused_end_is_an_exit_code(self):
        """Where the end of the task is refused the process says so with its exit code."""
        run = run_program(startup("nothing"), {"SucceedTask": Refuse("API_SERVER_ERROR", status_code=409)})
        self.assertEqual(run.code, 1)
        self.assertEqual(run.logs[-1]["level"], "error")


class Parking(unittest.TestCase):
    """Ending the process while the task waits, and waking up."""

    def test_defer(self):
        """A deferral names its trigger, what resumes, and its timeout; a bare except cannot stop it."""
        run = run_program(startup("defers"))
        expected = {
            "type": "DeferTask", "state": "deferred", "classpath": "some.Trigger",
            "trigger_kwargs": {"moment": 1}, "next_method": "woken", "next_kwargs": {"a": 1},
            "trigger_timeout": "PT2.5S",
        }  # fmt: skip
        self.assertEqual((run.last, run.code), (expected, 0))

    def test_resume(self):
        """The event and the kept arguments reach the function that resumes, by name."""
        run = run_program(startup("defers", next_method="woken", next_kwargs={"a": 1, "event": {"ok": True}}))
        self.assertEqual(run.of("SetXCom")[0]["value"], [{"ok": True}, 1, "woken"])

    def test_resume_nobody_registered(self):
        """A resume without a function fails and says what to register."""
        run = run_program(startup("defers_bare", next_method="missing", next_kwargs={"event": 1}))
        self.assertEqual(run.last["state"], "failed")
        self.assertIn(".resume('missing')", run.logs[-2]["exception"][0]["exc_value"])

    def test_failed_trigger(self):
        """A trigger that failed is an error of the attempt: retried while it may be."""
        kwargs = {"error": "Trigger timeout"}
        run = run_program(startup("defers", next_method="__fail__", next_kwargs=kwargs, should_retry=True))
        self.assertEqual(run.last["retry_reason"], "TriggerFailed: Trigger timeout")

    def test_reschedule_ends_the_process(self):
        """A reschedule ends the process although a thread of the user's is still running."""
        run = run_program(startup("reschedules"))
        self.assertEqual((run.last["type"], run.code), ("RescheduleTask", 0))
        self.assertGreater(run.last["reschedule_date"], run.last["end_date"])

    def test_a_closed_output_does_not_undo_a_wait(self):
        """A task that closed its stdout still leaves with 0 when it waits."""
        run = run_program(startup("closes_its_output"))
        self.assertEqual((run.last["type"], run.code), ("RescheduleTask", 0))

    def test_two_questions(self):
        """Each answer runs the function again; earlier answers are handed out again."""
        run = run_program(startup("asks"))
        question, parked = run.bodies
        self.assertEqual((question["subject"], question["options"]), ("Publish?", ["yes", "no"]))
        field = {"value": "because", "description": None, "schema": {}}
        self.assertEqual(question["params"], {"why": field})
        self.assertEqual((parked["type"], parked["timeout"]), ("AwaitInputTask", "PT60S"))
        kept = {**parked["next_kwargs"], "event": ANSWER}
        run = run_program(startup("asks", next_method=parked["next_method"], next_kwargs=kept))
        question, parked = run.bodies
        self.assertEqual((question["subject"], question["defaults"]), ("Sure?", ["no"]))
        self.assertEqual(question["assigned_users"], [{"id": "1", "name": "Ada"}])
        late = {**ANSWER, "chosen_options": ["no"], "timedout": True, "responded_by_user": None}
        kept = {**parked["next_kwargs"], "event": late}
        run = run_program(startup("asks", next_method=parked["next_method"], next_kwargs=kept))
        moment = "2026-11-30T10:05:09.250000+00:00"
        self.assertEqual(run.of("SetXCom")[0]["value"], ["yes", {"why": "tested"}, moment, "no", True])

    def test_question_of_a_function_that_resumed(self):
        """The answer runs the function that asked again, with its event and arguments, not the first one."""
        kept = {"a": 1, "event": {"ok": True}}
        parked = run_program(startup("defers", next_method="asks", next_kwargs=kept)).last
        for _ in range(2):
            self.assertEqual(parked["type"], "AwaitInputTask")
            kept = {**parked["next_kwargs"], "event": ANSWER}
            run = run_program(startup("defers", next_method=parked["next_method"], next_kwargs=kept))
            parked = run.last
        self.assertEqual(run.of("SetXCom")[0]["value"], [{"ok": True}, 1, "yes", "yes"])

    def test_nobody_answered(self):
        """A timeout without defaults is raised where the function asked."""
        parked = run_program(startup("asks_in_vain")).last
        kept = {**parked["next_kwargs"], "event": {"error": "too late", "error_type": "timeout"}}
        run = run_program(startup("asks_in_vain", next_method=parked["next_method"], next_kwargs=kept))
        self.assertEqual(run.of("SetXCom")[0]["value"], "'Anybody?': too late")

    def test_nobody_answered_is_final(self):
        """A timeout that nobody catches fails for good with retries left, unless the policy says Retry."""
        for task_id, kind in (("asks_to_the_end", "TaskState"), ("asks_until_somebody_answers", "RetryTask")):
            parked = run_program(startup(task_id)).last
            kept = {**parked["next_kwargs"], "event": {"error": "too late", "error_type": "timeout"}}
            woken = {"next_method": parked["next_method"], "next_kwargs": kept, "should_retry": True}
            run = run_program(startup(task_id, **woken))
            self.assertEqual(run.last["type"], kind)
            self.assertNotEqual(run.last.get("state"), "skipped")

    def test_a_question_nobody_could_answer(self):
        """No options, one given twice, and defaults that are no choice never reach a person."""
        run = run_program(startup("asks_badly"))
        self.assertEqual(run.of("CreateHITLDetailPayload"), [])
        self.assertEqual(len(run.of("SetXCom")[0]["value"]), 4)

    def test_changed_question(self):
        """A question that is another one at the second run is refused, not answered by the first's answer."""
        parked = run_program(startup("asks_in_vain")).last
        kept = {**parked["next_kwargs"], "event": ANSWER}
        run = run_program(startup("asks", next_method=parked["next_method"], next_kwargs=kept))
        self.assertEqual(run.last["state"], "failed")


class Requests(unittest.TestCase):
    """What a task asks for."""

    def test_arguments_have_the_types_of_the_parameters(self):
        """Arguments are bound by folded name, converted to the annotations, XComs fetched."""
        bindings = [
            {"name": "from_date", "kind": "literal", "value": "2026-11-30T10:00:00Z"},
            {"name": "limits", "kind": "literal", "value": {"low": 1}},
            {"name": "names", "kind": "xcom", "task_id": "up"},
        ]
        script = {"GetXCom": {"type": "XComResult", "key": "return_value", "value": ["a"]}}
        run = run_program(startup("typed", arg_bindings=bindings), script)
        self.assertEqual(run.of("SetXCom")[0]["value"], ["datetime", 1, ["a"], 0.5, "typed"])

    def test_arguments_that_do_not_fit(self):
        """A wrong type, a stranger and a missing argument fail before the function runs, and say which."""
        good = {"name": "fromDate", "kind": "literal", "value": "2026-11-30T10:00:00Z"}
        cases = [
            ([{**good, "value": 5}], "'fromDate'"),
            ([{"name": "stranger", "kind": "literal", "value": 5}], "'stranger'"),
            ([good], "['limits', 'names']"),
        ]
        for bindings, said in cases:
            run = run_program(startup("typed", arg_bindings=bindings))
            self.assertEqual(run.last["state"], "failed")
            self.assertIn(said, str(run.logs))

    def test_decorated_functions_and_methods(self):
        """Both get the context and their arguments; an annotation of the context need not be importable."""
        bindings = [{"name": "count", "kind": "literal", "value": 3}]
        run = run_program(startup("wrapped", arg_bindings=bindings))
        self.assertEqual(run.of("SetXCom")[0]["value"], [3, "wrapped", "x"])
        run = run_program(startup("method", arg_bindings=bindings))
        self.assertEqual(run.of("SetXCom")[0]["value"], [3, "method"])
        wrong = [{**bindings[0], "value": "three"}]
        self.assertEqual(run_program(startup("wrapped", arg_bindings=wrong)).last["state"], "failed")

    def test_everything_that_can_be_asked(self):
        """XComs, variables, connections, stores and assets use the requests of the schema."""
        connection = {
            "type": "ConnectionResult", "conn_id": "db", "conn_type": "postgres", "host": "h", "schema": None,
            "login": None, "password": None, "port": 1, "extra": '{"a": 1}',
        }  # fmt: skip
        variables = {"v": "text", "j": '{"n": 1}'}
        asset = {"type": "AssetResult", "name": "a", "uri": "s3://bucket/a", "group": "asset"}
        script = {
            "GetXCom": {"type": "XComResult", "key": "k", "value": 5},
            "GetXComSequenceSlice": {"type": "XComSequenceSliceResult", "root": [1, 2]},
            "GetVariable": lambda b: (
                {"type": "VariableResult", "key": b["key"], "value": variables[b["key"]]}
                if b["key"] in variables
                else missing("VARIABLE_NOT_FOUND")
            ),
            "GetVariableKeys": {"type": "VariableKeysResult", "keys": ["v", "j"], "total_entries": 2},
            "GetConnection": connection,
            "GetTaskStateStore": missing("TASK_STORE_NOT_FOUND"),
            "GetAssetStateStoreByName": {"type": "AssetStateStoreResult", "value": 7},
            "GetAssetEventByAsset": {"type": "AssetEventsResult", "asset_events": []},
            "GetAssetByName": asset,
        }
        run = run_program(startup("everything"), script)
        value = run.of("SetXCom")[1]["value"]
        self.assertEqual(
            value,
            {
                "conf": {"given": 1}, "xcom": 5, "all": [1, 2], "variable": "text", "json": {"n": 1},
                "default": "fallback", "keys": ["v", "j"], "host": "h", "extra": {"a": 1}, "state": None,
                "asset_state": 7, "events": [],
            },
        )  # fmt: skip
        key = {"name": "a", "uri": "s3://bucket/a"}
        self.assertEqual(run.last["task_outlets"], [{**key, "type": "Asset"}])
        self.assertEqual(run.last["outlet_events"], [{"dest_asset_key": key, "extra": {"rows": 3}}])
        self.assertEqual(run.last["rendered_map_index"], "label")
        self.assertEqual(run.of("SkipDownstreamTasks")[0]["tasks"], ["down", ["mapped", 1]])
        self.assertEqual(run.of("PutVariable")[0]["value"], '{"n": 1}')

    def test_an_event_through_an_alias(self):
        """It names the alias as its source, and the alias is the outlet."""
        asset = {"type": "AssetResult", "name": "a", "uri": "s3://bucket/a", "group": "asset"}
        run = run_program(
            startup("emits_through_an_alias"), {"GetAssetByName": asset, "GetAssetByUri": asset}
        )
        shared = {
            "dest_asset_key": {"name": "a", "uri": "s3://bucket/a"},
            "source_alias_name": "every",
            "dest_asset_extra": {},
        }
        self.assertEqual(
            run.last["outlet_events"],
            [{**shared, "extra": {"rows": 3}}, {**shared, "extra": {}, "partition_key": "2026-11"}],
        )
        outlet = {"name": "every", "uri": None, "type": "AssetAlias"}
        self.assertEqual(run.last["task_outlets"], [outlet])

    def test_refusals_are_raised_in_the_function(self):
        """Both ways of saying no reach the function as exceptions."""
        script = {
            "GetVariable": missing("VARIABLE_NOT_FOUND"),
            "TriggerDagRun": Refuse("API_SERVER_ERROR", status_code=404),
        }
        run = run_program(startup("raises_in_the_task"), script)
        self.assertEqual(run.of("SetXCom")[0]["value"], ["VARIABLE_NOT_FOUND", 404])

    def test_any_error_beside_the_body_is_a_refusal(self):
        """A third element that is no ErrorResponse is one all the same."""
        for said in ("no", {"error": "NO"}, [1]):
            refusal = Refuse("")
            refusal.body = said
            run = run_program(startup("numbers"), {"SetXCom": refusal})
            self.assertEqual(run.last["state"], "failed")
            self.assertIn("SetXCom was refused", str(run.logs))

    def test_value_that_is_not_json_is_never_sent(self):
        """A value that Airflow would never answer is refused here, with the place of the trouble."""
        run = run_program(startup("not_json"))
        self.assertEqual(run.of("SetXCom"), [])
        self.assertIn("$.when[0] is a datetime", str(run.logs))

    def test_replies_out_of_order(self):
        """Eight threads ask at once, the replies come in reverse, and each gets its own."""
        script = {
            "GetVariable": lambda b: {
                "type": "VariableResult",
                "key": b["key"],
                "value": "value of " + b["key"],
            }
        }
        run = run_program(startup("many_threads"), script, hold=8)
        self.assertIs(run.of("SetXCom")[0]["value"] if run.of("SetXCom") else None, True)

    def test_interrupted_request_leaves_the_channel_usable(self):
        """A request that a signal interrupts in the middle of its reply harms none that comes after it."""
        import signal
        import time

        def slow(body):
            if body["key"] == "slow":
                time.sleep(0.3)
            return {"type": "VariableResult", "key": body["key"], "value": body["key"] * 2}

        if not hasattr(signal, "setitimer") or os.name != "posix":
            self.skipTest("this system has no interval timers")
        run = run_program(startup("interrupted"), {"GetVariable": slow})
        self.assertEqual(run.of("SetXCom")[0]["value"], ["interrupted", "nextnext"])

    def test_xcoms_of_an_earlier_try_are_cleared_first(self):
        """The keys that Airflow names are deleted before the function runs."""
        run = run_program(startup("numbers", xcom_keys_to_clear=["old", "return_value"]))
        kinds = [body["type"] for body in run.bodies]
        self.assertEqual(kinds, ["DeleteXCom", "DeleteXCom", "SetXCom", "SucceedTask"])

    def test_trace_context_travels_along(self):
        """Requests carry the trace context of the task instance."""
        carrier = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        self.assertEqual(run_program(startup("nothing", context_carrier=carrier)).frames[0][2], carrier)


class Logging(unittest.TestCase):
    """Records on their way into the task log."""

    def test_case_early_log(self):
        """A record made before the socket was connected comes first."""
        run = run_program(startup("numbers"))
        self.assertEqual(run.events("programs.tasks"), ["loading", "numbers"])
        self.assertEqual(run.logs[1]["rows"], 3)

    def test_thresholds(self):
        """The global level and those of single loggers are honoured, their children included."""
        env = {
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "noisy=ERROR, quiet=debug nonsense x=",
        }
        run = run_program(startup("logs"), env=env)
        self.assertEqual(run.events(), ["loading", "kept", "shown", "between", "worst", "late"])

    def test_case_log_levels(self):
        """A level between two is the nearest one below; names that would end the supervisor are renamed."""
        run = run_program(startup("logs"))
        lines = {line["event"]: line for line in run.logs}
        self.assertEqual(lines["between"]["level"], "info")
        worst = lines["worst"]
        self.assertEqual((worst["target_"], worst["self_"], worst["nan"]), ("t", 1, "nan"))
        self.assertNotIn("target", worst)

    def test_late_record_is_kept(self):
        """A record made after the end of the task was reported still arrives."""
        self.assertEqual(run_program(startup("logs")).events()[-1], "late")

    def test_thresholds_that_cannot_be_read(self):
        """Zero and NOTSET let everything through; what is neither a name nor a number counts as not set."""
        from airflow_handoff_sdk.logs import thresholds

        for text, expected in (("0", 0), ("notset", 0), ("", 20), ("\u00b2", 20), ("loud", 20), ("35", 35)):
            env = {
                "AIRFLOW__LOGGING__LOGGING_LEVEL": text,
                "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "a=\u00b2 b=0",
            }
            self.assertEqual(thresholds(env), (expected, {"b": 0}), text)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_forked_child_writes_to_stderr(self):
        """Its lines never come between the bytes of its parent's."""
        run = run_program(startup("forks"))
        self.assertEqual(run.events(), ["loading", "of the parent"])
        self.assertIn("of the child", run.stderr)

    def test_printed_lines(self):
        """What is printed goes to stdout, its last line without a newline too."""
        self.assertEqual(run_program(startup("logs")).stdout, "printed\n")
        self.assertEqual(run_program(startup("prints_without_end")).stdout, "no newline")

    def test_exceptions_keep_their_cause(self):
        """A traceback arrives as Airflow's log page reads it, and text that is no UTF-8 harms nothing."""
        run = run_program(startup("breaks"))
        chain = next(line["exception"] for line in run.logs if "exception" in line)
        self.assertEqual(
            [(e["exc_type"], e["is_cause"]) for e in chain], [("ValueError", False), ("KeyError", True)]
        )
        self.assertEqual(chain[0]["frames"][-1]["name"], "breaks")


class Command(unittest.TestCase):
    """The program started by hand."""

    def call(self, *arguments):
        """Run the program without a supervisor."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            env={"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_usage(self):
        """Without addresses the program says how it is started."""
        done = self.call("airflow_handoff_sdk.run", "tasks.py")
        self.assertEqual((done.returncode, done.stderr[:6]), (2, "usage:"))

    def test_no_supervisor(self):
        """Where nobody listens the reason is on stderr."""
        tasks = str(HERE / "programs" / "tasks.py")
        done = self.call("airflow_handoff_sdk.run", tasks, "--comm=127.0.0.1:1", "--logs=127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot reach the supervisor", done.stderr)

    def test_bundle_runs(self):
        """A packed file runs as one executable, and its manifest names its tasks."""
        with tempfile.TemporaryDirectory() as folder:
            bundle = Path(folder) / "tasks-bundle"
            done = self.call(
                "airflow_handoff_sdk.pack", str(HERE / "programs" / "tasks.py"), "-o", str(bundle)
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(b'supervisor_schema_version: "2026-06-16"', bundle.read_bytes())
            env = {"AIRFLOW_HANDOFF_PYTHON": sys.executable}
            run = run_program(startup("numbers"), command=[str(bundle)], env=env)
            self.assertEqual(run.of("SetXCom")[0]["value"], [1, 2, 3])

    def test_script_says_what_it_holds(self):
        """A packed .py is the file with a comment, packs again to the same, and runs."""
        with tempfile.TemporaryDirectory() as folder:
            first, second = Path(folder) / "first.py", Path(folder) / "second.py"
            self.call("airflow_handoff_sdk.pack", str(HERE / "programs" / "tasks.py"), "-o", str(first))
            self.call("airflow_handoff_sdk.pack", str(first), "-o", str(second))
            lines = first.read_text(encoding="utf-8").splitlines()
            self.assertTrue(lines[0].startswith("# airflowMetadata="))
            self.assertEqual(len(second.read_text(encoding="utf-8").splitlines()), len(lines))
            run = run_program(startup("numbers"), program=str(second))
            self.assertEqual(run.last["type"], "SucceedTask")

    def test_manifest_goes_where_a_comment_can_be(self):
        """A byte order mark, and a first line that only talks of coding, do not spoil the packed source."""
        from airflow_handoff_sdk.pack import script

        sources = [
            b"\xef\xbb\xbfx = 1\n",
            b"#!/usr/bin/python3\n# -*- coding: latin-1 -*-\nx = '\xe9'\n",
            b'x = open(__file__, encoding="utf-8", newline="""\n"""\n)\n',
            b'x = """encoding: text\nsecond line"""\n',
        ]
        for source in sources:
            packed = script(source, "a: 1")
            compile(packed, "packed", "exec")
            before = [n.lineno for n in ast.parse(source).body]
            self.assertEqual([n.lineno for n in ast.parse(packed).body], [n + 1 for n in before])

    def test_archive_runs(self):
        """A folder becomes an archive that holds its manifest and runs."""
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "project"
            package.mkdir()
            source = (HERE / "programs" / "tasks.py").read_text(encoding="utf-8")
            (package / "many.py").write_text(source, encoding="utf-8")
            (package / "__main__.py").write_text("import many\n", encoding="utf-8")
            os.utime(package / "__main__.py", (0, 0))
            archive = Path(folder) / "project.pyz"
            done = self.call("airflow_handoff_sdk.pack", str(package), "-o", str(archive))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            run = run_program(startup("numbers"), program=str(archive))
            self.assertEqual(run.last["type"], "SucceedTask")


if __name__ == "__main__":
    unittest.main()
