//! The writes to `MultiClusterIngress`es, and to the `HTTPRoute`s that are read as such, by the parts that are decided about.

use jiff::Timestamp;
use karmada_api::MultiClusterIngress;
use karmada_api::gateway_api::HttpRoute;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::core::DynamicObject;
use kube::{Api, Client, Resource};
use objects::Key;
use objects::patch::JsonPatch;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};
use traffic::ingress::ControllerName;
use traffic::ingress::http_route::{RouteReport, route_of};

/// A part of an ingress that we write. Who undoes the writes to one has none of the others paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    const ALL: [Self; 4] = [
        Self::Finalizers,
        Self::Status,
        Self::LoadBalancer,
        Self::Release,
    ];

    /// Returns the part of an ingress that is written; `None` if another object is.
    pub(crate) fn of(write: &Write) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|part| part.name() == write.part)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Finalizers => "finalizers",
            Self::Status => "status",
            Self::LoadBalancer => "load_balancer",
            Self::Release => "release",
        }
    }

    /// Returns the name of the writes in metrics. No word is one of both kinds: a route may have the name of an ingress.
    fn target(self, object: &ObjectRef) -> &'static str {
        match (self, is_route(object)) {
            (Self::Finalizers | Self::Release, false) => "finalizers",
            (Self::Finalizers | Self::Release, true) => "route_finalizers",
            (Self::Status, false) => "status",
            (Self::LoadBalancer, false) => "load_balancer",
            (Self::Status | Self::LoadBalancer, true) => "route_parents",
        }
    }

    /// Returns the fields of this part of `object`, as JSON pointers.
    fn fields(self, object: &ObjectRef) -> &'static [&'static str] {
        match self {
            Self::Finalizers | Self::Release => &["/metadata/finalizers"],
            _ if is_route(object) => &["/status/parents"],
            Self::Status => &["/status/serviceLocations", "/status/trafficBlockClusters"],
            Self::LoadBalancer => &["/status/loadBalancer"],
        }
    }

    /// Returns these fields as users write them.
    pub(crate) fn shown(self, object: &ObjectRef) -> String {
        let fields = self.fields(object).iter();
        let fields: Vec<String> = fields.map(|field| field[1..].replace('/', ".")).collect();
        fields.join(" and ")
    }

    fn wanted(self, object: &ObjectRef, value: Value) -> Wanted {
        let fields = self.fields(object).iter();
        Wanted {
            value,
            paths: fields.map(|&field| field.to_owned()).collect(),
        }
    }
}

fn is_route(object: &ObjectRef) -> bool {
    object.resource.kind == HttpRoute::KIND
}

/// Returns the object that is served under `key`.
fn named(key: &Key) -> ObjectRef {
    match route_of(key) {
        Some(route) => ObjectRef::named::<HttpRoute>(route, &()),
        None => ObjectRef::named::<MultiClusterIngress>(key.clone(), &()),
    }
}

/// Returns the object that is served as `ingress`, as it was read.
pub(crate) fn object(ingress: &MultiClusterIngress) -> ObjectRef {
    let metadata = ingress.meta();
    ObjectRef {
        uid: metadata.uid.clone(),
        version: metadata.resource_version.clone(),
        generation: metadata.generation,
        ..named(&Key::of(ingress))
    }
}

/// Returns the write of the `finalizers` of an ingress, which it has in this version alone: other controllers have theirs there.
pub(crate) fn finalizers(
    ingress: &MultiClusterIngress,
    part: Part,
    finalizers: &[String],
) -> Write {
    let object = object(ingress);
    let wanted = part.wanted(&object, json!(finalizers));
    let write = Write::finalizers(part.target(&object), object, finalizers);
    write.of_part(part.name().to_owned()).bringing(wanted)
}

/// Returns the write of a part of the status of a `MultiClusterIngress` in this version alone. A newer one may have been
/// released, by another loop or an earlier leader: a status without our finalizer is cleared by nobody.
pub(crate) fn status(ingress: &MultiClusterIngress, part: Part, status: &Value) -> Write {
    let object = object(ingress);
    let wanted = part.wanted(&object, status.clone());
    let body = json!({ "status": status });
    let write = Write::merge(part.target(&object), object, body);
    let write = write.of_status().guarded(Guard::Version);
    write.of_part(part.name().to_owned()).bringing(wanted)
}

/// Returns the write of our entries in the status of an `HTTPRoute`, which takes these steps and brings about `report`.
fn entries(object: ObjectRef, part: Part, report: &RouteReport, steps: JsonPatch) -> Write {
    let wanted = part.wanted(&object, json!(report));
    let write = Write::json(part.target(&object), object, steps).of_status();
    let write = write.guarded(Guard::Version).bringing(wanted);
    write.of_part(part.name().to_owned())
}

/// The ingresses in the Karmada API.
#[derive(Clone)]
pub(crate) struct Ingresses {
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    /// Our name in classes of Gateways.
    pub(crate) gateway_controller: ControllerName,
}

impl Ingresses {
    /// Sends a write to `ingress`. During a pause, adds it to `queue` at the end of that.
    pub(crate) async fn write(
        &self,
        ingress: &MultiClusterIngress,
        write: &Write,
        queue: &Queue<Key>,
    ) -> Result<Outcome, WriteError> {
        let outcome = self.committer.write(write, None).await?;
        if let Outcome::Contended(until) = outcome {
            queue.add_at(Key::of(ingress), until);
        }
        Ok(outcome)
    }

    /// Returns the write that brings our entries in the status of the `HTTPRoute` that is read as `ingress` to `report`;
    /// `None` if they are so. Their list is shared with other controllers, so it is read first, as it is: unknown fields
    /// of their entries stay.
    ///
    /// # Errors
    /// Fails if the route cannot be read, or is gone.
    pub(crate) async fn report(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        report: &RouteReport,
    ) -> Result<Option<Write>, WriteError> {
        let object = object(ingress);
        let (client, Key { namespace, name }) = (self.client.clone(), &object.key);
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &object.resource);
        let found = api.get(name).await?;
        let now = Timestamp::now();
        let steps = report.patch(&found.data["status"], &self.gateway_controller, now);
        if steps.is_empty() {
            return Ok(None);
        }
        let object = ObjectRef {
            version: found.metadata.resource_version,
            ..object
        };
        Ok(Some(entries(object, part, report, steps)))
    }

    /// Brings our entries in the status of an `HTTPRoute` to `report`, as [`Self::write`] does. During a pause it is not
    /// read either: whoever undoes the entries wakes us each time.
    pub(crate) async fn write_report(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        report: &RouteReport,
        queue: &Queue<Key>,
    ) -> Result<Outcome, WriteError> {
        let unread = entries(object(ingress), part, report, JsonPatch::default());
        if let Some(until) = self.committer.paused_until(&unread).await {
            queue.add_at(Key::of(ingress), until);
            return Ok(Outcome::Contended(until));
        }
        match self.report(ingress, part, report).await {
            Ok(Some(write)) => self.write(ingress, &write, queue).await,
            Ok(None) => Ok(Outcome::Unchanged),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(Outcome::Gone(error)),
            Err(error) => Err(error),
        }
    }

    /// Forgets the fate of the writes to these parts of the ingress `key`.
    pub(crate) fn forget(&self, key: &Key, parts: &[Part]) {
        let object = named(key);
        for part in parts {
            let (target, name) = (part.target(&object), part.name());
            self.committer.forget_part(target, &object.key, name);
        }
    }
}
