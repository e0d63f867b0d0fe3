use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressBackend, IngressSpec, IngressTLS};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{Cluster, addresses, desired, desired_of, fixture, gateway, service_name};
use crate::ingress::fixtures::{ingress, slice, template};
use crate::ingress::kubernetes::{Ingresses, KubernetesPlan, Managed, Objects};

fn only_ingress(objects: Objects<Ingress>) -> Ingress {
    objects.routes.unwrap().remove(0)
}

fn path(service: &str) -> Value {
    let backend = json!({"service": {"name": service_name(service), "port": {"number": 80}}});
    json!({"path": "/", "pathType": "Prefix", "backend": backend})
}

/// An empty gateway gets services endpoints and an ingress that names them.
#[test]
fn empty_gateway_gets_everything() {
    let cluster = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    assert_eq!(
        cluster.addresses(),
        addresses(&[("s", &["10.0.0.1", "10.0.0.2"]), ("t", &["10.0.0.3"])])
    );
    let service = &cluster.services[&service_name("s")];
    let expected = json!({
        "metadata": {
            "name": service_name("s"),
            "namespace": "ns",
            "labels": {"app.kubernetes.io/managed-by": "example.com_ours"},
            "annotations": {"karmada-rs.io/multi-cluster-ingress": "i"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "sessionAffinity": "None",
            "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}],
        },
        "apiVersion": "v1",
        "kind": "Service",
    });
    assert_eq!(serde_json::to_value(&**service).unwrap(), expected);
    let ingress = serde_json::to_value(&cluster.ingresses["i"].spec).unwrap();
    let paths = [path("s"), path("t")];
    let expected = json!({
        "ingressClassName": "web",
        "rules": [{"host": "example.com", "http": {"paths": paths}}],
    });
    assert_eq!(ingress, expected);
}

/// Endpoints keep addresses conditions and ports and lose references to the member cluster.
#[test]
fn endpoints_lose_member_references() {
    let cluster = Cluster::converged(&desired(&fixture(), &["t"]));
    let [slice] = cluster.slices.values().collect::<Vec<_>>()[..] else {
        panic!("{cluster:?}");
    };
    let name = slice.metadata.name.clone().unwrap();
    assert!(
        name.starts_with("i-t-") && name != service_name("t"),
        "{name}"
    );
    let conditions = json!({"ready": true, "serving": true, "terminating": false});
    let expected = json!({
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": {
                "app.kubernetes.io/managed-by": "example.com_ours",
                "endpointslice.kubernetes.io/managed-by": "example.com_ours",
                "karmada-rs.io/cluster": "m1",
                "kubernetes.io/service-name": service_name("t"),
            },
            "annotations": {
                "karmada-rs.io/collected-endpoint-slice": "m1-t-x",
                "karmada-rs.io/multi-cluster-ingress": "i",
            },
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.3"], "conditions": conditions}],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
    });
    assert_eq!(serde_json::to_value(&**slice).unwrap(), expected);
}

/// Slices of both address families and of all clusters stay apart.
#[test]
fn address_families_stay_apart() {
    let mut other_family = slice("s", "m1", "x6", &["2001:db8::1"]);
    other_family.address_type = "IPv6".to_owned();
    let fixture = fixture().with_slices(&[
        other_family,
        slice("s", "m1", "empty", &[]),
        slice("s", "m1", "y", &["10.0.0.4"]),
    ]);
    let cluster = Cluster::converged(&desired(&fixture, &["s"]));
    let mut families: Vec<_> = cluster
        .slices
        .values()
        .map(|s| s.address_type.clone())
        .collect();
    families.sort();
    assert_eq!(families, ["IPv4", "IPv4", "IPv4", "IPv6"]);
}

fn ipv6(cluster: &str, ip: &str) -> EndpointSlice {
    EndpointSlice {
        address_type: "IPv6".to_owned(),
        ..slice("s", cluster, "x6", &[ip])
    }
}

/// A gateway of one family gets no address of the other from a cluster that has both, and all from one that has no other.
#[test]
fn unreached_family_is_left_out() {
    let mut fixture = fixture();
    fixture.slices.clear();
    let fixture = fixture.with_slices(&[
        slice("s", "m1", "x", &["10.0.0.1"]),
        ipv6("m1", "2001:db8::1"),
        ipv6("m2", "2001:db8::2"),
    ]);
    let desired = desired(&fixture, &["s"]);
    let mut cluster = Cluster::converged(&desired);
    let all = ["10.0.0.1", "2001:db8::1", "2001:db8::2"];
    for (families, expected) in [
        (None, &all[..]),
        (Some(vec!["IPv4"]), &["10.0.0.1", "2001:db8::2"]),
        (Some(vec!["IPv6"]), &["2001:db8::1", "2001:db8::2"]),
        (Some(vec!["IPv4", "IPv6"]), &all),
    ] {
        let service = cluster.services.get_mut(&service_name("s")).unwrap();
        let spec = Arc::make_mut(service).spec.as_mut().unwrap();
        spec.ip_families = families.map(|all| all.into_iter().map(str::to_owned).collect());
        cluster.apply(&cluster.plan(&desired));
        assert_eq!(cluster.addresses(), addresses(&[("s", expected)]));
        assert_eq!(cluster.plan(&desired), KubernetesPlan::default());
    }
}

/// A service without template or ports has no objects.
#[test]
fn portless_service_has_no_objects() {
    let mut fixture = fixture().with_template(template("s", &[]));
    fixture.templates.remove("t");
    let gateway = Cluster::converged(&desired(&fixture, &["s", "t"]));
    assert_eq!((gateway.services.len(), gateway.slices.len()), (0, 0));
    assert_eq!(gateway.ingresses.len(), 1);
}

/// Without a class the gateway's default is kept.
#[test]
fn default_class_is_kept() {
    let desired = desired(&fixture(), &["s"]);
    let gateway = Ingresses::new(&"example.com/ours".parse().unwrap(), None);
    let wanted = only_ingress(gateway.objects(&desired));
    assert_eq!(wanted.spec.as_ref().unwrap().ingress_class_name, None);
    let mut existing = wanted.clone();
    existing.spec.as_mut().unwrap().ingress_class_name = Some("default".into());
    assert!(wanted.edits(&existing).unwrap().is_empty());
}

fn tls(hosts: &[&str], secret: &str) -> IngressTLS {
    IngressTLS {
        hosts: Some(hosts.iter().map(|&h| h.to_owned()).collect()),
        secret_name: Some(secret.to_owned()),
    }
}

/// Empty fields that an API server drops are not desired.
#[test]
fn dropped_fields_are_not_desired() {
    let mut spec = ingress("i", &["s"], Some("t")).spec.ingress;
    let rule = &mut spec.rules.as_mut().unwrap()[0];
    rule.host = Some(String::new());
    let path = &mut rule.http.as_mut().unwrap().paths[0];
    path.path = Some(String::new());
    let port = path
        .backend
        .service
        .as_mut()
        .unwrap()
        .port
        .as_mut()
        .unwrap();
    port.name = Some(String::new());
    spec.tls = Some(vec![tls(&[], "cert"), tls(&["example.com"], "")]);
    let wanted = only_ingress(gateway().objects(&desired_of(&fixture(), &spec)));
    let found = serde_json::to_value(&wanted.spec).unwrap();
    let backend =
        |service| json!({"service": {"name": service_name(service), "port": {"number": 80}}});
    let expected = json!({
        "ingressClassName": "web",
        "rules": [{"http": {"paths": [{"pathType": "Prefix", "backend": backend("s")}]}}],
        "tls": [{"secretName": "cert"}, {"hosts": ["example.com"]}],
    });
    assert_eq!(found, expected);
}

/// A backend that is no service is kept.
#[test]
fn other_backend_is_kept() {
    let resource = json!({"resource": {"apiGroup": "example.com", "kind": "Bucket", "name": "b"}});
    let backend: IngressBackend = serde_json::from_value(resource.clone()).unwrap();
    let spec = IngressSpec {
        default_backend: Some(backend),
        ..IngressSpec::default()
    };
    let desired = desired_of(&fixture(), &spec);
    let wanted = only_ingress(gateway().objects(&desired)).spec.unwrap();
    assert_eq!(
        serde_json::to_value(wanted.default_backend).unwrap(),
        resource
    );
}

fn labelled(value: &str) -> ObjectMeta {
    ObjectMeta {
        labels: Some([("app.kubernetes.io/managed-by".to_owned(), value.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

#[test]
fn our_objects_have_our_label() {
    assert!(gateway().managed_by().owns(&labelled("example.com_ours")));
    assert!(!gateway().managed_by().owns(&labelled("Helm")));
    assert!(!gateway().managed_by().owns(&ObjectMeta::default()));
    assert_eq!(
        gateway().managed_by().selector(),
        "app.kubernetes.io/managed-by=example.com_ours"
    );
}

/// Conditions are written out: readers take gaps differently. One that ends serves on, and gets no new request.
#[test]
fn conditions_have_no_gap() {
    for (found, expected) in [
        (json!({}), [true, true, false]),
        (json!({"ready": true}), [true, true, false]),
        (json!({"ready": false}), [false, false, false]),
        (
            json!({"ready": true, "serving": false}),
            [true, true, false],
        ),
        (
            json!({"ready": false, "serving": true}),
            [false, false, false],
        ),
        (
            json!({"ready": false, "serving": true, "terminating": true}),
            [false, true, true],
        ),
        (
            json!({"ready": false, "terminating": true}),
            [false, false, true],
        ),
    ] {
        let mut source = slice("s", "m1", "x", &["10.0.0.1"]);
        let endpoints = source.endpoints.as_mut().unwrap();
        endpoints[0].conditions = serde_json::from_value(found.clone()).unwrap();
        let mut fixture = fixture();
        fixture.slices = vec![Arc::new(source)];
        let cluster = Cluster::converged(&desired(&fixture, &["s"]));
        let slice = cluster.slices.values().next().unwrap();
        let conditions = slice.endpoints.as_ref().unwrap()[0].conditions.clone();
        let [ready, serving, terminating] = expected;
        let expected = json!({"ready": ready, "serving": serving, "terminating": terminating});
        assert_eq!(json!(conditions), expected, "{found}");
    }
}

/// The mark of node ports whose silence tells nothing about their cluster reaches the gateway.
#[test]
fn traffic_policy_is_passed_on() {
    let policy = ("karmada-rs.io/external-traffic-policy", "Local");
    let mut marked = slice("s", "m1", "x", &["10.0.0.1"]);
    let annotations = marked.metadata.annotations.get_or_insert_default();
    annotations.insert(policy.0.to_owned(), policy.1.to_owned());
    let mut fixture = fixture();
    fixture.slices = vec![Arc::new(marked)];
    let cluster = Cluster::converged(&desired(&fixture, &["s"]));
    let slice = cluster.slices.values().next().unwrap();
    let annotations = slice.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[policy.0], policy.1);
}

/// An address that two clusters share is written once, ready if it is ready in one that is served.
#[test]
fn shared_address_is_written_once() {
    use crate::ingress::fixtures::blocked;

    let ready = |name: &str, is_ready: bool, ips: &[&str]| {
        let mut slice = slice("s", name, "x", ips);
        for endpoint in slice.endpoints.iter_mut().flatten() {
            endpoint.conditions.get_or_insert_default().ready = Some(is_ready);
        }
        slice
    };
    let shared = |of_m1, of_m2| {
        let mut fixture = fixture();
        fixture.slices.clear();
        fixture.with_slices(&[
            ready("m1", of_m1, &["10.0.0.1"]),
            ready("m2", of_m2, &["10.0.0.1", "10.0.0.2"]),
        ])
    };
    for (of_m1, of_m2, expected) in [
        (true, true, true),
        (false, true, true),
        (false, false, false),
    ] {
        let cluster = Cluster::converged(&desired(&shared(of_m1, of_m2), &["s"]));
        let expected_addresses = addresses(&[("s", &["10.0.0.1", "10.0.0.2"])]);
        assert_eq!(cluster.addresses(), expected_addresses);
        let all = cluster
            .slices
            .values()
            .flat_map(|slice| slice.endpoints.clone().unwrap());
        let first = all.filter(|endpoint| endpoint.addresses == ["10.0.0.1"]);
        let ready: Vec<_> = first
            .map(|endpoint| endpoint.conditions.unwrap().ready)
            .collect();
        assert_eq!(ready, [Some(expected)]);
    }
    let blocked = shared(true, false).with_cluster(blocked("m1"));
    let cluster = Cluster::converged(&desired(&blocked, &["s"]));
    assert_eq!(
        cluster.addresses(),
        addresses(&[("s", &["10.0.0.1", "10.0.0.2"])])
    );
}
