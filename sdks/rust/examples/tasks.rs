//! One task for each thing that a task can do; the tests of the SDK run this program.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use airflow_handoff_sdk::{
    AssetRef, Context, Decision, Defer, Downstream, Emission, Field, Question, TaskError, TaskResult, Tasks,
    TriggerDuration, TriggerMoment, Value,
};
use serde::{Deserialize, Serialize};

fn nothing(_: &Context) -> TaskResult<()> {
    Ok(())
}

fn numbers(_: &Context) -> TaskResult<Vec<i64>> {
    tracing::info!(rows = 3, msg = "x", "numbers");
    Ok(vec![1, 2, 3])
}

fn skips(_: &Context) -> TaskResult<()> {
    Err(TaskError::skip("no new files"))
}

fn fails(_: &Context) -> TaskResult<()> {
    Err(TaskError::fail("the file is corrupt"))
}

fn retries(_: &Context) -> TaskResult<()> {
    Err(TaskError::retry_after(Duration::from_secs(90), "busy"))
}

fn breaks(_: &Context) -> TaskResult<i64> {
    Ok("not a number".parse::<i64>()?)
}

fn panics(_: &Context) -> TaskResult<()> {
    panic!("index {} is out of bounds", 5);
}

#[derive(Deserialize)]
struct Word {
    word: String,
}

fn with_policy(_: &Context, given: Word) -> TaskResult<()> {
    Err(TaskError::message(given.word))
}

fn policy(error: &TaskError, _: &Context) -> Decision {
    match error.to_string().as_str() {
        "later" => {
            Decision::Retry { after: Some(Duration::from_secs(5)), reason: "policy says later".into() }
        }
        "never" => Decision::Fail("policy says never".into()),
        _ => Decision::Default,
    }
}

#[derive(Deserialize, Serialize)]
struct Kept {
    a: i64,
}

fn defers(ctx: &Context) -> TaskResult<()> {
    let moment = BTreeMap::from([("moment", 1)]);
    let wait = Defer::new("some.Trigger", "woken").trigger_kwargs(&moment).kwargs(&Kept { a: 1 });
    ctx.defer(wait.timeout(Duration::from_millis(2500)))
}

#[derive(Deserialize)]
struct Woken {
    a: i64,
    event: Value,
}

fn woken(ctx: &Context, woken: Woken) -> TaskResult<(Value, i64, i64)> {
    tracing::info!(is_moment = woken.event.as_moment().is_some(), "woken");
    Ok((woken.event, woken.a, ctx.try_number()))
}

fn woken_asks(ctx: &Context, woken: Woken) -> TaskResult<(Value, i64, String, String)> {
    let ask = |subject: &str| ctx.ask_human(Question::new(subject).options(["yes", "no"]));
    let (first, second) = (ask("Go on?")?, ask("Really?")?);
    Ok((woken.event, woken.a, first.choice().into(), second.choice().into()))
}

fn reschedules(ctx: &Context) -> TaskResult<()> {
    std::thread::spawn(std::thread::park);
    ctx.reschedule(Duration::from_secs(30))
}

fn asks(ctx: &Context) -> TaskResult<(String, String, String, bool)> {
    let first = Question::new("Publish?").options(["yes", "no"]).body("**now**").field("why", &"because");
    let first = ctx.ask_human(first.timeout(Duration::from_secs(60)))?;
    let second = Question::new("Sure?").options(["yes", "no"]).defaults(["no"]).assigned_to("1", "Ada");
    let second = ctx.ask_human(second)?;
    Ok((first.choice().into(), first.field("why")?, second.choice().into(), second.timedout))
}

#[derive(Deserialize)]
struct Typed {
    from_date: String,
    names: Vec<String>,
    #[serde(default)]
    ratio: Option<f64>,
}

fn typed(_: &Context, given: Typed) -> TaskResult<(String, Vec<String>, Option<f64>)> {
    Ok((given.from_date, given.names, given.ratio))
}

fn everything(ctx: &Context) -> TaskResult<Value> {
    let found = Value::from([
        ("xcom", ctx.xcom("up").map_index(2).get::<i64>()?.into_value()),
        ("all", ctx.xcom("mapped").all::<i64>()?.into()),
        ("variable", ctx.variable("v")?.into()),
        ("default", ctx.variable_if_set("gone")?.unwrap_or("fallback".into()).into()),
        ("keys", ctx.variable_keys(None)?.into()),
        ("host", ctx.connection("db")?.host.unwrap_or_default().into()),
        ("state", ctx.state().get::<i64>("cursor")?.into_value()),
        ("asset_state", ctx.asset_state(AssetRef::Name("a")).get::<i64>("mark")?.into_value()),
        ("events", Value::Int(ctx.asset_events(AssetRef::Name("a")).limit(1).get()?.len() as i64)),
    ]);
    ctx.set_variable("v", "text", None)?;
    ctx.delete_variable("old")?;
    ctx.state().set("cursor", &5, Some(Duration::from_secs(60).into()))?;
    ctx.state().delete("cursor")?;
    ctx.state().clear()?;
    ctx.asset_state(AssetRef::Uri("s3://a")).set("mark", &1)?;
    ctx.emit(AssetRef::Name("a"), &BTreeMap::from([("rows", 3)]))?;
    ctx.mask_secret("hunter2")?;
    ctx.set_map_index_label("label")?;
    ctx.skip_downstream(["down"])?;
    ctx.skip_downstream([Downstream::from("down"), ("mapped", 2).into()])?;
    ctx.push("more", &BTreeMap::from([("x", 1)]))?;
    Ok(found)
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for Option<i64> {
    fn into_value(self) -> Value {
        self.map_or(Value::Nil, Value::Int)
    }
}

fn assets(ctx: &Context) -> TaskResult<(usize, usize)> {
    let (since, until) = (UNIX_EPOCH + Duration::from_secs(60), UNIX_EPOCH + Duration::from_millis(90_500));
    let window = ctx.asset_events(AssetRef::Uri("s3://bucket/a")).after(since).before(until).get()?;
    let through = ctx.alias_events("every").limit(2).newest_first().get()?;
    for asset in [AssetRef::Name("a"), AssetRef::Uri("s3://bucket/a")] {
        ctx.asset_state(asset).clear()?;
    }
    let rows = BTreeMap::from([("rows", 3)]);
    ctx.emit_event(Emission::of(AssetRef::Name("a")).partition_key("2026-11"))?;
    ctx.emit_event(Emission::of(AssetRef::Uri("s3://bucket/a")).alias("every").extra(&rows))?;
    Ok((window.len(), through.len()))
}

#[derive(Deserialize, Serialize)]
struct Limits {
    low: i64,
}

#[derive(Serialize)]
struct Wait {
    moment: TriggerMoment,
    poll: TriggerDuration,
}

type Read = (i64, i64, Option<Limits>, i64, Option<String>);

fn typed_reach(ctx: &Context) -> TaskResult<Read> {
    ctx.set_variable_json("limits", &Limits { low: 2 }, Some("kept by a task"))?;
    ctx.state().set("cursor", &5, Some((UNIX_EPOCH + Duration::from_secs(60)).into()))?;
    let (conf, read): (Limits, Limits) = (ctx.conf()?, ctx.variable_json("limits")?);
    let extra: Limits = ctx.connection("db")?.extra_json()?;
    let date = ctx.logical_date().map(str::to_owned);
    Ok((conf.low, read.low, ctx.variable_json_if_set("gone")?, extra.low, date))
}

fn reschedules_at(ctx: &Context) -> TaskResult<()> {
    ctx.reschedule(UNIX_EPOCH + Duration::from_secs(4_000_000_000))
}

fn defers_until(ctx: &Context) -> TaskResult<()> {
    let moment = TriggerMoment(UNIX_EPOCH + Duration::from_millis(90_500));
    let wait = Wait { moment, poll: TriggerDuration(Duration::from_secs(5)) };
    ctx.defer(Defer::new("some.Trigger", "woken").trigger_kwargs(&wait))
}

fn moments(ctx: &Context) -> TaskResult<(String, Vec<i64>)> {
    Ok((ctx.xcom("when").get()?.unwrap_or_default(), ctx.xcom("pair").get()?.unwrap_or_default()))
}

fn asks_a_form(ctx: &Context) -> TaskResult<Option<u64>> {
    let amount = BTreeMap::from([("type", "integer")]);
    let amount = Field::new().value(&5).schema(&amount).description("in **euros**");
    let answer =
        ctx.ask_human(Question::new("How much?").form("amount", amount).form("why", Field::new()))?;
    let since = answer.responded_at.map(|moment| moment.duration_since(UNIX_EPOCH));
    Ok(since.transpose()?.map(|since| since.as_secs()))
}

fn asks_badly(ctx: &Context) -> TaskResult<Vec<bool>> {
    let bad: [(&[&str], &[&str]); 4] =
        [(&[], &[]), (&["a", "a"], &[]), (&["a"], &["b"]), (&["a", "b"], &["a", "b"])];
    let refused = |(options, defaults): (&[&str], &[&str])| {
        let question = Question::new("Which?").options(options.iter().copied());
        matches!(ctx.ask_human(question.defaults(defaults.iter().copied())), Err(TaskError::Error(_)))
    };
    Ok(bad.map(refused).to_vec())
}

fn not_json(_: &Context) -> TaskResult<f64> {
    Ok(f64::NAN)
}

fn many_threads(ctx: &Context) -> TaskResult<bool> {
    let right = std::thread::scope(|scope| {
        let ask = |n: usize| move || ctx.variable(&format!("v{n}")) == Ok(format!("value of v{n}"));
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(ask(n))).collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    Ok(right)
}

fn logs(_: &Context) -> TaskResult<()> {
    tracing::info!(target: "noisy::part", "dropped");
    tracing::error!(target: "noisy::part", "kept");
    tracing::debug!(target: "quiet", "shown");
    tracing::trace!("below");
    let span = tracing::info_span!("outer", job = 7);
    let _entered = span.enter();
    tracing::error!(target = "t", ratio = f64::NAN, text = "a\"b", "worst");
    println!("printed");
    Ok(())
}

/// Asks for a variable again and again, as fast as it can: `benchmarks/sdks.py` counts.
fn round_trips(ctx: &Context) -> TaskResult<()> {
    let rounds: u32 = std::env::var("HANDOFF_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        ctx.variable("v1")?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let tasks = Tasks::new();
    tracing::info!("loading");
    let code = tasks
        .task("dag", "nothing", nothing)
        .task("dag", "numbers", numbers)
        .task("dag", "skips", skips)
        .task("dag", "fails", fails)
        .task("dag", "retries", retries)
        .task("dag", "breaks", breaks)
        .task("dag", "panics", panics)
        .task("dag", "with_policy", with_policy)
        .retry_policy("dag", "with_policy", policy)
        .task("dag", "defers", defers)
        .resume("dag", "defers", "woken", woken)
        .resume("dag", "defers", "asks", woken_asks)
        .task("dag", "reschedules", reschedules)
        .task("dag", "asks", asks)
        .task("dag", "typed", typed)
        .task("dag", "everything", everything)
        .task("dag", "assets", assets)
        .task("dag", "typed_reach", typed_reach)
        .task("dag", "reschedules_at", reschedules_at)
        .task("dag", "defers_until", defers_until)
        .task("dag", "moments", moments)
        .task("dag", "asks_a_form", asks_a_form)
        .task("dag", "asks_badly", asks_badly)
        .task("dag", "not_json", not_json)
        .task("dag", "many_threads", many_threads)
        .task("dag", "logs", logs)
        .task("dag", "round_trips", round_trips)
        .run();
    if std::env::var_os("HANDOFF_LATE").is_some() {
        tracing::warn!("after the end");
    }
    code
}
