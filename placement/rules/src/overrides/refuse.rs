//! The demands that an override may not make: each is refused by name, and never ignored.

use std::collections::BTreeSet;

use fleet_api::overrides::{NamedResource, Override, OverrideRule, OverrideSpec};
use json_patch::jsonptr::Pointer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::Metadata;

use crate::refuse::{Check, Problem, found};

const OF_CLUSTER: &str = "spec.clusterResourceSelectors";
const OF_NAMESPACE: &str = "spec.resourceSelectors";
const RULES: &str = "spec.policy.overrideRules";

/// Returns the reason why an override of this name is refused.
pub fn problems(name: &str, spec: &OverrideSpec) -> Vec<Problem> {
    // A label of its snapshots has it.
    let is_long = name.len() > 63;
    let mut checks = vec![("metadata.name", is_long, "is longer than 63 characters")];
    checks.extend(of_selectors(spec));
    checks.extend(of_rules(&spec.policy.override_rules));
    checks.extend(of_patches(&spec.policy.override_rules));
    found(&checks)
}

fn of_selectors(spec: &OverrideSpec) -> Vec<Check> {
    let selectors = &spec.cluster_resource_selectors;
    let scopes = ["", "NamespaceWithResources"];
    vec![
        (
            OF_CLUSTER,
            selectors
                .iter()
                .any(|one| one.name.is_empty() || one.label_selector.is_some()),
            "has one that does not select by name",
        ),
        (
            OF_CLUSTER,
            selectors
                .iter()
                .any(|one| !scopes.contains(&&*one.selection_scope)),
            "has a selectionScope, which overrides have no use for",
        ),
        (OF_CLUSTER, has_twice(selectors), "has one twice"),
        (
            OF_NAMESPACE,
            has_twice(&spec.resource_selectors),
            "has one twice",
        ),
    ]
}

fn of_rules(rules: &[OverrideRule]) -> Vec<Check> {
    let selectors = rules
        .iter()
        .filter_map(|rule| rule.cluster_selector.as_ref());
    let terms = selectors.flat_map(|selector| &selector.cluster_selector_terms);
    let terms: Vec<_> = terms.collect();
    vec![
        (
            RULES,
            terms
                .iter()
                .any(|term| term.property_selector.is_some() || term.property_sorter.is_some()),
            "has a clusterSelector by properties, where only labels select",
        ),
        (
            RULES,
            terms.iter().any(|term| term.label_selector.is_none()),
            "has a clusterSelector with a term without labelSelector, which selects no cluster",
        ),
        (
            RULES,
            rules
                .iter()
                .any(|rule| rule.override_type == "Delete" && !rule.patches.is_empty()),
            "has a Delete with jsonPatchOverrides",
        ),
        (
            RULES,
            rules
                .iter()
                .any(|rule| rule.override_type != "Delete" && rule.patches.is_empty()),
            "has a JSONPatch without jsonPatchOverrides",
        ),
    ]
}

fn of_patches(rules: &[OverrideRule]) -> Vec<Check> {
    let mut patches = rules.iter().flat_map(|rule| &rule.patches);
    let problems = patches
        .clone()
        .filter_map(|patch| problem_of_path(&patch.path));
    let problems: Vec<_> = problems.collect();
    vec![
        (
            RULES,
            patches.any(|patch| patch.operator == "remove" && patch.value.is_some()),
            "has a remove with a value",
        ),
        (
            RULES,
            problems.contains(&NO_POINTER),
            "has a path that is no JSON pointer, or has an empty part",
        ),
        (
            RULES,
            problems.contains(&OF_IDENTITY),
            "has a path to apiVersion, kind, status or metadata, of which only labels and annotations may be changed",
        ),
    ]
}

const NO_POINTER: &str = "this is no JSON pointer, or has an empty part";
const OF_IDENTITY: &str =
    "apiVersion, kind, status and metadata cannot be changed, but labels and annotations";

/// Returns why the value at a path may not be changed.
pub(super) fn problem_of_path(path: &str) -> Option<&'static str> {
    let Ok(pointer) = Pointer::parse(path) else {
        return Some(NO_POINTER);
    };
    let parts: Vec<_> = pointer
        .tokens()
        .map(|token| token.decoded().into_owned())
        .collect();
    let parts: Vec<_> = parts.iter().map(|part| &**part).collect();
    match &parts[..] {
        [] => Some(NO_POINTER),
        parts if parts.contains(&"") => Some(NO_POINTER),
        ["metadata", "labels" | "annotations", ..] => None,
        ["apiVersion" | "kind" | "status" | "metadata", ..] => Some(OF_IDENTITY),
        _ => None,
    }
}

/// An override, and its claim to its objects.
#[derive(Debug)]
pub struct Claim<'a, K> {
    /// The override.
    pub one: &'a K,
    /// Its content when it was last taken up.
    pub taken: Option<&'a OverrideSpec>,
}

impl<K: Override> Claim<'_, K> {
    /// Returns the objects that nobody else of its scope gets: its content when it was last taken up goes on.
    fn objects(&self) -> BTreeSet<NamedResource> {
        objects(self.taken.unwrap_or_else(|| self.one.spec()))
    }

    /// Returns the order of claims to an object: who has it comes before who asks for it, and then the older one.
    fn rank(&self, object: &NamedResource) -> (bool, Option<&Time>, &str) {
        let metadata = self.one.meta();
        let has = self
            .taken
            .is_some_and(|taken| objects(taken).contains(object));
        (!has, metadata.creation_timestamp.as_ref(), metadata.name())
    }
}

/// Returns why an override is not taken up, or `None` if it is: its mistake, or which of its `rivals`, those of
/// its scope that name one of its objects, has that object. A rival that has nothing and is refused itself is none.
pub fn refusal<K: Override>(claim: &Claim<'_, K>, rivals: &[Claim<'_, K>]) -> Option<String> {
    let spec = claim.one.spec();
    let problems = problems(claim.one.meta().name(), spec);
    if !problems.is_empty() {
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        return Some(format!("The override is refused: {}", texts.join("; ")));
    }
    let asked = objects(spec);
    let (object, rival) = rivals.iter().find_map(|rival| {
        let taken = rival.objects();
        let mut shared = asked.iter().filter(|object| taken.contains(object));
        let object = shared.find(|object| rival.rank(object) < claim.rank(object))?;
        Some((object, rival.one.meta().name()))
    })?;
    let (kind, NamedResource { kind: of, name, .. }) = (K::kind(&()), object);
    Some(format!(
        "The override is refused: {of} {name} is in {kind} {rival} already, and can be in one only"
    ))
}

/// Returns the objects that an override names, in its scope.
pub fn objects(spec: &OverrideSpec) -> BTreeSet<NamedResource> {
    let cluster_scoped = spec.cluster_resource_selectors.iter();
    let cluster_scoped = cluster_scoped.map(|selector| NamedResource {
        group: selector.group.clone(),
        version: selector.version.clone(),
        kind: selector.kind.clone(),
        name: selector.name.clone(),
    });
    cluster_scoped
        .chain(spec.resource_selectors.iter().cloned())
        .collect()
}

fn has_twice<T: PartialEq>(all: &[T]) -> bool {
    (1..)
        .zip(all)
        .any(|(next, one)| all.iter().skip(next).any(|other| other == one))
}
