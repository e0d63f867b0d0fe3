//! An explanation for people.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use karmada_api::Condition;
use karmada_api::condition::{DNS_READY, OWNED, REPORTER_READY, is_declared};
use traffic::ingress::{ServingState, WhenAllBlocked};

use super::explanation::{
    Actions, BackendState, Explanation, IngressState, Refusal, RemedyEffect, ReporterLease,
};
use crate::age::age;
use crate::table::{Table, listed};
use crate::writer::Writer;

impl Explanation {
    /// Returns the explanation as a person reads it at `now`.
    pub(super) fn text(&self, now: Timestamp) -> String {
        let mut lines = vec![self.summary.clone()];
        for (title, section) in [
            ("Verdict of its nodes", self.verdict(now)),
            ("Remedies", remedies(&self.remedies)),
            ("Actions", self.actions.lines(now)),
            ("Ingresses with a backend there", self.ingress_lines(now)),
        ] {
            lines.extend([String::new(), title.to_owned()]);
            if section.is_empty() {
                lines.push("  none".to_owned());
            }
            lines.extend(section.iter().map(|line| format!("  {line}")));
        }
        lines.join("\n") + "\n"
    }

    fn verdict(&self, now: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in OWNED {
            let mut known = self.conditions.iter();
            match known.find(|known| known.type_ == kind) {
                Some(condition) => lines.extend(condition_lines(condition, now)),
                // A condition that agents have only on demand is not missed.
                None if [DNS_READY, REPORTER_READY].contains(&kind) => {
                    lines.push(format!("{kind}: none"));
                }
                None => {}
            }
        }
        let declared = self.conditions.iter().filter(|one| is_declared(one));
        lines.extend(declared.flat_map(|condition| condition_lines(condition, now)));
        lines.push(self.lease.line());
        lines.extend(self.lease.refusals.iter().map(|told| told.line(now)));
        lines
    }

    fn ingress_lines(&self, now: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        for ingress in &self.ingresses {
            lines.extend(ingress.lines(&self.cluster, self.is_blocked, now));
        }
        lines
    }
}

impl ReporterLease {
    fn line(&self) -> String {
        let Self {
            namespace,
            name,
            exists,
            holder,
            refusals: _,
        } = self;
        let state = match holder {
            None if !exists => "does not exist: no agent has reported".to_owned(),
            None => "is held by nobody".to_owned(),
            Some(holder) if holder.is_live() => format!("is {holder}"),
            Some(holder) => format!("is {holder}: no agent reports"),
        };
        format!("lease {namespace}/{name} {state}")
    }
}

impl Refusal {
    fn line(&self, now: Timestamp) -> String {
        let time = self.time.as_ref();
        let time = time.map(|MicroTime(time)| Time(*time));
        // A webhook wrote a part of it, and this is one line.
        let words: Vec<&str> = self.note.split_whitespace().collect();
        format!("{} ago: {}", age(time.as_ref(), now), words.join(" "))
    }
}

/// Returns a condition, and its message below it.
fn condition_lines(condition: &Condition, now: Timestamp) -> Vec<String> {
    let kind = &condition.type_;
    if condition.unclear {
        return vec![format!("{kind} cannot be read")];
    }
    let since = age(condition.last_transition_time.as_ref(), now);
    let (status, reason) = (&condition.status, &condition.reason);
    let mut lines = vec![format!("{kind} is {status} for {since}: {reason}")];
    let message = condition.message.lines();
    lines.extend(message.map(|line| format!("  {line}")));
    lines
}

fn remedies(effects: &[RemedyEffect]) -> Vec<String> {
    let mut table = Table::new(["NAME", "ACTS", "ACTIONS", "BECAUSE"]);
    for effect in effects {
        let (acts, actions) = match effect.acts {
            Some(true) => ("yes", effect.actions.join(",")),
            Some(false) => ("no", effect.actions.join(",")),
            None => ("unknown", "<unknown>".to_owned()),
        };
        let because = effect.because.clone() + &effect.remarks();
        table.push(vec![effect.name.clone(), acts.to_owned(), actions, because]);
    }
    if table.is_empty() {
        return Vec::new();
    }
    table.to_string().lines().map(ToOwned::to_owned).collect()
}

impl RemedyEffect {
    /// Returns its reason and its end, in parentheses.
    fn remarks(&self) -> String {
        let reason = self.reason.as_deref().map(on_one_line);
        let end = self.expires_at.as_deref();
        let end = end.map(|end| format!("until {}", on_one_line(end)));
        let remarks: Vec<String> = reason.into_iter().chain(end).collect();
        if remarks.is_empty() {
            String::new()
        } else {
            format!(" ({})", remarks.join("; "))
        }
    }
}

impl Actions {
    fn lines(&self, now: Timestamp) -> Vec<String> {
        let written = written(self.last_writer.as_ref(), now);
        let present = self.present.iter();
        let mut lines: Vec<String> = present.map(|action| format!("{action}{written}")).collect();
        lines.extend(self.pending.iter().map(|change| {
            let message = &change.message;
            if change.is_refused() {
                message.clone()
            } else {
                format!("not done yet: {message}")
            }
        }));
        lines
    }
}

impl IngressState {
    fn lines(&self, cluster: &str, is_cluster_blocked: bool, now: Timestamp) -> Vec<String> {
        let (namespace, name) = (&self.namespace, &self.name);
        let state = match (self.is_blocked, is_cluster_blocked) {
            (true, _) => format!("blocked{}", written(self.last_writer.as_ref(), now)),
            (false, true) => "not blocked yet".to_owned(),
            (false, false) => "not blocked".to_owned(),
        };
        let mut lines = vec![format!("{namespace}/{name}: {state}")];
        if !self.blocked_clusters.is_empty() {
            let blocked = self.blocked_clusters.join(", ");
            lines.push(format!("  blocked clusters: {blocked}"));
        }
        if !self.addresses.is_empty() {
            lines.push(format!("  addresses: {}", self.addresses.join(", ")));
        }
        match &self.backends {
            Some(backends) => {
                let backends = backends.iter();
                lines.extend(backends.map(|backend| format!("  {}", backend.line(cluster))));
            }
            None => lines.push("  another controller decides what serves it".to_owned()),
        }
        lines
    }
}

impl BackendState {
    fn line(&self, cluster: &str) -> String {
        let served_by = match listed(&self.served_by) {
            none if none.is_empty() => "nothing".to_owned(),
            served_by => served_by,
        };
        let line = format!("Service {} is served by {served_by}", self.service);
        let mut serving = self.served_by.iter();
        let is_readmitted = serving
            .any(|serving| serving.name == cluster && serving.state == ServingState::Readmitted);
        if is_readmitted {
            // The flag cannot be seen, and this value was assumed.
            let assumed = WhenAllBlocked::FailOpen;
            format!("{line}: no other cluster does, and {assumed} is assumed")
        } else {
            line
        }
    }
}

/// Returns a text of anyone as a row has it.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn written(writer: Option<&Writer>, now: Timestamp) -> String {
    writer.map_or_else(String::new, |Writer { name, time }| {
        format!(", last written by {name} {} ago", age(time.as_ref(), now))
    })
}
