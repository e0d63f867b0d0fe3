//! Objects of every kind that a cluster knows, as users write them.

use anyhow::{Context, Result};
use karmada_api::{ClusterProfile, names};
use kube::{
    Api,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams, ResourceExt,
    },
};
use pipeline_tests::{
    both,
    control_plane::{ApiKind, ControlPlane},
    fleet::Member,
    propagation::PropagationFleet,
    test_name,
    wait::until,
};
use serde_json::{Value, json};

use super::has_condition;

/// An object of any kind, with the resource of its kind.
struct Template {
    object: DynamicObject,
    resource: ApiResource,
}

impl Template {
    fn all() -> Result<Vec<Self>> {
        let text = include_str!("../../../fixtures/kinds.yaml");
        let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(text)?;
        let template = |object: DynamicObject| {
            let types = object.types.as_ref().context("no kind")?;
            let kind = GroupVersionKind::try_from(types)?;
            let resource = ApiResource::from_gvk(&kind);
            Ok(Self { object, resource })
        };
        objects.into_iter().map(template).collect()
    }

    fn api(&self, api: &ControlPlane) -> Api<DynamicObject> {
        match self.object.namespace() {
            Some(namespace) => Api::namespaced_with(api.client(), &namespace, &self.resource),
            None => Api::all_with(api.client(), &self.resource),
        }
    }
}

/// Says that the member serves these kinds.
async fn enable(fleet: &PropagationFleet, templates: &[Template]) -> Result<()> {
    let enabled = templates.iter().map(|template| {
        let ApiResource {
            api_version,
            kind,
            plural,
            ..
        } = &template.resource;
        json!({ "groupVersion": api_version, "resources": [{ "name": plural, "kind": kind }] })
    });
    let enabled: Vec<Value> = enabled.collect();
    let patch = Patch::Merge(json!({ "status": { "apiEnablements": enabled } }));
    let clusters: Api<ClusterProfile> = Api::all(fleet.karmada.client());
    let (name, parameters) = (Member(1).name(), PatchParams::default());
    clusters.patch_status(&name, &parameters, &patch).await?;
    Ok(())
}

/// Creates the templates, and a policy for them.
async fn create(fleet: &PropagationFleet, templates: &[Template]) -> Result<()> {
    let selectors = templates.iter().map(|template| {
        let ApiResource {
            api_version, kind, ..
        } = &template.resource;
        json!({ "apiVersion": api_version, "kind": kind, "name": template.object.name_any(),
            "namespace": template.object.namespace() })
    });
    let selectors: Vec<_> = selectors.collect();
    let spec = json!({ "resourceSelectors": selectors, "placement": {} });
    fleet.create_cluster_policy("kinds", spec).await?;
    for template in templates {
        let api = template.api(&fleet.karmada);
        let created = api.create(&PostParams::default(), &template.object).await;
        created.with_context(|| template.resource.kind.clone())?;
    }
    Ok(())
}

/// Waits until the Works of the templates are applied.
async fn are_applied(fleet: &PropagationFleet, templates: &[Template]) -> Result<()> {
    for template in templates {
        let namespace = template.object.namespace().unwrap_or_default();
        let name = template.object.name_any();
        let work = names::work(&template.resource.kind, &namespace, &name);
        until(&fleet.works(Member(1)), &work, "applied", |work| {
            work.is_some_and(|work| has_condition(work, "Applied", "True"))
        })
        .await?;
    }
    Ok(())
}

/// Every kind arrives by one write, whatever the API server adds to it, and a start writes nothing.
async fn every_kind_arrives_by_one_write(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let member = fleet.member(Member(1));
    fleet.karmada.namespace("other").await?;
    let templates = Template::all()?;
    enable(&fleet, &templates).await?;
    create(&fleet, &templates).await?;
    let before = member.successful_writes().await?;
    let programs = fleet.run().await?;
    are_applied(&fleet, &templates).await?;
    programs.settled().await?;
    programs.stop().await?;

    let written = member.successful_writes().await?.since(&before);
    for template in &templates {
        let ApiResource { group, plural, .. } = &template.resource;
        let is_same = |one: &&Template| one.resource == template.resource;
        let copies = templates.iter().filter(is_same).count();
        let writes = written
            .0
            .iter()
            .filter(|(write, _)| (&write.group, &write.resource) == (group, plural));
        let writes: u64 = writes.map(|(_, count)| count).sum();
        // The API server's own writes of definitions are not told apart.
        if plural != "customresourcedefinitions" {
            assert_eq!(writes, copies as u64, "{plural}: {written}");
        }
    }

    let both = async || -> Result<_> {
        let karmada = fleet.karmada.successful_writes().await?;
        Ok([karmada, member.successful_writes().await?])
    };
    let before = both().await?;
    let programs = fleet.run().await?;
    programs.settled().await?;
    programs.stop().await?;
    for (after, before) in both().await?.into_iter().zip(before) {
        assert_eq!(after.since(&before).to_string(), "no writes");
    }
    Ok(())
}

// On the real API only: the embedded one has few kinds and no defaults.
mod real {
    use super::*;

    #[test]
    fn every_kind_arrives_by_one_write() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::every_kind_arrives_by_one_write,
        );
    }
}
