//! Numbers as text, and back.

/// The most digits a double has behind its point. Only zeros come after, and Rust's own formatting panics when it
/// is asked for more than 65,535 of them.
const MOST_DIGITS: usize = 1_100;

/// Returns a number as `tostring` shows it (gopher-lua, `LNumber.String`).
pub(crate) fn text(number: f64) -> String {
    let integer = truncated(number);
    #[expect(clippy::cast_precision_loss, reason = "that shows if it is an integer")]
    let back = integer as f64;
    if exactly(back, number) {
        integer.to_string()
    } else {
        general(number, None)
    }
}

/// Returns the integer of a number as Go converts it on amd64: one that does not fit is the smallest.
pub(crate) fn truncated(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "it is in range")]
        let integer = number as i64;
        integer
    } else {
        i64::MIN
    }
}

/// Returns `true` for equal numbers, 0 and -0 among them.
pub(crate) fn exactly(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(std::cmp::Ordering::Equal)
}

/// Returns a number as Go's verb `g` shows it: with as many digits as it takes, or as `precision` says.
pub(crate) fn general(number: f64, precision: Option<usize>) -> String {
    if let Some(text) = not_finite(number) {
        return text;
    }
    let scientific = match precision {
        None => format!("{number:e}"),
        Some(precision) => format!("{number:.*e}", (precision.max(1) - 1).min(MOST_DIGITS)),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.truncate(digits.trim_end_matches('0').len().max(1));
    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // As strconv: where the digits are the shortest, six decide.
    let most = match precision.map(|precision| i64::try_from(precision.max(1))) {
        None => 6,
        Some(Ok(precision)) if precision > count && count > exponent => count,
        Some(precision) => precision.unwrap_or(i64::MAX),
    };
    if exponent < -4 || exponent >= most {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}{}", power(exponent));
    }
    let point = usize::try_from(exponent + 1).unwrap_or_default();
    let text = if exponent < 0 {
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        format!("0.{}{digits}", "0".repeat(zeros))
    } else if digits.len() <= point {
        format!("{digits}{}", "0".repeat(point - digits.len()))
    } else {
        let (whole, fraction) = digits.split_at(point);
        format!("{whole}.{fraction}")
    };
    format!("{sign}{text}")
}

/// Returns a number as Go's verb `e` shows it.
pub(crate) fn scientific(number: f64, precision: usize) -> String {
    if let Some(text) = not_finite(number) {
        return text;
    }
    let known = precision.min(MOST_DIGITS);
    let text = format!("{number:.known$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision - known);
    format!(
        "{mantissa}{zeros}{}",
        power(exponent.parse().unwrap_or_default())
    )
}

/// Returns a number as Go's verb `f` shows it.
pub(crate) fn fixed(number: f64, precision: usize) -> String {
    let known = precision.min(MOST_DIGITS);
    let zeros = "0".repeat(precision - known);
    not_finite(number).unwrap_or_else(|| format!("{number:.known$}{zeros}"))
}

fn power(exponent: i64) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

fn not_finite(number: f64) -> Option<String> {
    if number.is_nan() {
        Some("NaN".to_owned())
    } else if number.is_infinite() {
        Some(if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned())
    } else {
        None
    }
}

/// Reads a number as `tonumber` does (gopher-lua, `baseToNumber`): one without a point is an integer, so that
/// `1e3` is none.
pub(crate) fn read(text: &str, base: Option<u32>) -> Option<f64> {
    let text = text.trim_matches([' ', '\n', '\t']);
    if text.contains('.') {
        let is_plain = text
            .chars()
            .all(|c| c.is_ascii_digit() || ".+-eE".contains(c));
        return text.parse().ok().filter(|_| is_plain);
    }
    let (base, text) = match (base, text.get(..2)) {
        (None, Some("0x" | "0X")) => (16, text.get(2..)?),
        (base, _) => (base.unwrap_or(10), text),
    };
    if !(2..=36).contains(&base) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "numbers are doubles in Lua")]
    let number = i64::from_str_radix(text, base).ok()? as f64;
    Some(number)
}
