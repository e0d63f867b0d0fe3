//! Ages, in the format of `kubectl`.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age of an object.
pub(super) fn of(object: &Value, now: Timestamp) -> String {
    since(object["metadata"]["creationTimestamp"].as_str(), now)
}

/// Returns the age of an RFC 3339 time: `<unknown>` if there is none, `<invalid>` if it is
/// malformed.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.map(str::parse::<Timestamp>) {
        None => "<unknown>".to_owned(),
        Some(Ok(time)) => between(time, now),
        Some(Err(_)) => "<invalid>".to_owned(),
    }
}

/// Returns the time from one moment to another.
pub(super) fn between(from: Timestamp, until: Timestamp) -> String {
    human(until.as_second().saturating_sub(from.as_second()))
}

/// Formats seconds in at most two units, coarser the longer it is (`HumanDuration` of
/// apimachinery). Clocks may differ by a second.
fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, (DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Formats seconds in a large unit and the rest in a small one, if there is any.
fn two_units(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let (whole, rest) = (seconds / large.0, seconds % large.0 / small.0);
    if rest == 0 {
        format!("{whole}{}", large.1)
    } else {
        format!("{whole}{}{rest}{}", large.1, small.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, MINUTE, YEAR, human, since};

    /// An age gets coarser the longer it is.
    #[test]
    fn long_ages_are_coarse() {
        for (seconds, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 59, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (47 * HOUR + 59 * MINUTE, "47h"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY + 3 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR + 3 * DAY, "8y"),
            (i64::MAX, "292471208677y"),
        ] {
            assert_eq!(human(seconds), shown, "{seconds}");
        }
    }

    /// A time that is absent or unreadable has a word of its own.
    #[test]
    fn absent_time_has_a_word() {
        let now = "2026-11-21T09:00:00Z".parse().unwrap();
        assert_eq!(since(Some("2026-11-21T08:59:50Z"), now), "10s");
        assert_eq!(since(None, now), "<unknown>");
        assert_eq!(since(Some("yesterday"), now), "<invalid>");
    }
}
