use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Return a moment as RFC 3339 text, in UTC, to the microsecond.
pub(crate) fn rfc3339(seconds: i64, nanos: u32) -> String {
    let days = seconds.div_euclid(86_400);
    let (year, month, day) = civil(days);
    let rest = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let micros = nanos / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
}

/// Turn days since 1970 into a date of the Gregorian calendar, counting years from March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Return the present moment, moved by a duration, as RFC 3339 text.
pub(crate) fn from_now(delay: Duration) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + delay;
    rfc3339(since.as_secs() as i64, since.subsec_nanos())
}

/// Return a moment as RFC 3339 text.
pub(crate) fn text(moment: SystemTime) -> String {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => rfc3339(since.as_secs() as i64, since.subsec_nanos()),
        Err(error) => {
            let before = error.duration().as_nanos() as i128;
            let nanos = (-before).rem_euclid(1_000_000_000);
            rfc3339((-before).div_euclid(1_000_000_000) as i64, nanos as u32)
        }
    }
}

/// Return the present moment as RFC 3339 text.
pub(crate) fn now() -> String {
    from_now(Duration::ZERO)
}

/// Return a duration as ISO 8601 text.
pub(crate) fn iso_duration(duration: Duration) -> String {
    format!("PT{}S", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_their_date() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(rfc3339(1_796_033_109, 250_000_000), "2026-11-30T10:05:09.250000+00:00");
        assert_eq!(rfc3339(951_782_400, 0), "2000-02-29T00:00:00.000000+00:00");
        assert_eq!(rfc3339(-1, 0), "1969-12-31T23:59:59.000000+00:00");
    }

    #[test]
    fn moments_of_the_system_have_their_text() {
        assert_eq!(text(UNIX_EPOCH + Duration::from_millis(1500)), "1970-01-01T00:00:01.500000+00:00");
        assert_eq!(text(UNIX_EPOCH - Duration::from_millis(500)), "1969-12-31T23:59:59.500000+00:00");
    }

    #[test]
    fn durations_are_iso() {
        assert_eq!(iso_duration(Duration::from_millis(2500)), "PT2.5S");
        assert_eq!(iso_duration(Duration::from_secs(60)), "PT60S");
    }
}
