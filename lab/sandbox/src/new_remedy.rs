//! A Remedy as a reader of the page, or a scenario, describes it before it exists.

use anyhow::{Result, bail};
use jiff::Timestamp;
use karmada_api::condition::{DNS_READY, FALSE, SERVICE_NETWORK_READY};
use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY, REASON};
use karmada_api::{
    ClusterAffinity, ClusterConditionRequirement, DecisionMatch, Operator, Remedy, RemedySpec,
    TRAFFIC_CONTROL,
};
use serde::Deserialize;
use traffic::remedy::{Expiry, FleetLookup, problems};

/// A Remedy that blocks clusters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRemedy {
    pub(crate) name: String,
    /// The clusters that it covers: every cluster if absent, as in the Remedy.
    pub(crate) clusters: Option<Vec<String>>,
    pub(crate) acts: Acts,
    /// The moment from which it acts no more, in RFC 3339.
    pub(crate) expires_at: Option<String>,
    /// The reason for which it is made, for whoever meets the block.
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) observe_only: bool,
}

/// The occasion on which a Remedy acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Acts {
    /// It has no condition.
    AtOnce,
    /// Names do not resolve in the cluster.
    WhileDnsFails,
    /// Connections to Services fail in the cluster.
    WhileServiceNetworkFails,
}

impl NewRemedy {
    /// Returns the Remedy, as long as it can do its author's will at `now`. `clusters` are
    /// those of the fleet.
    ///
    /// # Errors
    /// Fails with a message of one line for its author.
    pub(crate) fn remedy(&self, now: Timestamp, clusters: &[&str]) -> Result<Remedy> {
        let remedy = self.described();
        match (Expiry::of(&remedy), &self.expires_at) {
            (Expiry::Unreadable, Some(text)) => {
                bail!("{text:?} is no end: write a time such as 2026-11-20T18:00:00Z")
            }
            (Expiry::At(end), _) if end <= now => {
                bail!("the end, {end}, is past: it is {now:.0} now")
            }
            _ => {}
        }
        let fleet = FleetLookup {
            has_cluster: &|name| clusters.contains(&name),
            has_condition: &|_| true,
        };
        match problems(&remedy, fleet).first() {
            Some(problem) => bail!("{problem}"),
            None => Ok(remedy),
        }
    }

    fn described(&self) -> Remedy {
        let names = self.clusters.clone();
        let spec = RemedySpec {
            cluster_affinity: names.map(|names| ClusterAffinity {
                cluster_names: Some(names),
            }),
            decision_matches: self.acts.decision_matches(),
            actions: Some(vec![TRAFFIC_CONTROL.to_owned()]),
        };
        let mut remedy = Remedy::new(&self.name, spec);
        let annotations = [
            (EXPIRES_AT, self.expires_at.clone()),
            (REASON, self.reason.clone()),
            (OBSERVE_ONLY, self.observe_only.then(|| true.to_string())),
        ];
        let present = annotations.into_iter();
        let present = present.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        remedy.metadata.annotations = Some(present.collect());
        remedy
    }
}

impl Acts {
    fn decision_matches(self) -> Option<Vec<DecisionMatch>> {
        let condition = match self {
            Self::AtOnce => return None,
            Self::WhileDnsFails => DNS_READY,
            Self::WhileServiceNetworkFails => SERVICE_NETWORK_READY,
        };
        Some(vec![DecisionMatch {
            cluster_condition_match: Some(ClusterConditionRequirement {
                condition_type: condition.to_owned(),
                operator: Some(Operator::Equal),
                condition_status: FALSE.to_owned(),
            }),
        }])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample_remedy::SampleRemedy;

    const MEMBERS: [&str; 2] = ["member1", "member2"];

    fn now() -> Timestamp {
        "2026-11-20T08:00:00.7Z".parse().unwrap()
    }

    fn remedy(description: Value) -> Result<Remedy> {
        let described: NewRemedy = serde_json::from_value(description)?;
        described.remedy(now(), &MEMBERS)
    }

    /// A field that is left out is absent from the remedy.
    #[test]
    fn omitted_field_is_absent() {
        let everywhere = remedy(json!({ "name": "dns", "acts": "while-dns-fails" })).unwrap();
        assert_eq!(everywhere.spec, SampleRemedy::Dns.remedy().unwrap().spec);
        assert_eq!(everywhere.metadata.annotations, Some([].into()));
        let window = json!({ "name": "maintenance-member1", "acts": "at-once",
            "clusters": ["member1"], "expires_at": "2026-11-20T18:00:00Z", "reason": "new kernel",
            "observe_only": true });
        let window = remedy(window).unwrap();
        let sample = SampleRemedy::Maintenance.remedy().unwrap();
        assert_eq!(window.spec, sample.spec);
        let annotations = [
            (EXPIRES_AT, "2026-11-20T18:00:00Z"),
            (REASON, "new kernel"),
            (OBSERVE_ONLY, "true"),
        ];
        let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(window.metadata.annotations, Some(annotations.into()));
    }

    /// A Remedy that its author cannot have meant is refused in one line.
    #[test]
    fn senseless_remedy_is_refused() {
        for (fields, expected) in [
            (
                json!({ "expires_at": "tomorrow" }),
                "\"tomorrow\" is no end: write a time such as 2026-11-20T18:00:00Z",
            ),
            (
                json!({ "expires_at": "2026-11-20T18:00:00" }),
                "\"2026-11-20T18:00:00\" is no end: write a time such as 2026-11-20T18:00:00Z",
            ),
            (
                json!({ "expires_at": "2026-11-20T08:00:00Z" }),
                "the end, 2026-11-20T08:00:00Z, is past: it is 2026-11-20T08:00:00Z now",
            ),
            (
                json!({ "clusters": ["member1", "member9"] }),
                "there is no cluster member9",
            ),
            (
                json!({ "clusters": [] }),
                "clusterAffinity has no clusterNames, so this Remedy selects no cluster: leave clusterAffinity out to select every cluster",
            ),
        ] {
            let mut description = json!({ "name": "r", "acts": "at-once" });
            for (name, value) in fields.as_object().unwrap() {
                description[name] = value.clone();
            }
            let refused = remedy(description).unwrap_err().to_string();
            assert_eq!(refused, expected);
        }
        for unreadable in [
            json!({ "name": "r" }),
            json!({ "name": "r", "acts": "never" }),
            json!({ "name": "r", "acts": "at-once", "cluster": ["member1"] }),
        ] {
            assert!(remedy(unreadable.clone()).is_err(), "{unreadable}");
        }
    }
}
