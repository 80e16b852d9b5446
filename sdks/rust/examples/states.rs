//! One task for each state a task can end in, and for what it can do on the way.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use airflow_handoff_sdk::{
    AssetRef, Context, Decision, Defer, Question, TaskError, TaskResult, Tasks, Value,
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
        return ctx.reschedule(Duration::from_secs(10));
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

/// Go on when the trigger has fired.
fn woken(_: &Context, woken: Woken) -> TaskResult<(Vec<i64>, bool)> {
    Ok((woken.kept, !woken.event.is_nil()))
}

/// Ask a person.
fn ask(ctx: &Context) -> TaskResult<(String, Value, String)> {
    let question = Question::new("Publish?").options(["yes", "no"]).body("The **report** is ready.");
    let answer = ctx.ask_human(question.field("reason", &"none"))?;
    tracing::info!("chosen: {}", answer.choice());
    let (_, name) = answer.responded_by.clone().unwrap_or_default();
    Ok((answer.choice().to_owned(), answer.params_input, name))
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
    tracing::info!("the password is {}", db.password.unwrap_or_default());
    ctx.set_variable("sdks_rust_old", "soon gone", None)?;
    ctx.delete_variable("sdks_rust_old")?;
    let report = AssetRef::Name("sdks_rust_report");
    ctx.asset_state(report).set("seen", &BTreeMap::from([("rows", 3)]))?;
    let events = ctx.asset_events(report).get()?;
    let rows = events.iter().rev().take(1).filter_map(|event| event.extra.as_ref()?.get("rows").cloned());
    let old = ctx.variable_if_set("sdks_rust_old")?.unwrap_or_else(|| "gone".into());
    let extra = db.extra.unwrap_or_default().into();
    Ok((ctx.try_number(), (db.host, extra), old, ctx.asset_state(report).get("seen")?, rows.collect()))
}

fn main() -> ExitCode {
    Tasks::new()
        .task(DAG, "succeed", succeed)
        .task(DAG, "fail", fail)
        .task(DAG, "skip", skip)
        .task(DAG, "retry", retry)
        .task(DAG, "reschedule", reschedule)
        .task(DAG, "defer", defer)
        .resume(DAG, "defer", "woken", woken)
        .task(DAG, "ask", ask)
        .task(DAG, "listed", listed)
        .task(DAG, "emit", emit)
        .task(DAG, "everything", everything)
        .retry_policy(DAG, "everything", policy)
        .run()
}
