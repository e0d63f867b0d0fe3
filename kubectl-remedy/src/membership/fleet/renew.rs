//! `kubectl remedy renew --fleet`: new tokens of the members, each asked for with the one before.

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use karmada_api::ClusterView;
use karmada_runtime::client::{Addresses, patient};
use karmada_runtime::error::Chain;
use karmada_runtime::members::MemberAccess;
use kube::api::ListParams;
use kube::{Api, Client};
use objects::Metadata;

use super::{access, account};
use crate::answer::Answer;
use crate::args::join::RenewArgs;
use crate::clusters::each;
use crate::error::Error;
use crate::identity::NAME;
use crate::lists::list;
use crate::secret::replace_token;
use crate::{terminal, token};

/// Renews tokens that are due.
pub(in crate::membership) async fn run(
    args: &RenewArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let clusters = list::<ClusterView>(Api::all(client.clone()), ListParams::default()).await?;
    let all = clusters.iter().map(|(_, cluster)| &**cluster);
    let all: BTreeMap<&str, &ClusterView> = all
        .map(|cluster| (cluster.metadata.name(), cluster))
        .collect();
    let names: Vec<String> = if args.clusters.is_empty() {
        let ours = all.iter().filter(|(name, cluster)| {
            // Whose token it is shows when that is read.
            access::require_ours(name, cluster, None).is_ok()
        });
        ours.map(|(name, _)| (*name).to_owned()).collect()
    } else {
        args.clusters.clone()
    };
    if names.is_empty() {
        terminal::print("No cluster has joined by `kubectl remedy join --fleet`\n");
        return Ok(Answer::Yes);
    }
    let renewed = each(&names, async |cluster: &str| {
        let found = all.get(cluster);
        let found = found.ok_or_else(|| Error::Unusable("there is no such cluster".to_owned()))?;
        renew(found, args, client, now).await
    });
    let renewed = renewed.await;
    Ok((renewed.len() == names.len()).into())
}

async fn renew(
    cluster: &ClusterView,
    args: &RenewArgs,
    client: &Client,
    now: Timestamp,
) -> Result<(), Error> {
    let name = cluster.metadata.name();
    let (way, secret) = MemberAccess::read(client, cluster)
        .await
        .map_err(|error| unusable(name, &Chain(&error)))?;
    let old = way.token();
    access::require_ours(name, cluster, Some(old))?;
    if !token::is_due(old, args.when_less_than, now) {
        terminal::print(&format!("{name} unchanged; {}\n", token::end(old)));
        return Ok(());
    }
    let member = way
        .client(&secret, &Addresses::by_system(), NAME)
        .map(patient)
        .map_err(|error| unusable(name, &Chain(&error)))?;
    let new = token::request(&account::account(), args.token_duration, &member)
        .await
        .map_err(|error| unusable(name, &error))?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), access::NAMESPACE);
    replace_token(&secrets, &secret, &new).await?;
    terminal::print(&format!("{name} renewed; {}\n", token::end(&new)));
    Ok(())
}

fn unusable(name: &str, problem: &impl Display) -> Error {
    let again = format!("`kubectl remedy join {name} --fleet` writes it anew");
    Error::Unusable(format!("{problem}; {again}"))
}
