//! `os.time` and `os.date`, in UTC, as Karmada's programs have it.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The fields of a date by which `os.time` makes a time of it; absent ones are as there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Fields {
    /// Returns the seconds since 1970. Fields out of their range run over into the next, as in Go's `time.Date`.
    pub(crate) fn seconds(self) -> i64 {
        let months = bounded(self.month) - 1;
        let year = bounded(self.year) + months.div_euclid(12);
        let month = months.rem_euclid(12) + 1;
        let days = days_before(year, month) + bounded(self.day) - 1;
        let hours = days * 24 + bounded(self.hour);
        hours
            .saturating_mul(60)
            .saturating_add(bounded(self.minute))
            .saturating_mul(60)
            .saturating_add(bounded(self.second))
    }
}

fn bounded(field: i64) -> i64 {
    field.clamp(-1_000_000_000_000, 1_000_000_000_000)
}

/// Returns the days from 1970 to the first of a month of the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Years begin in March, so that the day of a leap year is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day - 719_468
}

/// Returns the date of the seconds since 1970; `None` if no calendar has it.
pub(crate) fn date(seconds: i64) -> Option<Zoned> {
    let time = Timestamp::from_second(seconds).ok()?;
    Some(time.to_zoned(TimeZone::UTC))
}

/// Returns a date as `format` says.
pub(crate) fn text(date: &Zoned, format: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match rest.next() {
            None | Some('%') => text.push('%'),
            Some(letter) => match directive(letter) {
                Some("") => text.push_str(fixed(letter)),
                Some(format) => text.push_str(&date.strftime(format).to_string()),
                None => text.extend(['%', letter]),
            },
        }
    }
    text
}

/// Returns the directive of `strftime` for one of gopher-lua's; empty for one that has a fixed text there.
fn directive(letter: char) -> Option<&'static str> {
    Some(match letter {
        'a' | 'z' | 'Z' => "",
        'A' => "%A",
        'b' => "%b",
        'B' => "%B",
        'c' => "%d %b %y %H:%M UTC",
        'd' => "%d",
        'F' => "%Y-%m-%d",
        'H' => "%H",
        'I' => "%I",
        'm' => "%m",
        'M' => "%M",
        'p' => "%p",
        'P' => "%P",
        'S' => "%S",
        'w' => "%w",
        'x' => "%H/%M/%S",
        'X' => "%H:%M:%S",
        'y' => "%y",
        'Y' => "%Y",
        _ => return None,
    })
}

fn fixed(letter: char) -> &'static str {
    match letter {
        // gopher-lua takes a text for a format of Go's that is none.
        'a' => "mon",
        'z' => "+0000",
        _ => "UTC",
    }
}
