use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::client::Client;
use crate::error::Error;
use crate::human::Replay;
use crate::messages::*;
use crate::outcome::{Defer, Park, Parked, TaskError, TaskResult};
use crate::time;
use crate::value::Value;
use crate::when::When;

type Map = BTreeMap<String, Value>;

/// The running task instance, and what it can ask for. Threads may share it.
pub struct Context {
    client: Client,
    startup: StartupDetails,
    arg_bindings: Value,
    replay: Mutex<Replay>,
    emitted: Mutex<Emitted>,
}

#[derive(Default)]
pub(crate) struct Emitted {
    pub(crate) outlets: Vec<AssetProfile>,
    pub(crate) events: Vec<Map>,
    pub(crate) label: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turn a refusal for want of the thing into `None`.
pub(crate) fn optional<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Context {
    pub(crate) fn new(client: Client, body: Value) -> Result<Context, Error> {
        // Schema 2026-10-30 has the key; this one tolerates it.
        let bindings =
            body.get("ti_context").and_then(|c| c.get("arg_bindings")).cloned().unwrap_or_default();
        let startup: StartupDetails = body.into_type()?;
        let server = &startup.ti_context;
        let replay = Replay::new(server.next_method.as_deref(), &server.next_kwargs);
        if let Some(carrier) = &startup.ti.context_carrier {
            client.set_carrier(Value::from_json(carrier)?);
        }
        Ok(Context {
            client,
            startup,
            arg_bindings: bindings,
            replay: Mutex::new(replay),
            emitted: Mutex::default(),
        })
    }

    /// The channel, for any request of [`messages`](crate::messages).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Everything that the supervisor said at the start.
    pub fn startup(&self) -> &StartupDetails {
        &self.startup
    }

    pub(crate) fn arg_bindings(&self) -> &[Value] {
        self.arg_bindings.as_array().unwrap_or_default()
    }

    pub(crate) fn replay(&self) -> MutexGuard<'_, Replay> {
        lock(&self.replay)
    }

    pub(crate) fn emitted(&self) -> MutexGuard<'_, Emitted> {
        lock(&self.emitted)
    }

    /// The task instance's id.
    pub fn ti_id(&self) -> &str {
        &self.startup.ti.id
    }

    /// The Dag's id.
    pub fn dag_id(&self) -> &str {
        &self.startup.ti.dag_id
    }

    /// The task's id.
    pub fn task_id(&self) -> &str {
        &self.startup.ti.task_id
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.startup.ti.run_id
    }

    /// Which try this is, from 1.
    pub fn try_number(&self) -> i64 {
        self.startup.ti.try_number
    }

    /// Which instance of a mapped task this is; -1 for a task that is not mapped.
    pub fn map_index(&self) -> i64 {
        self.startup.ti.map_index
    }

    /// Tries that the task has in all, the first one included.
    pub fn max_tries(&self) -> i64 {
        self.startup.ti_context.max_tries
    }

    /// Whether a failure now would be tried again.
    pub fn should_retry(&self) -> bool {
        self.startup.ti_context.should_retry
    }

    /// How often this try was rescheduled.
    pub fn reschedule_count(&self) -> i64 {
        self.startup.ti_context.task_reschedule_count
    }

    /// The run.
    pub fn dag_run(&self) -> &DagRun {
        &self.startup.ti_context.dag_run
    }

    /// Return the configuration that the run was triggered with: a struct, a map or a [`Value`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is of another type.
    pub fn conf<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Value::from_json(&self.dag_run().conf.clone().unwrap_or_default())?.into_type()
    }

    /// Return the run's logical date, RFC 3339; `None` where it has none.
    pub fn logical_date(&self) -> Option<&str> {
        self.dag_run().logical_date.as_deref()
    }

    /// Select XComs of a task in this run.
    pub fn xcom<'a>(&'a self, task_id: &'a str) -> XCom<'a> {
        XCom {
            context: self,
            task_id,
            key: "return_value",
            dag_id: self.dag_id(),
            run_id: self.run_id(),
            map_index: None,
            prior: false,
        }
    }

    /// Keep a JSON value under a key of this task.
    ///
    /// # Errors
    /// [`Error::NotJson`] where it is not JSON, and those of [`Client::request`].
    pub fn push(&self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.set_xcom(key, Value::from_json(value)?, None)
    }

    pub(crate) fn push_result(&self, value: Value) -> Result<(), Error> {
        let length = match &value {
            Value::Array(items) if self.map_index() < 0 => Some(items.len() as i64),
            Value::Map(entries) if self.map_index() < 0 => Some(entries.len() as i64),
            _ => None,
        };
        match self.set_xcom("return_value", value.clone(), length) {
            // Longer than [core] max_map_length. That is fatal only where somebody expands over it, and the
            // wire does not say whether anybody does.
            Err(Error::Refused { detail, .. })
                if length.is_some() && detail.to_string().contains("unmappable_return_value_length") =>
            {
                self.set_xcom("return_value", value, None)
            }
            other => other,
        }
    }

    fn set_xcom(&self, key: &str, value: Value, mapped_length: Option<i64>) -> Result<(), Error> {
        let message = SetXCom {
            key: key.into(),
            value,
            dag_id: self.dag_id().into(),
            run_id: self.run_id().into(),
            task_id: self.task_id().into(),
            map_index: Some(self.map_index()),
            mapped_length,
            ..Default::default()
        };
        self.client.request(&message).map(drop)
    }

    /// Remove an XCom of this task.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn delete_xcom(&self, key: &str) -> Result<(), Error> {
        let message = DeleteXCom {
            key: key.into(),
            dag_id: self.dag_id().into(),
            run_id: self.run_id().into(),
            task_id: self.task_id().into(),
            map_index: Some(self.map_index()),
            ..Default::default()
        };
        self.client.request(&message).map(drop)
    }

    /// Return a connection.
    ///
    /// # Errors
    /// One that [`Error::is_not_found`] where there is none of that id.
    pub fn connection(&self, conn_id: &str) -> Result<ConnectionResult, Error> {
        self.client.ask(&GetConnection { conn_id: conn_id.into(), ..Default::default() })
    }

    /// Return a variable's text.
    ///
    /// # Errors
    /// One that [`Error::is_not_found`] where there is none.
    pub fn variable(&self, key: &str) -> Result<String, Error> {
        let found: VariableResult =
            self.client.ask(&GetVariable { key: key.into(), ..Default::default() })?;
        Ok(found.value.unwrap_or_default())
    }

    /// Return a variable's text, `None` where there is none.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn variable_if_set(&self, key: &str) -> Result<Option<String>, Error> {
        optional(self.variable(key))
    }

    /// Write a variable.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn set_variable(&self, key: &str, value: &str, description: Option<&str>) -> Result<(), Error> {
        let description = description.map(str::to_owned);
        self.client
            .request(&PutVariable {
                key: key.into(),
                value: Some(value.into()),
                description,
                ..Default::default()
            })
            .map(drop)
    }

    /// Remove a variable.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn delete_variable(&self, key: &str) -> Result<(), Error> {
        self.client.request(&DeleteVariable { key: key.into(), ..Default::default() }).map(drop)
    }

    /// Return the names of all variables, or of those with a prefix.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn variable_keys(&self, prefix: Option<&str>) -> Result<Vec<String>, Error> {
        let mut found: Vec<String> = Vec::new();
        loop {
            let page: VariableKeysResult = self.client.ask(&GetVariableKeys {
                prefix: prefix.map(str::to_owned),
                limit: Some(1000),
                offset: Some(found.len() as i64),
                ..Default::default()
            })?;
            let more = !page.keys.is_empty();
            found.extend(page.keys);
            if !more || found.len() as i64 >= page.total_entries {
                return Ok(found);
            }
        }
    }

    /// Values that outlive a try of this task instance.
    pub fn state(&self) -> TaskStore<'_> {
        TaskStore(self)
    }

    /// Have a value hidden in the task log from now on.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn mask_secret(&self, value: &str) -> Result<(), Error> {
        self.client.request(&MaskSecret { value: value.into(), name: None, ..Default::default() }).map(drop)
    }

    /// Name this mapped instance in Airflow's pages.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn set_map_index_label(&self, label: &str) -> Result<(), Error> {
        self.emitted().label = Some(label.to_owned());
        self.client
            .request(&SetRenderedMapIndex { rendered_map_index: label.into(), ..Default::default() })
            .map(drop)
    }

    /// Skip downstream tasks, each given as an id or as `(id, map_index)`.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn skip_downstream<T: Into<Downstream>>(
        &self,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let tasks = tasks.into_iter().map(|task| task.into().0).collect();
        self.client.request(&SkipDownstreamTasks { tasks, ..Default::default() }).map(drop)
    }

    /// End the process and wait for a trigger without it: `return ctx.defer(...)`.
    ///
    /// # Errors
    /// Always: the error is what ends the process.
    pub fn defer<T>(&self, defer: Defer) -> TaskResult<T> {
        Err(defer.into_error())
    }

    /// End the process and run the function again from its start, as the same try.
    ///
    /// `when` is a moment, or a duration from now.
    ///
    /// Give Airflow ten seconds or more: where a task is due again before the scheduler has seen its first
    /// process end, Airflow 3.3 can fail it ("state mismatch"). The same holds for a trigger that fires at
    /// once.
    ///
    /// # Errors
    /// Always: the error is what ends the process.
    pub fn reschedule<T>(&self, when: impl Into<When>) -> TaskResult<T> {
        Err(TaskError::Park(Parked(Box::new(Park::Reschedule(RescheduleTask {
            reschedule_date: when.into().text(),
            end_date: time::now(),
            ..Default::default()
        })))))
    }
}

/// A downstream task, or one instance of a mapped one.
#[derive(Debug, Clone, PartialEq)]
pub struct Downstream(Value);

impl From<&str> for Downstream {
    fn from(task_id: &str) -> Self {
        Downstream(task_id.into())
    }
}

impl From<(&str, i64)> for Downstream {
    fn from((task_id, map_index): (&str, i64)) -> Self {
        Downstream(Value::Array(vec![task_id.into(), map_index.into()]))
    }
}

/// Selects XComs; ends in [`get`](XCom::get) or [`all`](XCom::all).
#[derive(Clone)]
pub struct XCom<'a> {
    context: &'a Context,
    task_id: &'a str,
    key: &'a str,
    dag_id: &'a str,
    run_id: &'a str,
    map_index: Option<i64>,
    prior: bool,
}

impl<'a> XCom<'a> {
    /// Another key than `return_value`.
    pub fn key(mut self, key: &'a str) -> Self {
        self.key = key;
        self
    }

    /// One instance of a mapped task.
    pub fn map_index(mut self, map_index: i64) -> Self {
        self.map_index = Some(map_index);
        self
    }

    /// Another run.
    pub fn run(mut self, dag_id: &'a str, run_id: &'a str) -> Self {
        (self.dag_id, self.run_id) = (dag_id, run_id);
        self
    }

    /// Look in earlier runs too.
    pub fn include_prior_dates(mut self) -> Self {
        self.prior = true;
        self
    }

    /// Return the value, `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is of another type, and those of [`Client::request`].
    pub fn get<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let request = GetXCom {
            key: self.key.into(),
            dag_id: self.dag_id.into(),
            run_id: self.run_id.into(),
            task_id: self.task_id.into(),
            map_index: self.map_index,
            include_prior_dates: Some(self.prior),
            ..Default::default()
        };
        let found: XComResult = self.context.client.ask(&request)?;
        if found.value.is_nil() {
            return Ok(None);
        }
        found.value.revived().into_type().map(Some)
    }

    /// Return the values of every instance of a mapped task, in their order.
    ///
    /// # Errors
    /// Those of [`XCom::get`].
    pub fn all<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let request = GetXComSequenceSlice {
            key: self.key.into(),
            dag_id: self.dag_id.into(),
            run_id: self.run_id.into(),
            task_id: self.task_id.into(),
            ..Default::default()
        };
        let found: XComSequenceSliceResult = self.context.client.ask(&request)?;
        found.root.into_iter().map(|value| value.revived().into_type()).collect()
    }
}

/// Values that outlive a try of a task instance.
pub struct TaskStore<'a>(&'a Context);

impl TaskStore<'_> {
    /// Return a value, `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is of another type, and those of [`Client::request`].
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let request =
            GetTaskStateStore { ti_id: self.0.ti_id().into(), key: key.into(), ..Default::default() };
        let found: Option<TaskStateStoreResult> = optional(self.0.client.ask(&request))?;
        found.map(|found| found.value.into_type()).transpose()
    }

    /// Keep a JSON value, for ever or until a moment, which is given as such or as a duration from now.
    ///
    /// # Errors
    /// [`Error::NotJson`] where it is not JSON, and those of [`Client::request`].
    pub fn set(&self, key: &str, value: &impl Serialize, expires: Option<When>) -> Result<(), Error> {
        let request = SetTaskStateStore {
            ti_id: self.0.ti_id().into(),
            key: key.into(),
            value: Value::from_json(value)?,
            expires_at: expires.map(When::text),
            ..Default::default()
        };
        self.0.client.request(&request).map(drop)
    }

    /// Remove a value.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        let request =
            DeleteTaskStateStore { ti_id: self.0.ti_id().into(), key: key.into(), ..Default::default() };
        self.0.client.request(&request).map(drop)
    }

    /// Remove every value.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn clear(&self) -> Result<(), Error> {
        self.0
            .client
            .request(&ClearTaskStateStore { ti_id: self.0.ti_id().into(), ..Default::default() })
            .map(drop)
    }
}
