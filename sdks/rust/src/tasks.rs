use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::args::Arguments;
use crate::context::Context;
use crate::outcome::{Decision, TaskError, TaskResult};
use crate::value::Value;

pub(crate) type Body = Box<dyn Fn(&Context, Arguments) -> TaskResult<Value> + Send + Sync>;
pub(crate) type Policy = Box<dyn Fn(&TaskError, &Context) -> Decision + Send + Sync>;

/// A function that can be the body of a task.
///
/// Either `fn(&Context) -> TaskResult<R>` or `fn(&Context, A) -> TaskResult<R>`, where the fields of `A` are
/// the arguments of the task.
pub trait Handler<Kind>: Send + Sync + 'static {
    #[doc(hidden)]
    fn into_body(self) -> BoxedBody;
}

#[doc(hidden)]
pub struct BoxedBody(pub(crate) Body);

#[doc(hidden)]
pub struct Plain<R>(std::marker::PhantomData<R>);

#[doc(hidden)]
pub struct WithArguments<A, R>(std::marker::PhantomData<(A, R)>);

impl<F, R> Handler<Plain<R>> for F
where
    F: Fn(&Context) -> TaskResult<R> + Send + Sync + 'static,
    R: Serialize,
{
    fn into_body(self) -> BoxedBody {
        BoxedBody(Box::new(move |context, arguments| {
            <()>::deserialize_from(arguments)?;
            Ok(Value::from_json(&self(context)?)?)
        }))
    }
}

impl<F, A, R> Handler<WithArguments<A, R>> for F
where
    F: Fn(&Context, A) -> TaskResult<R> + Send + Sync + 'static,
    A: DeserializeOwned,
    R: Serialize,
{
    fn into_body(self) -> BoxedBody {
        BoxedBody(Box::new(move |context, arguments| {
            Ok(Value::from_json(&self(context, A::deserialize_from(arguments)?)?)?)
        }))
    }
}

trait DeserializeFrom: Sized {
    fn deserialize_from(arguments: Arguments) -> TaskResult<Self>;
}

impl<T: DeserializeOwned> DeserializeFrom for T {
    fn deserialize_from(arguments: Arguments) -> TaskResult<T> {
        T::deserialize(arguments)
            .map_err(|error| TaskError::message(format!("the task's arguments: {error}")))
    }
}

#[derive(Default)]
pub(crate) struct Task {
    pub(crate) body: Option<Body>,
    pub(crate) resumes: BTreeMap<String, Body>,
    pub(crate) policy: Option<Policy>,
}

/// The tasks of a program.
pub struct Tasks {
    pub(crate) tasks: BTreeMap<(String, String), Task>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// Start with none, and collect `tracing` records from here on.
    pub fn new() -> Tasks {
        crate::logs::install();
        Tasks { tasks: BTreeMap::new() }
    }

    fn entry(&mut self, dag_id: &str, task_id: &str) -> &mut Task {
        self.tasks.entry((dag_id.to_owned(), task_id.to_owned())).or_default()
    }

    /// Register the body of a task.
    ///
    /// # Panics
    /// Where the task has one already.
    pub fn task<K>(mut self, dag_id: &str, task_id: &str, body: impl Handler<K>) -> Tasks {
        let before = self.entry(dag_id, task_id).body.replace(body.into_body().0);
        assert!(before.is_none(), "two functions for the task {dag_id}.{task_id}");
        self
    }

    /// Register what runs when a deferral of a task ends; its argument `event` is what the trigger said.
    ///
    /// A function for `__fail__` gets `error` where the trigger failed; without it the try fails.
    ///
    /// # Panics
    /// Where the task resumes in that name already.
    pub fn resume<K>(mut self, dag_id: &str, task_id: &str, name: &str, body: impl Handler<K>) -> Tasks {
        let before = self.entry(dag_id, task_id).resumes.insert(name.to_owned(), body.into_body().0);
        assert!(before.is_none(), "{dag_id}.{task_id} resumes in {name:?} twice");
        self
    }

    /// Let a function decide what becomes of an error of a task.
    pub fn retry_policy(
        mut self,
        dag_id: &str,
        task_id: &str,
        policy: impl Fn(&TaskError, &Context) -> Decision + Send + Sync + 'static,
    ) -> Tasks {
        self.entry(dag_id, task_id).policy = Some(Box::new(policy));
        self
    }

    /// Run the task that Airflow started this program for.
    ///
    /// With `--airflow-metadata` instead of the addresses it prints the bundle's manifest.
    pub fn run(self) -> ExitCode {
        crate::execute::main(&self)
    }

    /// Return the manifest of a bundle with these tasks: YAML.
    ///
    /// `source` is the display name of the source.
    pub fn manifest(&self, source: &str) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut dags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((dag_id, task_id), task) in &self.tasks {
            if task.body.is_some() {
                dags.entry(dag_id).or_default().push(task_id);
            }
        }
        let mut text = format!(
            "airflow_bundle_metadata_version: \"1.0\"\nsdk:\n  language: rust\n  version: \"{}\"\n  \
             supervisor_schema_version: \"{}\"\nsource: {}\ndags:",
            env!("CARGO_PKG_VERSION"),
            crate::messages::SCHEMA_VERSION,
            quoted(source)
        );
        text += if dags.is_empty() { " {}\n" } else { "\n" };
        for (dag_id, tasks) in dags {
            text += &format!("  {}:\n    tasks:\n", quoted(dag_id));
            for task_id in tasks {
                text += &format!("      - {}\n", quoted(task_id));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &Context) -> TaskResult<()> {
        Ok(())
    }

    #[test]
    fn the_same_name_resumes_different_tasks() {
        let tasks =
            Tasks::new().resume("dag", "one", "woken", nothing).resume("dag", "two", "woken", nothing);
        assert_eq!(tasks.tasks.len(), 2);
    }

    #[test]
    #[should_panic(expected = "dag.one resumes in \"woken\" twice")]
    fn a_second_function_for_a_resume_name_is_an_error() {
        let _ = Tasks::new().resume("dag", "one", "woken", nothing).resume("dag", "one", "woken", nothing);
    }

    #[test]
    #[should_panic(expected = "two functions for the task dag.one")]
    fn a_second_function_for_a_task_is_an_error() {
        let _ = Tasks::new().task("dag", "one", nothing).task("dag", "one", nothing);
    }
}
