use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::Error;
use crate::value::Value;

/// Reads a Rust type out of a [`Value`].
pub struct FromValue(pub(crate) Value);

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Error::Mismatch(message.to_string())
    }
}

impl<'de> IntoDeserializer<'de, Error> for Value {
    type Deserializer = FromValue;

    fn into_deserializer(self) -> FromValue {
        FromValue(self)
    }
}

impl<'de> Deserializer<'de> for FromValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Nil => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Int(number) => visitor.visit_i64(number),
            Value::UInt(number) => visitor.visit_u64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Str(text) => visitor.visit_string(text),
            Value::Bin(bytes) | Value::Ext(_, bytes) => visitor.visit_byte_buf(bytes),
            Value::Array(items) => {
                let mut list = SeqDeserializer::new(items.into_iter());
                let value = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(value)
            }
            Value::Map(entries) => {
                let mut map = MapDeserializer::new(entries.into_iter());
                let value = visitor.visit_map(&mut map)?;
                map.end()?;
                Ok(value)
            }
            Value::Moment { seconds, nanos } => visitor.visit_string(crate::time::rfc3339(seconds, nanos)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            // No arguments at all: what a function without parameters is given.
            Value::Map(entries) if entries.is_empty() => visitor.visit_unit(),
            value => FromValue(value).deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, v: V) -> Result<V::Value, Error> {
        v.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Str(name) => visitor.visit_enum(Variant(name.into(), Value::Nil)),
            Value::Map(mut entries) if entries.len() == 1 => {
                let (name, value) = entries.remove(0);
                visitor.visit_enum(Variant(name, value))
            }
            other => Err(de::Error::custom(format!("{other} is no variant"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant(Value, Value);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Content;

    fn variant_seed<S: de::DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content), Error> {
        Ok((seed.deserialize(FromValue(self.0))?, Content(self.1)))
    }
}

struct Content(Value);

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        de::Deserialize::deserialize(FromValue(self.0))
    }

    fn newtype_variant_seed<S: de::DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(FromValue(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        FromValue(self.0).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], v: V) -> Result<V::Value, Error> {
        FromValue(self.0).deserialize_any(v)
    }
}
