//! The flags.

use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs};
use karmada_runtime::events::EventBudget;
use objects::apis::Apis;
use propagation_rules::choice::Preemption;
use propagation_rules::feature_gates::{
    COMPONENTS, DEPENDENCIES, Gate, PREEMPTION, PRIORITY, Switch, WORKLOAD_AFFINITY,
};
use propagation_rules::template::{NamespacePattern, SKIPPED_NAMESPACES, Skipped};

/// Applies propagation policies to resource templates: claims the templates, keeps a binding for each, and makes the Works of every cluster that a binding is scheduled to.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// Namespaces whose objects are never propagated, as regular expressions of whole names.
    #[arg(
        long,
        env = "KARMADA_SKIPPED_PROPAGATING_NAMESPACES",
        default_value = SKIPPED_NAMESPACES,
        value_delimiter = ',',
        value_name = "REGEX,..."
    )]
    skipped_propagating_namespaces: Vec<NamespacePattern>,
    /// Kinds that are never propagated: `GROUP`, `GROUP/VERSION`, `GROUP/KIND,KIND`, `GROUP/VERSION/KIND,KIND` or `v1/KIND,KIND`, with semicolons between them.
    #[arg(
        long,
        env = "KARMADA_SKIPPED_PROPAGATING_APIS",
        default_value = "",
        hide_default_value = true,
        value_name = "API;..."
    )]
    skipped_propagating_apis: Apis,
    /// Features to switch on or off, under Karmada's names, `AllAlpha` and `AllBeta` among them. `WorkloadAffinity` (false): bindings have the groups of workloads that their policies make. `PriorityBasedScheduling` (true): bindings have the priority of their policies. `MultiplePodTemplatesScheduling` (false): bindings of kinds whose Pods differ have components in place of replicas. `PropagateDeps` (true): what a template refers to follows it. `PropagationPolicyPreemption` (true, and false in a Karmada): policies with `preemption: Always` take templates from others.
    #[arg(
        long,
        env = "KARMADA_FEATURE_GATES",
        value_name = "NAME=BOOL,...",
        value_delimiter = ','
    )]
    pub(crate) feature_gates: Vec<Switch>,
    /// Give templates of Deployments the conditions `Available` and `Progressing`, by the sums over their clusters: Helm and Flux wait for them. Karmada gives none.
    #[arg(long, env = "KARMADA_DEPLOYMENT_CONDITIONS")]
    pub(crate) deployment_conditions: bool,
    /// Decide everything and write nothing; the metric `would_write_total` counts what would be written.
    #[arg(long, env = "KARMADA_OBSERVE_ONLY")]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The parts of bindings that are there for the scheduler, beside replicas and placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// True if they have components, where the Pods of a template differ.
    pub(crate) components: bool,
    /// True if they have groups of workloads.
    pub(crate) groups: bool,
    /// True if they have a priority.
    pub(crate) priority: bool,
}

/// The features that are switched.
pub(crate) const GATES: [Gate; 5] = [
    WORKLOAD_AFFINITY,
    PRIORITY,
    COMPONENTS,
    DEPENDENCIES,
    PREEMPTION,
];

impl Args {
    /// Returns the kinds and namespaces that the user has excluded from propagation.
    pub(crate) fn skipped(&self) -> Skipped {
        Skipped {
            namespaces: self.skipped_propagating_namespaces.clone(),
            apis: self.skipped_propagating_apis.clone(),
        }
    }

    /// Returns the features as they are switched.
    pub(crate) fn features(&self) -> Features {
        Features {
            components: COMPONENTS.is_on(&self.feature_gates),
            groups: WORKLOAD_AFFINITY.is_on(&self.feature_gates),
            priority: PRIORITY.is_on(&self.feature_gates),
        }
    }

    /// Returns `true` if the objects to which templates refer follow them.
    pub(crate) fn attaches_dependencies(&self) -> bool {
        DEPENDENCIES.is_on(&self.feature_gates)
    }

    /// Returns whether policies take templates from others.
    pub(crate) fn preemption(&self) -> Preemption {
        if PREEMPTION.is_on(&self.feature_gates) {
            Preemption::Allowed
        } else {
            Preemption::Off
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    /// A namespace is skipped by its whole name.
    #[test]
    fn pattern_matches_whole_name() {
        let skipped = |flags: &[&str], namespace: &str| {
            let args = Args::try_parse_from([&[crate::identity::NAME], flags].concat()).unwrap();
            args.skipped().has_namespace(namespace)
        };
        assert!(skipped(&[], "kube-system"));
        assert!(!skipped(&[], "my-kube-system"));
        assert!(!skipped(&[], "kube"));
        let flags = ["--skipped-propagating-namespaces=a|b,c"];
        for (namespace, expected) in [("a", true), ("b", true), ("c", true), ("ab", false)] {
            assert_eq!(skipped(&flags, namespace), expected, "{namespace}");
        }
        let unclosed = "--skipped-propagating-namespaces=(";
        assert!(Args::try_parse_from([crate::identity::NAME, unclosed]).is_err());
    }
}
