//! MessagePack values, and the codec that reads and writes them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::Error;

const MAX_DEPTH: usize = 200;

/// One value of the wire.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// null
    #[default]
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An integer above the range of [`Value::Int`].
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bin(Vec<u8>),
    /// A list.
    Array(Vec<Value>),
    /// A mapping, in the order of the wire.
    Map(Vec<(Value, Value)>),
    /// A moment in time (extension -1).
    Moment {
        /// Seconds since 1970, UTC.
        seconds: i64,
        /// Nanoseconds within the second.
        nanos: u32,
    },
    /// Any other extension.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// Return the value under a text key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Return the text of a [`Value::Str`].
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Return an integer.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::UInt(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Return the items of a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Turn any serializable value into a wire value.
    ///
    /// # Errors
    /// [`Error::NotJson`] for bytes, NaN, infinities and keys that are not text: Airflow would not answer.
    pub fn from_json<T: Serialize + ?Sized>(value: &T) -> Result<Value, Error> {
        value.serialize(crate::ser::ToValue)
    }

    /// Read this value as a Rust type.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it does not fit.
    pub fn into_type<T: de::DeserializeOwned>(self) -> Result<T, Error> {
        T::deserialize(crate::de::FromValue(self))
    }

    /// Append the MessagePack form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.push(0xc0),
            Value::Bool(flag) => out.push(if *flag { 0xc3 } else { 0xc2 }),
            Value::Int(number) => encode_int(*number, out),
            Value::UInt(number) => encode_uint(*number, out),
            Value::Float(number) => tagged(out, 0xcb, &number.to_be_bytes()),
            Value::Str(text) => {
                match text.len() {
                    n @ 0..=31 => out.push(0xa0 | n as u8),
                    n @ 32..=255 => out.extend([0xd9, n as u8]),
                    n => sized(out, 0xda, n),
                }
                out.extend(text.as_bytes());
            }
            Value::Bin(bytes) => {
                match bytes.len() {
                    n @ 0..=255 => out.extend([0xc4, n as u8]),
                    n => sized(out, 0xc5, n),
                }
                out.extend(bytes);
            }
            Value::Array(items) => {
                head(out, items.len(), 0x90, 0xdc);
                items.iter().for_each(|item| item.encode(out));
            }
            Value::Map(entries) => {
                head(out, entries.len(), 0x80, 0xde);
                for (key, value) in entries {
                    key.encode(out);
                    value.encode(out);
                }
            }
            Value::Moment { seconds, nanos } => encode_moment(*seconds, *nanos, out),
            Value::Ext(code, bytes) => encode_ext(*code, bytes, out),
        }
    }

    /// Read one value that fills `data`.
    ///
    /// # Errors
    /// [`Error::Wire`] with the offset of what is wrong.
    pub fn decode(data: &[u8]) -> Result<Value, Error> {
        let mut reader = Reader { data, at: 0 };
        let value = reader.value(0)?;
        match data.len() - reader.at {
            0 => Ok(value),
            left => Err(Error::Wire(format!("{left} bytes follow the value at offset {}", reader.at))),
        }
    }
}

fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend(bytes);
}

fn sized(out: &mut Vec<u8>, tag: u8, size: usize) {
    match u16::try_from(size) {
        Ok(size) => tagged(out, tag, &size.to_be_bytes()),
        Err(_) => tagged(out, tag + 1, &(size as u32).to_be_bytes()),
    }
}

fn head(out: &mut Vec<u8>, size: usize, fix: u8, wide: u8) {
    if size < 16 {
        out.push(fix | size as u8);
    } else {
        sized(out, wide, size);
    }
}

fn encode_int(number: i64, out: &mut Vec<u8>) {
    match number {
        0.. => encode_uint(number as u64, out),
        -32..=-1 => out.push(number as i8 as u8),
        -0x80..=-33 => tagged(out, 0xd0, &(number as i8).to_be_bytes()),
        -0x8000..=-0x81 => tagged(out, 0xd1, &(number as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => tagged(out, 0xd2, &(number as i32).to_be_bytes()),
        _ => tagged(out, 0xd3, &number.to_be_bytes()),
    }
}

fn encode_uint(number: u64, out: &mut Vec<u8>) {
    match number {
        0..=0x7f => out.push(number as u8),
        0x80..=0xff => tagged(out, 0xcc, &(number as u8).to_be_bytes()),
        0x100..=0xffff => tagged(out, 0xcd, &(number as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => tagged(out, 0xce, &(number as u32).to_be_bytes()),
        _ => tagged(out, 0xcf, &number.to_be_bytes()),
    }
}

fn encode_moment(seconds: i64, nanos: u32, out: &mut Vec<u8>) {
    match u64::try_from(seconds) {
        Ok(short) if nanos == 0 && short <= u64::from(u32::MAX) => {
            encode_ext(-1, &(short as u32).to_be_bytes(), out)
        }
        Ok(middle) if middle < 1 << 34 => {
            encode_ext(-1, &(u64::from(nanos) << 34 | middle).to_be_bytes(), out)
        }
        _ => {
            let mut bytes = nanos.to_be_bytes().to_vec();
            bytes.extend(seconds.to_be_bytes());
            encode_ext(-1, &bytes, out);
        }
    }
}

fn encode_ext(code: i8, bytes: &[u8], out: &mut Vec<u8>) {
    match bytes.len() {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        n @ 0..=255 => out.extend([0xc7, n as u8]),
        n => sized(out, 0xc8, n),
    }
    out.push(code as u8);
    out.extend(bytes);
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], Error> {
        let left = self.data.len() - self.at;
        if size > left {
            return Err(Error::Wire(format!(
                "{size} bytes expected at offset {}, {left} are there",
                self.at
            )));
        }
        let taken = &self.data[self.at..self.at + size];
        self.at += size;
        Ok(taken)
    }

    fn number(&mut self, width: usize) -> Result<u64, Error> {
        Ok(self.take(width)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn text(&mut self, size: usize) -> Result<Value, Error> {
        let at = self.at;
        match std::str::from_utf8(self.take(size)?) {
            Ok(text) => Ok(Value::Str(text.to_owned())),
            Err(_) => Err(Error::Wire(format!("text at offset {at} is not UTF-8"))),
        }
    }

    fn array(&mut self, size: usize, depth: usize) -> Result<Value, Error> {
        // A size is a claim of the peer: nothing is reserved for more than the bytes that are there.
        let mut items = Vec::with_capacity(size.min(self.data.len() - self.at));
        for _ in 0..size {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, size: usize, depth: usize) -> Result<Value, Error> {
        let mut entries = Vec::with_capacity(size.min((self.data.len() - self.at) / 2));
        for _ in 0..size {
            entries.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Ok(Value::Map(entries))
    }

    fn ext(&mut self, size: usize) -> Result<Value, Error> {
        let code = self.take(1)?[0] as i8;
        let at = self.at;
        if code != -1 {
            return Ok(Value::Ext(code, self.take(size)?.to_vec()));
        }
        match size {
            4 => Ok(Value::Moment { seconds: self.number(4)? as i64, nanos: 0 }),
            8 => {
                let both = self.number(8)?;
                Ok(Value::Moment { seconds: (both & 0x3_ffff_ffff) as i64, nanos: (both >> 34) as u32 })
            }
            12 => {
                let nanos = self.number(4)? as u32;
                Ok(Value::Moment { seconds: self.number(8)? as i64, nanos })
            }
            _ => Err(Error::Wire(format!("a moment of {size} bytes at offset {at}"))),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Wire(format!("nested deeper than {MAX_DEPTH} levels at offset {}", self.at)));
        }
        let at = self.at;
        let byte = self.take(1)?[0];
        match byte {
            0x00..=0x7f => Ok(Value::Int(i64::from(byte))),
            0x80..=0x8f => self.map(usize::from(byte & 15), depth),
            0x90..=0x9f => self.array(usize::from(byte & 15), depth),
            0xa0..=0xbf => self.text(usize::from(byte & 31)),
            0xc0 => Ok(Value::Nil),
            0xc2 | 0xc3 => Ok(Value::Bool(byte == 0xc3)),
            0xc4..=0xc6 => {
                let size = self.number(1 << (byte - 0xc4))? as usize;
                Ok(Value::Bin(self.take(size)?.to_vec()))
            }
            0xc7..=0xc9 => {
                let size = self.number(1 << (byte - 0xc7))? as usize;
                self.ext(size)
            }
            0xca => Ok(Value::Float(f64::from(f32::from_bits(self.number(4)? as u32)))),
            0xcb => Ok(Value::Float(f64::from_bits(self.number(8)?))),
            0xcc..=0xcf => {
                let number = self.number(1 << (byte - 0xcc))?;
                Ok(i64::try_from(number).map_or(Value::UInt(number), Value::Int))
            }
            0xd0 => Ok(Value::Int(i64::from(self.number(1)? as i8))),
            0xd1 => Ok(Value::Int(i64::from(self.number(2)? as i16))),
            0xd2 => Ok(Value::Int(i64::from(self.number(4)? as i32))),
            0xd3 => Ok(Value::Int(self.number(8)? as i64)),
            0xd4..=0xd8 => self.ext(1 << (byte - 0xd4)),
            0xd9..=0xdb => {
                let size = self.number(1 << (byte - 0xd9))? as usize;
                self.text(size)
            }
            0xdc | 0xdd => {
                let size = self.number(2 << (byte - 0xdc))? as usize;
                self.array(size, depth)
            }
            0xde | 0xdf => {
                let size = self.number(2 << (byte - 0xde))? as usize;
                self.map(size, depth)
            }
            0xe0..=0xff => Ok(Value::Int(i64::from(byte as i8))),
            0xc1 => Err(Error::Wire(format!("byte c1 at offset {at} begins no value"))),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        crate::logs::write_json(self, &mut text);
        f.write_str(&text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Str(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<Value>, const N: usize> From<[(K, Value); N]> for Value {
    fn from(entries: [(K, Value); N]) -> Self {
        Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::UInt(number) => serializer.serialize_u64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::Str(text) => serializer.serialize_str(text),
            Value::Bin(bytes) | Value::Ext(_, bytes) => serializer.serialize_bytes(bytes),
            Value::Array(items) => serializer.collect_seq(items),
            Value::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Value::Moment { seconds, nanos } => {
                serializer.serialize_str(&crate::time::rfc3339(*seconds, *nanos))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::UInt(number), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Str(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Str(text))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Bin(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

/// Read null as the type's default: Airflow sends it for what is not there.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
