use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::error::Error;
use crate::messages::{AwaitInputTask, DeferTask, RescheduleTask};
use crate::time;
use crate::value::Value;
use crate::when::TriggerMoment;

/// What a task function returns.
pub type TaskResult<T> = Result<T, TaskError>;

/// How a task ends other than by returning a value.
///
/// Any error becomes one with `?`; Airflow then retries the task while retries remain.
#[derive(Debug)]
pub enum TaskError {
    /// The task is skipped.
    Skip(String),
    /// The task failed, whatever retries remain.
    Fail(String),
    /// Try again, where retries remain.
    Retry {
        /// Until then; the delay of the task in the Dag applies without it.
        after: Option<Duration>,
        /// Shown in Airflow.
        reason: String,
    },
    /// The function failed.
    Error(Box<dyn std::error::Error + Send + Sync>),
    /// The process ends and the task waits without it. Made by [`Context`](crate::Context).
    Park(Parked),
}

impl TaskError {
    /// Skip the task.
    pub fn skip(reason: impl Into<String>) -> TaskError {
        TaskError::Skip(reason.into())
    }

    /// Fail the task, whatever retries remain.
    pub fn fail(reason: impl Into<String>) -> TaskError {
        TaskError::Fail(reason.into())
    }

    /// Try again after the delay that the task has in the Dag.
    pub fn retry(reason: impl Into<String>) -> TaskError {
        TaskError::Retry { after: None, reason: reason.into() }
    }

    /// Try again after a delay.
    pub fn retry_after(after: Duration, reason: impl Into<String>) -> TaskError {
        TaskError::Retry { after: Some(after), reason: reason.into() }
    }

    /// Fail the try with a text.
    pub fn message(text: impl Into<String>) -> TaskError {
        TaskError::Error(text.into().into())
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Skip(reason) | TaskError::Fail(reason) | TaskError::Retry { reason, .. } => {
                f.write_str(reason)
            }
            TaskError::Error(error) => write!(f, "{error}"),
            TaskError::Park(_) => f.write_str("the task waits"),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for TaskError {
    fn from(error: E) -> Self {
        TaskError::Error(Box::new(error))
    }
}

/// Nobody answered in time and the question has no defaults; found in [`TaskError::Error`].
#[derive(Debug, Clone, PartialEq)]
pub struct HumanTimeout {
    /// What was asked.
    pub subject: String,
    /// What Airflow says about it.
    pub reason: String,
}

impl fmt::Display for HumanTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.subject, self.reason)
    }
}

impl std::error::Error for HumanTimeout {}

/// The trigger of a deferred task failed or timed out; found in [`TaskError::Error`].
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerFailed(pub String);

impl fmt::Display for TriggerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the trigger failed: {}", self.0)
    }
}

impl std::error::Error for TriggerFailed {}

/// A message that lets the task wait without a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Parked(pub(crate) Box<Park>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Park {
    Defer(DeferTask),
    Await(AwaitInputTask),
    Reschedule(RescheduleTask),
}

/// What a retry policy makes of an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Try again, where retries remain.
    Retry {
        /// Until then; the delay of the task in the Dag applies without it.
        after: Option<Duration>,
        /// Shown in Airflow.
        reason: String,
    },
    /// The task failed, whatever retries remain.
    Fail(String),
    /// Airflow's own rules apply.
    Default,
}

/// A deferral: which trigger to wait for and what runs then.
#[derive(Debug, Clone)]
pub struct Defer {
    message: DeferTask,
    problem: Option<Error>,
}

impl Defer {
    /// Wait for a trigger and resume in the function registered as `resume`.
    ///
    /// `trigger` is the dotted path of a class that Airflow's triggerer can import.
    pub fn new(trigger: impl Into<String>, resume: impl Into<String>) -> Defer {
        let empty = Value::Map(Vec::new());
        let message = DeferTask {
            classpath: trigger.into(),
            next_method: resume.into(),
            trigger_kwargs: Some(empty),
            next_kwargs: Some(Default::default()),
            ..Default::default()
        };
        Defer { message, problem: None }
    }

    /// Wait for a moment with Airflow's own trigger, and resume in the function registered as `resume`.
    pub fn until(moment: SystemTime, resume: impl Into<String>) -> Defer {
        let trigger = "airflow.providers.standard.triggers.temporal.DateTimeTrigger";
        Defer::new(trigger, resume).trigger_kwargs(&BTreeMap::from([("moment", TriggerMoment(moment))]))
    }

    /// Wait for a while with Airflow's own trigger, and resume in the function registered as `resume`.
    pub fn for_duration(wait: Duration, resume: impl Into<String>) -> Defer {
        Defer::until(SystemTime::now() + wait, resume)
    }

    /// Set the arguments of the trigger; a mapping, with a [`TriggerMoment`] or a
    /// [`TriggerDuration`](crate::TriggerDuration) for what is one.
    pub fn trigger_kwargs(mut self, kwargs: &impl Serialize) -> Defer {
        match Value::from_json(kwargs) {
            Ok(value) => self.message.trigger_kwargs = Some(value),
            Err(error) => self.problem = Some(error),
        }
        self
    }

    /// Set what the resuming function gets besides the event; a mapping.
    pub fn kwargs(mut self, kwargs: &impl Serialize) -> Defer {
        match Value::from_json(kwargs).and_then(Value::into_type) {
            Ok(map) => self.message.next_kwargs = Some(map),
            Err(error) => self.problem = Some(error),
        }
        self
    }

    /// Fail the wait after this long.
    pub fn timeout(mut self, timeout: Duration) -> Defer {
        self.message.trigger_timeout = Some(time::iso_duration(timeout));
        self
    }

    pub(crate) fn into_error(self) -> TaskError {
        match self.problem {
            Some(error) => error.into(),
            None => TaskError::Park(Parked(Box::new(Park::Defer(self.message)))),
        }
    }
}
