//! The writes to the Karmada API.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::convergence::kinds::Kind;
use crate::convergence::model;
use crate::convergence::program::CONTROLLER;
use crate::harness::oracle::{Check, Facts, check};
use crate::harness::value::{is_deleting, items, text};

/// The most combinations of classes to try.
const COMBINATIONS: usize = 4_096;

impl<'a> Facts<'a> {
    pub(super) fn versions(&self, kind: Kind, name: &str) -> Vec<Option<&'a Value>> {
        self.known.versions(&kind.object(name), self.since)
    }

    /// Returns the names of all objects of a kind that the process ever received.
    pub(super) fn names(&self, kind: Kind) -> Vec<&'a str> {
        self.known.names(kind.side().into(), &kind.collection())
    }

    pub(super) fn present(&self, kind: Kind, name: &str) -> impl Iterator<Item = &'a Value> {
        self.versions(kind, name).into_iter().flatten()
    }

    /// Returns the object at the version that a JSON patch or the preconditions of a deletion name.
    pub(super) fn base(&self, kind: Kind, name: &str, version: &Value) -> Check<&'a Value> {
        self.known.base(&kind.object(name), version)
    }

    /// Returns the object that a JSON patch or a merge patch makes of the version that it names.
    pub(super) fn patched(&self, kind: Kind, name: &str, patch: &Value) -> Check<Value> {
        self.known.patched(&kind.object(name), patch)
    }

    /// Checks that `remedyActions`, and nothing else, is the union of the actions that some version of
    /// each Remedy wants for one version of the cluster.
    pub(super) fn actions(&self, name: &str, body: &Value) -> Check {
        only(body, &["remedyActions"])?;
        let written = &body["status"]["remedyActions"];
        let remedies = self.names(Kind::Remedy).into_iter();
        let remedies: Vec<Vec<Option<&Value>>> = remedies
            .map(|name| self.versions(Kind::Remedy, name))
            .collect();
        let keeps = remedies.iter().flatten().copied().any(is_unread);
        let mut possible = BTreeSet::new();
        for cluster in self
            .present(Kind::Cluster, name)
            .filter(|cluster| !is_deleting(cluster))
        {
            let mut sums = BTreeSet::from([BTreeSet::new()]);
            for versions in &remedies {
                let wanted: BTreeSet<BTreeSet<String>> = versions
                    .iter()
                    .filter(|remedy| !is_unread(**remedy))
                    .flat_map(|remedy| {
                        self.times.map(|now| {
                            remedy
                                .map(|r| model::wanted_actions(r, cluster, now))
                                .unwrap_or_default()
                        })
                    })
                    .collect();
                if !wanted.is_empty() {
                    let all = sums.iter();
                    sums = all
                        .flat_map(|sum| wanted.iter().map(move |one| sum | one))
                        .collect();
                }
            }
            if keeps {
                // The wishes of an unreadable Remedy are unknown: nothing may be cleared.
                let before = items(cluster, "/status/remedyActions").filter_map(Value::as_str);
                let before: BTreeSet<String> = before.map(str::to_owned).collect();
                let kept: Vec<_> = sums.iter().map(|sum| sum | &before).collect();
                sums.extend(kept);
            }
            possible.extend(sums);
        }
        let explained = possible
            .iter()
            .any(|actions| model::written(actions) == *written);
        check(explained, || {
            format!("only these are explained: {possible:?}")
        })
    }

    /// Checks that a Remedy's status is true of some version of each cluster.
    pub(super) fn remedy_status(&self, name: &str, body: &Value) -> Check {
        only(
            body,
            &[
                "observedGeneration",
                "conditions",
                "activeClusters",
                "activeClusterNames",
                "refusedClusters",
                "refusedClusterNames",
            ],
        )?;
        let version = &body["metadata"]["resourceVersion"];
        let remedy = self.base(Kind::Remedy, name, version)?;
        let status = &body["status"];
        let acting = items(status, "/activeClusterNames").filter_map(Value::as_str);
        let acting: BTreeSet<String> = acting.map(str::to_owned).collect();
        for cluster in self.names(Kind::Cluster) {
            let mut versions = self.versions(Kind::Cluster, cluster).into_iter();
            let explained = versions.any(|version| {
                self.times
                    .map(|now| version.is_some_and(|c| model::acts_on(remedy, c, now)))
                    .contains(&acting.contains(cluster))
            });
            check(explained, || format!("no version of {cluster} explains it"))?;
        }
        match model::misstatement(remedy, status, &acting) {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    /// Returns the combinations of versions of the classes, at most [`COMBINATIONS`].
    fn classes(&self) -> Vec<Vec<&'a Value>> {
        let mut all = vec![Vec::new()];
        for name in self.names(Kind::IngressClass) {
            let versions = self.versions(Kind::IngressClass, name);
            let mut extended: Vec<Vec<&'a Value>> = Vec::new();
            for chosen in &all {
                for version in &versions {
                    extended.push(chosen.iter().copied().chain(*version).collect());
                }
            }
            extended.truncate(COMBINATIONS);
            all = extended;
        }
        all
    }

    /// Returns two flags: `true` if some versions of the classes make the ingress ours to serve, and
    /// `true` if some do not.
    pub(super) fn may_serve(&self, ingress: &Value) -> (bool, bool) {
        let deleting = is_deleting(ingress);
        if !model::is_readable(Kind::MultiClusterIngress, ingress) {
            return (false, deleting);
        }
        let classes = self.classes();
        let served = |chosen: &Vec<&Value>| model::is_served(ingress, chosen.iter().copied());
        (
            !deleting && classes.iter().any(served),
            deleting || !classes.iter().all(served),
        )
    }

    /// Returns the versions of an ingress that may be ours to serve.
    pub(super) fn served(&self, name: &str) -> Vec<&'a Value> {
        self.present(Kind::MultiClusterIngress, name)
            .filter(|ingress| self.may_serve(ingress).0)
            .collect()
    }

    /// Checks a write of our part of the status of an ingress.
    pub(super) fn status(&self, name: &str, body: &Value) -> Check {
        let ours = ["serviceLocations", "trafficBlockClusters", "loadBalancer"];
        only(body, &ours)?;
        let status = &body["status"];
        if status.get("trafficBlockClusters").is_none() {
            return self.addresses(name, &status["loadBalancer"]);
        }
        let addresses = &status["loadBalancer"];
        check(addresses.is_null(), || {
            "addresses are written on their own".to_owned()
        })?;
        self.blocks(name, status)
    }

    /// Checks that the addresses are those that the gateway shows in some version of its Ingress, if
    /// the ingress may be ours.
    fn addresses(&self, name: &str, written: &Value) -> Check {
        let shown = self
            .versions(Kind::GatewayIngress, name)
            .into_iter()
            .any(|served| {
                let shown = served.map_or(&Value::Null, |served| &served["status"]["loadBalancer"]);
                let has_none = items(shown, "/ingress").next().is_none();
                shown == written || has_none && items(written, "/ingress").next().is_none()
            });
        check(shown, || {
            "the gateway never showed these addresses".to_owned()
        })?;
        let served = !self.served(name).is_empty();
        check(served, || "the ingress is not ours".to_owned())
    }

    /// Checks that locations and blocks follow from one version of the ingress, each location from
    /// some version of the binding, and each block from some version of the cluster. Both may be
    /// absent if the ingress may not be ours to serve.
    fn blocks(&self, name: &str, status: &Value) -> Check {
        let nothing =
            status["serviceLocations"].is_null() && status["trafficBlockClusters"].is_null();
        let explained = self
            .present(Kind::MultiClusterIngress, name)
            .any(|ingress| {
                let (served, released) = self.may_serve(ingress);
                (released && nothing) || (served && self.is_located(ingress, status))
            });
        check(explained, || {
            "no versions of the ingress, its bindings and clusters explain it".to_owned()
        })
    }

    fn is_located(&self, ingress: &'a Value, status: &Value) -> bool {
        let written: Vec<&Value> = items(status, "/serviceLocations").collect();
        let services = model::services(ingress);
        if !written
            .iter()
            .all(|written| services.contains(text(*written, "/name")))
        {
            return false;
        }
        let entry = |entries: &[&'a Value], service: &str| -> Option<&'a Value> {
            let mut entries = entries.iter();
            entries.find(|entry| entry["name"] == *service).copied()
        };
        let before: Vec<&Value> = items(ingress, "/status/serviceLocations").collect();
        let located = services.iter().all(|service| {
            let written = written.iter().find(|entry| entry["name"] == **service);
            let bindings = self.versions(Kind::Binding, &model::binding_name(service));
            bindings.into_iter().any(|binding| {
                if binding.is_some_and(|b| !model::is_readable(Kind::Binding, b)) {
                    // The last decision stands in for it.
                    return entry(&before, service) == written.copied();
                }
                let clusters = model::located(service, binding);
                clusters
                    .map(|clusters| model::location(service, &clusters))
                    .as_ref()
                    == written.copied()
            })
        });
        let clusters: BTreeSet<&str> = written
            .iter()
            .flat_map(|entry| items(entry, "/clusters"))
            .filter_map(Value::as_str)
            .collect();
        let blocked: BTreeSet<&str> = items(status, "/trafficBlockClusters")
            .filter_map(Value::as_str)
            .collect();
        let agrees = clusters.iter().all(|cluster| {
            let versions = self.versions(Kind::Cluster, cluster).into_iter();
            let mut are_blocked = versions.map(|version| version.is_some_and(model::is_blocked));
            are_blocked.any(|is_blocked| is_blocked == blocked.contains(cluster))
        });
        located && blocked.is_subset(&clusters) && agrees
    }

    /// Checks that a write of finalizers adds ours to an ingress that may be ours to serve, or removes
    /// it, and on deletion Karmada's, from one that may not.
    pub(super) fn finalizers(&self, name: &str, patch: &Value) -> Check {
        let kind = Kind::MultiClusterIngress;
        let object = self.patched(kind, name, patch)?;
        let guard = text(&object, "/metadata/resourceVersion").into();
        let untouched = self.base(kind, name, &guard)?;
        let [(before, others), (after, written)] = [untouched, &object].map(without_finalizers);
        check(others == written, || {
            "it changes more than finalizers".to_owned()
        })?;
        let with_ours: Vec<String> = before
            .iter()
            .cloned()
            .chain([CONTROLLER.to_owned()])
            .collect();
        let explained = if before.iter().any(|f| f == CONTROLLER) || after != with_ours {
            self.present(kind, name).any(|ingress| {
                let kept = before.iter().filter(|finalizer| {
                    model::may_keep(
                        finalizer,
                        is_deleting(ingress) && self.is_of_our_class(ingress),
                    )
                });
                let theirs = before.iter().filter(|finalizer| *finalizer != CONTROLLER);
                self.may_serve(ingress).1 && (kept.eq(&after) || theirs.eq(&after))
            })
        } else {
            !self.served(name).is_empty()
        };
        check(explained, || {
            format!("no version of the ingress and its classes explains {after:?} after {before:?}")
        })
    }

    /// Returns `true` if some versions of the classes make the ingress ours, deleting or not.
    fn is_of_our_class(&self, ingress: &Value) -> bool {
        let classes = self.classes();
        let mut classes = classes.iter();
        classes.any(|chosen| model::is_ours(ingress, chosen.iter().copied()))
    }
}

fn is_unread(remedy: Option<&Value>) -> bool {
    remedy.is_some_and(|remedy| !model::is_readable(Kind::Remedy, remedy))
}

/// Returns the finalizers of an object, and the object without them.
fn without_finalizers(object: &Value) -> (Vec<String>, Value) {
    let finalizers = items(object, "/metadata/finalizers").filter_map(Value::as_str);
    let finalizers = finalizers.map(str::to_owned).collect();
    let mut rest = object.clone();
    rest["metadata"]["finalizers"] = Value::Null;
    (finalizers, rest)
}

/// Checks that a merge patch has no other fields of a status than these.
fn only(body: &Value, fields: &[&str]) -> Check {
    let status = body["status"].as_object();
    let other = status.and_then(|status| status.keys().find(|key| !fields.contains(&key.as_str())));
    check(status.is_some() && other.is_none(), || {
        format!("it may write {fields:?} only, not {other:?}")
    })
}
