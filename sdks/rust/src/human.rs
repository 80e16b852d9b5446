use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::messages::{AwaitInputTask, CreateHITLDetailPayload, HITLUser};
use crate::outcome::{HumanTimeout, Park, Parked, TaskError, TaskResult};
use crate::time;
use crate::value::Value;

/// The dispatch key of a task that waits for an answer.
pub(crate) const ASKED: &str = "handoff_sdk.ask_human";
const ANSWERS: &str = "handoff_sdk_answers";
const SUBJECT: &str = "handoff_sdk_subject";
const RESUME: &str = "handoff_sdk_resume";

/// A question to a person.
#[derive(Debug, Clone, Default)]
pub struct Question {
    detail: CreateHITLDetailPayload,
    timeout: Option<Duration>,
    problem: Option<Error>,
}

impl Question {
    /// Ask with a subject; the one option is `OK` until others are given.
    pub fn new(subject: impl Into<String>) -> Question {
        let detail = CreateHITLDetailPayload {
            subject: subject.into(),
            options: vec!["OK".into()],
            multiple: Some(false),
            params: Some(BTreeMap::new()),
            assigned_users: Some(Vec::new()),
            ..Default::default()
        };
        Question { detail, ..Default::default() }
    }

    /// Set the options.
    pub fn options<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Question {
        self.detail.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Set the text below the subject; Markdown.
    pub fn body(mut self, body: impl Into<String>) -> Question {
        self.detail.body = Some(body.into());
        self
    }

    /// Set the options that count as chosen at the timeout.
    pub fn defaults<S: Into<String>>(mut self, defaults: impl IntoIterator<Item = S>) -> Question {
        self.detail.defaults = Some(defaults.into_iter().map(Into::into).collect());
        self
    }

    /// Allow more than one option.
    pub fn multiple(mut self) -> Question {
        self.detail.multiple = Some(true);
        self
    }

    /// Add a field to the form, with the value that it begins with.
    pub fn field(self, name: impl Into<String>, value: &impl Serialize) -> Question {
        self.form(name, Field::new().value(value))
    }

    /// Add a field with a schema or a description to the form.
    pub fn form(mut self, name: impl Into<String>, field: Field) -> Question {
        match field.built {
            Ok([value, description, schema]) => {
                let field = [("value", value), ("description", description), ("schema", schema)];
                self.detail.params.get_or_insert_with(BTreeMap::new).insert(name.into(), field.into());
            }
            Err(error) => self.problem = Some(error),
        }
        self
    }

    /// Let only these people answer; give each as id and name.
    pub fn assigned_to(mut self, id: impl Into<String>, name: impl Into<String>) -> Question {
        let user = HITLUser { id: id.into(), name: name.into(), ..Default::default() };
        self.detail.assigned_users.get_or_insert_with(Vec::new).push(user);
        self
    }

    /// End the wait after this long.
    pub fn timeout(mut self, timeout: Duration) -> Question {
        self.timeout = Some(timeout);
        self
    }

    fn check_options(&self) -> TaskResult<()> {
        let (options, multiple) = (&self.detail.options, self.detail.multiple == Some(true));
        if options.is_empty() || options.iter().collect::<BTreeSet<_>>().len() < options.len() {
            return Err(TaskError::message(format!(
                "a question needs options, each of them once, and has {options:?}"
            )));
        }
        let defaults = self.detail.defaults.as_deref().unwrap_or_default();
        if defaults.iter().any(|option| !options.contains(option)) || (defaults.len() > 1 && !multiple) {
            return Err(TaskError::message(format!(
                "the defaults {defaults:?} are no choice among {options:?} with multiple={multiple}"
            )));
        }
        Ok(())
    }
}

/// A field of a question's form.
#[derive(Debug, Clone)]
pub struct Field {
    built: Result<[Value; 3], Error>,
}

impl Default for Field {
    fn default() -> Self {
        Self::new()
    }
}

impl Field {
    /// A field for any value, which begins empty.
    pub fn new() -> Field {
        Field { built: Ok([Value::Nil, Value::Nil, Value::Map(Vec::new())]) }
    }

    /// Set the value that it begins with.
    pub fn value(self, value: &impl Serialize) -> Field {
        self.set(0, Value::from_json(value))
    }

    /// Set the text beside it; Markdown.
    pub fn description(self, description: impl Into<String>) -> Field {
        self.set(1, Ok(Value::Str(description.into())))
    }

    /// Set the JSON schema that the answer must fit; a mapping.
    pub fn schema(self, schema: &impl Serialize) -> Field {
        self.set(2, Value::from_json(schema))
    }

    fn set(mut self, part: usize, value: Result<Value, Error>) -> Field {
        match (&mut self.built, value) {
            (Ok(parts), Ok(value)) => parts[part] = value,
            (Ok(_), Err(error)) => self.built = Err(error),
            (Err(_), _) => {}
        }
        self
    }
}

/// What a person answered, or the defaults where nobody did in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The chosen options.
    pub chosen_options: Vec<String>,
    /// The form's fields.
    pub params_input: Value,
    /// When it was given; `None` for the defaults.
    pub responded_at: Option<SystemTime>,
    /// Id and name of who answered.
    pub responded_by: Option<(String, String)>,
    /// Whether these are the defaults.
    pub timedout: bool,
}

impl Answer {
    /// The first chosen option; empty where none was chosen.
    pub fn choice(&self) -> &str {
        self.chosen_options.first().map_or("", String::as_str)
    }

    /// Read one field of the form.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is not there or of another type.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        self.params_input.get(name).cloned().unwrap_or_default().into_type()
    }

    fn from_event(event: &Value) -> Result<Answer, Error> {
        let user = event.get("responded_by_user");
        let part = |key| user.and_then(|u| u.get(key)).and_then(Value::as_str).map(str::to_owned);
        Ok(Answer {
            chosen_options: event.get("chosen_options").cloned().unwrap_or_default().into_type()?,
            params_input: event.get("params_input").cloned().unwrap_or_default(),
            responded_at: event.get("responded_at").and_then(|moment| moment.clone().revived().as_moment()),
            responded_by: part("id").zip(part("name")),
            timedout: event.get("timedout") == Some(&Value::Bool(true)),
        })
    }
}

/// The answers that this attempt has had so far, and how many of them were handed out again.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    answers: Vec<Value>,
    used: usize,
}

impl Replay {
    pub(crate) fn new(next_method: Option<&str>, kwargs: &Value) -> Replay {
        if next_method != Some(ASKED) {
            return Replay::default();
        }
        let mut answers = kwargs.get(ANSWERS).and_then(Value::as_array).unwrap_or_default().to_vec();
        let part = |key: &str| kwargs.get(key).cloned().unwrap_or_default();
        answers.push([("subject", part(SUBJECT)), ("event", part("event"))].into());
        Replay { answers, used: 0 }
    }

    fn next(&mut self, subject: &str) -> TaskResult<Option<Value>> {
        let Some(answer) = self.answers.get(self.used) else { return Ok(None) };
        let asked = answer.get("subject").and_then(Value::as_str).unwrap_or_default();
        if asked != subject {
            return Err(TaskError::message(format!(
                "question {} was {asked:?} and is now {subject:?}: a function that asks must ask the same \
                 questions in the same order each time it runs",
                self.used + 1
            )));
        }
        self.used += 1;
        Ok(Some(answer.get("event").cloned().unwrap_or_default()))
    }
}

impl Context {
    /// Return what resumes, and its arguments: after an answer, the function that asked.
    pub(crate) fn resumed(&self) -> Option<(&str, &Value)> {
        let server = &self.startup().ti_context;
        let name = server.next_method.as_deref()?;
        match server.next_kwargs.get(RESUME).filter(|_| name == ASKED) {
            Some(asker) => Some((asker.get("name")?.as_str()?, asker.get("kwargs").unwrap_or(&Value::Nil))),
            None => Some((name, &server.next_kwargs)),
        }
    }

    /// Ask a person and return the answer.
    ///
    /// The process ends while the question waits. When the answer is there the function runs again from its
    /// start, in a new process, and this call returns. So keep what comes before it cheap and repeatable.
    /// A function that resumed a deferral runs again with the same event.
    ///
    /// # Errors
    /// Hand every error on with `?`: the first of them ends the process. After the timeout, without
    /// defaults, [`TaskError::Error`] holds a [`HumanTimeout`]; it is a decision and no fault, and fails the
    /// task for good unless its retry policy says otherwise. No options, one that is there twice, and
    /// defaults that nobody could choose are errors before anybody is asked.
    pub fn ask_human(&self, question: Question) -> TaskResult<Answer> {
        let mut replay = self.replay();
        if let Some(event) = replay.next(&question.detail.subject)? {
            if let Some(error) = event.get("error").and_then(Value::as_str) {
                let timeout = HumanTimeout { subject: question.detail.subject, reason: error.to_owned() };
                return Err(timeout.into());
            }
            return Ok(Answer::from_event(&event)?);
        }
        if let Some(problem) = question.problem {
            return Err(problem.into());
        }
        question.check_options()?;
        let subject = question.detail.subject.clone();
        self.client().request(&CreateHITLDetailPayload { ti_id: self.ti_id().into(), ..question.detail })?;
        let mut kept = BTreeMap::from([
            (ANSWERS.to_owned(), Value::Array(replay.answers.clone())),
            (SUBJECT.into(), subject.into()),
        ]);
        if let Some((name, kwargs)) = self.resumed().filter(|(name, _)| *name != ASKED) {
            kept.insert(RESUME.into(), [("name", name.into()), ("kwargs", kwargs.clone())].into());
        }
        Err(TaskError::Park(Parked(Box::new(Park::Await(AwaitInputTask {
            next_method: ASKED.into(),
            next_kwargs: Some(kept),
            timeout: question.timeout.map(time::iso_duration),
            ..Default::default()
        })))))
    }
}
