//! Values in the form in which Airflow serializes what JSON has not.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::time;
use crate::value::Value;

impl Value {
    /// Restore the moments, tuples and sets of Airflow's own serialization, at any depth.
    ///
    /// A datetime becomes a [`Value::Moment`], which reads as RFC 3339 text or with
    /// [`as_moment`](Value::as_moment); tuples and sets become lists. Classes that this SDK does not know stay
    /// the mappings they are on the wire. XComs and the arguments of resuming functions are restored already.
    pub fn revived(self) -> Value {
        match self {
            Value::Array(items) => Value::Array(items.into_iter().map(Value::revived).collect()),
            Value::Map(entries) => match entries.iter().any(|(key, _)| key.as_str() == Some("__classname__"))
            {
                true => known(Value::Map(entries)),
                false => Value::Map(entries.into_iter().map(|(key, value)| (key, value.revived())).collect()),
            },
            other => other,
        }
    }

    /// Return the moment of a [`Value::Moment`], or of RFC 3339 text, which it becomes as part of a struct.
    pub fn as_moment(&self) -> Option<SystemTime> {
        let (seconds, nanos) = match self {
            Value::Moment { seconds, nanos } => (*seconds, *nanos),
            Value::Str(text) => time::parse(text)?,
            _ => return None,
        };
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let start = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        start?.checked_add(Duration::from_nanos(u64::from(nanos)))
    }
}

fn known(value: Value) -> Value {
    let data = value.get("__data__");
    let restored = match value.get("__classname__").and_then(Value::as_str) {
        Some("datetime.datetime" | "pendulum.datetime.DateTime") => {
            data.and_then(|data| moment(data.get("timestamp")?))
        }
        Some("builtins.tuple" | "builtins.set" | "builtins.frozenset") => {
            data.filter(|data| data.as_array().is_some()).map(|data| data.clone().revived())
        }
        _ => None,
    };
    restored.unwrap_or(value)
}

fn moment(timestamp: &Value) -> Option<Value> {
    let (mut seconds, micros) = match timestamp {
        Value::Int(seconds) => (*seconds, 0),
        // A float holds no more than microseconds of our times; what is beyond them is noise.
        Value::Float(number) if number.is_finite() => {
            (number.floor() as i64, ((number - number.floor()) * 1e6).round() as u32)
        }
        _ => return None,
    };
    let carry = micros / 1_000_000;
    seconds = seconds.saturating_add(i64::from(carry));
    Some(Value::Moment { seconds, nanos: micros % 1_000_000 * 1000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(name: &str, data: Value) -> Value {
        [("__classname__", Value::from(name)), ("__version__", Value::Int(2)), ("__data__", data)].into()
    }

    fn at(timestamp: Value) -> Value {
        wrapped("pendulum.datetime.DateTime", [("timestamp", timestamp), ("tz", "UTC".into())].into())
    }

    #[test]
    fn moments_are_restored_at_any_depth() {
        let given = Value::from([("x", Value::Array(vec![at(Value::Float(1_796_033_109.25))]))]);
        let moment = Value::Moment { seconds: 1_796_033_109, nanos: 250_000_000 };
        assert_eq!(given.revived(), [("x", Value::Array(vec![moment.clone()]))].into());
        assert_eq!(moment.as_moment(), Some(UNIX_EPOCH + Duration::from_millis(1_796_033_109_250)));
        let text: String = moment.into_type().unwrap();
        assert_eq!(text, "2026-11-30T10:05:09.250000+00:00");
    }

    #[test]
    fn moments_before_1970_and_close_to_a_second_are_right() {
        assert_eq!(at(Value::Float(-0.5)).revived(), Value::Moment { seconds: -1, nanos: 500_000_000 });
        assert_eq!(at(Value::Float(0.999_999_9)).revived(), Value::Moment { seconds: 1, nanos: 0 });
        let early = Value::Moment { seconds: -1, nanos: 500_000_000 };
        assert_eq!(early.as_moment(), Some(UNIX_EPOCH - Duration::from_millis(500)));
    }

    #[test]
    fn tuples_and_sets_are_lists_and_strangers_stay() {
        let items = || Value::Array(vec![at(Value::Int(5))]);
        let moment = Value::Moment { seconds: 5, nanos: 0 };
        for name in ["builtins.tuple", "builtins.set", "builtins.frozenset"] {
            assert_eq!(wrapped(name, items()).revived(), Value::Array(vec![moment.clone()]));
        }
        for stranger in [wrapped("a.B", items()), wrapped("builtins.set", Value::Nil), at("soon".into())] {
            assert_eq!(stranger.clone().revived(), stranger);
        }
    }
}
