//! Text that is JSON: variables, and the extra field of connections.

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::context::{optional, Context};
use crate::error::Error;
use crate::messages::ConnectionResult;
use crate::value::Value;

fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Mismatch(format!("{what}: {error}")))
}

impl Context {
    /// Return a variable, read as JSON.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is not JSON or of another type, and one that [`Error::is_not_found`] where
    /// there is none.
    pub fn variable_json<T: DeserializeOwned>(&self, key: &str) -> Result<T, Error> {
        parse(key, &self.variable(key)?)
    }

    /// Return a variable, read as JSON; `None` where there is none.
    ///
    /// # Errors
    /// Those of [`variable_json`](Context::variable_json), but for that one.
    pub fn variable_json_if_set<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        optional(self.variable_json(key))
    }

    /// Write a variable as JSON.
    ///
    /// # Errors
    /// [`Error::NotJson`] where it is not JSON, and those of [`set_variable`](Context::set_variable).
    pub fn set_variable_json(
        &self,
        key: &str,
        value: &(impl Serialize + ?Sized),
        description: Option<&str>,
    ) -> Result<(), Error> {
        self.set_variable(key, &Value::from_json(value)?.to_string(), description)
    }
}

impl ConnectionResult {
    /// Return the extra field, read as JSON; an empty mapping where it is empty.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is not JSON or of another type.
    pub fn extra_json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        match self.extra.as_deref() {
            None | Some("") => Value::Map(Vec::new()).into_type(),
            Some(text) => parse("the extra field", text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_extra_field_is_read_as_json() {
        let of =
            |extra: Option<&str>| ConnectionResult { extra: extra.map(str::to_owned), ..Default::default() };
        let read = |extra| of(extra).extra_json::<BTreeMap<String, i64>>();
        assert_eq!(read(Some(r#"{"a": 1}"#)), Ok(BTreeMap::from([("a".to_owned(), 1)])));
        assert_eq!((read(None), read(Some(""))), (Ok(BTreeMap::new()), Ok(BTreeMap::new())));
        assert!(matches!(read(Some("{")), Err(Error::Mismatch(said)) if said.contains("extra")));
        assert_eq!(of(Some("[1.5, null]")).extra_json::<Value>().unwrap().to_string(), "[1.5,null]");
    }
}
