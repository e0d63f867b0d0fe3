//! The token of a service account: whether it is still good, and a new one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use karmada_runtime::client::Claims;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::error::Error;
use crate::requests::refused;

/// A service account, and the Secret of its namespace with which its tokens end.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) secret: String,
}

impl Account {
    /// Returns the `known` token if it is good for long, or a new one. The uids are those of the account and of its Secret.
    pub(crate) async fn token(
        &self,
        known: Option<String>,
        uids: [&str; 2],
        length: Duration,
        client: &Client,
        now: Timestamp,
    ) -> Result<String, Error> {
        match known {
            Some(known) if is_of(&known, uids) && !is_due(&known, None, now) => Ok(known),
            _ => request(self, length, client).await,
        }
    }
}

/// Returns `true` if `token` is of the account and bound to the Secret with these uids: neither was deleted since.
fn is_of(token: &str, [account_uid, secret_uid]: [&str; 2]) -> bool {
    Claims::of(token).is_some_and(|claims| {
        claims.account_uid.as_deref() == Some(account_uid)
            && claims.secret_uid.as_deref() == Some(secret_uid)
    })
}

/// Returns `true` if `token` has less than `least` left, or than a third of its life.
pub(crate) fn is_due(token: &str, least: Option<Duration>, now: Timestamp) -> bool {
    let Some((claims, until)) = Claims::of(token).and_then(|claims| {
        let until = claims.until?;
        Some((claims, until))
    }) else {
        return true;
    };
    let least = match least {
        Some(least) => SignedDuration::try_from(least).ok(),
        None => claims.from.map(|from| until.duration_since(from) / 3),
    };
    least.is_none_or(|least| until.duration_since(now) < least)
}

/// Returns the end of a token, in words.
pub(crate) fn end(token: &str) -> String {
    let until = Claims::of(token).and_then(|claims| claims.until);
    until.map_or_else(
        || "its token has no end".to_owned(),
        |until| format!("its token ends at {until}"),
    )
}

/// Requests a token of the account, bound to its Secret. The API server may grant less than `length`.
pub(crate) async fn request(
    account: &Account,
    length: Duration,
    client: &Client,
) -> Result<String, Error> {
    let Account {
        namespace,
        name,
        secret,
    } = account;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let spec = TokenRequestSpec {
        bound_object_ref: Some(BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            name: Some(secret.clone()),
            uid: None,
        }),
        expiration_seconds: Some(i64::try_from(length.as_secs()).unwrap_or(i64::MAX)),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest {
        spec: Some(spec),
        ..TokenRequest::default()
    };
    let granted = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await;
    let granted = granted.map_err(|source| {
        let attempt =
            format!("get a token of {namespace}/{name} that is bound to the Secret {secret}");
        refused(attempt, source)
    })?;
    let token = granted.status.and_then(|status| status.token);
    let token = token.filter(|token| !token.is_empty());
    token.ok_or_else(|| Error::Unusable("the API server has granted an empty token".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::jwt;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A token is due in its last third, or sooner than it is told to be.
    #[test]
    fn last_third_is_due() {
        let token = jwt(&json!({ "iat": 0, "exp": 3_000 }));
        assert!(!is_due(&token, None, at(2_000)));
        assert!(is_due(&token, None, at(2_001)));
        let least = Some(Duration::from_secs(2_500));
        assert!(!is_due(&token, least, at(500)) && is_due(&token, least, at(501)));
        // One whose end nobody knows is not of a TokenRequest.
        assert!(is_due("opaque", None, at(0)) && is_due(&jwt(&json!({})), None, at(0)));
    }

    /// Whoever deletes the Secret or the account takes the token back: it is good for nothing.
    #[test]
    fn revoked_token_is_not_kept() {
        let token = jwt(
            &json!({ "kubernetes.io": { "serviceaccount": { "uid": "a" },
            "secret": { "uid": "s" } } }),
        );
        assert!(is_of(&token, ["a", "s"]));
        assert!(!is_of(&token, ["a", "new"]) && !is_of(&token, ["new", "s"]));
        assert!(!is_of("opaque", ["a", "s"]));
    }
}
