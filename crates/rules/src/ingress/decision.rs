use karmada_api::{KARMADA_INGRESS_FINALIZER, MultiClusterIngress, MultiClusterIngressStatus};
use objects::Key;

use super::admission::blocked_clusters;
use super::class::{ControllerName, Ownership, ownership};
use super::desired::{Desired, Held, passed_on};
use super::facts::{Cached, Facts};
use super::fail_open::cut;
use super::locations::service_locations;
use super::plan::{BlockChange, FieldPlan, StatusPatch};
use super::when_all_blocked::{WhenAllBlocked, annotated};

/// The decision on one `MultiClusterIngress`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Change nothing: it, or its class, cannot be read. The load balancer keeps what it has of it, but
    /// for the endpoints of clusters that must get no request.
    Leave,
    /// Clean up: this controller does not, or no longer, serve it.
    Release(Release),
    /// Serve it.
    Serve(Box<Serve>),
}

/// The release of an ingress: first the load balancer deletes it, then its status is cleared, then its
/// finalizers are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Set if our status fields must be cleared. All of them are, even those that the cache shows as
    /// absent: the cache may be stale, and the ingress is not reconciled again.
    pub clears_status: bool,
    /// Its finalizers.
    pub finalizers: FieldPlan<Vec<String>>,
}

/// The service of an ingress: first it gets our finalizer, then its status and the load balancer are
/// updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serve {
    /// Its finalizers.
    pub finalizers: FieldPlan<Vec<String>>,
    /// Our status fields.
    pub status: FieldPlan<StatusPatch>,
    /// The clusters that the status write blocks and unblocks.
    pub change: BlockChange,
}

/// The settings of the controller that its decisions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of our controller, and of its finalizer.
    pub controller: ControllerName,
    /// The behaviour while every cluster of a backend Service is blocked, unless an ingress has an
    /// annotation of its own.
    pub when_all_blocked: WhenAllBlocked,
}

/// Decides on the ingress `key`, with `seen` its state in the cache.
///
/// An ingress with our finalizer is ours to clean up whatever its class is now, and ours to serve until
/// a class that can be read names another controller: a class that vanishes, or a second default one,
/// must not tear live traffic down.
pub fn decide(
    key: &Key,
    seen: Cached<&MultiClusterIngress>,
    facts: &impl Facts,
    controller: &ControllerName,
) -> Decision {
    let ingress = match seen {
        Cached::Present(ingress) => ingress,
        Cached::Absent => return Decision::Release(Release::of_nothing()),
        Cached::Unread => return Decision::Leave,
    };
    let carried = finalizers(ingress).iter().any(|f| f == controller.as_str());
    let owner = ownership(&ingress.spec.ingress, facts, controller);
    if ingress.metadata.deletion_timestamp.is_some() {
        return Decision::Release(release(ingress, owner, controller));
    }
    match owner {
        Ownership::Ours => Decision::Serve(Box::new(serve(key, ingress, facts, controller))),
        Ownership::Unclaimed | Ownership::Unclear if carried => {
            Decision::Serve(Box::new(serve(key, ingress, facts, controller)))
        }
        Ownership::Unclear => Decision::Leave,
        Ownership::Unclaimed | Ownership::Foreign => {
            Decision::Release(release(ingress, owner, controller))
        }
    }
}

fn finalizers(ingress: &MultiClusterIngress) -> &[String] {
    ingress.metadata.finalizers.as_deref().unwrap_or_default()
}

fn status(ingress: &MultiClusterIngress) -> MultiClusterIngressStatus {
    ingress.status.clone().unwrap_or_default()
}

impl Release {
    fn of_nothing() -> Self {
        Self {
            clears_status: false,
            finalizers: FieldPlan::Unchanged,
        }
    }
}

fn release(
    ingress: &MultiClusterIngress,
    owner: Ownership,
    controller: &ControllerName,
) -> Release {
    let deleting = ingress.metadata.deletion_timestamp.is_some();
    let finalizers = finalizers(ingress).to_vec();
    let ours = |f: &String| f == controller.as_str();
    let is_ours = match owner {
        Ownership::Ours => true,
        Ownership::Unclaimed => finalizers.iter().any(ours),
        Ownership::Foreign | Ownership::Unclear => false,
    };
    // On deletion Karmada's finalizer has no other controller that would remove it.
    let karmadas = |f: &String| f == KARMADA_INGRESS_FINALIZER && deleting && is_ours;
    let mut rest = finalizers.clone();
    rest.retain(|f| !ours(f) && !karmadas(f));
    Release {
        clears_status: finalizers.iter().any(ours),
        finalizers: FieldPlan::replace(&finalizers, rest),
    }
}

fn serve(
    key: &Key,
    ingress: &MultiClusterIngress,
    facts: &impl Facts,
    controller: &ControllerName,
) -> Serve {
    let spec = &ingress.spec.ingress;
    let status = status(ingress);
    let before = status.traffic_block_clusters.as_deref().unwrap_or_default();
    let previous = status.service_locations.as_deref().unwrap_or_default();
    let locations = service_locations(&key.namespace, spec, previous, facts);
    let blocked = blocked_clusters(&locations, before, facts);

    let finalizers = finalizers(ingress).to_vec();
    let mut with_ours = finalizers.clone();
    if !with_ours.iter().any(|f| f == controller.as_str()) {
        with_ours.push(controller.as_str().to_owned());
    }
    Serve {
        finalizers: FieldPlan::replace(&finalizers, with_ours),
        change: BlockChange::between(before, &blocked),
        status: FieldPlan::replace(
            &StatusPatch::current(&status),
            StatusPatch::new(locations, blocked),
        ),
    }
}

/// Returns those of the `held` clusters whose endpoints must go although nothing else is done about an
/// ingress that is left. `ingress` is its state, if that can be read.
pub fn cut_of_left(
    ingress: Option<&MultiClusterIngress>,
    held: Held,
    facts: &impl Facts,
    settings: &Settings,
) -> Held {
    let when_all_blocked = ingress.map_or(settings.when_all_blocked, |ingress| {
        annotated(&ingress.metadata, settings.when_all_blocked).0
    });
    cut(held, when_all_blocked, facts)
}

/// Returns the desired state of the load balancer for the ingress `key`, which is ours to serve.
pub fn desired(
    key: &Key,
    ingress: &MultiClusterIngress,
    facts: &impl Facts,
    settings: &Settings,
) -> Desired {
    let mut desired = Desired::new(key.clone(), &ingress.spec.ingress, &status(ingress), facts);
    (desired.when_all_blocked, desired.misspelt) =
        annotated(&ingress.metadata, settings.when_all_blocked);
    desired.annotations = passed_on(&ingress.metadata);
    desired.readmit(facts);
    desired
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::{IngressLoadBalancerIngress, IngressLoadBalancerStatus};
    use proptest::prelude::*;

    use super::super::fixtures::{
        Fixture, binding, blocked, class, cluster, default_class, ingress, location, slice,
        some_time,
    };
    use super::*;

    const OURS: &str = "karmada-rs.io/ingress-controller";

    fn fixture() -> Fixture {
        let fixture = Fixture {
            classes: vec![class("ours", OURS), class("other", "example.com/other")],
            unread_classes: ["unread".to_owned()].into(),
            ..Fixture::default()
        };
        fixture
            .with_cluster(cluster("m1"))
            .with_cluster(blocked("m2"))
            .with_binding("s", binding("s", &["m1", "m2"]))
            .with_slices(&[slice("s", "m1", "x", &["10.0.0.1"])])
    }

    fn of_class(class: &str, finalizers: &[&str]) -> MultiClusterIngress {
        let mut ingress = ingress("i", &["s"], None);
        ingress.spec.ingress.ingress_class_name = Some(class.to_owned());
        let finalizers: Vec<String> = finalizers.iter().map(|&f| f.to_owned()).collect();
        ingress.metadata.finalizers = Some(finalizers).filter(|f| !f.is_empty());
        ingress
    }

    fn deleting(mut ingress: MultiClusterIngress) -> MultiClusterIngress {
        ingress.metadata.deletion_timestamp = Some(some_time());
        ingress
    }

    fn converged() -> MultiClusterIngressStatus {
        MultiClusterIngressStatus {
            load_balancer: Some(IngressLoadBalancerStatus {
                ingress: Some(vec![IngressLoadBalancerIngress::default()]),
            }),
            traffic_block_clusters: Some(vec!["m2".to_owned()]),
            service_locations: Some(vec![location("s", &["m1", "m2"])]),
        }
    }

    fn decided(ingress: &MultiClusterIngress, fixture: &Fixture) -> Decision {
        let controller = OURS.parse().unwrap();
        let key = Key::new("ns", "i");
        decide(&key, Cached::Present(ingress), fixture, &controller)
    }

    #[track_caller]
    fn served(ingress: &MultiClusterIngress) -> Serve {
        match decided(ingress, &fixture()) {
            Decision::Serve(serve) => *serve,
            other => panic!("not served: {other:?}"),
        }
    }

    #[track_caller]
    fn released(ingress: &MultiClusterIngress) -> Release {
        match decided(ingress, &fixture()) {
            Decision::Release(release) => release,
            other => panic!("not released: {other:?}"),
        }
    }

    #[test]
    fn an_ingress_of_ours_gets_our_finalizer_its_locations_and_its_blocked_clusters() {
        let serve = served(&of_class("ours", &["x"]));
        let finalizers = vec!["x".to_owned(), OURS.to_owned()];
        assert_eq!(serve.finalizers, FieldPlan::Write(finalizers));
        let patch = StatusPatch {
            service_locations: Some(vec![location("s", &["m1", "m2"])]),
            traffic_block_clusters: Some(vec!["m2".to_owned()]),
        };
        assert_eq!(serve.status, FieldPlan::Write(patch));
        assert_eq!(serve.change.blocked, ["m2"]);
        let settings = Settings {
            controller: OURS.parse().unwrap(),
            when_all_blocked: WhenAllBlocked::FailOpen,
        };
        let ingress = of_class("ours", &["x"]);
        let desired = desired(&Key::new("ns", "i"), &ingress, &fixture(), &settings);
        assert_eq!(desired.backends.len(), 1);
    }

    #[test]
    fn an_up_to_date_ingress_is_unchanged() {
        let mut ingress = of_class("ours", &[OURS]);
        ingress.status = Some(converged());
        let serve = served(&ingress);
        assert_eq!(serve.finalizers, FieldPlan::Unchanged);
        assert_eq!(serve.status, FieldPlan::Unchanged);
        assert_eq!(serve.change, BlockChange::default());
    }

    #[test]
    fn an_ingress_of_another_class_is_released_and_loses_only_what_is_ours() {
        let moved = of_class("other", &["x", OURS, KARMADA_INGRESS_FINALIZER]);
        let release = released(&moved);
        assert!(release.clears_status, "the cache may be stale");
        let kept = vec!["x".to_owned(), KARMADA_INGRESS_FINALIZER.to_owned()];
        assert_eq!(release.finalizers, FieldPlan::Write(kept));
    }

    #[test]
    fn an_ingress_of_another_class_that_never_was_ours_keeps_its_status() {
        let mut foreign = of_class("other", &[KARMADA_INGRESS_FINALIZER]);
        foreign.status = Some(converged());
        assert_eq!(released(&foreign), Release::of_nothing());
        assert_eq!(released(&deleting(foreign)), Release::of_nothing());
    }

    #[test]
    fn a_deleted_ingress_of_ours_loses_karmadas_finalizer_too() {
        let ingress = deleting(of_class("ours", &[KARMADA_INGRESS_FINALIZER, "x", OURS]));
        let release = released(&ingress);
        assert_eq!(release.finalizers, FieldPlan::Write(vec!["x".to_owned()]));
        let never_served = deleting(of_class("ours", &[KARMADA_INGRESS_FINALIZER]));
        assert_eq!(
            released(&never_served).finalizers,
            FieldPlan::Write(Vec::new())
        );
    }

    #[test]
    fn a_deleted_ingress_is_released_and_an_unreadable_one_is_left() {
        let controller = OURS.parse().unwrap();
        let key = Key::new("ns", "i");
        let gone = decide(&key, Cached::Absent, &fixture(), &controller);
        assert_eq!(gone, Decision::Release(Release::of_nothing()));
        let unread = decide(&key, Cached::Unread, &fixture(), &controller);
        assert_eq!(unread, Decision::Leave);
    }

    #[test]
    fn an_ingress_whose_class_is_gone_is_served_only_if_it_was() {
        let served_before = of_class("gone", &[OURS]);
        assert!(matches!(
            decided(&served_before, &fixture()),
            Decision::Serve(_)
        ));
        assert_eq!(released(&of_class("gone", &["x"])), Release::of_nothing());
        let deleted = deleting(of_class("gone", &[OURS, KARMADA_INGRESS_FINALIZER]));
        assert_eq!(released(&deleted).finalizers, FieldPlan::Write(Vec::new()));
    }

    #[test]
    fn a_second_default_class_releases_nothing_that_is_served() {
        let mut served_before = of_class("ours", &[OURS]);
        served_before.spec.ingress.ingress_class_name = None;
        let mut fixture = fixture();
        fixture.unread_classes.clear();
        fixture.classes = vec![
            default_class("a", OURS),
            default_class("b", "example.com/other"),
        ];
        assert!(matches!(
            decided(&served_before, &fixture),
            Decision::Serve(_)
        ));
        fixture.classes.remove(0);
        assert!(matches!(
            decided(&served_before, &fixture),
            Decision::Release(_)
        ));
    }

    #[test]
    fn an_ingress_with_an_unreadable_class_is_served_only_if_it_was() {
        let new = of_class("unread", &[]);
        assert_eq!(decided(&new, &fixture()), Decision::Leave);
        let served_before = of_class("unread", &[OURS]);
        assert!(matches!(
            decided(&served_before, &fixture()),
            Decision::Serve(_)
        ));
        let deleted = deleting(of_class("unread", &[OURS, KARMADA_INGRESS_FINALIZER]));
        let kept = vec![KARMADA_INGRESS_FINALIZER.to_owned()];
        assert_eq!(released(&deleted).finalizers, FieldPlan::Write(kept));
    }

    proptest! {
        #[test]
        fn deciding_twice_changes_nothing(
            class in "(ours|other|unread|gone)",
            finalizers in proptest::collection::btree_set(
                proptest::sample::select(vec!["x", OURS, KARMADA_INGRESS_FINALIZER]), 0..3),
            is_deleting in any::<bool>(),
            was_blocked in proptest::collection::vec("m[1-3]", 0..3),
        ) {
            let finalizers: Vec<&str> = finalizers.into_iter().collect();
            let mut ingress = of_class(&class, &finalizers);
            if is_deleting {
                ingress = deleting(ingress);
            }
            ingress.status = Some(MultiClusterIngressStatus {
                traffic_block_clusters: Some(was_blocked),
                ..converged()
            });
            let (status, finalizers) = match decided(&ingress, &fixture()) {
                Decision::Leave => (FieldPlan::Unchanged, FieldPlan::Unchanged),
                Decision::Release(Release { clears_status, finalizers }) => {
                    let cleared = FieldPlan::Write(StatusPatch::default());
                    (if clears_status { cleared } else { FieldPlan::Unchanged }, finalizers)
                }
                Decision::Serve(serve) => (serve.status, serve.finalizers),
            };
            if let FieldPlan::Write(patch) = status {
                let status = ingress.status.as_mut().unwrap();
                status.service_locations = patch.service_locations;
                status.traffic_block_clusters = patch.traffic_block_clusters;
            }
            if let FieldPlan::Write(finalizers) = finalizers {
                ingress.metadata.finalizers = Some(finalizers);
            }
            match decided(&ingress, &fixture()) {
                Decision::Leave => {}
                Decision::Release(release) => prop_assert_eq!(release, Release::of_nothing()),
                Decision::Serve(serve) => {
                    prop_assert_eq!(serve.status, FieldPlan::Unchanged);
                    prop_assert_eq!(serve.finalizers, FieldPlan::Unchanged);
                }
            }
        }
    }
}
