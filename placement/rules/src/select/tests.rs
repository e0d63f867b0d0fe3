use fleet_api::placement::NAMESPACE_ACCESSIBLE;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{from_value, json};

use super::*;

/// The objects of a hub by kind and key, with the kinds that it serves.
struct Shelf(Vec<Value>);

impl Inventory for Shelf {
    fn scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        match &*kind.kind {
            "Namespace" | "ClusterRole" | "Node" => Some(Scope::Cluster),
            "ConfigMap" | "Service" | "ServiceAccount" | "Endpoints" => Some(Scope::Namespaced),
            _ => None,
        }
    }

    fn get(&self, kind: &GroupVersionKind, key: &Key) -> Option<Value> {
        let mut objects = self.0.iter();
        let object =
            objects.find(|object| GroupVersionKind::of(object) == *kind && object.key() == *key);
        object.cloned()
    }

    fn list(&self, kind: &GroupVersionKind, namespace: &str) -> Vec<Value> {
        let mut objects = self.0.clone();
        objects.retain(|one| GroupVersionKind::of(one) == *kind && one.namespace() == namespace);
        objects
    }

    fn unanswered(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn list_namespace(&self, namespace: &str) -> Vec<Value> {
        let mut objects = self.0.clone();
        objects.retain(|object| object.namespace() == namespace);
        objects
    }
}

fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let api_version = match kind {
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        _ => "v1",
    };
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// Returns a Service of the namespace `shop`, with the fields that its hub has allocated to it.
fn service(name: &str, selector: &Value) -> Value {
    let mut service = object("Service", "shop", name);
    service["spec"] = json!({ "selector": selector, "ipFamilies": ["IPv4"] });
    service["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "operation": "Update",
        "fieldsV1": { "f:spec": { "f:selector": {} } } }]);
    service
}

fn shelf() -> Shelf {
    let mut labelled = object("Namespace", "", "staging");
    labelled["metadata"]["labels"] = json!({ "team": "shop" });
    let mut leaving = object("Namespace", "", "leaving");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-25T16:44:19Z");
    Shelf(vec![
        object("Namespace", "", "shop"),
        labelled,
        leaving,
        object("Namespace", "", "kube-system"),
        object("ClusterRole", "", "reader"),
        object("Node", "", "node"),
        object("ConfigMap", "shop", "settings"),
        object("ConfigMap", "shop", "kube-root-ca.crt"),
        object("ServiceAccount", "shop", "default"),
        object("ConfigMap", "leaving", "settings"),
        service("web", &json!({ "app": "web" })),
        service("legacy-db", &json!({})),
        object("Endpoints", "shop", "web"),
        object("Endpoints", "shop", "legacy-db"),
        object("Endpoints", "shop", "elsewhere"),
        object("ConfigMap", "staging", "settings"),
    ])
}

fn selector(kind: &str, name: &str) -> ResourceSelector {
    let group = match kind {
        "ClusterRole" => "rbac.authorization.k8s.io",
        _ => "",
    };
    ResourceSelector {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        ..ResourceSelector::default()
    }
}

fn scoped(selector: ResourceSelector, scope: &str) -> ResourceSelector {
    ResourceSelector {
        selection_scope: scope.to_owned(),
        ..selector
    }
}

/// Returns a placement in a namespace, or without one.
fn selecting(namespace: &str, selectors: &[ResourceSelector]) -> Placement {
    let mut placement = Placement::default();
    if !namespace.is_empty() {
        placement.metadata.namespace = Some(namespace.to_owned());
    }
    placement.spec.resource_selectors = selectors.to_vec();
    placement
}

fn selected(selectors: &[ResourceSelector]) -> Result<Vec<String>, InvalidSelector> {
    let selection = select(&selecting("", selectors), &Hub::default(), &shelf())?;
    assert_eq!(selection.too_large, []);
    let shown = selection.objects.iter().map(|one| show(&identifier(one)));
    Ok(shown.collect())
}

/// Case F6.
#[test]
fn names_labels_and_kinds_select() {
    let by_name = selected(&[selector("ClusterRole", "reader")]);
    assert_eq!(by_name.unwrap(), ["ClusterRole reader"]);
    let all = selected(&[selector("ClusterRole", "")]);
    assert_eq!(all.unwrap(), ["ClusterRole reader"]);
    let labels = ResourceSelector {
        label_selector: Some(LabelSelector {
            match_labels: Some([("team".to_owned(), "shop".to_owned())].into()),
            ..LabelSelector::default()
        }),
        ..selector("Namespace", "")
    };
    let by_labels = selected(&[labels]);
    let expected = ["Namespace staging", "ConfigMap staging/settings"];
    assert_eq!(by_labels.unwrap(), expected);
}

/// Cases F7 and F11: everything in the namespace comes, but the objects that each cluster makes itself: Endpoints of a Service, for
/// one. Those of a Service without a selector are people's (case F105).
#[test]
fn namespaces_bring_their_objects() {
    let whole = selected(&[selector("Namespace", "shop")]);
    let expected = [
        "Namespace shop",
        "ConfigMap shop/settings",
        "Service shop/legacy-db",
        "Service shop/web",
        "Endpoints shop/elsewhere",
        "Endpoints shop/legacy-db",
    ];
    assert_eq!(whole.unwrap(), expected);
}

/// Case F8.
#[test]
fn scopes_narrow_a_namespace() {
    let alone = scoped(selector("Namespace", "shop"), "NamespaceOnly");
    assert_eq!(selected(&[alone]).unwrap(), ["Namespace shop"]);
    let chosen = scoped(selector("Namespace", "shop"), WITH_SELECTORS);
    let with_services = [
        selector("Service", ""),
        chosen,
        selector("ClusterRole", "reader"),
    ];
    let expected = [
        "Namespace shop",
        "ClusterRole reader",
        "Service shop/legacy-db",
        "Service shop/web",
    ];
    assert_eq!(selected(&with_services).unwrap(), expected);
}

/// Cases F10 and F106: an object that is not there is named, for its name may be misspelt.
#[test]
fn absent_objects_are_no_error() {
    for (selector, name) in [
        (selector("ClusterRole", "none"), "ClusterRole \"none\""),
        (selector("Namespace", "none"), "Namespace \"none\""),
        (selector("Namespace", "leaving"), "Namespace \"leaving\""),
        (selector("Node", ""), "any Node"),
    ] {
        let selectors = [selector, self::selector("Namespace", "staging")];
        let placement = selecting("", &selectors);
        let selection = select(&placement, &Hub::default(), &shelf()).unwrap();
        assert_eq!(selection.idle, [name]);
        assert_eq!(selection.objects.len(), 2);
    }
}

/// Case F106: an object that is never placed is named, too, and one that is not there in a namespace with a choice.
#[test]
fn unplaceable_objects_are_named() {
    let chosen = scoped(selector("Namespace", "shop"), WITH_SELECTORS);
    let (default, none) = (
        selector("ServiceAccount", "default"),
        selector("ConfigMap", "none"),
    );
    for (namespace, selectors, idle, selected) in [
        (
            "",
            vec![chosen, default.clone(), none],
            vec!["ServiceAccount \"default\"", "ConfigMap \"none\""],
            1,
        ),
        ("shop", vec![default], vec!["ServiceAccount \"default\""], 0),
    ] {
        let placement = selecting(namespace, &selectors);
        let selection = select(&placement, &Hub::default(), &shelf()).unwrap();
        assert_eq!(selection.idle, idle);
        assert_eq!(selection.objects.len(), selected);
    }
}

/// Case F100, and its class: fields that the hub has allocated stay there, and the hash is KubeFleet's, whose
/// snapshots have it.
#[test]
fn allocated_fields_stay() {
    let placement = selecting("", &[selector("Namespace", "shop")]);
    let selection = select(&placement, &Hub::default(), &shelf()).unwrap();
    let web = selection.objects.iter().find(|one| one.name() == "web");
    assert_eq!(
        web.unwrap()["spec"],
        json!({ "selector": { "app": "web" } })
    );
    let theirs = selection.objects.iter().map(|one| {
        let mut one = one.clone();
        if objects::kind(&one) == "Service" {
            one["spec"]["ipFamilies"] = json!(["IPv4"]);
        }
        one
    });
    assert_eq!(selection.hash, of_objects(theirs.collect()).unwrap());
}

/// Case F9.
#[test]
fn contradictions_are_named() {
    let shop = selector("Namespace", "shop");
    let (toy, config_map) = (selector("Toy", ""), selector("ConfigMap", "settings"));
    let absent = scoped(selector("Namespace", "none"), WITH_SELECTORS);
    let unnamed = scoped(selector("Namespace", ""), WITH_SELECTORS);
    let chosen = scoped(shop.clone(), WITH_SELECTORS);
    let twice = vec![chosen.clone(), chosen.clone(), config_map.clone()];
    let not_one = "beside a selector with selectionScope NamespaceWithResourceSelectors, which has to name its namespace, \
                   no other may be of namespaces";
    for (selectors, message) in [
        (vec![toy], "the hub does not serve Toy of v1"),
        (
            vec![selector("Namespace", "kube-system")],
            "namespace \"kube-system\" is reserved and cannot be placed",
        ),
        (vec![shop.clone(); 2], "Namespace shop is selected twice"),
        (twice, not_one),
        (vec![chosen, selector("Namespace", "other")], not_one),
        (vec![unnamed, config_map.clone()], not_one),
        (
            vec![absent, config_map.clone()],
            "namespace \"none\", whose objects are selected, is not found",
        ),
    ] {
        let message = format!("The resource selectors are invalid: {message}");
        assert_eq!(selected(&selectors).unwrap_err().to_string(), message);
    }
    let without_namespace = selected(&[config_map]).unwrap_err();
    assert!(matches!(without_namespace, InvalidSelector::NoNamespace(_)));
    let hub = Hub {
        skipped_namespaces: vec!["shop".to_owned()],
        ..Hub::default()
    };
    let skipped = select(&selecting("", &[shop]), &hub, &shelf()).unwrap_err();
    let expected = InvalidSelector::ReservedNamespace("shop".to_owned());
    assert_eq!(skipped, expected);
}

/// Case F116: where users of one namespace read the status, that namespace stays the one.
#[test]
fn accessible_namespace_stays() {
    let mut placement = selecting("", &[selector("Namespace", "shop")]);
    placement.status =
        from_value(json!({ "selectedResources": [{ "version": "v1", "kind": "Namespace", "name": "before" }] }))
            .unwrap();
    assert!(select(&placement, &Hub::default(), &shelf()).is_ok());
    placement.spec.status_reporting_scope = Some(NAMESPACE_ACCESSIBLE.to_owned());
    let refused = select(&placement, &Hub::default(), &shelf()).unwrap_err();
    let expected = InvalidSelector::AnotherNamespace {
        selected: "shop".to_owned(),
        before: "before".to_owned(),
    };
    assert_eq!(refused, expected);
}

/// etcd would refuse the snapshot; the rest of the selection goes on.
#[test]
fn large_objects_are_left_out() {
    let mut shelf = shelf();
    let mut large = object("ConfigMap", "shop", "large");
    large["data"] = json!({ "d": "x".repeat(MOST_BYTES) });
    let large_id = identifier(&large);
    shelf.0.push(large);
    let placement = selecting("", &[selector("Namespace", "shop")]);
    let selection = select(&placement, &Hub::default(), &shelf).unwrap();
    assert_eq!(selection.too_large, [large_id]);
    assert_eq!(selection.objects.len(), 6);
}

/// Case F90: a placement of a namespace selects objects in that by name, by labels, or all of a kind, and nothing else on the
/// hub.
#[test]
fn namespace_bounds_selection() {
    let selected = |namespace: &str, selectors: &[ResourceSelector]| {
        let placement = selecting(namespace, selectors);
        let selection = select(&placement, &Hub::default(), &shelf())?;
        let shown = selection.objects.iter().map(|one| show(&identifier(one)));
        Ok(shown.collect::<Vec<_>>())
    };
    let settings = selector("ConfigMap", "settings");
    for namespace in ["shop", "staging"] {
        let expected = [format!("ConfigMap {namespace}/settings")];
        assert_eq!(
            selected(namespace, std::slice::from_ref(&settings)).unwrap(),
            expected
        );
        let all = selected(namespace, &[selector("ConfigMap", "")]);
        assert_eq!(all.unwrap(), expected);
    }
    assert_eq!(
        selected("else", std::slice::from_ref(&settings)).unwrap(),
        [""; 0]
    );
    for kind in ["Namespace", "ClusterRole"] {
        let invalid: Result<Vec<_>, _> = selected("shop", &[selector(kind, "shop")]);
        let kind = super::kind(&selector(kind, ""));
        assert_eq!(invalid, Err(InvalidSelector::ClusterScoped(kind)));
    }
    for reserved in ["kube-system", "fleet-member-m1"] {
        let reserved_ones = selected(reserved, std::slice::from_ref(&settings));
        let expected = InvalidSelector::ReservedNamespace(reserved.to_owned());
        assert_eq!(reserved_ones, Err(expected));
    }
    assert!(selected("default", &[settings]).is_ok());
}
