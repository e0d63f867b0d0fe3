//! `kubectl remedy why`: every link from the verdict of a cluster's nodes to the load balancer.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::condition::{OWNED, REPORTER_LEASE};
use karmada_api::remedy::{EXPIRES_AT, REASON};
use karmada_api::{
    Cluster, DecisionMatch, Key, MultiClusterIngress, Operator, Remedy, TRAFFIC_CONTROL,
    execution_namespace,
};
use karmada_rules::ingress::{Admission, Desired};
use karmada_rules::remedy::{self, Effect, Forecast, Mode, Problem, covers, problems};
use kube::{Api, Client, ResourceExt};

use crate::age::age;
use crate::args::{ControllerArgs, WhyArgs};
use crate::error::Error;
use crate::fleet::{Fleet, scoped};
use crate::lease::Holder;
use crate::status::{blocked, is_located};
use crate::table::Table;
use crate::writer::{Writer, metadata};
use crate::{Answer, terminal};

/// The objects that explain one cluster besides the fleet.
#[derive(Debug, Default)]
struct Traces {
    /// The lease of its agents.
    lease: Option<Lease>,
    /// The last writer of its actions.
    actions: Option<Writer>,
    /// The last writers of the blocked clusters of ingresses.
    blocks: BTreeMap<Key, Writer>,
}

/// Explains a cluster.
pub(crate) async fn run(
    args: &WhyArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = Fleet::read(client, namespace, now).await?;
    let cluster = fleet.require(&args.cluster)?;
    let traces = Traces::read(client, namespace, &args.cluster).await?;
    let explanation = Explanation {
        fleet: &fleet,
        cluster,
        traces: &traces,
        controllers: &args.controllers,
        now,
    };
    terminal::print(&explanation.to_string());
    Ok(Answer::Yes)
}

impl Traces {
    async fn read(client: &Client, namespace: Option<&str>, cluster: &str) -> Result<Self, Error> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &execution_namespace(cluster));
        let lease = leases.get_opt(REPORTER_LEASE).await;
        let lease =
            lease.map_err(|source| Error::request("get the lease of its agents", source))?;
        let clusters: Api<Cluster> = Api::all(client.clone());
        let found = clusters.get_metadata_opt(cluster).await;
        let found = found.map_err(|source| Error::request("get the cluster", source))?;
        let ingresses = metadata(&scoped::<MultiClusterIngress>(client, namespace)).await?;
        let blocks = ingresses.iter().filter_map(|ingress| {
            let key = Key::new(ingress.namespace.as_ref()?, ingress.name.as_ref()?);
            Some((key, Writer::of(ingress, "trafficBlockClusters")?))
        });
        Ok(Self {
            lease,
            actions: found.and_then(|found| Writer::of(&found.metadata, "remedyActions")),
            blocks: blocks.collect(),
        })
    }
}

/// The links of one cluster. Displays them from the verdict to the load balancer.
#[derive(Debug)]
struct Explanation<'a> {
    fleet: &'a Fleet,
    cluster: &'a Cluster,
    traces: &'a Traces,
    controllers: &'a ControllerArgs,
    now: Timestamp,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        for (title, lines) in [
            ("Verdict of its nodes", self.verdict()),
            ("Remedies", self.remedies()),
            ("Actions", self.actions()),
            ("Ingresses with a backend there", self.ingresses()),
        ] {
            writeln!(f, "\n{title}")?;
            if lines.is_empty() {
                writeln!(f, "  none")?;
            }
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}

impl Explanation<'_> {
    fn name(&self) -> String {
        self.cluster.name_any()
    }

    fn is_blocked(&self) -> bool {
        let actions = self.cluster.remedy_actions();
        actions.iter().any(|action| action == TRAFFIC_CONTROL)
    }

    fn summary(&self) -> String {
        let name = self.name();
        let acting = self.fleet.acting_on(self.cluster);
        let blocking: Vec<String> = acting
            .iter()
            .filter(|(remedy, _)| requires(remedy, TRAFFIC_CONTROL))
            .map(|(remedy, cause)| format!("Remedy {} ({cause})", remedy.name_any()))
            .collect();
        let blocking = blocking.join(", ");
        match (self.is_blocked(), blocking.is_empty()) {
            (true, false) => format!("{name} is blocked by {blocking}."),
            (true, true) => format!("{name} is blocked although no Remedy asks for it any more."),
            (false, false) => format!("{name} is not blocked although {blocking} asks for it."),
            (false, true) => format!("{name} is not blocked."),
        }
    }

    fn verdict(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in OWNED {
            let Some(condition) = self.cluster.condition(kind) else {
                lines.push(format!("{kind}: none"));
                continue;
            };
            if condition.unclear {
                lines.push(format!("{kind} cannot be read"));
                continue;
            }
            let since = age(condition.last_transition_time.as_ref(), self.now);
            let (status, reason) = (&condition.status, &condition.reason);
            lines.push(format!("{kind} is {status} for {since}: {reason}"));
            let message = condition.message.lines();
            lines.extend(message.map(|line| format!("  {line}")));
        }
        let lease = match &self.traces.lease {
            None => "does not exist: no agent has reported".to_owned(),
            Some(lease) => match Holder::of(lease, self.now) {
                None => "is held by nobody".to_owned(),
                Some(holder) if holder.is_live() => format!("is {holder}"),
                Some(holder) => format!("is {holder}: no agent reports"),
            },
        };
        let namespace = execution_namespace(&self.name());
        lines.push(format!("lease {namespace}/{REPORTER_LEASE} {lease}"));
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let mut table = Table::new(["NAME", "ACTS", "ACTIONS", "BECAUSE"]);
        let acting = self.fleet.acting_on(self.cluster);
        for (key, remedy) in self.fleet.remedies.iter() {
            let mut causes = acting.iter();
            let found = causes.find(|(acting, _)| acting.name_any() == key.name);
            let (acts, because) = match found {
                Some((_, cause)) => ("yes", cause.to_string()),
                None => ("no", self.why_not(remedy)),
            };
            let because = because + &remarks(remedy);
            let actions = remedy.spec.actions.iter().flatten().cloned();
            let actions: Vec<String> = actions.collect();
            let row = [
                remedy.name_any(),
                acts.to_owned(),
                actions.join(","),
                because,
            ];
            table.push(row.into());
        }
        for key in self.fleet.remedies.unread() {
            let unread = "it cannot be read, so no action is cleared";
            let row = [key.name.as_str(), "unknown", "<unknown>", unread];
            table.push(row.map(ToOwned::to_owned).into());
        }
        if table.is_empty() {
            return Vec::new();
        }
        table.to_string().lines().map(ToOwned::to_owned).collect()
    }

    /// Returns the reason why `remedy` does not act on the cluster.
    fn why_not(&self, remedy: &Remedy) -> String {
        if remedy.metadata.deletion_timestamp.is_some() {
            return "it is being deleted".to_owned();
        }
        let fleet = remedy::Fleet {
            has_cluster: &|_| true,
            has_condition: &|_| true,
        };
        let mut problems = problems(remedy, fleet).into_iter();
        let empty = |problem: &Problem| {
            matches!(problem, Problem::SelectsNoCluster | Problem::NeverMatches)
        };
        if let Some(empty) = problems.find(empty) {
            return empty.to_string();
        }
        if !covers(remedy, &self.name()) {
            return "it does not name this cluster".to_owned();
        }
        if Mode::of(remedy, self.now) == Mode::Expired {
            return "it has expired".to_owned();
        }
        match Effect::of(remedy, self.cluster, self.now) {
            Some(Effect::WouldAct(cause)) => return format!("it only observes: {cause}"),
            Some(Effect::Unclear) => return "what decides about it cannot be read".to_owned(),
            Some(Effect::Acts(_)) | None => {}
        }
        let matches = remedy.spec.decision_matches.iter().flatten();
        let reasons: Vec<String> = matches.map(|wanted| self.unmet(wanted)).collect();
        reasons.join("; ")
    }

    /// Returns the reason why a match does not.
    fn unmet(&self, wanted: &DecisionMatch) -> String {
        let Some(wanted) = &wanted.cluster_condition_match else {
            return "a match names no condition".to_owned();
        };
        let kind = &wanted.condition_type;
        let asked = match wanted.operator {
            Some(Operator::Equal) => format!("{} is asked for", wanted.condition_status),
            Some(Operator::NotEqual) => "any other is asked for".to_owned(),
            None => return format!("a match on {kind} has no operator"),
        };
        match self.cluster.condition(kind) {
            None => format!("the cluster has no {kind}"),
            Some(found) if found.unclear => format!("{kind} cannot be read"),
            Some(found) => format!("{kind} is {}, and {asked}", found.status),
        }
    }

    fn actions(&self) -> Vec<String> {
        let written = self.written(self.traces.actions.as_ref());
        let actions = self.cluster.remedy_actions().iter();
        let mut lines: Vec<String> = actions.map(|action| format!("{action}{written}")).collect();
        let fleet = self.fleet.forecast(self.controllers.max_blocked_clusters);
        let own = |known: &&Forecast| known.cluster.name_any() == self.name();
        if let Some(known) = fleet.iter().find(own) {
            let pending = known.changes.iter();
            lines.extend(pending.map(|change| format!("not done yet: {change}")));
            lines.extend(known.over_bound.iter().map(ToString::to_string));
        }
        lines
    }

    fn written(&self, writer: Option<&Writer>) -> String {
        writer.map_or_else(String::new, |Writer { name, time }| {
            format!(
                ", last written by {name} {} ago",
                age(time.as_ref(), self.now)
            )
        })
    }

    fn ingresses(&self) -> Vec<String> {
        let name = self.name();
        let served = self.fleet.served(&self.controllers.settings());
        let mut lines = Vec::new();
        for (key, ingress) in self.fleet.ingresses.iter() {
            let is_blocked = blocked(ingress).contains(&name);
            if !is_blocked && !is_located(ingress, &name) {
                continue;
            }
            lines.push(match (is_blocked, self.is_blocked()) {
                (true, _) => format!(
                    "{key}: blocked{}",
                    self.written(self.traces.blocks.get(key))
                ),
                (false, true) => format!("{key}: not blocked yet"),
                (false, false) => format!("{key}: not blocked"),
            });
            if !blocked(ingress).is_empty() {
                lines.push(format!(
                    "  blocked clusters: {}",
                    blocked(ingress).join(", ")
                ));
            }
            match served.iter().find(|desired| desired.key == *key) {
                Some(desired) => lines.extend(self.backends(desired)),
                None => lines.push("  another controller decides what serves it".to_owned()),
            }
        }
        lines
    }

    /// Returns what serves the backends of an ingress that run in the cluster.
    fn backends(&self, desired: &Desired) -> Vec<String> {
        let name = self.name();
        let here = desired.backends.iter().filter_map(|backend| {
            let here = backend.cluster(&name).filter(|here| here.is_located)?;
            let left = match backend.serving() {
                left if left.is_empty() => "nothing".to_owned(),
                left => left.join(", "),
            };
            let served = format!("  Service {} is served by {left}", backend.service);
            // What the flag is cannot be seen, and this is what it was taken for.
            let assumed = desired.when_all_blocked;
            Some(if here.admission == Admission::Readmitted {
                format!("{served}: no other cluster does, and {assumed} is assumed")
            } else {
                served
            })
        });
        here.collect()
    }
}

/// Returns what its annotations say about `remedy`: why it exists, and until when it acts.
fn remarks(remedy: &Remedy) -> String {
    let annotations = remedy.annotations();
    let reason = annotations.get(REASON).map(|reason| {
        // Anyone wrote it, and a row is one line.
        reason.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let end = annotations
        .get(EXPIRES_AT)
        .map(|end| format!("until {end}"));
    let remarks: Vec<String> = reason.into_iter().chain(end).collect();
    if remarks.is_empty() {
        String::new()
    } else {
        format!(" ({})", remarks.join("; "))
    }
}

/// Returns `true` if `action` is among those of `remedy`.
pub(crate) fn requires(remedy: &Remedy, action: &str) -> bool {
    let mut actions = remedy.spec.actions.iter().flatten();
    actions.any(|required| required == action)
}

#[cfg(test)]
mod tests;
