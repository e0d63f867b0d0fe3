//! The requests that may be made about an object.

use std::collections::{BTreeMap, BTreeSet};

use interpreters::Interpreters;
use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{
    ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, ClusterView,
    OverridePolicy, PropagationPolicy, ResourceBinding, Work, execution_namespace, names,
};
use karmada_runtime::error::Chain;
use karmada_runtime::watch::{Decoded, raw};
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::claim::Claim;
use propagation_rules::namespaces;
use propagation_rules::rights::AGGREGATED;
use propagation_rules::works::{bound, wanted_clusters, work_name};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::discovery::Served;
use super::facts::Facts;
use super::unavailable::forbidden;
use crate::error::Error;
use crate::interpret::customizations;
use crate::lists::{by_name, list_each, list_each_metadata};
use crate::terminal;

/// Makes requests.
pub(super) struct Reader<'a> {
    pub(super) client: &'a Client,
    pub(super) kinds: &'a [Served],
}

impl Reader<'_> {
    pub(super) async fn template(
        &self,
        kind: &Served,
        key: &Key,
        version: &str,
    ) -> Result<Option<Value>, Error> {
        let api = kind.objects(self.client, version, &key.namespace);
        match api.get_opt(&key.name).await {
            Ok(found) => Ok(found.map(|object| json!(object))),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                Err(forbidden(kind, key, &status.message))
            }
            // The API serves the kind no longer.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(source) => {
                let attempt = format!("get the {} {key}", kind.kind);
                Err(Error::request(attempt, source))
            }
        }
    }

    /// Reads the metadata of the objects of a kind, each as an object, in one namespace or in all; `None` if the caller
    /// may not list them.
    pub(super) async fn metadata(
        &self,
        kind: &Served,
        version: &str,
        namespace: Option<&str>,
    ) -> Result<Option<Vec<Value>>, Error> {
        let own = namespace.filter(|_| kind.is_namespaced);
        let api = kind.objects(self.client, version, own.unwrap_or_default());
        let of = kind.in_version(version);
        let mut found = Vec::new();
        let read = list_each_metadata(&api, |object| {
            found.push(json!({ "apiVersion": of.api_version(), "kind": of.kind,
                "metadata": object.metadata }));
        });
        match read.await {
            Ok(()) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
            Err(source) => Err(Error::request(format!("list {}", kind.full_name()), source)),
        }
    }

    /// Reads the policies that may select objects of the namespace of `key`.
    pub(super) async fn policies(&self, key: &Key) -> Result<Vec<PropagationPolicy>, Error> {
        let of_namespace = async {
            if key.namespace.is_empty() {
                return Ok(Vec::new());
            }
            let api = Api::namespaced(self.client.clone(), &key.namespace);
            self.list::<PropagationPolicy>(api, ListParams::default())
                .await
        };
        let api = Api::all(self.client.clone());
        let of_fleet = self.list::<ClusterPropagationPolicy>(api, ListParams::default());
        let (mut policies, of_fleet) = futures::try_join!(of_namespace, of_fleet)?;
        policies.extend(of_fleet.into_iter().map(policy_of_fleet));
        Ok(policies)
    }

    /// Returns which exist of the override policies on which the policies depend that select the template.
    pub(super) async fn overrides(&self, facts: &Facts) -> Result<BTreeSet<Key>, Error> {
        let Some(template) = &facts.template else {
            return Ok(BTreeSet::new());
        };
        let selecting = facts.candidates().filter(|policy| policy.selects(template));
        let needed: BTreeSet<Key> = selecting
            .flat_map(|policy| {
                let namespace = policy.namespace().unwrap_or_default();
                let names = policy.spec.dependent_overrides.iter();
                names.map(move |name| Key::new(namespace, name))
            })
            .collect();
        let mut found = BTreeSet::new();
        for key in needed {
            let client = self.client.clone();
            let exists = if key.namespace.is_empty() {
                let api: Api<ClusterOverridePolicy> = Api::all(client);
                api.get_metadata_opt(&key.name)
                    .await
                    .map(|one| one.is_some())
            } else {
                let api: Api<OverridePolicy> = Api::namespaced(client, &key.namespace);
                api.get_metadata_opt(&key.name)
                    .await
                    .map(|one| one.is_some())
            };
            if exists.map_err(|source| Error::request("get an override policy", source))? {
                found.insert(key);
            }
        }
        Ok(found)
    }

    /// Returns the binding of a template, by the names that it may have.
    pub(super) async fn binding_of(
        &self,
        kind: &Served,
        key: &Key,
        template: &Value,
    ) -> Result<Option<ResourceBinding>, Error> {
        for name in names::bindings(&kind.group, &kind.kind, &key.name) {
            if let Some(binding) = self.binding(&Key::new(&*key.namespace, name)).await?
                && BindingRef::from(&binding).is_of(&kind.group, &kind.kind, key)
            {
                return Ok(Some(binding));
            }
        }
        // Those of other programs may have any name.
        if Claim::of(template).is_none() {
            return Ok(None);
        }
        let mut all = self.bindings_in(&key.namespace).await?.into_iter();
        Ok(all.find(|binding| BindingRef::from(binding).is_of(&kind.group, &kind.kind, key)))
    }

    pub(super) async fn binding(&self, key: &Key) -> Result<Option<ResourceBinding>, Error> {
        if key.namespace.is_empty() {
            let api: Api<ClusterResourceBinding> = Api::all(self.client.clone());
            let found = optional(
                api.get_opt(&key.name).await,
                "get the ClusterResourceBinding",
            )?;
            return Ok(found.map(of_either_scope));
        }
        let api: Api<ResourceBinding> = Api::namespaced(self.client.clone(), &key.namespace);
        optional(api.get_opt(&key.name).await, "get the ResourceBinding")
    }

    pub(super) async fn bindings_in(&self, namespace: &str) -> Result<Vec<ResourceBinding>, Error> {
        let all = ListParams::default;
        if namespace.is_empty() {
            let api = Api::all(self.client.clone());
            let found = self.list::<ClusterResourceBinding>(api, all()).await?;
            return Ok(found.into_iter().map(of_either_scope).collect());
        }
        let api = Api::namespaced(self.client.clone(), namespace);
        self.list::<ResourceBinding>(api, all()).await
    }

    /// Reads the Works of the binding by its ID, or those of a Namespace, which have no binding, by their name.
    pub(super) async fn works(&self, facts: &Facts) -> Result<Vec<Work>, Error> {
        let selected = match facts.binding() {
            None => by_name(&namespaces::work_name(&facts.key.name)),
            Some(binding) => match binding.id() {
                Some(id) => ListParams::default().labels(&format!("{}={id}", binding.id_label())),
                None => return Ok(Vec::new()),
            },
        };
        self.list(Api::all(self.client.clone()), selected).await
    }

    /// Reads the Works of other bindings that have the name of this one's, where one of these is missing.
    pub(super) async fn namesakes(&self, facts: &Facts) -> Result<Vec<Work>, Error> {
        let Some(binding) = facts.binding() else {
            return Ok(Vec::new());
        };
        let has_all = wanted_clusters(binding).keys().all(|cluster| {
            let mut works = facts.works.iter();
            works.any(|work| Key::of(work).namespace == execution_namespace(cluster))
        });
        if has_all {
            return Ok(Vec::new());
        }
        let named = by_name(&work_name(binding));
        let mut found = self
            .list::<Work>(Api::all(self.client.clone()), named)
            .await?;
        let own = binding.key();
        found.retain(|work| bound(&work.metadata).is_some_and(|owner| owner != own));
        Ok(found)
    }

    pub(super) async fn clusters(&self) -> Result<BTreeMap<String, ClusterView>, Error> {
        let api = Api::all(self.client.clone());
        let found = self.list::<ClusterView>(api, ListParams::default()).await?;
        let named = found.into_iter();
        Ok(named
            .map(|cluster| (Key::of(&cluster).name, cluster))
            .collect())
    }

    /// Returns those whom users have named to interpret kinds.
    pub(super) async fn interpreters(&self) -> Result<Interpreters, Error> {
        let (interpreters, _) = customizations::interpreters(self.client).await?;
        Ok(interpreters)
    }

    /// Returns why nobody interprets the template, if that is so: a script cannot be read, or whoever is asked for
    /// its replicas fails.
    pub(super) async fn refusal(&self, template: &Value) -> Result<Option<String>, Error> {
        let interpreters = self.interpreters().await?;
        let refusal = interpreters.refusal(&GroupVersionKind::of(template));
        if refusal.is_some() {
            return Ok(refusal);
        }
        let failure = interpreters.replicas(template).await.and_then(Result::err);
        Ok(failure.map(|failure| Chain(&failure).to_string()))
    }

    /// Reads the roles with which kinds are propagated, if they may be read.
    pub(super) async fn roles(&self) -> Result<Option<Vec<ClusterRole>>, Error> {
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        let aggregated = ListParams::default().labels(&format!("{AGGREGATED}=true"));
        match api.list(&aggregated).await {
            Ok(roles) => Ok(Some(roles.items)),
            Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => Ok(None),
            Err(source) => Err(Error::request("list the roles of kinds", source)),
        }
    }

    /// Reads the objects that `api` and `selected` cover, with who wrote them. One that cannot be read is a warning.
    pub(super) async fn list<K>(
        &self,
        api: Api<Decoded<K>>,
        selected: ListParams,
    ) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut found = Vec::new();
        let api = raw(api);
        let read = list_each(&api, selected, |object| match object.decode::<K>() {
            Decoded::Valid(object) => found.push(object),
            Decoded::Invalid { metadata, error } => {
                let (kind, key) = (K::kind(&()), metadata.key());
                let problem = format!("{kind} {key} cannot be read: {error}");
                terminal::print_error(&format!("warning: {problem}"));
            }
        });
        read.await
            .map_err(|source| Error::request(format!("list {}", K::plural(&())), source))?;
        Ok(found)
    }
}

/// Returns the finding of the request of this `attempt`.
pub(super) fn optional<K>(
    found: kube::Result<Option<K>>,
    attempt: &str,
) -> Result<Option<K>, Error> {
    found.map_err(|source| Error::request(attempt, source))
}

/// Returns the policy as one of either scope: without a namespace it is a `ClusterPropagationPolicy`.
pub(super) fn policy_of_fleet(policy: ClusterPropagationPolicy) -> PropagationPolicy {
    PropagationPolicy {
        metadata: policy.metadata,
        spec: policy.spec,
        ..PropagationPolicy::default()
    }
}

/// Returns the binding as one of either scope: without a namespace it is a `ClusterResourceBinding`.
pub(super) fn of_either_scope(binding: ClusterResourceBinding) -> ResourceBinding {
    ResourceBinding {
        metadata: binding.metadata,
        spec: binding.spec,
        status: binding.status,
    }
}
