//! The messages of conditions and Events: how long one may be, and whether it is news.

use jiff::Timestamp;

/// The longest message that an API server takes in a condition (apimachinery, `metav1.Condition`).
pub const LONGEST: usize = 32_768;

/// Returns the part of a message for which a condition has room.
pub fn bounded(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(LONGEST));
    message
}

/// Returns the part of a message for which there is room where an object lists one of each of `number` others: etcd takes
/// no more than 1.5 MiB in all.
pub fn listed(message: &str, number: usize) -> &str {
    const ROOM: usize = 256 * 1024;
    let most = LONGEST.min(ROOM / number.max(1));
    &message[..message.floor_char_boundary(most)]
}

/// Returns `true` if both messages say the same. A server may word its answer anew with each attempt: it names the time, the
/// place of a value in its memory, or the port of a connection.
pub fn says_same(one: &str, other: &str) -> bool {
    one == other || lasting(one) == lasting(other)
}

/// Returns `true` if the troubles, each with its reason, are those of `before`. A webhook may give another answer with each
/// attempt.
pub fn are_same_troubles<R: PartialEq>(troubles: &[(R, String)], before: &[(R, String)]) -> bool {
    let mut pairs = troubles.iter().zip(before);
    troubles.len() == before.len()
        && pairs.all(|(new, old)| {
            let [now, told] = [new, old].map(|(_, message)| by_webhook(message).unwrap_or(message));
            new.0 == old.0 && says_same(now, told)
        })
}

/// Returns the part of a message that ends with the name of the webhook which refuses the write, with whichever code, or does not
/// answer. The rest may be another text with each attempt, such as the port of a connection.
pub fn by_webhook(message: &str) -> Option<&str> {
    const WORDS: [&str; 2] = [
        "Internal error occurred: failed calling webhook \"",
        "admission webhook \"",
    ];
    let begins = WORDS.map(|words| Some(message.find(words)? + words.len()));
    let begin = begins.into_iter().flatten().next()?;
    let name = message.get(begin..)?.find('"')?;
    message.get(..=begin + name)
}

/// Returns the parts of a message that are the same with each attempt.
fn lasting(message: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut place) = (0, 0);
    while let Some(found) = message[place..].find(|c: char| c.is_ascii_digit()) {
        place += found;
        let rest = &message[place..];
        if let Some(length) = passing(rest) {
            parts.push(&message[begin..place]);
            place += length;
            begin = place;
        } else {
            place += number(rest).len();
        }
    }
    parts.push(&message[begin..]);
    parts
}

/// Returns the length of the beginning of a text that is another with each attempt.
fn passing(text: &str) -> Option<usize> {
    /// These follow the times that rustls counts, and the port of a connection in Go.
    const AFTER: [&str; 4] = [" (UNIX)", " seconds ago", " seconds in future", "->"];
    let number = number(text);
    let after = &text[number.len()..];
    if AFTER.iter().any(|words| after.starts_with(words)) {
        return Some(number.len());
    }
    if let Some(address) = text.strip_prefix("0x") {
        let end = address.find(|c: char| !c.is_ascii_hexdigit());
        return Some("0x".len() + end.unwrap_or(address.len()));
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || "-:.TZ+".contains(c)));
    let time = text[..end.unwrap_or(text.len())].trim_end_matches(['-', ':', '.']);
    let is_time = time.parse::<Timestamp>().is_ok();
    is_time.then_some(time.len())
}

/// Returns the digits that a text begins with.
fn number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Case P130: an answer that is worded anew with each attempt is no news, and another answer is.
    #[test]
    fn same_answers_are_no_news() {
        let told = [
            [
                "x509: certificate has expired or is not yet valid: current time 2026-12-01T09:34:03Z is after 2026-11-30T00:00:00Z",
                "x509: certificate has expired or is not yet valid: current time 2026-12-01T09:35:00.5Z is after 2026-11-30T00:00:00Z",
            ],
            [
                "certificate expired: verification time 1764581643 (UNIX), but certificate is not valid after 1764581000 (643 seconds ago)",
                "certificate expired: verification time 1764581653 (UNIX), but certificate is not valid after 1764581000 (653 seconds ago)",
            ],
            [
                "spec.template: Invalid value: core.PodSpec{GracePeriod:(*int64)(0xc00098f2a0)}: field is immutable",
                "spec.template: Invalid value: core.PodSpec{GracePeriod:(*int64)(0xc01a98)}: field is immutable",
            ],
            [
                "read tcp 10.1.2.3:45678->10.96.0.5:443: connection reset by peer",
                "read tcp 10.1.2.3:9->10.96.0.5:443: connection reset by peer",
            ],
        ];
        for [one, other] in told {
            assert!(says_same(one, other), "{one}");
            assert!(!says_same(one, &format!("{other} twice")), "{one}");
        }
        for [one, other] in [
            ["3 of 4 replicas", "4 of 4 replicas"],
            ["port 443", "port 8443"],
            ["version 2026-12-01", "version 2026-12-02"],
            ["10.0.0.1:80 refused", "10.0.0.2:80 refused"],
            ["ä1", "ö1"],
        ] {
            assert!(!says_same(one, other), "{one}");
        }
    }

    /// A webhook that words its refusal anew with each attempt is one trouble; another reason is another, and one more is news.
    #[test]
    fn webhook_is_one_trouble() {
        let denied = |reason: u8, at: &str| {
            let words = format!("admission webhook \"w\" denied the request: frozen at {at}");
            (reason, words)
        };
        let told = [denied(1, "noon")];
        for (now, is_same) in [
            (vec![denied(1, "night")], true),
            (vec![denied(2, "noon")], false),
            (vec![denied(1, "noon"), denied(1, "noon")], false),
            (vec![(1, "frozen at noon".to_owned())], false),
            (vec![], false),
        ] {
            assert_eq!(are_same_troubles(&now, &told), is_same, "{now:?}");
        }
    }

    /// Half of a character would be none.
    #[test]
    fn long_message_is_cut() {
        assert_eq!(bounded("é".repeat(LONGEST)).len(), LONGEST);
        assert_eq!(
            bounded(format!("a{}", "é".repeat(LONGEST))).len(),
            LONGEST - 1
        );
        assert_eq!(bounded("short".to_owned()), "short");
    }

    /// Case P131: many messages have room in one object.
    #[test]
    fn many_messages_have_room() {
        let long = "é".repeat(LONGEST);
        for number in [0, 1, 8, 300, 5_000] {
            let told = listed(&long, number);
            assert!(!told.is_empty() && told.len() <= LONGEST, "{number}");
            assert!(told.len() * number <= 256 * 1024, "{number}");
        }
        assert_eq!(listed("short", 300), "short");
    }

    proptest! {
        #[test]
        fn any_text_is_compared(one in "[0-9xT:Z>é (-]{0,40}", other in "\\PC{0,40}") {
            prop_assert_eq!(says_same(&one, &other), says_same(&other, &one));
        }
    }
}
