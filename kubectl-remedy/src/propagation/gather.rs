//! The reads about an object: itself, its policies, its binding, its Works and the clusters, each with one request,
//! and more only where it decides.

use karmada_api::{ResourceBinding, Work, cluster_of_execution_namespace};
use kube::{Api, Client};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::choice::Choice;
use propagation_rules::namespaces;
use propagation_rules::template::{Skipped, is_excluded};
use propagation_rules::works::bound;
use serde_json::json;

use super::discovery::{Served, served};
use super::facts::Facts;
use super::named::Named;
use super::requests::{Reader, optional};
use super::unavailable::{excluded, missing, unknown};
use crate::args::WhyArgs;
use crate::error::Error;

/// The group of bindings and Works.
const WORK_GROUP: &str = "work.karmada.io";

/// Reads everything that decides about an object.
///
/// # Errors
/// Fails if it does not exist, is never propagated, or may not be read.
pub(super) async fn read(
    named: &Named<'_>,
    args: &WhyArgs,
    client: &Client,
    namespace: &str,
) -> Result<Facts, Error> {
    let kinds = served(client).await?;
    let kind = Served::named(&kinds, named).ok_or_else(|| unknown(named))?;
    let key = if kind.is_namespaced {
        Key::new(namespace, named.name)
    } else {
        Key::cluster_scoped(named.name)
    };
    let reader = Reader {
        client,
        kinds: &kinds,
    };
    let mut facts = match (&*kind.group, &*kind.kind) {
        (WORK_GROUP, "ResourceBinding" | "ClusterResourceBinding") => {
            reader.of_binding(kind, &key).await?
        }
        (WORK_GROUP, "Work") => reader.of_work(kind, &key).await?,
        _ => reader.of_template(kind, key).await?,
    };
    facts.skipped = Skipped {
        namespaces: args.skipped_propagating_namespaces.clone(),
        apis: args.skipped_propagating_apis.clone(),
    };
    Ok(facts)
}

impl Reader<'_> {
    /// Reads the facts about a template.
    async fn of_template(&self, kind: &Served, key: Key) -> Result<Facts, Error> {
        let object = json!({
            "apiVersion": kind.in_version(kind.preferred()).api_version(),
            "kind": kind.kind,
            "metadata": { "namespace": key.namespace, "name": key.name },
        });
        if is_excluded(&object, &Skipped::default()) {
            return Err(excluded(kind, &key));
        }
        let template = self.template(kind, &key, kind.preferred()).await?;
        let template = template.ok_or_else(|| missing(kind, &key))?;
        if is_excluded(&template, &Skipped::default()) {
            return Err(excluded(kind, &key));
        }
        let (policies, binding) =
            futures::try_join!(self.policies(&key), self.binding_of(kind, &key, &template))?;
        let facts = Facts {
            kind: kind.clone(),
            key,
            template: Some(template),
            policies,
            binding,
            ..Facts::default()
        };
        self.rest(facts).await
    }

    /// Reads the facts about the template of a binding.
    async fn of_binding(&self, kind: &Served, key: &Key) -> Result<Facts, Error> {
        let binding = self.binding(key).await?;
        let binding = binding.ok_or_else(|| missing(kind, key))?;
        self.bound(binding).await
    }

    async fn bound(&self, binding: ResourceBinding) -> Result<Facts, Error> {
        let resource = &binding.spec.resource;
        let of = GroupVersionKind::new(&resource.api_version, &resource.kind);
        let namespace = resource.namespace.clone().unwrap_or_default();
        let kind = Served::or_former(self.kinds, &of, !namespace.is_empty());
        let key = Key::new(namespace, &resource.name);
        let (policies, template) = futures::try_join!(
            self.policies(&key),
            self.template(&kind, &key, kind.preferred())
        )?;
        let facts = Facts {
            kind,
            key,
            template,
            policies,
            binding: Some(binding),
            ..Facts::default()
        };
        self.rest(facts).await
    }

    /// Reads the facts about the template of a Work, which may have none.
    async fn of_work(&self, kind: &Served, key: &Key) -> Result<Facts, Error> {
        let works: Api<Work> = Api::namespaced(self.client.clone(), &key.namespace);
        let work = optional(works.get_opt(&key.name).await, "get the Work")?;
        let work = work.ok_or_else(|| missing(kind, key))?;
        let binding = match bound(&work.metadata) {
            Some(binding) => self.binding(&binding).await?,
            None => None,
        };
        let manifest = work.spec.workload.manifests.first();
        let of = manifest.map(GroupVersionKind::of).unwrap_or_default();
        let name = manifest.map(|manifest| manifest.name().to_owned());
        let is_of_namespace = name.as_ref().is_some_and(|name| {
            of == GroupVersionKind::new("v1", "Namespace")
                && namespaces::work_name(name) == key.name
        });
        let mut facts = match (binding, name) {
            (Some(binding), _) => self.bound(binding).await?,
            (None, Some(name)) if is_of_namespace => {
                let kind = Served::or_former(self.kinds, &of, false);
                self.of_template(&kind, Key::cluster_scoped(name)).await?
            }
            // Somebody has made it by hand, or for a cluster as a whole.
            (None, _) => Facts {
                kind: kind.clone(),
                key: key.clone(),
                clusters: self.clusters().await?,
                works: vec![work],
                ..Facts::default()
            },
        };
        let cluster = cluster_of_execution_namespace(&key.namespace);
        facts.only = cluster.map(ToOwned::to_owned);
        Ok(facts)
    }

    /// Reads the facts that follow from the policies and the binding of a template.
    async fn rest(&self, mut facts: Facts) -> Result<Facts, Error> {
        let version = facts.selected_version();
        if facts.template.is_some() && version != facts.kind.preferred() {
            facts.template = self.template(&facts.kind, &facts.key, version).await?;
        }
        facts.overrides = self.overrides(&facts).await?;
        let is_namespace = facts.is_namespace();
        // Obstacles of a policy are read only where it has one.
        if facts.bound().is_none() && matches!(facts.choice(), Choice::Policy(_)) {
            if let Some(template) = &facts.template {
                facts.refusal = self.refusal(template).await?;
            }
            facts.roles = self.roles().await?;
        }
        if facts.binding.is_some() || is_namespace {
            let (works, clusters) = futures::try_join!(self.works(&facts), self.clusters())?;
            facts.works = works;
            facts.clusters = clusters;
            let namesakes = self.namesakes(&facts).await?;
            facts.works.extend(namesakes);
        }
        Ok(facts)
    }
}
