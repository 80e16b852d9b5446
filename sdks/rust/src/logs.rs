//! The way of `tracing` records into the task log.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::value::Value;

// Names that Airflow 3.3's own log reader uses for itself: as fields they would end the supervisor.
const TAKEN: [&str; 8] =
    ["event", "level", "logger", "timestamp", "msg", "target", "self", "positional_args"];

enum Way {
    /// There is no socket yet: lines are kept.
    Kept(Vec<u8>),
    /// The socket is there.
    Socket(TcpStream),
    /// There will be none: lines go to stderr, which the supervisor reads as well.
    Stderr,
}

static WAY: Mutex<Way> = Mutex::new(Way::Kept(Vec::new()));

fn way() -> MutexGuard<'static, Way> {
    WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collect records from here on; they are kept until there is a socket.
///
/// Does nothing where the program has its own global subscriber.
pub fn install() {
    let _ = tracing::subscriber::set_global_default(Wire::from_environment());
}

pub(crate) fn connect(stream: TcpStream) {
    let mut way = way();
    if let Way::Kept(lines) = std::mem::replace(&mut *way, Way::Socket(stream)) {
        if !lines.is_empty() {
            send(&mut way, &lines);
        }
    }
}

pub(crate) fn give_up() {
    let mut way = way();
    if let Way::Kept(lines) = std::mem::replace(&mut *way, Way::Stderr) {
        send(&mut way, &lines);
    }
}

fn send(way: &mut Way, line: &[u8]) {
    match way {
        Way::Kept(lines) => lines.extend(line),
        Way::Socket(stream) => {
            if stream.write_all(line).is_err() {
                *way = Way::Stderr;
                let _ = std::io::stderr().write_all(line);
            }
        }
        Way::Stderr => {
            let _ = std::io::stderr().write_all(line);
        }
    }
}

/// The thresholds that Airflow set.
#[derive(Debug, PartialEq)]
pub struct Thresholds {
    overall: u8,
    single: Vec<(String, u8)>,
}

impl Thresholds {
    /// Read the texts of `AIRFLOW__LOGGING__LOGGING_LEVEL` and `AIRFLOW__LOGGING__NAMESPACE_LEVELS`.
    ///
    /// What cannot be understood counts as not set.
    pub fn new(level: &str, namespaces: &str) -> Thresholds {
        let mut single: Vec<(String, u8)> = namespaces
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter_map(|item| item.split_once('='))
            .filter_map(|(name, level)| Some((name.replace("::", "."), number(level)?)))
            .collect();
        // The longest name that matches decides.
        single.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Thresholds { overall: number(level).unwrap_or(20), single }
    }

    /// Whether a record of a target reaches the threshold of its logger.
    pub fn wants(&self, target: &str, level: &Level) -> bool {
        let number = rank(level);
        let target = if self.single.is_empty() { String::new() } else { target.replace("::", ".") };
        let least = self.single.iter().find(|(name, _)| {
            target.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        number >= least.map_or(self.overall, |(_, least)| *least)
    }

    fn lowest(&self) -> u8 {
        self.single.iter().map(|(_, level)| *level).chain([self.overall]).min().unwrap_or(0)
    }
}

fn number(text: &str) -> Option<u8> {
    match text.trim().to_ascii_lowercase().as_str() {
        "critical" | "fatal" => Some(50),
        "error" => Some(40),
        "warning" | "warn" => Some(30),
        "info" => Some(20),
        "debug" => Some(10),
        "notset" => Some(0),
        other => other.parse().ok(),
    }
}

fn rank(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

fn name(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}

struct Span {
    name: &'static str,
    fields: String,
    handles: usize,
}

struct Wire {
    thresholds: Thresholds,
    spans: OnceLock<Mutex<HashMap<u64, Span>>>,
    last_span: AtomicU64,
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Wire {
    fn from_environment() -> Wire {
        let read = |name: &str| std::env::var(name).unwrap_or_default();
        let level = read("AIRFLOW__LOGGING__LOGGING_LEVEL");
        let thresholds = Thresholds::new(&level, &read("AIRFLOW__LOGGING__NAMESPACE_LEVELS"));
        Wire { thresholds, spans: OnceLock::new(), last_span: AtomicU64::new(0) }
    }

    fn spans(&self) -> MutexGuard<'_, HashMap<u64, Span>> {
        self.spans.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Wire {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.thresholds.wants(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.thresholds.lowest() {
            0..=5 => LevelFilter::TRACE,
            6..=10 => LevelFilter::DEBUG,
            11..=20 => LevelFilter::INFO,
            21..=30 => LevelFilter::WARN,
            31..=40 => LevelFilter::ERROR,
            _ => LevelFilter::OFF,
        })
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.last_span.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        let made = Span { name: span.metadata().name(), fields: fields.text, handles: 1 };
        self.spans().insert(id, made);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(span) = self.spans().get_mut(&span.into_u64()) {
            span.fields += &fields.text;
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut line = String::with_capacity(160);
        let _ = write!(
            line,
            "{{\"timestamp\":\"{}\",\"level\":\"{}\"",
            crate::time::now(),
            name(metadata.level())
        );
        line += ",\"logger\":";
        quote(metadata.target(), &mut line);
        line += ",\"event\":";
        quote(&fields.message, &mut line);
        let entered = ENTERED.with(|entered| entered.borrow().clone());
        if !entered.is_empty() {
            let spans = self.spans();
            let inside: Vec<&Span> = entered.iter().filter_map(|id| spans.get(id)).collect();
            let names: Vec<&str> = inside.iter().map(|span| span.name).collect();
            line += ",\"span\":";
            quote(&names.join(":"), &mut line);
            inside.iter().for_each(|span| line += &span.fields);
        }
        line += &fields.text;
        line += "}\n";
        send(&mut way(), line.as_bytes());
    }

    fn enter(&self, span: &Id) {
        ENTERED.with(|entered| entered.borrow_mut().push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with(|entered| {
            let mut entered = entered.borrow_mut();
            if let Some(place) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(place);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.spans().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = self.spans();
        let Some(span) = spans.get_mut(&id.into_u64()) else { return false };
        span.handles -= 1;
        let closed = span.handles == 0;
        if closed {
            spans.remove(&id.into_u64());
        }
        closed
    }
}

/// Collects fields as the inside of a JSON object, each with a comma before it.
#[derive(Default)]
struct Fields {
    text: String,
    message: String,
}

impl Fields {
    fn key(&mut self, field: &Field) {
        let name = field.name();
        self.text.push(',');
        if TAKEN.contains(&name) {
            quote(&format!("{name}_"), &mut self.text);
        } else {
            quote(name, &mut self.text);
        }
        self.text.push(':');
    }

    fn put(&mut self, field: &Field, value: &Value) {
        self.key(field);
        write_json(value, &mut self.text);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            self.put(field, &format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message += value;
        } else {
            self.put(field, &value.into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, &value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, &Value::UInt(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, &Value::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, &value.into());
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Append a value as JSON; what JSON has not is written as text.
pub(crate) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(flag) => {
            let _ = write!(out, "{flag}");
        }
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::UInt(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) if number.is_finite() => {
            let _ = write!(out, "{number:?}");
        }
        Value::Float(number) => quote(&number.to_string(), out),
        Value::Str(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                match key {
                    Value::Str(text) => quote(text, out),
                    other => quote(&other.to_string(), out),
                }
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
        Value::Moment { seconds, nanos } => quote(&crate::time::rfc3339(*seconds, *nanos), out),
        Value::Bin(bytes) | Value::Ext(_, bytes) => quote(&format!("{} bytes", bytes.len()), out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_matches_decides() {
        let thresholds = Thresholds::new("INFO", "noisy=ERROR, noisy::part=debug nonsense x=");
        assert!(!thresholds.wants("other", &Level::DEBUG));
        assert!(thresholds.wants("other", &Level::INFO));
        assert!(!thresholds.wants("noisy::else", &Level::WARN));
        assert!(thresholds.wants("noisy::part::deep", &Level::DEBUG));
        assert!(thresholds.wants("noisyneighbour", &Level::INFO));
        assert_eq!(Thresholds::new("bogus", ""), Thresholds { overall: 20, single: Vec::new() });
    }

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        quote("a\"b\\c\nd\u{1}é", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
