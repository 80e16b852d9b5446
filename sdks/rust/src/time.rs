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

/// Turn a date of the Gregorian calendar into days since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Read RFC 3339 text; return seconds since 1970 and nanoseconds.
pub(crate) fn parse(text: &str) -> Option<(i64, u32)> {
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = text.get(range)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let mark = |at: usize| text.as_bytes().get(at).copied();
    let separated =
        (mark(4), mark(7), mark(13), mark(16)) == (Some(b'-'), Some(b'-'), Some(b':'), Some(b':'));
    if !separated || !matches!(mark(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let (month, day) = (digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let possible = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !possible || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut zone = &text[19..];
    let mut nanos = 0;
    if let Some(fraction) = zone.strip_prefix('.') {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = fraction.split_at(length);
        nanos = format!("{number:0<9}").get(..9)?.parse().ok().filter(|_| length > 0)?;
        zone = rest;
    }
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), rest @ ..] if rest.len() == 5 && rest[2] == b':' => {
            let at = text.len() - 5;
            let minutes = digits(at..at + 2)? * 60 + digits(at + 3..at + 5)?;
            if *sign == b'-' {
                -minutes
            } else {
                minutes
            }
        }
        _ => return None,
    };
    let whole = days(digits(0..4)?, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((whole - offset * 60, nanos))
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
    fn text_is_read_back() {
        for (seconds, nanos) in
            [(0, 0), (1_796_033_109, 250_000_000), (951_782_400, 0), (-1, 0), (-9e9 as i64, 1000)]
        {
            assert_eq!(parse(&rfc3339(seconds, nanos)), Some((seconds, nanos)));
        }
        assert_eq!(parse("2026-11-30T12:05:09.25+02:00"), Some((1_796_033_109, 250_000_000)));
        assert_eq!(parse("2026-11-30 10:05:09Z"), Some((1_796_033_109, 0)));
        for bad in [
            "",
            "2026-11-30",
            "2026-11-30T10:05:09",
            "2026-13-30T10:05:09Z",
            "2026-11-30T10:05:09.Z",
            "2026-11-30T10:05:+9Z",
            "2026-11-30T10:05:09é",
            "soon, at ten o'clock",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_iso() {
        assert_eq!(iso_duration(Duration::from_millis(2500)), "PT2.5S");
        assert_eq!(iso_duration(Duration::from_secs(60)), "PT60S");
    }
}
