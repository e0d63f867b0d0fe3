//! The time since something happened, as a table shows it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns the time from `since` to `now` in its largest useful unit; `<unknown>` if nobody wrote it down.
pub(crate) fn age(since: Option<&Time>, now: Timestamp) -> String {
    since.map_or_else(
        || "<unknown>".to_owned(),
        |Time(since)| span(now.as_second() - since.as_second()),
    )
}

/// Returns a number of seconds in its largest unit of which there are at least two.
pub(crate) fn span(seconds: i64) -> String {
    // Another clock may be ahead of ours.
    match seconds.max(0) {
        seconds if seconds < 2 * MINUTE => format!("{seconds}s"),
        seconds if seconds < 2 * HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        seconds => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An age is in the largest unit of which there are two.
    #[test]
    fn age_uses_largest_unit() {
        for (seconds, shown) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (2 * HOUR - 1, "119m"),
            (2 * HOUR, "2h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
        ] {
            assert_eq!(span(seconds), shown);
        }
        assert_eq!(age(None, Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
