//! The changes that wake templates, policies and bindings, besides those of templates.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use karmada_api::{ClusterOverridePolicy, ClusterView, OverridePolicy, OverrideSpec, Suspension};
use karmada_runtime::program::Program;
use karmada_runtime::store::Store;
use karmada_runtime::wakes::Watch;
use kube::Client;
use objects::Key;
use parking_lot::Mutex;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;

use crate::index::{Index, Link, Owner, StoredWork, TemplateKey};
use crate::queues::Queues;
use crate::templates::Templates;

/// Watches every kind that decides about templates, bindings and Works.
pub(crate) fn watch(program: &mut Program, client: &Client, templates: &Arc<Templates>) {
    let (index, queues) = (&templates.index, &templates.queues);
    policies(templates, |index| &mut index.policies).start(program, client, "policies");
    policies(templates, |index| &mut index.cluster_policies).start(
        program,
        client,
        "clusterpolicies",
    );
    overrides(templates).start(program, client, "overrides");
    cluster_overrides(templates).start(program, client, "clusteroverrides");
    bindings(templates, |index| &mut index.bindings).start(program, client, "bindings");
    bindings(templates, |index| &mut index.cluster_bindings).start(
        program,
        client,
        "clusterbindings",
    );
    works(index, queues).start(program, client, "works");
    clusters(index, queues).start(program, client, "clusters");
    namespaces(index, queues).start(program, client, "namespaces");
}

/// Itself; the templates that it selects or has; and if it pauses them otherwise, their bindings and those that these
/// require: their Works heed it before the bindings have it.
fn policies<K>(
    templates: &Arc<Templates>,
    store: fn(&mut Index) -> &mut Store<K, TemplateKey>,
) -> Watch<Index, K, TemplateKey>
where
    K: 'static,
    for<'a> &'a K: Into<Candidate<'a>>,
{
    let (watching, selecting) = (Arc::clone(templates), Arc::clone(templates));
    let queues = &templates.queues;
    Watch::new(&templates.index, store)
        .follows(move |index, change| watching.follow_policy(index, change.views()))
        .wakes(&queues.policies, |_, change| [change.key.clone()])
        .wakes(&queues.templates, move |index, change| {
            selecting.decided_otherwise(index, change.views())
        })
        .wakes(&queues.dependencies, |index, change| {
            index.paused_otherwise(change.views())
        })
        .wakes(&queues.bindings, |index, change| {
            let paused = index.paused_otherwise(change.views());
            let required = paused.iter().flat_map(|key| index.required_by(key));
            let required: Vec<_> = required.collect();
            paused.into_iter().chain(required)
        })
}

fn overrides(templates: &Arc<Templates>) -> Watch<Index, OverridePolicy> {
    overriding::<OverridePolicy>(
        templates,
        |index| &mut index.overrides,
        |policy| &policy.spec,
    )
}

/// Those of [`overriding`], and every Namespace.
fn cluster_overrides(templates: &Arc<Templates>) -> Watch<Index, ClusterOverridePolicy> {
    overriding::<ClusterOverridePolicy>(
        templates,
        |index| &mut index.cluster_overrides,
        |policy| &policy.spec,
    )
    .wakes(&templates.queues.namespaces, |_, change| {
        let differs = change.differs(|old, new| old.spec != new.spec);
        // The key of all.
        differs.then(Key::default)
    })
}

/// The bindings of the templates that it selects, and if it appears or leaves, the policies that wait for it, with the
/// templates that these select or have.
fn overriding<K: 'static>(
    templates: &Arc<Templates>,
    store: fn(&mut Index) -> &mut Store<K>,
    spec: fn(&K) -> &OverrideSpec,
) -> Watch<Index, K> {
    let selecting = Arc::clone(templates);
    let queues = &templates.queues;
    Watch::new(&templates.index, store)
        .wakes(&queues.bindings, move |index, change| {
            let differs = change.differs(|old, new| spec(old) != spec(new));
            let specs = change.versions().map(spec).filter(|_| differs);
            let namespace = &change.key.namespace;
            let bindings = specs.flat_map(|spec| index.may_be_overridden(namespace, spec));
            bindings.collect::<Vec<_>>()
        })
        .wakes(&queues.policies, |index, change| index.waiting_for(change))
        .wakes(&queues.templates, move |index, change| {
            let policies = index.waiting_for(change);
            selecting.of_policies(index, &policies)
        })
}

/// Itself; if it pauses them otherwise, those that it requires; and if more than its status differs, its template, those whose
/// dependencies it concerns, and the policy that has lost it.
fn bindings<K>(
    templates: &Arc<Templates>,
    store: fn(&mut Index) -> &mut Store<K, Link>,
) -> Watch<Index, K, Link>
where
    K: 'static,
    for<'a> &'a K: Into<BindingRef<'a>>,
{
    let following = Arc::clone(templates);
    Watch::new(&templates.index, store)
        .follows(move |index, change| following.follow_binding(index, change))
}

/// Its owner, and its former one.
fn works(index: &Arc<Mutex<Index>>, queues: &Queues) -> Watch<Index, StoredWork, Owner> {
    let queues = queues.clone();
    Watch::new(index, |index| &mut index.works).follows(move |index, change| {
        for owner in index.works.concerned(change) {
            let urgency = index.urgency(change, &owner);
            queues.wake_owner(owner, urgency);
        }
    })
}

/// The bindings with Works there, the policies that pause it, and every Namespace.
fn clusters(index: &Arc<Mutex<Index>>, queues: &Queues) -> Watch<Index, ClusterView> {
    Watch::new(index, |index| &mut index.clusters)
        .wakes(&queues.bindings, |index, change| {
            index.bindings_where(|binding| {
                let mut targets = binding.spec.all_targets();
                targets.any(|target| target.name == change.key.name)
            })
        })
        .wakes(&queues.policies, |index, change| {
            index.policies_where(|policy| {
                let suspension = policy.spec.suspension.iter();
                let mut names = suspension.flat_map(Suspension::clusters);
                names.any(|name| name == change.key.name)
            })
        })
        .wakes(&queues.namespaces, |index, _| index.namespace_keys())
}

/// Itself.
fn namespaces(index: &Arc<Mutex<Index>>, queues: &Queues) -> Watch<Index, Namespace> {
    Watch::new(index, |index| &mut index.namespaces)
        .wakes(&queues.namespaces, |_, change| [change.key.clone()])
}
