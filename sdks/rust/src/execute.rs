use std::io::Write;
use std::net::TcpStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use crate::args::Arguments;
use crate::client::Client;
use crate::context::Context;
use crate::error::Error;
use crate::human::ASKED;
use crate::messages::{RetryTask, SucceedTask, TaskState};
use crate::outcome::{Decision, HumanTimeout, Park, TaskError, TaskResult, TriggerFailed};
use crate::tasks::{Task, Tasks};
use crate::time::now;
use crate::value::Value;
use crate::{logs, Result};

const USAGE: &str = "usage: PROGRAM --comm=HOST:PORT --logs=HOST:PORT, or PROGRAM --airflow-metadata";
const FAILED: &str = "__fail__";

/// What the panic hook has seen last, for the report of the task.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

pub(crate) fn main(tasks: &Tasks) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    if arguments.iter().any(|argument| argument == "--airflow-metadata") {
        let source = std::env::args().next().unwrap_or_default();
        let name = source.rsplit('/').next().unwrap_or_default();
        // A reader that has gone is its own affair.
        let _ = std::io::stdout().write_all(tasks.manifest(name).as_bytes());
        return ExitCode::SUCCESS;
    }
    let (Some(comm), Some(log)) = (option("--comm="), option("--logs=")) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let client = match connect(comm, log) {
        Ok(client) => client,
        Err(error) => {
            logs::give_up();
            eprintln!("cannot reach the supervisor at {comm} and {log}: {error}");
            return ExitCode::FAILURE;
        }
    };
    catch_panics();
    match work(tasks, client) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("The end of the task could not be reported: {error}");
            ExitCode::FAILURE
        }
    }
}

fn connect(comm: &str, log: &str) -> std::io::Result<Client> {
    let client = Client::new(TcpStream::connect(comm)?)?;
    logs::connect(TcpStream::connect(log)?);
    Ok(client)
}

/// Have every panic logged with its place, those of other threads too.
fn catch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let place =
            panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let report = format!("panicked{place}: {text}");
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            tracing::error!(thread, stack = %trace, "{report}");
        } else {
            tracing::error!(thread, "{report}");
        }
        *PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(report);
    }));
}

fn work(tasks: &Tasks, client: Client) -> Result<()> {
    let startup = client.read_startup()?;
    let context = Context::new(client, startup)?;
    let key = (context.dag_id().to_owned(), context.task_id().to_owned());
    let found = tasks.tasks.get(&key).filter(|task| task.body.is_some());
    let Some(task) = found else {
        let known: Vec<String> = tasks.tasks.keys().map(|(dag, task)| format!("{dag}.{task}")).collect();
        tracing::error!("No function for {}.{}: this program runs {}.", key.0, key.1, known.join(", "));
        return state(&context, "removed");
    };
    let result = catch_unwind(AssertUnwindSafe(|| call(&context, task))).unwrap_or_else(|_| {
        let report = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        Err(TaskError::message(report.unwrap_or_else(|| "panicked".into())))
    });
    match result.and_then(|value| Ok(if value.is_nil() { Ok(()) } else { context.push_result(value) }?)) {
        Ok(()) => succeed(&context),
        Err(error) => ended_by(error, &context, task),
    }
}

fn call(context: &Context, task: &Task) -> TaskResult<Value> {
    for key in &context.startup().ti_context.xcom_keys_to_clear {
        context.delete_xcom(key)?;
    }
    let body = task.body.as_ref().expect("only tasks with a body are called");
    match context.resumed() {
        None | Some((ASKED, _)) => body(context, Arguments { entries: bound(context)?, strict: true }),
        Some((name, kwargs)) => {
            let entries = match kwargs.clone().revived() {
                Value::Map(entries) => entries,
                _ => Vec::new(),
            };
            let Some(resume) = task.resumes.get(name) else { return Err(no_resume(name, kwargs, task)) };
            resume(context, Arguments { entries, strict: false })
        }
    }
}

fn no_resume(name: &str, kwargs: &Value, task: &Task) -> TaskError {
    if name == FAILED {
        let error = kwargs.get("error").and_then(Value::as_str);
        return TriggerFailed(error.unwrap_or("no reason given").to_owned()).into();
    }
    let known: Vec<&String> = task.resumes.keys().collect();
    TaskError::message(format!("the task was to resume in {name:?} and registers {known:?}"))
}

/// Return the values of the stub call's arguments; those that are XComs are fetched.
fn bound(context: &Context) -> TaskResult<Vec<(Value, Value)>> {
    let mut found = Vec::new();
    for binding in context.arg_bindings() {
        let text = |key: &str| binding.get(key).and_then(Value::as_str).unwrap_or_default();
        let value = match text("kind") {
            "xcom" => context.xcom(text("task_id")).get()?.unwrap_or_default(),
            _ => binding.get("value").cloned().unwrap_or_default(),
        };
        found.push((text("name").into(), value));
    }
    Ok(found)
}

fn succeed(context: &Context) -> Result<()> {
    let message = {
        let mut emitted = context.emitted();
        SucceedTask {
            end_date: now(),
            task_outlets: Some(std::mem::take(&mut emitted.outlets)),
            outlet_events: Some(std::mem::take(&mut emitted.events)),
            rendered_map_index: emitted.label.clone(),
            ..Default::default()
        }
    };
    context.client().request(&message).map(drop)
}

fn state(context: &Context, state: &str) -> Result<()> {
    let label = context.emitted().label.clone();
    let message = TaskState {
        state: state.into(),
        end_date: Some(now()),
        rendered_map_index: label,
        ..Default::default()
    };
    context.client().request(&message).map(drop)
}

fn ended_by(error: TaskError, context: &Context, task: &Task) -> Result<()> {
    let decision = match &error {
        TaskError::Park(parked) => return park(&parked.0, context),
        TaskError::Skip(reason) => {
            tracing::info!("Skipped. {reason}");
            return state(context, "skipped");
        }
        TaskError::Fail(reason) => Decision::Fail(reason.clone()),
        TaskError::Retry { after, reason } => Decision::Retry { after: *after, reason: reason.clone() },
        TaskError::Error(_) => decided(&error, context, task),
    };
    let (after, reason) = match decision {
        Decision::Fail(reason) => {
            tracing::error!("Failed for good. {reason}");
            return state(context, "failed");
        }
        Decision::Retry { after, reason } if !reason.is_empty() => (after, reason),
        Decision::Retry { after, .. } => (after, error.to_string()),
        Decision::Default => (None, error.to_string()),
    };
    // Airflow 3.3 takes a RetryTask even where no retry is left, and then repeats for ever.
    if !context.should_retry() {
        tracing::error!("Failed: no retry is left. {reason}");
        return state(context, "failed");
    }
    tracing::warn!("Trying again. {reason}");
    let label = context.emitted().label.clone();
    let message = RetryTask {
        end_date: now(),
        retry_delay_seconds: after.map(|delay: Duration| delay.as_secs_f64()),
        retry_reason: Some(reason.chars().take(500).collect()),
        rendered_map_index: label,
        ..Default::default()
    };
    context.client().request(&message).map(drop)
}

fn decided(error: &TaskError, context: &Context, task: &Task) -> Decision {
    let mut causes = Vec::new();
    if let TaskError::Error(error) = error {
        let mut cause = error.source();
        while let Some(found) = cause {
            causes.push(found.to_string());
            cause = found.source();
        }
    }
    if causes.is_empty() {
        tracing::error!("The task function failed: {error}");
    } else {
        tracing::error!(causes = causes.join("; "), "The task function failed: {error}");
    }
    let decided = match &task.policy {
        Some(policy) => {
            catch_unwind(AssertUnwindSafe(|| policy(error, context))).unwrap_or(Decision::Default)
        }
        None => Decision::Default,
    };
    match (&decided, error) {
        // That nobody answered is a decision: asking again from the start would undo it.
        (Decision::Default, TaskError::Error(cause)) if cause.is::<HumanTimeout>() => {
            Decision::Fail(error.to_string())
        }
        _ => decided,
    }
}

fn park(park: &Park, context: &Context) -> Result<()> {
    let label = context.emitted().label.clone();
    let sent: std::result::Result<Value, Error> = match park.clone() {
        Park::Defer(mut message) => {
            message.rendered_map_index = label;
            context.client().request(&message)
        }
        Park::Await(mut message) => {
            message.rendered_map_index = label;
            context.client().request(&message)
        }
        Park::Reschedule(message) => context.client().request(&message),
    };
    sent?;
    // A thread of the program's would keep this process beside the one that resumes.
    let _ = std::io::stdout().flush();
    std::process::exit(0);
}
