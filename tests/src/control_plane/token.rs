//! A token of a service account as the API server would have signed it at another time.

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};

/// The bytes of each of the two numbers of a signature (RFC 7518, section 3.4).
const NUMBER: usize = 32;

/// Signs claims as a JWT with a key on P-256.
pub(super) fn sign(key: &KeyPair, claims: &Value) -> Result<String> {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "alg": "ES256", "typ": "JWT" });
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = numbers(&key.sign(signed.as_bytes())?).context("no signature on P-256")?;
    let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
    Ok(format!("{signed}.{signature}"))
}

/// Returns the two numbers of an ASN.1 signature at their full lengths, as a JWT has them.
fn numbers(signature: &[u8]) -> Option<Vec<u8>> {
    // A SEQUENCE of two INTEGERs, all of them shorter than 128 bytes.
    let [0x30, _, integers @ ..] = signature else {
        return None;
    };
    let mut rest = integers;
    let mut numbers = Vec::new();
    while let [0x02, length, after @ ..] = rest {
        let (number, after) = after.split_at_checked(usize::from(*length))?;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let number = &number[zeros..];
        numbers.resize(numbers.len() + NUMBER.checked_sub(number.len())?, 0);
        numbers.extend(number);
        rest = after;
    }
    (numbers.len() == 2 * NUMBER).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are padded, and lose the zero that keeps them positive.
    #[test]
    fn numbers_have_full_length() {
        let long = [&[0x02, 33, 0], &[0xff; 32][..]].concat();
        let signature = [&[0x30, 38, 0x02, 1, 7][..], &long].concat();
        let expected = [&[0; 31][..], &[7], &[0xff; 32]].concat();
        assert_eq!(numbers(&signature), Some(expected));
        assert_eq!(numbers(b"no signature"), None);
    }
}
