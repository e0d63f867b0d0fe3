//! A report for people: the cause first, the chain, and the next command last.

use jiff::Timestamp;
use objects::Key;

use super::cluster::{ClusterLink, MemberLink, Need};
use super::command::one_line;
use super::policy::PolicyLink;
use super::report::{Report, TemplateLink};
use crate::age::age;
use crate::table::Table;

impl Report {
    /// Returns the report as a person reads it at `now`.
    pub(super) fn text(&self, now: Timestamp) -> String {
        let binding = self.binding.as_ref();
        let binding = binding.map_or_else(Vec::new, |binding| binding.lines(now));
        let mut lines = vec![self.summary.clone()];
        for (title, section) in [
            ("Template", vec![self.template.line()]),
            ("Policy", self.policy.lines()),
            ("Binding", binding),
            ("Clusters", clusters(&self.clusters, now)),
            ("Next", vec![self.next.clone()]),
        ] {
            lines.extend([String::new(), title.to_owned()]);
            if section.is_empty() {
                lines.push("  none".to_owned());
            }
            lines.extend(section.iter().map(|line| format!("  {line}")));
        }
        lines.join("\n") + "\n"
    }
}

impl TemplateLink {
    fn line(&self) -> String {
        let key = Key::new(&*self.namespace, &*self.name);
        let (kind, version) = (&self.kind, &self.api_version);
        match self.generation {
            _ if !self.exists => format!("there is no {kind} {key}"),
            Some(generation) => format!("{kind} {key} of {version}, generation {generation}"),
            None => format!("{kind} {key} of {version}"),
        }
    }
}

impl PolicyLink {
    fn lines(&self) -> Vec<String> {
        let Some(name) = &self.name else {
            let nearest = self.nearest.iter();
            return nearest
                .map(|near| format!("not {}: {}", near.policy, near.but))
                .collect();
        };
        let lazy = if self.lazy { ", which is Lazy" } else { "" };
        let mut lines = vec![format!("{name}{lazy}")];
        let suspended = self.suspended.as_ref();
        lines.extend(suspended.map(|clusters| format!("it suspends dispatching to: {clusters}")));
        lines
    }
}

fn clusters(links: &[ClusterLink], now: Timestamp) -> Vec<String> {
    let titles = [
        "NAME",
        "NEED",
        "REPLICAS",
        "WORK",
        "HEALTH",
        "AGE",
        "LAST WRITER",
        "MEMBER",
    ];
    let mut table = Table::new(titles);
    for link in links {
        table.push(link.row(now));
    }
    if table.is_empty() {
        return Vec::new();
    }
    let rows = table.to_string();
    let says = links.iter().filter_map(ClusterLink::says);
    rows.lines().map(ToOwned::to_owned).chain(says).collect()
}

impl ClusterLink {
    fn row(&self, now: Timestamp) -> Vec<String> {
        let need = match self.need {
            Need::Scheduled => "scheduled",
            Need::Required => "required",
            Need::Leaving => "leaving",
            Need::Former => "former",
        };
        let work = self.work.as_ref();
        let state = work.map(|work| match &work.since {
            Some(since) => format!("{} for {}", work.state, age(Some(since), now)),
            None => work.state.to_owned(),
        });
        let writer = work.and_then(|work| work.last_writer.as_ref());
        let member = self.member.as_ref();
        vec![
            self.name.clone(),
            need.to_owned(),
            self.replicas
                .map(|replicas| replicas.to_string())
                .unwrap_or_default(),
            state.unwrap_or_default(),
            work.and_then(|work| work.health.clone())
                .unwrap_or_default(),
            work.map(|work| age(work.created.as_ref(), now))
                .unwrap_or_default(),
            writer.map(|writer| writer.name.clone()).unwrap_or_default(),
            member.map_or_else(|| "no such cluster".to_owned(), MemberLink::state),
        ]
    }

    /// Returns the messages of the cluster and its Work, if anything is wrong.
    fn says(&self) -> Option<String> {
        let work = self.work.as_ref().map(|work| one_line(&work.message));
        let member = self.member.as_ref().filter(|member| member.ready != "True");
        let member = member.map(|member| one_line(&member.message));
        let says = work.into_iter().chain(member);
        let says: Vec<String> = says.filter(|text| !text.is_empty()).collect();
        (!says.is_empty()).then(|| format!("{}: {}", self.name, says.join("; ")))
    }
}
