use serde::de::{self, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::de::FromValue;
use crate::error::Error;
use crate::value::Value;

/// The arguments of a task, matched to the fields of a struct by name.
///
/// Names are compared in lower case and without underscores. With `strict`, an argument without a field is
/// an error.
pub(crate) struct Arguments {
    pub(crate) entries: Vec<(Value, Value)>,
    pub(crate) strict: bool,
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

impl<'de> Deserializer<'de> for Arguments {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        FromValue(Value::Map(self.entries)).deserialize_any(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.entries.first() {
            Some((name, _)) if self.strict => {
                Err(de::Error::custom(format!("the task takes no arguments and was given {name}")))
            }
            _ => visitor.visit_unit(),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut entries = Vec::with_capacity(self.entries.len());
        for (key, value) in self.entries {
            let given = key.as_str().unwrap_or_default();
            let exact = fields.iter().find(|field| **field == given);
            match exact.or_else(|| fields.iter().find(|field| folded(field) == folded(given))) {
                Some(field) => entries.push((Value::from(*field), value)),
                None if self.strict => {
                    return Err(de::Error::custom(format!("{name} has no field for the argument {given:?}")))
                }
                None => {}
            }
        }
        FromValue(Value::Map(entries)).deserialize_struct(name, fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
