use std::fmt::Debug;

use k8s_openapi::api::core::v1::Service;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::Event;
use lab_parts::test_api::TestApi;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use traffic::ClusterKind;
use traffic::ingress::{BackendAddresses, ControllerName};

use super::watch::is_served;
use super::*;
use crate::fixtures::{
    CONTROLLER, applied, binding, class, committer, deleted, export_kinds, ingress, karmada, key,
    object, template,
};
use crate::index::Backends;
use crate::watch::Queues;

const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/ns/serviceexports";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/ns/propagationpolicies";

/// A reconciler with its API, which serves both kinds.
struct Stage {
    api: TestApi,
    queues: Queues,
    events: Arc<Mutex<Vec<String>>>,
    reconciler: ExportReconciler,
}

impl Stage {
    /// Returns a stage on which ingress i routes to Service s, which runs in m1.
    async fn new() -> Self {
        let api = karmada().await;
        api.install(export_kinds());
        let backends = Backends {
            exports: true,
            ..Backends::default()
        };
        let queues = Queues::new(1);
        let index = SharedIndex::new(queues.clone(), Some(backends));
        // It must exist: the API collects the dependents of an owner that does not.
        let service = api.create(&template("s", 80)).await;
        index.observe_class(applied(class("ours", CONTROLLER)));
        index.observe_ingress(applied(ingress("i", &["s"])));
        index.observe_binding(applied(binding("s", &["m1"])));
        index.observe_template(applied(service));
        let controller: ControllerName = CONTROLLER.parse().unwrap();
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&events);
        let recorder = Arc::new(IngressEvents::new(
            ClusterKind::Cluster,
            move |regarding, event| {
                let (name, note) = (regarding.name.unwrap(), event.note.unwrap());
                let event = format!("{name}: {}: {note}", event.reason);
                log.lock().push(event);
            },
        ));
        let reconciler = ExportReconciler {
            index: Arc::new(index),
            exporter: Exporter::new(&controller),
            settings: Settings::new(controller),
            client: api.client(),
            committer: committer(&api, &recorder),
            events: recorder,
            queue: queues.exports.clone(),
        };
        Self {
            api,
            queues,
            events,
            reconciler,
        }
    }

    /// Lists everything stored, as the watches do.
    async fn list(&self) {
        self.show(SharedIndex::observe_export).await;
        self.show(SharedIndex::observe_policy).await;
    }

    async fn show<K>(&self, observe: fn(&SharedIndex, Event<Decoded<K>>) -> Vec<Key>)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.api.user(), "ns");
        let stored = api.list(&kube::api::ListParams::default()).await.unwrap();
        let exporter = &self.reconciler.exporter;
        let is_policy = K::kind(&()) == PropagationPolicy::KIND;
        let listed = stored
            .items
            .into_iter()
            .filter(|k| !is_policy || exporter.owns(k.meta()));
        let listed = listed.map(|object| Event::InitApply(Decoded::Valid(object)));
        for event in [Event::Init]
            .into_iter()
            .chain(listed)
            .chain([Event::InitDone])
        {
            observe(&self.reconciler.index, event);
        }
    }

    async fn reconcile(&self) -> Result<(), BoxError> {
        self.reconciler.reconcile(&key("s")).await
    }

    async fn create<K>(&self, value: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + serde::Serialize,
    {
        self.api.create::<K>(&object(value)).await;
    }
}

/// A service is exported while an ingress of ours needs it.
#[tokio::test]
async fn needed_service_is_exported() {
    let stage = Stage::new().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0], "not every export is known");
    stage.list().await;
    assert_eq!(stage.queues.exports.len(), 1);
    stage.reconcile().await.unwrap();
    let created = [format!("POST {POLICIES}"), format!("POST {EXPORTS}")];
    assert_eq!(stage.api.calls(), created);

    stage.list().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);

    let index = &stage.reconciler.index;
    index.observe_binding(applied(binding("s", &["m1", "m2"])));
    stage.reconcile().await.unwrap();
    let requests = stage.api.requests();
    assert_eq!(requests[0].0, format!("PATCH {POLICIES}/export-s"));
    let names = &requests[0].1["spec"]["placement"]["clusterAffinity"]["clusterNames"];
    assert_eq!(*names, json!(["m1", "m2"]));

    stage.list().await;
    index.observe_ingress(deleted(ingress("i", &["s"])));
    stage.reconcile().await.unwrap();
    let removed = [
        format!("DELETE {EXPORTS}/s"),
        format!("DELETE {POLICIES}/export-s"),
    ];
    assert_eq!(stage.api.calls(), removed);
    stage.list().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// Case T8: where load balancers are asked, only a Service with nodes that must have a ready endpoint is exported.
#[tokio::test]
async fn local_nodes_need_endpoints() {
    let mut stage = Stage::new().await;
    stage.reconciler.settings.backend_addresses = BackendAddresses::LoadBalancers;
    stage.list().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    let services: Api<Service> = Api::namespaced(stage.api.user(), "ns");
    let local = json!({ "spec": { "type": "NodePort", "externalTrafficPolicy": "Local" } });
    let (parameters, local) = (PatchParams::default(), Patch::Merge(local));
    let service = services.patch("s", &parameters, &local).await.unwrap();
    let index = &stage.reconciler.index;
    index.take_concerned();
    index.observe_template(applied(service));
    assert_eq!(index.take_concerned(), [key("s")].into());
    stage.reconcile().await.unwrap();
    let created = [format!("POST {POLICIES}"), format!("POST {EXPORTS}")];
    assert_eq!(stage.api.calls(), created);
}

/// The end of a policy wakes a service with a name that does not fit in the policy's.
#[tokio::test]
async fn ended_policy_wakes_its_service() {
    let (stage, long) = (Stage::new().await, "s".repeat(63));
    let service = stage.api.create(&template(&long, 80)).await;
    let index = &stage.reconciler.index;
    index.observe_ingress(applied(ingress("long", &[&long])));
    index.observe_binding(applied(binding(&long, &["m1"])));
    index.observe_template(applied(service));
    stage.list().await;
    stage.reconciler.reconcile(&key(&long)).await.unwrap();
    stage.list().await;
    let policies: Api<PropagationPolicy> = Api::namespaced(stage.api.user(), "ns");
    let policy = policies.get(&Exporter::policy_name(&long)).await.unwrap();
    index.take_concerned();
    index.observe_policy(deleted(policy));
    assert_eq!(index.take_concerned(), [key(&long)].into());
}

/// A write that the watch has not shown is not a clash.
#[tokio::test]
async fn unseen_write_is_no_clash() {
    let stage = Stage::new().await;
    stage.list().await;
    stage.reconcile().await.unwrap();
    stage.reconcile().await.unwrap();
    let policy = format!("{POLICIES}/export-s");
    let [create_policy, create_export] = [POLICIES, EXPORTS].map(|path| format!("POST {path}"));
    let (again, read) = (create_policy.clone(), format!("GET {policy}"));
    let first = [create_policy, create_export.clone()];
    assert_eq!(
        stage.api.calls(),
        [&first[..], &[again, read, create_export]].concat()
    );
}

/// An export or a policy of a user is never touched.
#[tokio::test]
async fn user_objects_are_never_touched() {
    let stage = Stage::new().await;
    stage
        .create::<PropagationPolicy>(json!({
            "apiVersion": PropagationPolicy::API_VERSION,
            "kind": PropagationPolicy::KIND,
            "metadata": { "name": "export-s", "namespace": "ns" },
        }))
        .await;
    stage.list().await;
    let clash = stage.reconcile().await.unwrap_err().to_string();
    assert!(
        clash.starts_with("PropagationPolicy ns/export-s exists and was not made by"),
        "{clash}"
    );
    let index = &stage.reconciler.index;
    index.observe_ingress(applied(ingress("j", &["s"])));
    stage.reconcile().await.unwrap_err();
    let recorded = std::mem::take(&mut *stage.events.lock());
    let expected = ["i", "j"].map(|name| format!("{name}: ExportClash: {clash}"));
    assert_eq!(recorded, expected, "once for each ingress");
    stage.api.calls();
    stage.reconcile().await.unwrap_err();
    let [policy, read] = ["POST", "GET"].map(|method| format!("{method} {POLICIES}"));
    let read = format!("{read}/export-s");
    assert_eq!(
        stage.api.calls(),
        [policy, read],
        "nothing would propagate the export"
    );
    let stage = Stage::new().await;
    stage
        .create::<ServiceExport>(json!({
            "apiVersion": ServiceExport::API_VERSION,
            "kind": ServiceExport::KIND,
            "metadata": { "name": "s", "namespace": "ns" },
        }))
        .await;
    stage.list().await;
    for recorded in [1, 0] {
        stage.reconcile().await.unwrap();
        assert_eq!(stage.api.calls(), [""; 0]);
        let events = std::mem::take(&mut *stage.events.lock());
        assert_eq!(events.len(), recorded, "{events:?}");
        let note = "i: ExportNotOurs: ServiceExport ns/s was not made by this controller";
        assert!(
            events.iter().all(|event| event.starts_with(note)),
            "{events:?}"
        );
    }
}

/// A refusal of the API is recorded once, whatever time a webhook puts into its words.
#[tokio::test]
async fn refusal_is_recorded_once() {
    let stage = Stage::new().await;
    stage.list().await;
    let create = format!("POST {POLICIES}");
    for at in ["10:00:00", "10:00:30"] {
        let words = format!("admission webhook \"w\" denied the request: frozen at {at}");
        stage.api.refuse(&create, 403, "Forbidden", &words);
        stage.reconcile().await.unwrap_err();
    }
    let expected = "i: ExportRefused: the API refuses PropagationPolicy ns/export-s, without which no endpoints are \
                    collected: admission webhook \"w\" denied the request: frozen at 10:00:00";
    assert_eq!(*stage.events.lock(), [expected]);
}

/// Who deletes the policy or the export each time meets pauses and is recorded once.
#[tokio::test(start_paused = true)]
async fn contended_delete_backs_off() {
    async fn writes<K>(name: &str, path: &str) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let stage = Stage::new().await;
        let api: Api<K> = Api::namespaced(stage.api.user(), "ns");
        stage.list().await;
        let mut deleted = 0;
        for _ in 0..20 {
            stage.reconcile().await.unwrap();
            // During a pause it does not exist.
            let deletion = api.delete(name, &DeleteParams::default()).await;
            deleted += u32::from(deletion.is_ok());
            stage.list().await;
        }
        assert_eq!(deleted, 3);
        let created = format!("POST {path}");
        let calls = stage.api.calls();
        assert_eq!(calls.iter().filter(|call| **call == created).count(), 3);
        assert!(!stage.queues.exports.is_empty());
        std::mem::take(&mut *stage.events.lock())
    }
    let policy = writes::<PropagationPolicy>("export-s", POLICIES).await;
    let note =
        "i: ExportContested: another client undoes every write to PropagationPolicy ns/export-s";
    assert!(
        policy.len() == 1 && policy[0].starts_with(note),
        "{policy:?}"
    );
    let export = writes::<ServiceExport>("s", EXPORTS).await;
    let note = "i: ExportContested: another client undoes every write to ServiceExport ns/s";
    assert!(
        export.len() == 1 && export[0].starts_with(note),
        "{export:?}"
    );
}

/// An API without these kinds is recognized.
#[tokio::test]
async fn missing_kinds_are_recognized() {
    let api = karmada().await;
    assert!(!is_served(&api.client()).await.unwrap());
    api.install(export_kinds());
    assert!(is_served(&api.client()).await.unwrap());
}
