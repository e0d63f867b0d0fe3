//! Objects of every kind that a cluster knows, as users write them.

use anyhow::{Context, Result};
use karmada_api::names;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams, ResourceExt},
};
use pipeline_tests::{
    api::merge,
    both,
    control_plane::{ApiKind, ControlPlane},
    fleet::Member,
    propagation::PropagationFleet,
    test_name,
    wait::until,
    writes::{WriteCounts, WriteKind},
};
use serde_json::json;

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
        objects
            .into_iter()
            .map(|object| {
                let types = object.types.as_ref().context("no kind")?;
                let kind = GroupVersionKind::try_from(types)?;
                let resource = ApiResource::from_gvk(&kind);
                Ok(Self { object, resource })
            })
            .collect()
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
    let kinds = templates.iter().map(|template| {
        let ApiResource {
            api_version,
            kind,
            plural,
            ..
        } = &template.resource;
        (&**api_version, &**kind, &**plural)
    });
    fleet.enable(Member(1), kinds).await
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

/// Fails unless each template made one write in the member.
fn ensure_one_write_each(templates: &[Template], written: &WriteCounts) {
    for template in templates {
        let ApiResource { group, plural, .. } = &template.resource;
        let copies = templates
            .iter()
            .filter(|one| one.resource == template.resource)
            .count();
        let of_kind = |write: &WriteKind| (&write.group, &write.resource) == (group, plural);
        let writes = written.0.iter().filter(|(write, _)| of_kind(write));
        let writes: u64 = writes.map(|(_, count)| count).sum();
        // The API server's own writes of definitions are not told apart.
        if plural != "customresourcedefinitions" {
            assert_eq!(writes, copies as u64, "{plural}: {written}");
        }
    }
}

/// Labels each template, and waits until the copies are labelled.
async fn edit(fleet: &PropagationFleet, templates: &[Template]) -> Result<()> {
    let edit = json!({ "metadata": { "labels": { "tier": "front" } } });
    for template in templates {
        let (api, name) = (template.api(&fleet.karmada), template.object.name_any());
        merge(&api, &name, &edit).await?;
    }
    for template in templates {
        let api = template.api(fleet.member(Member(1)));
        until(&api, &template.object.name_any(), "edited", |copy| {
            copy.is_some_and(|copy| copy.labels().contains_key("tier"))
        })
        .await?;
    }
    Ok(())
}

/// Deletes each template, and waits until the copies are gone.
async fn delete(fleet: &PropagationFleet, templates: &[Template]) -> Result<()> {
    for template in templates {
        let (api, name) = (template.api(&fleet.karmada), template.object.name_any());
        // As kubectl does: by default, a Job would leave its binding behind.
        api.delete(&name, &DeleteParams::background()).await?;
    }
    for template in templates {
        let api = template.api(fleet.member(Member(1)));
        let name = template.object.name_any();
        until(&api, &name, "gone", |copy| copy.is_none()).await?;
    }
    Ok(())
}

/// Every kind comes, changes and goes by one write each, whatever the API server adds to it, and a start
/// writes nothing.
async fn every_kind_takes_one_write(server: ApiKind) -> Result<()> {
    let mut fleet = PropagationFleet::start(server, 1).await?;
    fleet.karmada.start_controllers().await?;
    fleet.karmada.namespace("other").await?;
    let member = fleet.member(Member(1));
    let templates = Template::all()?;
    enable(&fleet, &templates).await?;
    create(&fleet, &templates).await?;
    let before = member.successful_writes().await?;
    let programs = fleet.run().await?;
    are_applied(&fleet, &templates).await?;
    programs.settled().await?;
    let there = member.successful_writes().await?;
    ensure_one_write_each(&templates, &there.clone().since(&before));

    edit(&fleet, &templates).await?;
    are_applied(&fleet, &templates).await?;
    programs.settled().await?;
    programs.stop().await?;
    let edited = member.successful_writes().await?;
    ensure_one_write_each(&templates, &edited.clone().since(&there));

    let karmada = fleet.karmada.successful_writes().await?;
    let programs = fleet.run().await?;
    programs.settled().await?;
    let written = fleet.karmada.successful_writes().await?.since(&karmada);
    assert_eq!(written.to_string(), "no writes");
    let written = member.successful_writes().await?.since(&edited);
    assert_eq!(written.to_string(), "no writes");

    delete(&fleet, &templates).await?;
    let gone = member.successful_writes().await?;
    ensure_one_write_each(&templates, &gone.since(&edited));
    Ok(())
}

// On the real API only: the embedded one has few kinds and no defaults.
mod real {
    use super::*;

    #[test]
    fn every_kind_takes_one_write() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::every_kind_takes_one_write,
        );
    }
}
