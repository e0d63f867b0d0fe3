//! The end of the credentials in a kubeconfig: of a token that is a JWT, and of a client certificate.

use std::fs;
use std::time::Duration;

use base64::Engine;
use jiff::Timestamp;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::time::Time;

use super::claims::Claims;
use super::selected::token_of;

/// The longest time before the end at which the end is near.
const NEAR: Duration = Duration::from_hours(24);

/// The kinds of credentials whose end can be known, as a label of metrics.
pub(crate) const CREDENTIALS: [&str; 2] = ["token", "client_certificate"];

/// The validity of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The start, if it is known.
    pub from: Option<Timestamp>,
    /// The end.
    pub until: Timestamp,
}

impl Validity {
    /// Returns `true` if the end is near: a day, or a tenth of the whole time if that is less. The token
    /// of a pod lasts an hour and is renewed ten minutes before its end.
    pub fn ends_soon(&self, now: Timestamp) -> bool {
        let lifetime = self.from.map(|from| self.until.duration_since(from));
        let tenth = lifetime.and_then(|lifetime| Duration::try_from(lifetime / 10).ok());
        let near = tenth.map_or(NEAR, |tenth| tenth.min(NEAR));
        let left = Duration::try_from(self.until.duration_since(now)).unwrap_or_default();
        left <= near
    }
}

/// Returns the validity of each of the [`CREDENTIALS`], as far as it is known. Files are read anew.
pub(crate) fn validities(auth: &AuthInfo) -> [Option<Validity>; 2] {
    let certificate = match &auth.client_certificate_data {
        // The kubeconfig has PEM in Base64.
        Some(data) => base64::engine::general_purpose::STANDARD.decode(data).ok(),
        None => (auth.client_certificate.as_ref()).and_then(|path| fs::read(path).ok()),
    };
    [
        token_of(auth).and_then(|token| of_token(&token)),
        certificate.and_then(|pem| of_certificate(&pem)),
    ]
}

/// Returns the validity of a token, if it is a JWT (RFC 7519) with an end.
pub(crate) fn of_token(token: &str) -> Option<Validity> {
    let claims = Claims::of(token)?;
    Some(Validity {
        from: claims.from,
        until: claims.until?,
    })
}

/// Returns the validity of the first certificate in `pem`.
fn of_certificate(pem: &[u8]) -> Option<Validity> {
    of_der(&CertificateDer::from_pem_slice(pem).ok()?)
}

/// Returns the validity of a certificate (RFC 5280, section 4.1.2.5).
fn of_der(der: &[u8]) -> Option<Validity> {
    let certificate = Certificate::from_der(der).ok()?;
    let validity = certificate.tbs_certificate().validity();
    Some(Validity {
        from: timestamp(validity.not_before),
        until: timestamp(validity.not_after)?,
    })
}

fn timestamp(time: Time) -> Option<Timestamp> {
    let seconds = time.to_unix_duration().as_secs();
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jiff::ToSpan;
    use serde_json::json;

    use super::*;

    /// Made with `openssl req -x509 -newkey ed25519 -nodes -subj /CN=a -days 365`.
    const CERTIFICATE: &str = include_str!("expiry/certificate.pem");

    fn jwt(claims: &serde_json::Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A JWT ends with its claim and another token is not known to end.
    #[test]
    fn jwt_ends_with_its_claim() {
        let token = jwt(&json!({ "iat": 1_000, "exp": 1_800_000_000.5, "sub": "agent" }));
        let validity = of_token(&token).unwrap();
        assert_eq!(validity.until.as_second(), 1_800_000_000);
        assert_eq!(validity.from.unwrap().as_second(), 1_000);
        let endless = jwt(&json!({ "sub": "agent" }));
        for other in ["", "opaque", "a.b.c", &endless] {
            assert_eq!(of_token(other), None, "{other}");
        }
    }

    /// A certificate ends with its validity and garbage is not known to end.
    #[test]
    fn certificate_ends_with_its_validity() {
        let validity = of_certificate(CERTIFICATE.as_bytes()).unwrap();
        assert_eq!(validity.from, Some(at("2026-11-22T05:07:12Z")));
        assert_eq!(validity.until, at("2027-11-22T05:07:12Z"));
        assert_eq!(of_certificate(b"no PEM"), None);
        let der = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        for length in 0..der.len() {
            assert_eq!(of_der(&der[..length]), None, "cut after {length} bytes");
        }
    }

    /// An end is near a day before it or in the last tenth of a short life.
    #[test]
    fn last_tenth_is_near_end() {
        let until = at("2026-11-20T08:00:00Z");
        let year = Validity {
            from: Some(until - 8760.hours()),
            until,
        };
        assert!(!year.ends_soon(until - 25.hours()) && year.ends_soon(until - 23.hours()));
        let unknown = Validity { from: None, until };
        assert!(!unknown.ends_soon(until - 25.hours()) && unknown.ends_soon(until - 23.hours()));
        let hour = Validity {
            from: Some(until - 60.minutes()),
            until,
        };
        assert!(!hour.ends_soon(until - 10.minutes()) && hour.ends_soon(until - 5.minutes()));
        assert!(hour.ends_soon(until + 1.hours()));
    }

    /// The credentials of a kubeconfig are found inline and in files.
    #[test]
    fn credentials_found_inline_and_filed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path.to_str().unwrap().to_owned())
        };
        let token = jwt(&json!({ "exp": 1_800_000_000 }));
        let files = AuthInfo {
            token_file: write("token", &format!("{token}\n")),
            client_certificate: write("client.crt", CERTIFICATE),
            ..AuthInfo::default()
        };
        let data = base64::engine::general_purpose::STANDARD.encode(CERTIFICATE);
        let inline = AuthInfo {
            token: Some(token.into()),
            client_certificate_data: Some(data),
            ..AuthInfo::default()
        };
        let found = validities(&files);
        assert!(found.iter().all(Option::is_some));
        assert_eq!(found, validities(&inline));
        assert_eq!(validities(&AuthInfo::default()), [None, None]);
    }
}
