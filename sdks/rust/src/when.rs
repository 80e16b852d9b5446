use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::time;
use crate::value::Value;

/// A moment, given as such or as the time from now until then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// That moment.
    At(SystemTime),
    /// So long from now.
    After(Duration),
}

impl When {
    pub(crate) fn text(self) -> String {
        match self {
            When::At(moment) => time::text(moment),
            When::After(delay) => time::from_now(delay),
        }
    }
}

impl From<SystemTime> for When {
    fn from(moment: SystemTime) -> Self {
        When::At(moment)
    }
}

impl From<Duration> for When {
    fn from(delay: Duration) -> Self {
        When::After(delay)
    }
}

/// A moment among the arguments of a trigger, in the form in which Airflow's triggerer reads one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerMoment(pub SystemTime);

/// A duration among the arguments of a trigger, in the form in which Airflow's triggerer reads one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerDuration(pub Duration);

fn typed(kind: &str, seconds: f64) -> Value {
    [("__type", Value::from(kind)), ("__var", Value::Float(seconds))].into()
}

impl Serialize for TriggerMoment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = match self.0.duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_secs_f64(),
            Err(error) => -error.duration().as_secs_f64(),
        };
        typed("datetime", seconds).serialize(serializer)
    }
}

impl Serialize for TriggerDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        typed("timedelta", self.0.as_secs_f64()).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_given_either_way() {
        let moment = UNIX_EPOCH + Duration::from_secs(5);
        assert_eq!(When::from(moment).text(), "1970-01-01T00:00:05.000000+00:00");
        assert!(When::from(Duration::from_secs(5)).text() > When::from(Duration::ZERO).text());
    }

    #[test]
    fn a_trigger_reads_moments_and_durations() {
        let early = TriggerMoment(UNIX_EPOCH - Duration::from_millis(1500));
        let given = Value::from_json(&(early, TriggerDuration(Duration::from_secs(90)))).unwrap();
        assert_eq!(
            given.to_string(),
            r#"[{"__type":"datetime","__var":-1.5},{"__type":"timedelta","__var":90.0}]"#
        );
    }
}
