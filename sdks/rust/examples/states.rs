//! One task for each state a task can end in, and for what it can do on the way.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airflow_handoff_sdk::{
    AssetRef, Context, Decision, Defer, Emission, HumanTimeout, Question, TaskError, TaskResult, Tasks, Value,
};
use serde::{Deserialize, Serialize};

const DAG: &str = "sdks_rust";

#[derive(Serialize, Deserialize)]
struct Cursor {
    page: i64,
}

/// Use a variable, the task's own state and a log with a field.
fn succeed(ctx: &Context) -> TaskResult<(String, Option<Cursor>, Option<Vec<i64>>)> {
    tracing::info!(attempt = ctx.try_number(), "running in Rust");
    ctx.set_variable("sdks_rust_note", "written by the task", None)?;
    ctx.state().set("cursor", &Cursor { page: 3 }, None)?;
    Ok((ctx.variable("sdks_rust_note")?, ctx.state().get("cursor")?, ctx.xcom("numbers").get()?))
}

/// Fail although a retry is left.
fn fail(_: &Context) -> TaskResult<()> {
    Err(TaskError::fail("the file is corrupt"))
}

/// Skip.
fn skip(_: &Context) -> TaskResult<()> {
    Err(TaskError::skip("no new files"))
}

/// Panic once; the second try must not see the first one's XCom.
fn retry(ctx: &Context) -> TaskResult<(i64, Option<String>)> {
    if ctx.try_number() == 1 {
        ctx.push("draft", "of the first try")?;
        panic!("the first try never works");
    }
    Ok((ctx.try_number(), ctx.xcom("retry").key("draft").get()?))
}

/// Come back ten seconds later, as the same try.
fn reschedule(ctx: &Context) -> TaskResult<(i64, i64)> {
    if ctx.reschedule_count() == 0 {
        return ctx.reschedule(SystemTime::now() + Duration::from_secs(10));
    }
    Ok((ctx.try_number(), ctx.reschedule_count()))
}

#[derive(Serialize)]
struct Keep {
    kept: Vec<i64>,
}

/// Wait for a trigger without a process.
fn defer(ctx: &Context) -> TaskResult<()> {
    ctx.defer(Defer::for_duration(Duration::from_secs(10), "woken").kwargs(&Keep { kept: vec![1, 2] }))
}

#[derive(Deserialize)]
struct Woken {
    kept: Vec<i64>,
    event: Value,
}

/// Go on when the trigger has fired; it says at which moment.
fn woken(_: &Context, woken: Woken) -> TaskResult<(Vec<i64>, bool)> {
    Ok((woken.kept, woken.event.as_moment().is_some()))
}

/// Ask a person.
fn ask(ctx: &Context) -> TaskResult<(String, Value, String)> {
    let question = Question::new("Publish?").options(["yes", "no"]).body("The **report** is ready.");
    let answer = ctx.ask_human(question.field("reason", &"none"))?;
    tracing::info!("chosen: {}", answer.choice());
    let (_, name) = answer.responded_by.clone().unwrap_or_default();
    Ok((answer.choice().to_owned(), answer.params_input, name))
}

/// Ask twice: the second question depends on the first answer.
fn interview(ctx: &Context) -> TaskResult<(String, String)> {
    let first = ctx.ask_human(Question::new("Which colour?").options(["red", "blue"]))?;
    let second = Question::new(format!("Really {}?", first.choice())).options(["yes", "no"]);
    let second = ctx.ask_human(second)?;
    Ok((first.choice().to_owned(), second.choice().to_owned()))
}

/// Wait for a moment before anybody is asked.
fn defer_then_ask(ctx: &Context) -> TaskResult<()> {
    let wait = Defer::until(SystemTime::now() + Duration::from_secs(10), "ready");
    ctx.defer(wait.kwargs(&Keep { kept: vec![7] }))
}

/// Ask in the function that resumed; the answer comes back to it.
fn ready(ctx: &Context, woken: Woken) -> TaskResult<(Vec<i64>, bool, String)> {
    let answer = ctx.ask_human(Question::new("Now?").options(["yes", "no"]))?;
    Ok((woken.kept, woken.event.as_moment().is_some(), answer.choice().to_owned()))
}

/// Ask, and go on without an answer.
fn unanswered(ctx: &Context) -> TaskResult<String> {
    match ctx.ask_human(Question::new("Anybody?").timeout(Duration::from_secs(12))) {
        Err(TaskError::Error(error)) if error.is::<HumanTimeout>() => Ok("nobody answered".into()),
        other => Ok(other?.choice().to_owned()),
    }
}

/// Return a list that a mapped task expands over.
fn listed(_: &Context) -> TaskResult<Vec<i64>> {
    Ok(vec![1, 2, 3])
}

/// Make an asset event.
fn emit(ctx: &Context) -> TaskResult<()> {
    ctx.emit(AssetRef::Name("sdks_rust_report"), &BTreeMap::from([("rows", 3)]))?;
    Ok(())
}

/// Make an asset event through an alias.
fn emit_alias(ctx: &Context) -> TaskResult<()> {
    let report = AssetRef::Name("sdks_rust_report");
    let rows = BTreeMap::from([("rows", 4)]);
    ctx.emit_event(Emission::of(report).alias("sdks_rust_alias").extra(&rows))?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Limit {
    limit: i64,
}

type Reach = ((i64, i64, i64), (Option<i64>, Option<i64>), Vec<usize>, Option<String>);

/// Use what has a type or a moment: JSON, expiry, the time and the alias of asset events.
fn reach(ctx: &Context) -> TaskResult<Reach> {
    let conf: Limit = ctx.conf()?;
    ctx.set_variable_json("sdks_rust_json", &Limit { limit: conf.limit + 1 }, None)?;
    let (kept, extra): (Limit, BTreeMap<String, i64>) =
        (ctx.variable_json("sdks_rust_json")?, ctx.connection("sdks_db")?.extra_json()?);
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    ctx.state().set("until", &5, Some(tomorrow.into()))?;
    let report = AssetRef::Name("sdks_rust_report");
    ctx.asset_state(report).set("before", &1)?;
    ctx.asset_state(report).clear()?;
    let counts = vec![
        ctx.alias_events("sdks_rust_alias").get()?.len().min(1),
        ctx.asset_events(report).after(UNIX_EPOCH).before(tomorrow).limit(1).newest_first().get()?.len(),
        ctx.asset_events(report).after(tomorrow).get()?.len(),
        ctx.asset_events(report).before(UNIX_EPOCH).get()?.len(),
    ];
    let limits = (conf.limit, kept.limit, extra["a"]);
    let stored = (ctx.state().get("until")?, ctx.asset_state(report).get("before")?);
    Ok((limits, stored, counts, ctx.variable_json_if_set("sdks_rust_gone")?))
}

/// Give a server that is away three seconds, whatever the Dag says.
fn policy(error: &TaskError, _: &Context) -> Decision {
    match error.to_string().as_str() {
        "the server is away" => {
            Decision::Retry { after: Some(Duration::from_secs(3)), reason: "the policy says so".into() }
        }
        _ => Decision::Default,
    }
}

type Found = (i64, (Option<String>, Value), String, Option<Value>, Vec<Value>);

/// Retry twice before its time, then read and write what Airflow keeps.
fn everything(ctx: &Context) -> TaskResult<Found> {
    match ctx.try_number() {
        1 => return Err(TaskError::retry_after(Duration::from_secs(3), "too early")),
        2 => return Err(TaskError::message("the server is away")),
        _ => {}
    }
    tracing::warn!(target: "noisy::part", "below its threshold");
    tracing::debug!(target: "quiet", "above its threshold");
    let db = ctx.connection("sdks_db")?;
    let extra = db.extra_json()?;
    tracing::info!("the password is {}", db.password.unwrap_or_default());
    ctx.set_variable("sdks_rust_old", "soon gone", None)?;
    ctx.delete_variable("sdks_rust_old")?;
    let report = AssetRef::Name("sdks_rust_report");
    ctx.asset_state(report).set("seen", &BTreeMap::from([("rows", 3)]))?;
    let events = ctx.asset_events(report).get()?;
    let rows = events.iter().rev().take(1).filter_map(|event| event.extra.as_ref()?.get("rows").cloned());
    let old = ctx.variable_if_set("sdks_rust_old")?.unwrap_or_else(|| "gone".into());
    Ok((ctx.try_number(), (db.host, extra), old, ctx.asset_state(report).get("seen")?, rows.collect()))
}

fn main() -> ExitCode {
    let tasks = Tasks::new();
    tracing::info!("before the task is known");
    let code = tasks
        .task(DAG, "succeed", succeed)
        .task(DAG, "fail", fail)
        .task(DAG, "skip", skip)
        .task(DAG, "retry", retry)
        .task(DAG, "reschedule", reschedule)
        .task(DAG, "defer", defer)
        .resume(DAG, "defer", "woken", woken)
        .task(DAG, "ask", ask)
        .task(DAG, "interview", interview)
        .task(DAG, "defer_then_ask", defer_then_ask)
        .resume(DAG, "defer_then_ask", "ready", ready)
        .task(DAG, "unanswered", unanswered)
        .task(DAG, "listed", listed)
        .task(DAG, "emit", emit)
        .task(DAG, "emit_alias", emit_alias)
        .task(DAG, "reach", reach)
        .task(DAG, "everything", everything)
        .retry_policy(DAG, "everything", policy)
        .run();
    tracing::info!("after the task has ended");
    code
}
