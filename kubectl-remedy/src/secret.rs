//! The data of Secrets, which is text here.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use objects::Metadata;
use objects::patch::JsonPatch;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::Value;

use crate::args::DryRun;
use crate::error::Error;
use crate::requests::refused;
use crate::send::send;

/// Returns text as the data of a Secret.
pub(crate) fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// Returns the data of a Secret as text, if it is that.
pub(crate) fn decoded(data: &Value) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(data.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// Writes a new token in the place of the one that `secret` was read with, and nothing else.
pub(crate) async fn replace_token(
    secrets: &Api<Secret>,
    secret: &Secret,
    token: &str,
) -> Result<(), Error> {
    let mut patch = JsonPatch::default();
    patch.replace(["data", "token"], encoded(token).into());
    let write = Write::json("token", ObjectRef::of(secret, &()), patch).guarded(Guard::Version);
    let written = send::<Value>(&secrets.clone().into_client(), &write, DryRun::None).await;
    let name = secret.metadata.name();
    written.map_err(|source| refused(format!("write the Secret {name}"), source))?;
    Ok(())
}
