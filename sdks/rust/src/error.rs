use std::fmt;

use crate::value::Value;

/// What went wrong between this process and its supervisor.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// The supervisor refused a request.
    Refused {
        /// The type of the request.
        request: &'static str,
        /// Airflow's code, `VARIABLE_NOT_FOUND` for example.
        code: String,
        /// What Airflow says about it.
        detail: Value,
    },
    /// The supervisor has closed the channel.
    Lost(String),
    /// Bytes that the wire does not allow.
    Wire(String),
    /// A value that Airflow would not accept: it must be JSON.
    NotJson(String),
    /// A value that does not fit the Rust type that was asked for.
    Mismatch(String),
}

impl Error {
    /// Whether what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Refused { code, .. } if code.ends_with("_NOT_FOUND"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused { request, code, detail } => write!(f, "{request} was refused: {code} {detail}"),
            Error::Lost(why) => write!(f, "the supervisor has gone: {why}"),
            Error::Wire(what) => write!(f, "the wire was broken: {what}"),
            Error::NotJson(what) => write!(f, "a value that JSON has not: {what}"),
            Error::Mismatch(what) => write!(f, "a value of another type: {what}"),
        }
    }
}

impl std::error::Error for Error {}
