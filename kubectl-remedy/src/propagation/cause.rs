//! The first link of the chain that does not hold, in one sentence, and the command to run next.

use objects::Key;
use propagation_rules::namespaces::SKIP_LABEL;
use propagation_rules::rights::{self, GroupResource};
use propagation_rules::schedule::{NO_CLUSTER_FIT, UNSCHEDULABLE};

use super::command::{made, object, one_line, policy, policy_name, within};
use super::facts::Facts;
use super::near_misses::NearPolicy;
use super::trouble::Trouble;
use crate::table::listed;

/// The namespace of the leases of the programs.
const SYSTEM: &str = "karmada-system";
/// The columns by which clusters are chosen.
const CHOSEN_BY: &str =
    "custom-columns=NAME:.metadata.name,LABELS:.metadata.labels,TAINTS:.spec.taints";
/// The room that clusters have.
const ROOM: &str = "custom-columns=NAME:.metadata.name,\
    ALLOCATABLE:.status.resourceSummary.allocatable,ALLOCATED:.status.resourceSummary.allocated";

/// The obstacle of an object, in the order of the chain. Policies are named by their keys; one without a namespace is a
/// `ClusterPropagationPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The template of a binding or a Work does not exist.
    Gone,
    /// It is being deleted, and has these finalizers.
    Deleting(Vec<String>),
    /// Its namespace is skipped.
    SkippedNamespace(String),
    /// Its kind is skipped.
    SkippedKind,
    /// It is a Namespace whose users keep it out of the members.
    LabelledOut,
    /// It is a Namespace of a control plane.
    OwnNamespace,
    /// No policy selects it; one may come near.
    NoPolicy(Option<NearPolicy>),
    /// A policy selects it, and is not applied for this reason.
    BadPolicy(Key, String),
    /// Its policy waits for these override policies.
    AwaitsOverrides(Key, Vec<String>),
    /// The propagation-controller has no rights to its kind.
    NotGranted(Key, GroupResource),
    /// Nobody interprets it, for this reason.
    Uninterpreted(String),
    /// Its policy is Lazy, and has not been followed yet, or only as it was before, as the text says.
    AwaitsEdit(Key, Option<String>),
    /// Its policy has it, and nobody has made its binding.
    NotBound(Key),
    /// Its binding is being deleted.
    BindingDeleting,
    /// Its binding is not to be scheduled.
    SchedulingSuspended,
    /// Nobody has scheduled its binding, which this scheduler is to do.
    NotScheduled(String),
    /// No cluster was found for it: the reason and the message.
    Unschedulable(String, String),
    /// It is scheduled to no cluster.
    NoCluster,
    /// It is in trouble in a cluster, and in so many others, too.
    InTrouble(String, Trouble, usize),
    /// It is leaving these clusters.
    Leaving(Vec<String>),
    /// Nothing: it is where it is to be.
    Nothing(Vec<String>),
}

impl Cause {
    /// Returns the word by which programs know the cause.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Gone => "TemplateGone",
            Self::Deleting(_) => "TemplateDeleting",
            Self::SkippedNamespace(_) | Self::LabelledOut | Self::OwnNamespace => {
                "NamespaceSkipped"
            }
            Self::SkippedKind => "KindSkipped",
            Self::NoPolicy(_) => "NoPolicy",
            Self::BadPolicy(..) => "PolicyNotApplied",
            Self::AwaitsOverrides(..) => "AwaitsOverrides",
            Self::NotGranted(..) => "KindNotGranted",
            Self::Uninterpreted(_) => "KindNotInterpreted",
            Self::AwaitsEdit(..) => "AwaitsEdit",
            Self::NotBound(_) => "NotBound",
            Self::BindingDeleting => "BindingDeleting",
            Self::SchedulingSuspended => "SchedulingSuspended",
            Self::NotScheduled(_) => "NotScheduled",
            Self::Unschedulable(..) => "Unschedulable",
            Self::NoCluster => "NoCluster",
            Self::InTrouble(_, trouble, _) => trouble.word(),
            Self::Leaving(_) => "Leaving",
            Self::Nothing(_) => "Nothing",
        }
    }

    /// Returns `true` if somebody has to act, and it is not merely under way or intended.
    pub(super) fn is_wrong(&self) -> bool {
        match self {
            Self::NotScheduled(_) | Self::Unschedulable(..) => true,
            Self::InTrouble(_, trouble, _) => trouble.is_wrong(),
            _ => false,
        }
    }

    /// Returns the cause as a sentence, on one line.
    pub(super) fn sentence(&self, facts: &Facts) -> String {
        let s = facts.subject();
        let sentence = match self {
            Self::Gone => format!("{s} does not exist: what was made of it goes with it"),
            Self::Deleting(finalizers) if finalizers.is_empty() => format!("{s} is being deleted"),
            Self::Deleting(finalizers) => {
                let finalizers = listed(finalizers);
                format!("{s} is being deleted, and waits for its finalizers: {finalizers}")
            }
            Self::SkippedNamespace(namespace) => {
                format!(
                    "{s} is not propagated: the propagation-controller skips namespace {namespace}"
                )
            }
            Self::SkippedKind => {
                let kind = facts.kind.full_name();
                format!("{s} is not propagated: the propagation-controller skips {kind}")
            }
            Self::LabelledOut => {
                format!("{s} stays out of the members: its label {SKIP_LABEL} says so")
            }
            Self::OwnNamespace => {
                format!(
                    "{s} stays out of the members, as those of Kubernetes and Karmada themselves do"
                )
            }
            Self::NoPolicy(near) => no_policy(&s, near.as_ref(), facts.binding.is_some()),
            Self::BadPolicy(policy, problem) => {
                format!(
                    "{} selects {s}, and is not applied: {problem}",
                    policy_name(policy)
                )
            }
            Self::AwaitsOverrides(policy, missing) => {
                let (policy, missing) = (policy_name(policy), listed(missing));
                format!(
                    "{policy} has {s}, and waits for override policies that do not exist: {missing}"
                )
            }
            Self::NotGranted(policy, kind) => {
                let policy = policy_name(policy);
                format!(
                    "{policy} selects {s}, and the propagation-controller may not propagate {kind}"
                )
            }
            Self::Uninterpreted(reason) => format!("{s} is not propagated: {reason}"),
            Self::AwaitsEdit(policy, None) => {
                format!(
                    "{} is Lazy: {s} follows it when it is edited next",
                    policy_name(policy)
                )
            }
            Self::AwaitsEdit(_, Some(waiting)) => {
                format!("{s} is not as its policy says: {waiting}")
            }
            Self::NotBound(policy) => {
                let policy = policy_name(policy);
                format!("{policy} has {s}, and no propagation-controller has made its binding")
            }
            Self::BindingDeleting => format!("The binding of {s} is being deleted"),
            Self::SchedulingSuspended => format!("Scheduling is suspended in the binding of {s}"),
            Self::NotScheduled(scheduler) => {
                format!("{s} is not scheduled: {scheduler} has not decided about its binding")
            }
            Self::Unschedulable(_, message) => format!("{s} is not scheduled: {message}"),
            Self::NoCluster => format!("{s} is scheduled to no cluster"),
            Self::InTrouble(cluster, trouble, others) => {
                let sentence = trouble.sentence(&s, cluster);
                match others {
                    0 => sentence,
                    1 => format!("{} (1 other cluster is in trouble, too)", end(&sentence)),
                    others => format!(
                        "{} ({others} other clusters are in trouble, too)",
                        end(&sentence)
                    ),
                }
            }
            Self::Leaving(clusters) => {
                let clusters = few(clusters);
                format!(
                    "{s} is leaving {clusters}, where its copy stays until those elsewhere are healthy"
                )
            }
            Self::Nothing(clusters) => format!("{s} is in {}, as it is to be", few(clusters)),
        };
        end(&one_line(&sentence)) + "."
    }

    /// Returns the command to run next.
    pub(super) fn next(&self, facts: &Facts) -> String {
        let object = object(facts);
        let namespace = within(&facts.key.namespace);
        match self {
            Self::Deleting(_) => format!("kubectl get {object} -o yaml"),
            Self::SkippedNamespace(_) | Self::SkippedKind => format!(
                "kubectl --context host get deployment/propagation-controller -n {SYSTEM} -o yaml"
            ),
            Self::LabelledOut => format!("kubectl label {object} {SKIP_LABEL}-"),
            Self::OwnNamespace => "kubectl get namespaces".to_owned(),
            Self::NoPolicy(Some(near)) => format!("kubectl get {} -o yaml", policy(&near.key)),
            Self::NoPolicy(None) => {
                format!("kubectl get propagationpolicies,clusterpropagationpolicies{namespace}")
            }
            Self::BadPolicy(key, _) => format!("kubectl describe {}", policy(key)),
            Self::AwaitsOverrides(key, _) if key.namespace.is_empty() => {
                "kubectl get clusteroverridepolicies".to_owned()
            }
            Self::AwaitsOverrides(..) => format!("kubectl get overridepolicies{namespace}"),
            Self::NotGranted(_, kind) => rights::command(std::slice::from_ref(kind)),
            Self::Uninterpreted(_) => {
                "kubectl describe resourceinterpretercustomizations".to_owned()
            }
            Self::AwaitsEdit(..) => format!("kubectl edit {object}"),
            // Its Events tell of the attempts.
            Self::NotBound(_) => format!("kubectl describe {object}"),
            Self::NotScheduled(_) => format!("kubectl get leases -n {SYSTEM}"),
            Self::Unschedulable(reason, _) if reason == NO_CLUSTER_FIT => {
                format!("kubectl get clusters -o {CHOSEN_BY}")
            }
            Self::Unschedulable(reason, _) if reason == UNSCHEDULABLE => {
                format!("kubectl get clusters -o {ROOM}")
            }
            Self::InTrouble(cluster, trouble, _) => trouble.next(facts, cluster),
            Self::Gone
            | Self::BindingDeleting
            | Self::SchedulingSuspended
            | Self::NoCluster
            | Self::Leaving(_) => format!("kubectl get {} -o yaml", made(facts)),
            Self::Unschedulable(..) | Self::Nothing(_) => {
                format!("kubectl describe {}", made(facts))
            }
        }
    }
}

fn no_policy(subject: &str, near: Option<&NearPolicy>, is_bound: bool) -> String {
    let near = near.map_or_else(
        || ", and none comes near".to_owned(),
        |near| format!(": {} comes nearest, and {}", near.policy, near.but),
    );
    let stays = if is_bound {
        "; what was made of it before stays as it is"
    } else {
        ""
    };
    format!("No policy selects {subject}{near}{stays}")
}

/// Returns the names of a few, or the number of many.
fn few(clusters: &[String]) -> String {
    const MOST: usize = 3;
    match clusters {
        [.., last] if clusters.len() > 1 && clusters.len() <= MOST => {
            let others = clusters[..clusters.len() - 1].join(", ");
            format!("{others} and {last}")
        }
        clusters if clusters.len() > MOST => format!("{} clusters", clusters.len()),
        clusters => clusters.join(""),
    }
}

/// Returns a sentence without the point at its end.
fn end(sentence: &str) -> String {
    sentence.trim_end_matches('.').to_owned()
}
