//! As many kinds of users as a test asks for, with an object of each.

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{coordination::v1::Lease, rbac::v1::ClusterRole};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use propagation_rules::rights::AGGREGATED;
use serde_json::{Value, json};

use crate::{
    aggregation::aggregate, api::create, control_plane::ControlPlane, crds, programs::Running,
    wait::until,
};

const GROUP: &str = "kinds.example.com";
/// The name of each object.
const NAME: &str = "one";
const FIELD: &str = "edit";
/// The requests at a time.
const AT_ONCE: usize = 16;

/// Kinds with one object of each in a namespace.
pub struct Kinds {
    kinds: Vec<ApiResource>,
    namespace: &'static str,
}

impl Kinds {
    /// Returns so many kinds.
    pub fn of(number: u16, namespace: &'static str) -> Self {
        let kind = |nth| GroupVersionKind::gvk(GROUP, "v1", &format!("Kind{nth}"));
        let kinds = (1..=number).map(|nth| ApiResource::from_gvk(&kind(nth)));
        Self {
            kinds: kinds.collect(),
            namespace,
        }
    }

    /// Installs their definitions.
    pub async fn install(&self, api: &ControlPlane) -> Result<()> {
        let fields = json!({ FIELD: { "type": "integer" } });
        let definitions: Result<Vec<_>> = self
            .kinds
            .iter()
            .map(|kind| crds::definition(GROUP, &kind.kind, &kind.plural, &fields))
            .collect();
        crds::apply(&api.client(), &definitions?).await
    }

    /// Lets the propagation-controller propagate them.
    pub async fn allow_propagation(&self, api: &ControlPlane) -> Result<()> {
        allow(api, AGGREGATED, &["*"]).await?;
        aggregate(&api.client()).await
    }

    /// Lets the placement-controller place them. A controller of the API aggregates the rights.
    pub async fn allow_placement(&self, api: &ControlPlane) -> Result<()> {
        let label = "karmada-rs.io/aggregate-to-placement-controller";
        allow(api, label, &["list", "watch"]).await
    }

    /// Returns the selectors of a policy for them.
    pub fn selectors(&self) -> Vec<Value> {
        self.kinds
            .iter()
            .map(|kind| json!({ "apiVersion": kind.api_version, "kind": kind.kind }))
            .collect()
    }

    /// Returns the version, the kind and the plural of each.
    pub fn served(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let kinds = self.kinds.iter();
        kinds.map(|kind| (&*kind.api_version, &*kind.kind, &*kind.plural))
    }

    /// Creates the objects, or edits them.
    pub async fn write(&self, api: &ControlPlane, edit: u16) -> Result<()> {
        let writing = self.kinds.iter().map(async |kind| {
            let object = json!({ "apiVersion": kind.api_version, "kind": kind.kind,
                "metadata": { "name": NAME }, "spec": { FIELD: edit } });
            let parameters = PatchParams::apply("pipeline-tests").force();
            let objects = self.objects(api, kind);
            let written = objects
                .patch(NAME, &parameters, &Patch::Apply(object))
                .await;
            written
                .map(drop)
                .with_context(|| format!("cannot write {}", kind.kind))
        });
        stream::iter(writing)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Waits until each object is there, in this edit.
    pub async fn arrive(&self, api: &ControlPlane, edit: u16) -> Result<()> {
        let arriving = self.kinds.iter().map(async |kind| {
            let what = format!("{} of edit {edit}", kind.kind);
            let objects = self.objects(api, kind);
            until(&objects, NAME, &what, |object| {
                object.is_some_and(|object| object.data["spec"][FIELD] == edit)
            })
            .await
            .map(drop)
        });
        stream::iter(arriving)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    fn objects(&self, api: &ControlPlane, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(api.client(), self.namespace, kind)
    }
}

/// Creates a role with this label, of which another is made.
async fn allow(api: &ControlPlane, label: &str, verbs: &[&str]) -> Result<()> {
    let role = json!({ "metadata": { "name": "kinds", "labels": { label: "true" } },
        "rules": [{ "apiGroups": [GROUP], "resources": ["*"], "verbs": verbs }] });
    create(&Api::<ClusterRole>::all(api.client()), role).await
}

/// Waits until the holder of a lease renews it twice more, and checks that the program, whose metrics begin with `prefix`,
/// has held it from its start on.
pub async fn keeps_its_lease(
    program: &Running,
    prefix: &str,
    api: &ControlPlane,
    [namespace, name]: [&str; 2],
) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(api.client(), namespace);
    for _ in 0..2 {
        let renewed = |lease: &Lease| lease.spec.as_ref()?.renew_time.clone();
        let before = renewed(&leases.get(name).await?);
        until(&leases, name, "renewed", |lease| {
            lease.is_some_and(|lease| renewed(lease) != before)
        })
        .await?;
    }
    let transitions = program
        .metric(&format!("{prefix}_lease_transitions_total"))
        .await?;
    ensure!(
        (transitions - 1.0).abs() < 0.5,
        "the lease was lost: {transitions} transitions"
    );
    Ok(())
}
