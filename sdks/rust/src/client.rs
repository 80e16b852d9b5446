use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard};

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::messages::Request;
use crate::value::Value;

/// Asks the supervisor; several threads may ask at once, and replies are matched by their id.
pub struct Client {
    writer: Mutex<Writer>,
    reader: Mutex<BufReader<TcpStream>>,
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

struct Writer {
    stream: TcpStream,
    last_id: i64,
    carrier: Value,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct Waiting {
    replies: HashMap<i64, Option<Frame>>,
    reading: bool,
    broken: Option<Error>,
}

/// `[id, body, error]` of the wire.
struct Frame {
    id: i64,
    body: Value,
    error: Value,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another thread leaves nothing half-written behind these locks.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> std::io::Result<Client> {
        stream.set_nodelay(true)?;
        let reader = BufReader::with_capacity(1 << 16, stream.try_clone()?);
        // The unsolicited first frame has id 0: our ids start above it.
        let writer = Writer { stream, last_id: 0, carrier: Value::Nil, buffer: Vec::new() };
        Ok(Client {
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            waiting: Mutex::default(),
            arrived: Condvar::new(),
        })
    }

    /// Return the body of the first frame, which nobody asked for.
    pub(crate) fn read_startup(&self) -> Result<Value, Error> {
        let frame = read_frame(&mut *lock(&self.reader))?;
        match frame.body.get("type").and_then(Value::as_str) {
            Some("StartupDetails") => Ok(frame.body),
            other => Err(Error::Wire(format!("expected StartupDetails as the first frame, got {other:?}"))),
        }
    }

    /// Send a trace context with every request from now on.
    pub(crate) fn set_carrier(&self, carrier: Value) {
        lock(&self.writer).carrier = carrier;
    }

    /// Send a request and return the body of its reply, [`Value::Nil`] where it is empty.
    ///
    /// # Errors
    /// [`Error::Refused`] where the supervisor says no, [`Error::Lost`] where it has gone.
    pub fn request<R: Request>(&self, request: &R) -> Result<Value, Error> {
        let frame = self.exchange(Value::from_json(request)?)?;
        let refusal = match frame.body.get("type").and_then(Value::as_str) {
            _ if !frame.error.is_nil() => &frame.error,
            Some("ErrorResponse") => &frame.body,
            _ => return Ok(frame.body),
        };
        let code = refusal.get("error").and_then(Value::as_str).unwrap_or("GENERIC_ERROR").to_owned();
        let detail = match refusal {
            Value::Map(_) => refusal.get("detail").cloned().unwrap_or_default(),
            other => other.clone(),
        };
        Err(Error::Refused { request: R::TYPE, code, detail })
    }

    /// Send a request and read its reply as a message type.
    ///
    /// # Errors
    /// Those of [`Client::request`], and [`Error::Mismatch`] where the reply is another message.
    pub fn ask<R: Request, A: DeserializeOwned>(&self, request: &R) -> Result<A, Error> {
        self.request(request)?.into_type()
    }

    fn exchange(&self, body: Value) -> Result<Frame, Error> {
        let id = self.send(body)?;
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(Some(_)) = waiting.replies.get(&id) {
                return Ok(waiting.replies.remove(&id).flatten().expect("it was there under this lock"));
            }
            if let Some(broken) = &waiting.broken {
                return Err(broken.clone());
            }
            if waiting.reading {
                waiting = self.arrived.wait(waiting).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            }
            waiting.reading = true;
            drop(waiting);
            let read = read_frame(&mut *lock(&self.reader));
            waiting = lock(&self.waiting);
            waiting.reading = false;
            match read {
                Ok(frame) => {
                    if let Some(place) = waiting.replies.get_mut(&frame.id) {
                        *place = Some(frame);
                    }
                }
                Err(error) => waiting.broken = Some(error),
            }
            self.arrived.notify_all();
        }
    }

    fn send(&self, body: Value) -> Result<i64, Error> {
        let mut writer = lock(&self.writer);
        let id = writer.last_id + 1;
        writer.last_id = id;
        lock(&self.waiting).replies.insert(id, None);
        let mut buffer = std::mem::take(&mut writer.buffer);
        buffer.clear();
        buffer.extend([0; 4]);
        buffer.push(if writer.carrier.is_nil() { 0x92 } else { 0x93 });
        Value::Int(id).encode(&mut buffer);
        body.encode(&mut buffer);
        if !writer.carrier.is_nil() {
            writer.carrier.encode(&mut buffer);
        }
        let Ok(size) = u32::try_from(buffer.len() - 4) else {
            lock(&self.waiting).replies.remove(&id);
            return Err(Error::Wire(format!(
                "a frame of {} bytes, 4294967295 is the most",
                buffer.len() - 4
            )));
        };
        buffer[..4].copy_from_slice(&size.to_be_bytes());
        let sent = writer.stream.write_all(&buffer);
        writer.buffer = buffer;
        sent.map_err(|error| Error::Lost(error.to_string()))?;
        Ok(id)
    }
}

fn read_frame(reader: &mut impl Read) -> Result<Frame, Error> {
    let lost = |error: std::io::Error| Error::Lost(error.to_string());
    let mut size = [0; 4];
    reader.read_exact(&mut size).map_err(lost)?;
    let size = u64::from(u32::from_be_bytes(size));
    let mut payload = Vec::with_capacity(size.min(1 << 16) as usize);
    // Grows with what arrives: the size is a claim of the peer.
    if reader.by_ref().take(size).read_to_end(&mut payload).map_err(lost)? as u64 != size {
        return Err(Error::Lost("the channel ended inside of a frame".into()));
    }
    let Value::Array(parts) = Value::decode(&payload)? else {
        return Err(Error::Wire("expected [id, body, error], got no list".into()));
    };
    let mut parts = parts.into_iter();
    let id = parts.next().as_ref().and_then(Value::as_i64);
    match (id, parts.next()) {
        (Some(id), Some(body @ (Value::Map(_) | Value::Nil))) => {
            Ok(Frame { id, body, error: parts.next().unwrap_or_default() })
        }
        (id, body) => Err(Error::Wire(format!("expected [id, body, error], got {id:?} and {body:?}"))),
    }
}
