//! The claims of a bearer token that is a JWT (RFC 7519). Nobody here verifies it: the API server does.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;

/// The beginning of the name by which an API server knows a service account.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The claims of a token, as far as it makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The time from which it is valid (`iat`).
    pub from: Option<Timestamp>,
    /// The time at which it ends (`exp`).
    pub until: Option<Timestamp>,
    /// The user (`sub`).
    pub subject: Option<String>,
    /// The uid of the service account.
    pub account_uid: Option<String>,
    /// The uid of the Secret with which it ends (`--bound-object-kind Secret` of `kubectl create token`).
    pub secret_uid: Option<String>,
}

/// The claims on the wire; those of Kubernetes are in
/// `https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    iat: Option<f64>,
    exp: Option<f64>,
    sub: Option<String>,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Option<Kubernetes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kubernetes {
    serviceaccount: Option<Reference>,
    secret: Option<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    uid: Option<String>,
}

impl Claims {
    /// Reads the claims of a token; none if it is no JWT.
    pub fn of(token: &str) -> Option<Self> {
        let claims = token.trim().split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Wire = serde_json::from_slice(&claims).ok()?;
        let kubernetes = claims.kubernetes.unwrap_or_default();
        Some(Self {
            from: claims.iat.and_then(time),
            until: claims.exp.and_then(time),
            subject: claims.sub,
            account_uid: kubernetes.serviceaccount.and_then(|account| account.uid),
            secret_uid: kubernetes.secret.and_then(|secret| secret.uid),
        })
    }

    /// Returns the namespace and the name of the service account that is the user, if one is.
    pub fn account(&self) -> Option<(&str, &str)> {
        let account = self.subject.as_ref()?.strip_prefix(SERVICE_ACCOUNT)?;
        account.split_once(':')
    }

    /// Returns the namespace of that account.
    pub fn namespace(&self) -> Option<&str> {
        self.account().map(|(namespace, _)| namespace)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a NumericDate may have a fraction, and casts saturate"
)]
fn time(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_second(seconds as i64).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A token tells its account, its Secret and its times, and another tells nothing.
    #[test]
    fn jwt_tells_its_claims() {
        let claims = json!({ "iat": 1_000, "exp": 2_000.5,
            "sub": "system:serviceaccount:karmada-es-m1:cluster-health-agent",
            "kubernetes.io": { "serviceaccount": { "name": "a", "uid": "u1" },
                "secret": { "name": "a-token", "uid": "u2" } } });
        let [bound, other] = [claims, json!({ "sub": "admin" })]
            .map(|claims| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string())));
        let claims = Claims::of(&format!("{bound}\n")).unwrap();
        assert_eq!(claims.until.unwrap().as_second(), 2_000);
        assert_eq!(claims.namespace(), Some("karmada-es-m1"));
        assert_eq!(claims.account_uid.as_deref(), Some("u1"));
        assert_eq!(claims.secret_uid.as_deref(), Some("u2"));
        let other = Claims::of(&other).unwrap();
        assert_eq!((other.namespace(), other.until), (None, None));
        for opaque in ["", "opaque", "a.b.c"] {
            assert_eq!(Claims::of(opaque), None, "{opaque}");
        }
    }
}
