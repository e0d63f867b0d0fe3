//! Quantities of resources, as Kubernetes writes them: `100m`, `64Mi`, `1e3`.

use std::ops::{Add, Mul, Sub};

/// An amount, in billionths. Finer ones are rounded up, as Kubernetes does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// The notation of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// `1500m`, `3k`.
    #[default]
    Decimal,
    /// `64Mi`.
    Binary,
    /// `3e3`.
    Exponent,
}

impl Notation {
    /// Returns the notation of a quantity.
    fn of(text: &str) -> Self {
        let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if suffix.ends_with('i') {
            Self::Binary
        } else if suffix.len() > 1 && suffix.starts_with(['e', 'E']) {
            Self::Exponent
        } else {
            Self::Decimal
        }
    }
}

const NANOS: i128 = 1_000_000_000;
/// The most that a binary suffix stands for: Kubernetes takes more for this.
const MOST_BINARY: i128 = i64::MAX as i128 * NANOS;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

impl Quantity {
    /// Reads a quantity, or returns `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = end.unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let fraction = u32::try_from(fraction.len()).ok()?;
        // Exponents are counted from a billionth, the unit.
        let (scale, exponent) = factor(suffix)?;
        let (larger, smaller) = (exponent.max(0), exponent.min(0));
        let numerator = mantissa
            .checked_mul(scale)?
            .checked_mul(10_i128.checked_pow(larger.unsigned_abs())?)?;
        let places = fraction.checked_add(smaller.unsigned_abs())?;
        let divisor = 10_i128.checked_pow(places)?;
        let mut amount = numerator.checked_add(divisor - 1)? / divisor;
        if suffix.ends_with('i') {
            amount = amount.min(MOST_BINARY);
        }
        Some(Self(if is_negative { -amount } else { amount }))
    }

    /// Reads a quantity and its notation: a binary suffix of less than one is none (apimachinery, `ParseQuantity`).
    pub fn parse_with_notation(text: &str) -> Option<(Self, Notation)> {
        let quantity = Self::parse(text)?;
        let notation = match Notation::of(text) {
            Notation::Binary if quantity.0.unsigned_abs() < NANOS.unsigned_abs() => {
                Notation::Decimal
            }
            other => other,
        };
        Some((quantity, notation))
    }

    /// Returns `true` if the amount is more than nothing.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// Returns the part of `weight` that the amount is of `whole`, to the nearest; 0 if `whole` is nothing.
    pub fn part_of(self, whole: Self, weight: i32) -> i32 {
        if whole.0 == 0 {
            return 0;
        }
        // Of the largest amounts, the last digits do not matter, and the product stays in range.
        let bits = i128::BITS - whole.0.unsigned_abs().leading_zeros();
        let shift = bits.saturating_sub(80);
        let (part, whole) = (self.0 >> shift, whole.0 >> shift);
        let twice = part.saturating_mul(2 * i128::from(weight));
        // Halves away from zero, as Go rounds.
        let half = if twice < 0 { -whole } else { whole };
        let rounded = twice.saturating_add(half) / (2 * whole);
        i32::try_from(rounded).unwrap_or(weight)
    }

    /// Returns the amount in thousandths, rounded up.
    pub fn millis(self) -> i128 {
        ceil(self.0, NANOS / 1000)
    }

    /// Returns the amount in units, rounded up.
    pub fn units(self) -> i128 {
        ceil(self.0, NANOS)
    }

    /// Returns `true` if there is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the amount as the nearest number.
    pub fn approximate(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is the nearest")]
        let billionths = self.0 as f64;
        billionths / 1e9
    }

    /// Returns the canonical text in a notation (apimachinery, `Quantity.CanonicalizeBytes`).
    pub fn text(self, notation: Notation) -> String {
        let is_small = self.0.unsigned_abs() < (1024 * NANOS).unsigned_abs();
        let is_whole = self.0 % NANOS == 0;
        match notation {
            Notation::Binary if is_whole && !is_small => self.binary(),
            Notation::Binary | Notation::Decimal => self.thousands(|power| {
                let mut suffixes = ["n", "u", "m"].into_iter().chain(DECIMAL);
                suffixes.nth(power).map(ToOwned::to_owned)
            }),
            Notation::Exponent => self.thousands(|power| {
                let exponent = 3 * i32::try_from(power).ok()? - 9;
                Some(match exponent {
                    0 => String::new(),
                    exponent => format!("e{exponent}"),
                })
            }),
        }
    }

    /// Returns the amount in the largest power of a thousand, counted from a billionth, of which it is a multiple and
    /// that has a suffix.
    fn thousands(self, suffix: impl Fn(usize) -> Option<String>) -> String {
        let (mut amount, mut power) = (self.0, 0);
        if amount == 0 {
            return "0".to_owned();
        }
        while amount % 1000 == 0 && suffix(power + 1).is_some() {
            amount /= 1000;
            power += 1;
        }
        format!("{amount}{}", suffix(power).unwrap_or_default())
    }

    /// Returns the canonical text of thousandths, such as CPU is counted in.
    pub fn milli(self) -> String {
        let milli = self.millis();
        if milli % 1000 == 0 {
            with_suffix(milli / 1000, 1000, &DECIMAL)
        } else {
            format!("{milli}m")
        }
    }

    /// Returns the canonical text of an integer with a decimal suffix.
    pub fn decimal(self) -> String {
        with_suffix(self.units(), 1000, &DECIMAL)
    }

    /// Returns the canonical text of an integer with a binary suffix, such as memory is counted in.
    pub fn binary(self) -> String {
        with_suffix(self.units(), 1024, &BINARY)
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<i128> for Quantity {
    type Output = Self;

    fn mul(self, times: i128) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

/// Returns the factor of a suffix: a number, and a power of ten in billionths.
fn factor(suffix: &str) -> Option<(i128, i32)> {
    if let Some(power) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((1, 9 + 3 * i32::try_from(power).ok()?));
    }
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Some((1024_i128.pow(u32::try_from(power).ok()?), 9));
    }
    match suffix {
        "n" => return Some((1, 0)),
        "u" => return Some((1, 3)),
        "m" => return Some((1, 6)),
        _ => {}
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((1, exponent.checked_add(9)?))
}

fn ceil(amount: i128, unit: i128) -> i128 {
    let floor = amount.div_euclid(unit);
    if amount.rem_euclid(unit) == 0 {
        floor
    } else {
        floor.saturating_add(1)
    }
}

fn with_suffix(mut amount: i128, base: i128, suffixes: &[&str]) -> String {
    let mut suffixes = suffixes.iter();
    let mut suffix = suffixes.next().copied().unwrap_or_default();
    while amount != 0 && amount % base == 0 {
        let Some(next) = suffixes.next() else { break };
        suffix = next;
        amount /= base;
    }
    format!("{amount}{suffix}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_is_read() {
        let table = [
            ("100m", "0.1"),
            ("64Mi", "67108864"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("12E", "12000P"),
            ("+5", "5000m"),
            (".5", "500m"),
            ("1e-3", "1m"),
            ("1000000000n", "1"),
            ("99999999999999999999", "99999999999999999999000m"),
            ("16Ei", "9223372036854775807"),
        ];
        for (a, b) in table {
            assert_eq!(
                Quantity::parse(a).unwrap(),
                Quantity::parse(b).unwrap(),
                "{a} {b}"
            );
        }
        assert!(Quantity::parse("-1").unwrap() < Quantity::default());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "m",
            "1x",
            "1 Gi",
            "--1",
            "1.2.3",
            "1e",
            "1e99",
            "9999999999999999999999999999999999999999",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn shortest_form_is_written() {
        assert_eq!(quantity("0.1").milli(), "100m");
        assert_eq!(quantity("2").milli(), "2");
        assert_eq!(quantity("2000").milli(), "2k");
        assert_eq!(quantity("67108864").binary(), "64Mi");
        assert_eq!(quantity("1000").binary(), "1000");
        assert_eq!(quantity("1000").decimal(), "1k");
        assert_eq!(quantity("1500m").decimal(), "2");
        assert_eq!(quantity("0").binary(), "0");
    }

    proptest! {
        #[test]
        fn written_form_reads_back(amount in 0_i64..1_000_000_000_000) {
            let amount = Quantity(i128::from(amount) * NANOS);
            for text in [amount.milli(), amount.decimal(), amount.binary()] {
                prop_assert_eq!(Quantity::parse(&text), Some(amount));
            }
        }

        #[test]
        fn any_text_is_harmless(text in "\\PC{0,24}") {
            let _ = Quantity::parse(&text).map(|q| (q.milli(), q.binary(), q.decimal(), q + q));
        }
    }

    /// A sum beyond the least is the least, and has a text.
    #[test]
    fn least_sum_is_written() {
        let half = Quantity::parse("-170141183460469231731687303715884105727n").unwrap();
        let least = half + half;
        assert_eq!(least, Quantity(i128::MIN));
        for notation in [Notation::Decimal, Notation::Binary] {
            let text = "-170141183460469231731687303715884105728n";
            assert_eq!(least.text(notation), text, "{notation:?}");
        }
    }

    #[test]
    fn parts_are_rounded() {
        for (part, whole, weight, expected) in [
            ("1", "3", 100, 33),
            ("2", "3", 100, 67),
            ("2", "3", -100, -67),
            ("1", "2", 5, 3),
            ("1", "2", -5, -3),
            ("0", "3", 100, 0),
            ("3", "3", 100, 100),
            ("3", "0", 100, 0),
            ("250m", "1", 20, 5),
            ("99999E", "199998E", 100, 50),
        ] {
            let part = quantity(part).part_of(quantity(whole), weight);
            assert_eq!(part, expected, "{whole}");
        }
    }
}
