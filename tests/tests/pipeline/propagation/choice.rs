//! The policy that has a template.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::{ClusterPropagationPolicy, PropagationPolicy, names};
use kube::{Api, ResourceExt, api::DeleteParams};
use pipeline_tests::{
    control_plane::ApiKind,
    on_both,
    propagation::{PropagationFleet, create},
    wait::until,
};
use serde_json::{Value, json};

use super::WEB;

/// A policy that selects the template of its case.
struct Candidate {
    name: &'static str,
    is_namespaced: bool,
    priority: i32,
    /// How it selects the template, beside its kind.
    by: Value,
    is_deleting: bool,
}

impl Candidate {
    fn named(name: &'static str) -> Self {
        Self {
            name,
            is_namespaced: true,
            priority: 0,
            by: json!({ "name": WEB }),
            is_deleting: false,
        }
    }

    fn of_the_cluster(self) -> Self {
        Self {
            is_namespaced: false,
            ..self
        }
    }

    fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    fn by(self, by: Value) -> Self {
        Self { by, ..self }
    }

    fn deleting(self) -> Self {
        Self {
            is_deleting: true,
            ..self
        }
    }

    async fn create(&self, fleet: &PropagationFleet, namespace: &str) -> Result<()> {
        let mut selector = self.by.clone();
        selector["apiVersion"] = "v1".into();
        selector["kind"] = "ConfigMap".into();
        selector["namespace"] = namespace.into();
        // That of somebody else keeps a policy that is being deleted.
        let finalizers: &[_] = if self.is_deleting {
            &["example.com/waits"]
        } else {
            &[]
        };
        let policy = json!({
            "metadata": { "name": self.name, "finalizers": finalizers },
            "spec": { "resourceSelectors": [selector], "placement": {}, "priority": self.priority },
        });
        let client = fleet.karmada.client();
        if self.is_namespaced {
            let policies: Api<PropagationPolicy> = Api::namespaced(client, namespace);
            create(&policies, policy).await?;
            if self.is_deleting {
                policies.delete(self.name, &DeleteParams::default()).await?;
            }
        } else {
            let policies: Api<ClusterPropagationPolicy> = Api::all(client);
            create(&policies, policy).await?;
        }
        Ok(())
    }
}

/// The policies of one namespace each, of which the first has the template there.
fn cases() -> [(&'static str, Vec<Candidate>); 7] {
    let labelled = json!({ "labelSelector": { "matchLabels": { "app": WEB } } });
    [
        (
            "priority",
            vec![
                Candidate::named("z").priority(1).by(json!({})),
                Candidate::named("a"),
            ],
        ),
        (
            "rank-of-names",
            vec![
                Candidate::named("z"),
                Candidate::named("b").by(labelled.clone()),
                Candidate::named("a").by(json!({})),
            ],
        ),
        (
            "rank-of-labels",
            vec![
                Candidate::named("z").by(labelled),
                Candidate::named("a").by(json!({})),
            ],
        ),
        ("names", vec![Candidate::named("a"), Candidate::named("b")]),
        (
            "scope",
            vec![
                Candidate::named("z").by(json!({})),
                Candidate::named("scope").of_the_cluster().priority(9),
            ],
        ),
        (
            "cluster",
            vec![
                Candidate::named("cluster-z").of_the_cluster().priority(1),
                Candidate::named("cluster-a").of_the_cluster(),
            ],
        ),
        (
            "deleting",
            vec![
                Candidate::named("z"),
                Candidate::named("a").priority(9).deleting(),
            ],
        ),
    ]
}

/// Case P3: a policy of the namespace comes before one of the cluster; then the highest priority decides,
/// then the closest selector, then the name; and no policy counts that is being deleted.
async fn best_policy_wins(server: ApiKind) -> Result<()> {
    let cases = cases();
    let fleet = PropagationFleet::start(server, 0).await?;
    let templates =
        |namespace: &str| -> Api<ConfigMap> { Api::namespaced(fleet.karmada.client(), namespace) };
    for (namespace, candidates) in &cases {
        fleet.karmada.namespace(namespace).await?;
        for candidate in candidates {
            candidate.create(&fleet, namespace).await?;
        }
        let template = json!({ "metadata": { "name": WEB, "labels": { "app": WEB } } });
        create(&templates(namespace), template).await?;
    }
    let _programs = fleet.run().await?;
    for (namespace, candidates) in &cases {
        let best = &candidates[0];
        let key = if best.is_namespaced {
            names::POLICY_NAME
        } else {
            names::CLUSTER_POLICY_NAME
        };
        let what = format!("of {} in {namespace}", best.name);
        until(&templates(namespace), WEB, &what, |template| {
            let claim = template.and_then(|template| template.annotations().get(key));
            claim.is_some_and(|name| name == best.name)
        })
        .await?;
    }
    Ok(())
}

on_both!(long: best_policy_wins);
