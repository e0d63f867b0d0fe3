//! Waiting for states of the objects of a fleet.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::time::Instant;

use super::{Fleet, INGRESS, Member};
use crate::wait::{until, until_event};

impl Fleet {
    /// Waits until a condition of a member has this status, and returns the time of that.
    pub async fn has_condition(&self, member: Member, kind: &str, status: &str) -> Result<Instant> {
        self.tells(member, kind, status, "").await
    }

    /// Waits like [`Self::has_condition`], until the condition has this text in its message, too, or as its reason.
    pub async fn tells(
        &self,
        member: Member,
        kind: &str,
        status: &str,
        text: &str,
    ) -> Result<Instant> {
        let what = format!("{kind} {status} with {text:?}");
        until(&self.clusters(), &member.name(), &what, |cluster| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|condition| {
                condition.status == status
                    && (condition.message.contains(text) || condition.reason == text)
            })
        })
        .await
    }

    /// Waits until a member has exactly these remedy actions, and returns the time of that.
    pub async fn has_actions(&self, member: Member, actions: &[&str]) -> Result<Instant> {
        let what = format!("with the actions {actions:?}");
        until(&self.clusters(), &member.name(), &what, |cluster| {
            cluster.is_some_and(|cluster| cluster.remedy_actions() == actions)
        })
        .await
    }

    /// Waits until exactly these members are blocked for the ingress, and returns the time of that.
    pub async fn has_blocked(&self, members: &[Member]) -> Result<Instant> {
        let names: Vec<String> = members.iter().map(|member| member.name()).collect();
        let what = format!("with {names:?} blocked");
        until(&self.ingresses(), INGRESS, &what, |ingress| {
            let status = ingress.and_then(|ingress| ingress.status.as_ref());
            let blocked = status.and_then(|status| status.traffic_block_clusters.as_ref());
            ingress.is_some() && blocked.map_or(&[][..], Vec::as_slice) == names
        })
        .await
    }

    /// Waits until the gateway serves the Service of exactly these members.
    pub async fn serves(&self, members: &[Member]) -> Result<()> {
        let backends: Vec<SocketAddr> = members.iter().map(|member| member.backend()).collect();
        self.served.becomes(&backends).await
    }

    /// Waits until an Event about an object of the Karmada API has `text` in its reason or note.
    pub async fn has_event(&self, regarding: &str, name: &str, text: &str) -> Result<()> {
        until_event(&self.karmada.client(), regarding, name, text).await
    }
}
