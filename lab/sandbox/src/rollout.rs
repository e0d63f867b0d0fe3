//! Actions of a reader of the page on the rollout of the Deployment: new versions, hold, resumptions.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::{PropagationPolicy, Suspension};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::objects::{NAMESPACE, WEB, in_one_line};

/// The suffix of a version with pods that never become ready.
pub(crate) const BROKEN: &str = "-broken";

/// Returns the image of the Deployment's container.
pub(crate) fn image(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.as_deref()
}

/// Returns the tag of an image, and the image itself if it has none.
pub(crate) fn version(image: &str) -> &str {
    let tag = image.rsplit_once(':').map(|(_, tag)| tag);
    // A slash follows the port of a registry.
    tag.filter(|tag| !tag.contains('/')).unwrap_or(image)
}

/// Returns the version of an image, if there is one.
pub(crate) fn version_of(image: Option<&str>) -> Option<String> {
    image.map(|image| version(image).to_owned())
}

/// Gives the Deployment the next version.
pub(crate) async fn new_version(karmada: &Client) -> Result<()> {
    change_image(&Api::namespaced(karmada.clone(), NAMESPACE), "").await
}

/// Gives the Deployment of that name the next version, with a suffix.
pub(crate) async fn change_image(deployments: &Api<Deployment>, suffix: &str) -> Result<()> {
    let deployment = deployments.get(WEB).await;
    let deployment = deployment.context("the Deployment cannot be read")?;
    let image = image(&deployment).context("the Deployment has no container")?;
    let next = next(image).with_context(|| {
        format!("the version of {image} is not of the form 1.2.3: set the next one with kubectl")
    })?;
    let next = next + suffix;
    let field = "/spec/template/spec/containers/0/image";
    let operations = json!([
        { "op": "test", "path": field, "value": image },
        { "op": "replace", "path": field, "value": next },
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(operations)?);
    in_one_line(
        deployments
            .patch(WEB, &PatchParams::default(), &patch)
            .await,
    )
}

/// Returns the image with its next minor version, and without the suffix.
fn next(image: &str) -> Option<String> {
    let tag = version(image);
    let version = tag.strip_suffix(BROKEN).unwrap_or(tag);
    let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    let [major, minor, _] = numbers?[..] else {
        return None;
    };
    let repository = image.strip_suffix(tag)?;
    Some(format!("{repository}{major}.{}.0", minor.checked_add(1)?))
}

/// Pauses the rollout to one of the members, or to all, with `hold`; resumes it without.
pub(crate) async fn suspend(
    karmada: &Client,
    members: &BTreeSet<&str>,
    cluster: Option<&str>,
    hold: bool,
) -> Result<()> {
    let policies: Api<PropagationPolicy> = Api::namespaced(karmada.clone(), NAMESPACE);
    loop {
        let policy = policies
            .get(WEB)
            .await
            .context("the policy cannot be read")?;
        let now = policy.spec.suspension.unwrap_or_default();
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": policy.metadata.resource_version },
            "spec": { "suspension": suspension(&now, members, cluster, hold) },
        }));
        match policies.patch(WEB, &PatchParams::default(), &patch).await {
            // The controllers write their marks meanwhile.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            result => return in_one_line(result),
        }
    }
}

/// Returns the merge patch of a policy's suspension.
fn suspension(
    now: &Suspension,
    members: &BTreeSet<&str>,
    cluster: Option<&str>,
    hold: bool,
) -> Value {
    let names = members.iter().copied().filter(|member| match cluster {
        Some(cluster) if cluster != *member => now.suspends(member),
        _ => hold,
    });
    let names: BTreeSet<&str> = names.collect();
    if names.is_empty() {
        Value::Null
    } else if names == *members {
        json!({ "dispatching": true, "dispatchingOnClusters": null })
    } else {
        json!({ "dispatching": null, "dispatchingOnClusters": { "clusterNames": names } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next version is minor and only of three numbers.
    #[test]
    fn next_version_is_minor() {
        let cases = [
            (
                "registry.example.com/shop/web:1.4.0",
                Some("registry.example.com/shop/web:1.5.0"),
            ),
            (
                "registry.example.com:5000/web:1.9.3",
                Some("registry.example.com:5000/web:1.10.0"),
            ),
            ("web:1.5.0-broken", Some("web:1.6.0")),
            ("registry.example.com:5000/web", None),
            ("web:latest", None),
            ("web:1.2", None),
            ("", None),
        ];
        for (image, expected) in cases {
            assert_eq!(next(image).as_deref(), expected, "{image}");
        }
    }

    /// Pauses add up to all and a resumption leaves the others paused.
    #[test]
    fn resumption_leaves_others_paused() {
        let members: BTreeSet<&str> = ["member1", "member2"].into();
        let all = json!({ "dispatching": true });
        let one = json!({ "dispatchingOnClusters": { "clusterNames": ["member1"] } });
        let none = json!({});
        let cases = [
            ("all are paused", &none, None, true, &all),
            ("one is paused", &none, Some("member1"), true, &one),
            ("the last one is paused", &one, Some("member2"), true, &all),
            ("it is paused already", &one, Some("member1"), true, &one),
            ("one is resumed", &all, Some("member2"), false, &one),
            (
                "the last one is resumed",
                &one,
                Some("member1"),
                false,
                &none,
            ),
            ("all are resumed", &all, None, false, &none),
        ];
        for (what, before, cluster, hold, expected) in cases {
            let now = suspension(&parsed(before), &members, cluster, hold);
            assert_eq!(parsed(&now), parsed(expected), "{what}");
        }
    }

    fn parsed(suspension: &Value) -> Suspension {
        serde_json::from_value::<Option<_>>(suspension.clone())
            .unwrap()
            .unwrap_or_default()
    }
}
