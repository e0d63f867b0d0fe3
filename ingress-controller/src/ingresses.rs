//! The writes to `MultiClusterIngress`es, and to the `HTTPRoute`s that are read as such.

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use karmada_api::MultiClusterIngress;
use karmada_api::gateway_api::HttpRoute;
use karmada_runtime::contention::find_rival;
use karmada_runtime::write::{Stored, WriteError, WriteErrorKind, Writer, patch, patch_status};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client, Resource};
use objects::Key;
use objects::patch::{JsonPatch, guarded};
use serde_json::{Value, json};
use traffic::ingress::ControllerName;
use traffic::ingress::http_route::{RouteReport, route_of};

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
    /// Returns the field that holds the fields of this part of the ingress `key`, and these.
    pub(crate) fn fields(self, key: &Key) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Finalizers | Self::Release => ("metadata", &["finalizers"]),
            _ if route_of(key).is_some() => ("status", &["parents"]),
            Self::Status => ("status", &["serviceLocations", "trafficBlockClusters"]),
            Self::LoadBalancer => ("status", &["loadBalancer"]),
        }
    }

    /// Returns the names of these fields for a note.
    pub(crate) fn shown(self, key: &Key) -> String {
        let (parent, fields) = self.fields(key);
        let fields: Vec<String> = fields.iter().map(|f| format!("{parent}.{f}")).collect();
        fields.join(" and ")
    }
}

/// The ingresses in the Karmada API.
#[derive(Clone)]
pub(crate) struct Ingresses {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    /// Our name in classes of Gateways.
    pub(crate) gateway_controller: ControllerName,
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
        let api: Api<MultiClusterIngress> = self.api(key);
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

    /// Makes our entries in the status of the `HTTPRoute` under `key` say what `report` says. Its list is shared with other
    /// controllers, so it is read first, as it is: what we do not know of their entries stays. Who goes on to write names the
    /// `version` as for [`Self::write_status`].
    pub(crate) async fn write_report(
        &self,
        key: &Key,
        target: &'static str,
        version: Option<&str>,
        report: &RouteReport,
    ) -> Result<WriteOutcome, WriteError> {
        let Some(route) = route_of(key) else {
            return Ok(WriteOutcome::Gone);
        };
        let resource = ApiResource::erase::<HttpRoute>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &route.namespace, &resource);
        let call = async {
            let found = api.get(&route.name).await?;
            let now = Timestamp::now();
            let steps = report.patch(&found.data["status"], &self.gateway_controller, now);
            let read = found.metadata.resource_version;
            if steps.is_empty() {
                return Ok(version.map(str::to_owned).or(read));
            }
            let steps: Patch<()> = steps.guarded(version.or(read.as_deref())).into();
            let parameters = PatchParams::apply(NAME);
            let stored = patch_status(&api, &route.name, &parameters, &steps).await?;
            Ok::<_, kube::Error>(stored.version())
        };
        WriteOutcome::of(self.writer.write(target, call).await)
    }

    /// Replaces the finalizers of the ingress `key`, provided that its resource version is still
    /// `version`.
    pub(crate) async fn write_finalizers(
        &self,
        key: &Key,
        version: Option<&str>,
        finalizers: &Value,
    ) -> Result<WriteOutcome, WriteError> {
        match route_of(key) {
            Some(route) => {
                self.finalize::<HttpRoute>(&route, version, finalizers)
                    .await
            }
            None => {
                self.finalize::<MultiClusterIngress>(key, version, finalizers)
                    .await
            }
        }
    }

    async fn finalize<K>(
        &self,
        key: &Key,
        version: Option<&str>,
        finalizers: &Value,
    ) -> Result<WriteOutcome, WriteError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone,
    {
        let api: Api<K> = self.api(key);
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
        let (parent, fields) = part.fields(key);
        let paths: Vec<_> = fields
            .iter()
            .map(|field| format!("/{parent}/{field}"))
            .collect();
        if let Some(route) = route_of(key) {
            let api: Api<HttpRoute> = self.api(&route);
            return find_rival(&api, &route.name, NAME, &paths).await;
        }
        let api: Api<MultiClusterIngress> = self.api(key);
        find_rival(&api, &key.name, NAME, &paths).await
    }

    fn api<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
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
