//! The example program against a scripted supervisor.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use airflow_handoff_sdk::Value;
use serde_json::{json, Value as Json};

const LIMIT: Duration = Duration::from_secs(30);
const TERMINAL: [&str; 6] =
    ["SucceedTask", "TaskState", "RetryTask", "DeferTask", "AwaitInputTask", "RescheduleTask"];

/// What one task process said.
struct Run {
    frames: Vec<Json>,
    logs: Vec<Json>,
    code: Option<i32>,
    stdout: String,
}

impl Run {
    fn last(&self) -> &Json {
        &self.frames.last().expect("the task said nothing")[1]
    }

    fn kinds(&self) -> Vec<&str> {
        self.frames.iter().map(|frame| frame[1]["type"].as_str().unwrap()).collect()
    }

    fn of(&self, kind: &str) -> Vec<&Json> {
        self.frames.iter().map(|frame| &frame[1]).filter(|body| body["type"] == kind).collect()
    }

    fn events(&self) -> Vec<&str> {
        self.logs.iter().map(|line| line["event"].as_str().unwrap()).collect()
    }
}

/// What the supervisor answers by type: `{"$refuse": {...}}` goes into the third element.
type Script = HashMap<&'static str, Box<dyn Fn(&Json) -> Json>>;

fn script(replies: Json) -> Script {
    let mut script = Script::new();
    for (kind, reply) in replies.as_object().unwrap().clone() {
        script.insert(kind.leak(), Box::new(move |_| reply.clone()));
    }
    script
}

fn startup(task_id: &str, ti: Json, server: Json) -> Json {
    let mut body = json!({
        "type": "StartupDetails", "dag_rel_path": "x.py", "bundle_info": {"name": "b", "version": null},
        "start_date": "2026-11-30T10:00:00Z", "sentry_integration": "",
        "ti": {
            "id": "00000000-0000-0000-0000-000000000007", "task_id": task_id, "dag_id": "dag", "run_id": "run",
            "try_number": 1, "dag_version_id": "00000000-0000-0000-0000-000000000008", "map_index": -1,
            "hostname": null, "context_carrier": null, "queue": "rust",
        },
        "ti_context": {
            "dag_run": {
                "dag_id": "dag", "run_id": "run", "logical_date": null, "data_interval_start": null,
                "data_interval_end": null, "run_after": "2026-11-30T10:00:00Z", "start_date": null,
                "end_date": null, "run_type": "manual", "state": "running", "conf": {},
                "consumed_asset_events": [], "partition_key": null,
            },
            "task_reschedule_count": 0, "max_tries": 0, "variables": null, "connections": null,
            "next_method": null, "next_kwargs": null, "xcom_keys_to_clear": null, "should_retry": false,
            "start_date": null,
        },
    });
    for (key, value) in ti.as_object().unwrap() {
        body["ti"][key] = value.clone();
    }
    for (key, value) in server.as_object().unwrap() {
        body["ti_context"][key] = value.clone();
    }
    body
}

fn plain(task_id: &str) -> Json {
    startup(task_id, json!({}), json!({}))
}

fn retried(task_id: &str) -> Json {
    startup(task_id, json!({}), json!({"should_retry": true}))
}

fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join("tasks")
}

fn write_frame(stream: &mut TcpStream, frame: &Json) {
    let mut payload = Vec::new();
    Value::from_json(frame).unwrap().encode(&mut payload);
    let mut bytes = (payload.len() as u32).to_be_bytes().to_vec();
    bytes.extend(payload);
    // A program that has ended already reads no reply.
    let _ = stream.write_all(&bytes);
}

fn read_frame(stream: &mut TcpStream) -> Option<Json> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let mut payload = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(Value::decode(&payload).unwrap().into_type().unwrap())
}

fn answer(stream: &mut TcpStream, frame: &Json, script: &Script) {
    let reply = script.get(frame[1]["type"].as_str().unwrap()).map_or(Json::Null, |reply| reply(&frame[1]));
    let (body, error) = match reply.get("$refuse") {
        Some(refusal) => (Json::Null, refusal.clone()),
        None => (reply, Json::Null),
    };
    write_frame(stream, &json!([frame[0], body, error]));
}

/// Start the program, be its supervisor until it ends, and say what it said.
///
/// `hold` requests for variables are collected and answered in reverse order.
fn run(first: Json, script: Script, hold: usize, environment: &[(&str, &str)]) -> Run {
    let comm_server = TcpListener::bind("127.0.0.1:0").unwrap();
    let logs_server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new(program())
        .arg(format!("--comm={}", comm_server.local_addr().unwrap()))
        .arg(format!("--logs={}", logs_server.local_addr().unwrap()))
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cargo builds the example with the tests");
    let (mut comm, _) = comm_server.accept().unwrap();
    let (mut logs, _) = logs_server.accept().unwrap();
    comm.set_read_timeout(Some(LIMIT)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        logs.read_to_string(&mut text).unwrap();
        text
    });
    write_frame(&mut comm, &json!([0, first, null]));
    let (mut frames, mut held) = (Vec::new(), Vec::new());
    while let Some(frame) = read_frame(&mut comm) {
        frames.push(frame.clone());
        let many = frame[1]["type"] == "GetVariable";
        held.push(frame);
        if !many || held.len() >= hold {
            held.drain(..).rev().for_each(|frame| answer(&mut comm, &frame, &script));
        }
    }
    let code = child.wait().unwrap().code();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let logs = reader.join().unwrap();
    let logs = logs.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    Run { frames, logs, code, stdout }
}

fn simple(first: Json) -> Run {
    run(first, Script::new(), 1, &[])
}

#[test]
fn success_names_its_empty_lists() {
    let run = simple(plain("nothing"));
    assert_eq!(run.kinds(), ["SucceedTask"]);
    assert_eq!((&run.last()["task_outlets"], &run.last()["outlet_events"]), (&json!([]), &json!([])));
    assert_eq!(run.code, Some(0));
}

#[test]
fn a_list_carries_its_length_unless_the_task_is_mapped() {
    let pushed = simple(plain("numbers")).of("SetXCom")[0].clone();
    assert_eq!((&pushed["value"], &pushed["mapped_length"]), (&json!([1, 2, 3]), &json!(3)));
    let pushed = simple(startup("numbers", json!({"map_index": 2}), json!({}))).of("SetXCom")[0].clone();
    assert_eq!((&pushed["map_index"], pushed.get("mapped_length")), (&json!(2), None));
}

#[test]
fn a_list_too_long_to_expand_over_is_still_a_result() {
    let mut replies = Script::new();
    let refusal = json!({"$refuse": {"type": "ErrorResponse", "error": "API_SERVER_ERROR",
        "detail": {"detail": {"reason": "unmappable_return_value_length"}}}});
    let long = move |body: &Json| body.get("mapped_length").map_or(Json::Null, |_| refusal.clone());
    replies.insert("SetXCom", Box::new(long));
    assert_eq!(run(plain("numbers"), replies, 1, &[]).kinds(), ["SetXCom", "SetXCom", "SucceedTask"]);
}

#[test]
fn skip_and_fail_are_states() {
    assert_eq!(simple(plain("skips")).last()["state"], "skipped");
    let run = simple(retried("fails"));
    assert_eq!((run.last()["state"].as_str(), run.code), (Some("failed"), Some(0)));
}

#[test]
fn retry_says_when_and_why_while_retries_remain() {
    let run = simple(retried("retries"));
    let last = run.last();
    assert_eq!(last["type"], "RetryTask");
    assert_eq!((&last["retry_delay_seconds"], &last["retry_reason"]), (&json!(90.0), &json!("busy")));
    assert_eq!(simple(plain("retries")).last()["state"], "failed");
}

#[test]
fn case_retries() {
    assert_eq!(simple(retried("breaks")).last()["retry_reason"], "invalid digit found in string");
    assert_eq!(simple(plain("breaks")).last()["state"], "failed");
}

#[test]
fn a_panic_is_reported_with_its_place() {
    let run = simple(retried("panics"));
    let reason = run.last()["retry_reason"].as_str().unwrap();
    assert!(reason.contains("index 5 is out of bounds") && reason.contains("examples/tasks.rs:"), "{reason}");
    assert!(run.logs.iter().any(|line| line["level"] == "error" && line["event"] == reason));
}

#[test]
fn an_unknown_task_is_removed() {
    let run = simple(plain("unheard_of"));
    assert_eq!(run.last()["state"], "removed");
    assert!(run.events().last().unwrap().contains("dag.numbers"));
}

#[test]
fn the_policy_decides() {
    for (word, kind) in [("later", "RetryTask"), ("never", "TaskState"), ("else", "RetryTask")] {
        let bindings = json!([{"name": "word", "kind": "literal", "value": word}]);
        let server = json!({"should_retry": true, "arg_bindings": bindings});
        assert_eq!(simple(startup("with_policy", json!({}), server)).last()["type"], kind, "{word}");
    }
}

#[test]
fn a_deferral_names_its_trigger_and_what_resumes() {
    let run = simple(plain("defers"));
    let expected = json!({"type": "DeferTask", "classpath": "some.Trigger", "trigger_kwargs": {"moment": 1},
        "next_method": "woken", "next_kwargs": {"a": 1}, "trigger_timeout": "PT2.5S"});
    assert_eq!((run.last(), run.code), (&expected, Some(0)));
    let server = json!({"next_method": "woken", "next_kwargs": {"a": 1, "event": {"ok": true}}});
    let run = simple(startup("defers", json!({"try_number": 4}), server));
    assert_eq!(run.of("SetXCom")[0]["value"], json!([{"ok": true}, 1, 4]));
}

#[test]
fn a_failed_trigger_is_an_error_of_the_try() {
    let server =
        json!({"next_method": "__fail__", "next_kwargs": {"error": "Trigger timeout"}, "should_retry": true});
    let run = simple(startup("defers", json!({}), server));
    assert_eq!(run.last()["retry_reason"], "the trigger failed: Trigger timeout");
}

#[test]
fn a_reschedule_ends_the_process_beside_a_thread() {
    let run = simple(plain("reschedules"));
    assert_eq!((run.last()["type"].as_str(), run.code), (Some("RescheduleTask"), Some(0)));
    assert!(run.last()["reschedule_date"].as_str() > run.last()["end_date"].as_str());
}

#[test]
fn each_answer_runs_the_function_again() {
    let event = json!({"chosen_options": ["yes"], "params_input": {"why": "tested"}, "timedout": false,
        "responded_at": {"__classname__": "datetime.datetime"}, "responded_by_user": {"id": "1", "name": "Ada"}});
    let again = |run: &Run, event: Json| {
        let mut kwargs = run.last()["next_kwargs"].clone();
        kwargs["event"] = event;
        let server =
            json!({"next_method": run.last()["next_method"], "next_kwargs": kwargs, "should_retry": true});
        startup("asks", json!({}), server)
    };
    let first = simple(plain("asks"));
    assert_eq!(first.kinds(), ["CreateHITLDetailPayload", "AwaitInputTask"]);
    let question = &first.frames[0][1];
    let field = json!({"value": "because", "description": null, "schema": {}});
    assert_eq!((&question["options"], &question["params"]["why"]), (&json!(["yes", "no"]), &field));
    assert_eq!(first.last()["timeout"], "PT60S");
    let second = simple(again(&first, event.clone()));
    assert_eq!(second.frames[0][1]["assigned_users"], json!([{"id": "1", "name": "Ada"}]));
    let mut late = event;
    late["chosen_options"] = json!(["no"]);
    late["timedout"] = json!(true);
    let third = simple(again(&second, late));
    assert_eq!(third.of("SetXCom")[0]["value"], json!(["yes", "tested", "no", true]));
    let in_vain = simple(again(&first, json!({"error": "too late", "error_type": "timeout"})));
    // Although a retry is left: that nobody answered is a decision.
    assert_eq!(in_vain.last()["state"], "failed");
}

#[test]
fn a_question_nobody_could_answer_is_never_asked() {
    let run = simple(plain("asks_badly"));
    assert!(run.of("CreateHITLDetailPayload").is_empty());
    assert_eq!(run.of("SetXCom")[0]["value"], json!([true, true, true, true]));
}

#[test]
fn an_answer_returns_to_the_function_that_resumed() {
    let mut server = json!({"next_method": "asks", "next_kwargs": {"a": 1, "event": {"ok": true}}});
    for _ in 0..2 {
        let parked = simple(startup("defers", json!({}), server)).last().clone();
        assert_eq!(parked["type"], "AwaitInputTask");
        let mut kwargs = parked["next_kwargs"].clone();
        kwargs["event"] = json!({"chosen_options": ["yes"], "params_input": {}, "timedout": false});
        server = json!({"next_method": parked["next_method"], "next_kwargs": kwargs});
    }
    let run = simple(startup("defers", json!({}), server));
    assert_eq!(run.of("SetXCom")[0]["value"], json!([{"ok": true}, 1, "yes", "yes"]));
}

#[test]
fn arguments_become_the_fields_of_a_struct() {
    let given = json!([
        {"name": "fromDate", "kind": "literal", "value": "2026-11-30"},
        {"name": "names", "kind": "xcom", "task_id": "up"},
    ]);
    let replies = script(json!({"GetXCom": {"type": "XComResult", "key": "return_value", "value": ["a"]}}));
    let run = run(startup("typed", json!({}), json!({"arg_bindings": given})), replies, 1, &[]);
    assert_eq!(run.of("SetXCom")[0]["value"], json!(["2026-11-30", ["a"], null]));
}

#[test]
fn arguments_that_do_not_fit_fail_before_the_function() {
    let good = json!({"name": "fromDate", "kind": "literal", "value": "x"});
    let stranger = json!({"name": "stranger", "kind": "literal", "value": 5});
    for (given, said) in [
        (json!([{"name": "fromDate", "kind": "literal", "value": 5}]), "invalid type"),
        (json!([good, stranger]), "stranger"),
        (json!([good]), "missing field `names`"),
    ] {
        let run = simple(startup("typed", json!({}), json!({"arg_bindings": given})));
        assert_eq!(run.last()["state"], "failed");
        assert!(run.events().iter().any(|event| event.contains(said)), "{:?}", run.events());
    }
}

#[test]
fn everything_that_can_be_asked() {
    let mut replies = script(json!({
        "GetXCom": {"type": "XComResult", "key": "k", "value": 5},
        "GetXComSequenceSlice": {"type": "XComSequenceSliceResult", "root": [1, 2]},
        "GetVariableKeys": {"type": "VariableKeysResult", "keys": ["v"], "total_entries": 1},
        "GetConnection": {"type": "ConnectionResult", "conn_id": "db", "conn_type": "postgres", "host": "h",
            "schema": null, "login": null, "password": null, "port": 1, "extra": null},
        "GetTaskStateStore": {"type": "ErrorResponse", "error": "TASK_STORE_NOT_FOUND", "detail": {}},
        "GetAssetStateStoreByName": {"type": "AssetStateStoreResult", "value": 7},
        "GetAssetEventByAsset": {"type": "AssetEventsResult", "asset_events": []},
        "GetAssetByName": {"type": "AssetResult", "name": "a", "uri": "s3://bucket/a", "group": "asset"},
    }));
    let variable = |body: &Json| match body["key"].as_str() {
        Some("v") => json!({"type": "VariableResult", "key": "v", "value": "text"}),
        _ => json!({"type": "ErrorResponse", "error": "VARIABLE_NOT_FOUND", "detail": {}}),
    };
    replies.insert("GetVariable", Box::new(variable));
    let run = run(plain("everything"), replies, 1, &[]);
    let expected = json!({"xcom": 5, "all": [1, 2], "variable": "text", "default": "fallback", "keys": ["v"],
        "host": "h", "state": null, "asset_state": 7, "events": 0});
    assert_eq!(run.of("SetXCom")[1]["value"], expected);
    let key = json!({"name": "a", "uri": "s3://bucket/a"});
    let last = run.last();
    assert_eq!(last["task_outlets"], json!([{"name": "a", "uri": "s3://bucket/a", "type": "Asset"}]));
    assert_eq!(last["outlet_events"], json!([{"dest_asset_key": key, "extra": {"rows": 3}}]));
    assert_eq!(last["rendered_map_index"], "label");
    let skipped: Vec<&Json> = run.of("SkipDownstreamTasks").iter().map(|body| &body["tasks"]).collect();
    assert_eq!(skipped, [&json!(["down"]), &json!(["down", ["mapped", 2]])]);
}

#[test]
fn what_is_json_is_read_into_types() {
    let mut replies = script(json!({"GetConnection": {"type": "ConnectionResult", "conn_id": "db",
        "conn_type": "postgres", "host": null, "schema": null, "login": null, "password": null, "port": null,
        "extra": "{\"low\": 3}"}}));
    let variable = |body: &Json| match body["key"].as_str() {
        Some("limits") => json!({"type": "VariableResult", "key": "limits", "value": "{\"low\": 2}"}),
        _ => json!({"type": "ErrorResponse", "error": "VARIABLE_NOT_FOUND", "detail": {}}),
    };
    replies.insert("GetVariable", Box::new(variable));
    let mut first = plain("typed_reach");
    first["ti_context"]["dag_run"]["conf"] = json!({"low": 1});
    first["ti_context"]["dag_run"]["logical_date"] = json!("2026-11-30T10:00:00Z");
    let run = run(first, replies, 1, &[]);
    let put = run.of("PutVariable")[0];
    assert_eq!((&put["value"], &put["description"]), (&json!("{\"low\":2}"), &json!("kept by a task")));
    assert_eq!(run.of("SetTaskStateStore")[0]["expires_at"], "1970-01-01T00:01:00.000000+00:00");
    assert_eq!(run.of("SetXCom")[0]["value"], json!([1, 2, null, 3, "2026-11-30T10:00:00Z"]));
}

#[test]
fn moments_are_given_as_such() {
    let run = simple(plain("reschedules_at"));
    assert_eq!(run.last()["reschedule_date"], "2096-10-02T07:06:40.000000+00:00");
    let trigger = json!({"moment": {"__type": "datetime", "__var": 90.5},
        "poll": {"__type": "timedelta", "__var": 5.0}});
    assert_eq!(simple(plain("defers_until")).last()["trigger_kwargs"], trigger);
}

#[test]
fn assets_are_selected_cleared_and_emitted() {
    let asset = json!({"type": "AssetResult", "name": "a", "uri": "s3://bucket/a", "group": "asset"});
    let replies = script(json!({
        "GetAssetEventByAsset": {"type": "AssetEventsResult", "asset_events": []},
        "GetAssetEventByAssetAlias": {"type": "AssetEventsResult", "asset_events": []},
        "GetAssetByName": asset, "GetAssetByUri": asset,
    }));
    let run = run(plain("assets"), replies, 1, &[]);
    let window = json!({"type": "GetAssetEventByAsset", "name": null, "uri": "s3://bucket/a", "ascending": true,
        "after": "1970-01-01T00:01:00.000000+00:00", "before": "1970-01-01T00:01:30.500000+00:00"});
    assert_eq!(run.of("GetAssetEventByAsset"), [&window]);
    let alias =
        json!({"type": "GetAssetEventByAssetAlias", "alias_name": "every", "limit": 2, "ascending": false});
    assert_eq!(run.of("GetAssetEventByAssetAlias"), [&alias]);
    assert_eq!(run.of("ClearAssetStateStoreByName")[0]["name"], "a");
    assert_eq!(run.of("ClearAssetStateStoreByUri")[0]["uri"], "s3://bucket/a");
    let key = json!({"name": "a", "uri": "s3://bucket/a"});
    let emitted = json!([
        {"dest_asset_key": key, "extra": {}, "partition_key": "2026-11"},
        {"dest_asset_key": key, "extra": {"rows": 3}, "source_alias_name": "every", "dest_asset_extra": {}},
    ]);
    assert_eq!(run.last()["outlet_events"], emitted);
    let outlets = &run.last()["task_outlets"];
    assert_eq!((&outlets[0]["type"], &outlets[1]["type"]), (&json!("Asset"), &json!("AssetAlias")));
    assert_eq!((&outlets[1]["name"], outlets[1]["uri"].is_null()), (&json!("every"), true));
}

fn moment(timestamp: f64) -> Json {
    json!({"__classname__": "pendulum.datetime.DateTime", "__version__": 2,
        "__data__": {"timestamp": timestamp, "tz": ["UTC", "pendulum.tz.timezone.Timezone", 1, true]}})
}

#[test]
fn xcoms_of_airflows_own_serialization_are_restored() {
    let mut replies = Script::new();
    let pair = json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, 2]});
    let xcom = move |body: &Json| {
        let value = if body["task_id"] == "when" { moment(1_796_033_109.25) } else { pair.clone() };
        json!({"type": "XComResult", "key": "return_value", "value": value})
    };
    replies.insert("GetXCom", Box::new(xcom));
    let run = run(plain("moments"), replies, 1, &[]);
    assert_eq!(run.of("SetXCom")[0]["value"], json!(["2026-11-30T10:05:09.250000+00:00", [1, 2]]));
}

#[test]
fn a_moment_in_the_event_is_restored_for_the_resuming_function() {
    let server = json!({"next_method": "woken", "next_kwargs": {"a": 1, "event": moment(0.0)}});
    let run = simple(startup("defers", json!({}), server));
    assert_eq!(run.of("SetXCom")[0]["value"], json!(["1970-01-01T00:00:00.000000+00:00", 1, 1]));
    assert!(run.logs.iter().any(|line| line["event"] == "woken" && line["is_moment"] == true));
}

#[test]
fn a_form_has_schemas_and_an_answer_its_moment() {
    let parked = simple(plain("asks_a_form"));
    let form = json!({
        "amount": {"value": 5, "description": "in **euros**", "schema": {"type": "integer"}},
        "why": {"value": null, "description": null, "schema": {}},
    });
    assert_eq!(parked.frames[0][1]["params"], form);
    for (given, expected) in [(moment(1_796_033_109.25), json!(1_796_033_109)), (Json::Null, Json::Null)] {
        let mut kwargs = parked.last()["next_kwargs"].clone();
        kwargs["event"] = json!({"chosen_options": ["OK"], "params_input": {}, "responded_at": given});
        let server = json!({"next_method": parked.last()["next_method"], "next_kwargs": kwargs});
        let run = simple(startup("asks_a_form", json!({}), server));
        assert_eq!(run.of("SetXCom").first().map_or(Json::Null, |body| body["value"].clone()), expected);
        assert_eq!(run.last()["type"], "SucceedTask");
    }
}

#[test]
fn a_value_that_is_not_json_is_never_sent() {
    let run = simple(plain("not_json"));
    assert!(run.of("SetXCom").is_empty());
    assert_eq!(run.last()["state"], "failed");
}

#[test]
fn replies_out_of_order_find_their_thread() {
    let mut replies = Script::new();
    let variable = |body: &Json| {
        let value = format!("value of {}", body["key"].as_str().unwrap());
        json!({"type": "VariableResult", "key": body["key"], "value": value})
    };
    replies.insert("GetVariable", Box::new(variable));
    assert_eq!(run(plain("many_threads"), replies, 8, &[]).of("SetXCom")[0]["value"], true);
}

#[test]
fn xcoms_of_an_earlier_try_are_cleared_first() {
    let run = simple(startup("numbers", json!({}), json!({"xcom_keys_to_clear": ["old", "return_value"]})));
    assert_eq!(run.kinds(), ["DeleteXCom", "DeleteXCom", "SetXCom", "SucceedTask"]);
}

#[test]
fn the_trace_context_travels_along() {
    let carrier = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
    let run = simple(startup("nothing", json!({"context_carrier": carrier}), json!({})));
    assert_eq!(run.frames[0][2], carrier);
}

#[test]
fn case_early_log() {
    let run = simple(plain("numbers"));
    assert_eq!(run.events(), ["loading", "numbers"]);
    assert_eq!((&run.logs[1]["rows"], &run.logs[1]["msg_"]), (&json!(3), &json!("x")));
    assert_eq!((&run.logs[1]["logger"], &run.logs[1]["level"]), (&json!("tasks"), &json!("info")));
}

#[test]
fn case_log_levels() {
    let environment = [
        ("AIRFLOW__LOGGING__LOGGING_LEVEL", "INFO"),
        ("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "noisy=ERROR, quiet=debug"),
    ];
    let run = run(plain("logs"), Script::new(), 1, &environment);
    assert_eq!(run.events(), ["loading", "kept", "shown", "worst"]);
    let worst = &run.logs[3];
    assert_eq!((&worst["span"], &worst["job"], &worst["target_"]), (&json!("outer"), &json!(7), &json!("t")));
    assert_eq!(run.stdout, "printed\n");
}

#[test]
fn a_late_record_is_kept() {
    let run = run(plain("nothing"), Script::new(), 1, &[("HANDOFF_LATE", "1")]);
    assert_eq!(run.events(), ["loading", "after the end"]);
}

#[test]
fn a_refused_end_is_an_exit_code() {
    let refusal = json!({"$refuse": {"type": "ErrorResponse", "error": "API_SERVER_ERROR", "detail": {}}});
    let run = run(plain("nothing"), script(json!({"SucceedTask": refusal})), 1, &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.events().last().unwrap().contains("could not be reported"));
}

#[test]
fn any_error_beside_the_body_is_a_refusal() {
    for refusal in [json!("no"), json!({"error": "NO"}), json!([1])] {
        let run = run(plain("numbers"), script(json!({"SetXCom": {"$refuse": refusal}})), 1, &[]);
        assert_eq!(run.last()["state"], "failed", "{refusal}");
    }
}

#[test]
fn the_manifest_names_the_tasks() {
    let output = Command::new(program()).arg("--airflow-metadata").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("supervisor_schema_version: \"2026-06-16\""), "{text}");
    assert!(text.contains("  \"dag\":\n    tasks:\n      - \"asks\"\n"), "{text}");
    assert_eq!(Command::new(program()).output().unwrap().status.code(), Some(2));
}

#[test]
fn every_terminal_message_is_known_here() {
    for (task, kind) in [("nothing", 0), ("skips", 1), ("defers", 3), ("asks", 4), ("reschedules", 5)] {
        assert_eq!(simple(plain(task)).last()["type"], TERMINAL[kind]);
    }
}
