//! The writes to `MultiClusterIngress`es.

use karmada_api::MultiClusterIngress;
use karmada_runtime::contention::find_rival;
use karmada_runtime::write::{Stored, WriteError, WriteErrorKind, Writer, patch, patch_status};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use objects::Key;
use objects::patch::{JsonPatch, guarded};
use serde_json::{Value, json};

use crate::identity::NAME;

/// A part of an ingress that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The finalizers of an ingress that is ours.
    Finalizers,
    /// The locations of its Services, and the blocked clusters.
    Status,
    /// The addresses of its load balancer.
    LoadBalancer,
    /// The finalizers of one that is not ours, or no longer.
    Release,
}

impl Part {
    /// Returns the field that holds the fields of this part, and these.
    pub(crate) fn fields(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Finalizers | Self::Release => ("metadata", &["finalizers"]),
            Self::Status => ("status", &["serviceLocations", "trafficBlockClusters"]),
            Self::LoadBalancer => ("status", &["loadBalancer"]),
        }
    }

    /// Returns the names of these fields for a note.
    pub(crate) fn shown(self) -> String {
        let (parent, fields) = self.fields();
        let fields: Vec<String> = fields.iter().map(|f| format!("{parent}.{f}")).collect();
        fields.join(" and ")
    }
}

/// The ingresses in the Karmada API.
#[derive(Clone)]
pub(crate) struct Ingresses {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
}

impl Ingresses {
    /// Merges `status` into the status of the ingress `key`. No other writer has these fields, so a
    /// merge patch overwrites nobody's change, and a decision on an older version is made again when the
    /// watch shows this write. Who goes on to write on the version that is stored then names the `version`
    /// that must be there before, and has missed nobody's change.
    pub(crate) async fn write_status(
        &self,
        key: &Key,
        target: &'static str,
        version: Option<&str>,
        status: Value,
    ) -> Result<WriteOutcome, WriteError> {
        let api = self.api(key);
        let mut body = json!({ "status": status });
        if version.is_some() {
            body = guarded(version, body);
        }
        let patch = Patch::Merge(body);
        let parameters = PatchParams::apply(NAME);
        let call = patch_status(&api, &key.name, &parameters, &patch);
        let result = self.writer.write(target, call).await;
        WriteOutcome::of(result.map(Stored::version))
    }

    /// Replaces the finalizers of the ingress `key`, provided that its resource version is still
    /// `version`.
    pub(crate) async fn write_finalizers(
        &self,
        key: &Key,
        version: Option<&str>,
        finalizers: &Value,
    ) -> Result<WriteOutcome, WriteError> {
        let api = self.api(key);
        // The list is shared with other controllers, and a patch replaces it as a whole.
        let mut steps = JsonPatch::default();
        steps.add(["metadata", "finalizers"], finalizers.clone());
        let steps: Patch<()> = steps.guarded(version).into();
        let parameters = PatchParams::apply(NAME);
        let call = patch(&api, &key.name, &parameters, &steps);
        let result = self.writer.write("finalizers", call).await;
        WriteOutcome::of(result.map(Stored::version))
    }

    /// Returns the other manager that last wrote this part of the ingress `key`, if that can be found out.
    pub(crate) async fn last_other_writer(&self, key: &Key, part: Part) -> Option<String> {
        let (parent, fields) = part.fields();
        let paths: Vec<_> = fields
            .iter()
            .map(|field| format!("/{parent}/{field}"))
            .collect();
        find_rival(&self.api(key), &key.name, NAME, &paths).await
    }

    fn api(&self, key: &Key) -> Api<MultiClusterIngress> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// The outcome of a write to an ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The ingress is stored with this resource version.
    Stored { version: Option<String> },
    /// The ingress no longer exists.
    Gone,
}

impl WriteOutcome {
    fn of(result: Result<Option<String>, WriteError>) -> Result<Self, WriteError> {
        match result {
            Ok(version) => Ok(Self::Stored { version }),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(Self::Gone),
            Err(error) => Err(error),
        }
    }
}
