use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::error::Error;
use crate::value::Value;

/// Serializes into a [`Value`] that is JSON.
pub(crate) struct ToValue;

impl serde::ser::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Error::NotJson(message.to_string())
    }
}

/// Collects the items of a list, and the name of the variant that they belong to.
pub(crate) struct Items(Option<&'static str>, Vec<Value>);

/// Collects the entries of a mapping, and the name of the variant that they belong to.
pub(crate) struct Entries(Option<&'static str>, Vec<(Value, Value)>, Value);

fn in_variant(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Map(vec![(name.into(), value)]),
        None => value,
    }
}

impl Items {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.1.push(value.serialize(ToValue)?);
        Ok(())
    }

    fn done(self) -> Value {
        in_variant(self.0, Value::Array(self.1))
    }
}

impl Entries {
    fn add<T: Serialize + ?Sized>(&mut self, key: Value, value: &T) -> Result<(), Error> {
        self.1.push((key, value.serialize(ToValue)?));
        Ok(())
    }

    fn done(self) -> Value {
        in_variant(self.0, Value::Map(self.1))
    }
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    fn serialize_bool(self, v: bool) -> Result<Value, Error> {
        Ok(Value::Bool(v))
    }
    fn serialize_i8(self, v: i8) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i16(self, v: i16) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i32(self, v: i32) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i64(self, v: i64) -> Result<Value, Error> {
        Ok(Value::Int(v))
    }
    fn serialize_u8(self, v: u8) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u16(self, v: u16) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u32(self, v: u32) -> Result<Value, Error> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u64(self, v: u64) -> Result<Value, Error> {
        Ok(i64::try_from(v).map_or(Value::UInt(v), Value::Int))
    }
    fn serialize_f32(self, v: f32) -> Result<Value, Error> {
        self.serialize_f64(v.into())
    }
    fn serialize_f64(self, v: f64) -> Result<Value, Error> {
        if v.is_finite() {
            Ok(Value::Float(v))
        } else {
            Err(Error::NotJson(format!("the number {v}")))
        }
    }
    fn serialize_char(self, v: char) -> Result<Value, Error> {
        Ok(Value::Str(v.into()))
    }
    fn serialize_str(self, v: &str) -> Result<Value, Error> {
        Ok(v.into())
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<Value, Error> {
        Err(Error::NotJson(format!("{} bytes; encode them as text", v.len())))
    }
    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Nil)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Nil)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Nil)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result<Value, Error> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(in_variant(Some(variant), value.serialize(self)?))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Items, Error> {
        Ok(Items(None, Vec::with_capacity(len.unwrap_or(0))))
    }
    fn serialize_tuple(self, len: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, Error> {
        Ok(Items(Some(variant), Vec::with_capacity(len)))
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Entries, Error> {
        Ok(Entries(None, Vec::with_capacity(len.unwrap_or(0)), Value::Nil))
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Entries, Error> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Entries, Error> {
        Ok(Entries(Some(variant), Vec::with_capacity(len), Value::Nil))
    }
}

macro_rules! items {
    ($($kind:ident $method:ident),*) => {$(
        impl $kind for Items {
            type Ok = Value;
            type Error = Error;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            }
            fn end(self) -> Result<Value, Error> {
                Ok(self.done())
            }
        }
    )*};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($kind:ident),*) => {$(
        impl $kind for Entries {
            type Ok = Value;
            type Error = Error;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.add(key.into(), value)
            }
            fn end(self) -> Result<Value, Error> {
                Ok(self.done())
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Entries {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.2 = key.serialize(ToValue)?;
        match &self.2 {
            Value::Str(_) => Ok(()),
            other => Err(Error::custom(format!("the key {other}; keys are text"))),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.2);
        self.add(key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.done())
    }
}
