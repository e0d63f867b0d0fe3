//! A pause holds what would change in the members, and a resume lets it through at once.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::{OverridePolicy, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::{
    WEB, deployed, deployments, has_data, has_image, holds, image, maps, running, set_data,
    set_image, suspend, until_work, with_settings, work_has,
};

/// Case 15: a pause ends a fight with another writer, which writes as it likes meanwhile; the resume is one
/// write.
async fn a_pause_ends_a_fight_of_two_writers(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1)]).await?;
    let member = fleet.member(Member(1));
    let fight = async |replicas: i32| scale(&deployments(member), replicas).await;
    for replicas in 5..8 {
        fight(replicas).await?;
        is_scaled(&deployments(member), 4).await?;
    }
    suspend(&fleet, json!({ "dispatching": true })).await?;
    work_has(&fleet, Member(1), "Dispatching", "False", "web:1").await?;
    let before = member.successful_writes().await?;
    for replicas in 10..20 {
        fight(replicas).await?;
    }
    is_observed(&fleet, 1).await?;
    let writes = member.successful_writes().await?;
    assert_eq!(
        writes.clone().since(&before).to_string(),
        "10 PATCH deployments.apps, 1 PATCH deployments.apps/status"
    );

    suspend(&fleet, Value::Null).await?;
    is_scaled(&deployments(member), 4).await?;
    is_observed(&fleet, 2).await?;
    assert_eq!(
        member.successful_writes().await?.since(&writes).to_string(),
        "1 APPLY deployments.apps, 1 PATCH deployments.apps/status"
    );
    Ok(())
}

async fn scale(deployments: &Api<Deployment>, replicas: i32) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let parameters = PatchParams::default();
    deployments.patch(WEB, &parameters, &patch).await?;
    Ok(())
}

async fn is_scaled(deployments: &Api<Deployment>, replicas: i32) -> Result<()> {
    until(deployments, WEB, &format!("{replicas} replicas"), |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(replicas))
    })
    .await?;
    Ok(())
}

/// Reports so many replicas in the first member, and waits until the Work shows them: whatever was to be done
/// about the versions before is done then.
async fn is_observed(fleet: &PropagationFleet, replicas: i32) -> Result<()> {
    let copies = deployments(fleet.member(Member(1)));
    let status = Patch::Merge(json!({ "status": { "replicas": replicas } }));
    let parameters = PatchParams::default();
    copies.patch_status(WEB, &parameters, &status).await?;
    until_work(fleet, Member(1), "Deployment", "observed", |work| {
        let status = work.and_then(|work| work.status.as_ref());
        let status = status.and_then(|status| status.manifest_statuses.first()?.status.as_ref());
        status.is_some_and(|status| status["replicas"] == replicas)
    })
    .await
}

/// Case 16: a new version is held everywhere, goes to one member, then to the next; a version that is
/// taken back half-way never reaches the last.
async fn a_new_version_goes_member_by_member(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2), Member(3)];
    let (fleet, _programs) = deployed(server, &members).await?;

    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    set_image(&fleet, "web:2").await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:2").await?;
        assert_eq!(running(&fleet, member).await?, "web:1");
    }

    let paused = |names: &[&str]| {
        json!({ "dispatching": null,
        "dispatchingOnClusters": { "clusterNames": names } })
    };
    suspend(&fleet, paused(&["member2", "member3"])).await?;
    has_image(&fleet, Member(1), "web:2").await?;
    assert_eq!(running(&fleet, Member(2)).await?, "web:1");
    suspend(&fleet, paused(&["member3"])).await?;
    has_image(&fleet, Member(2), "web:2").await?;
    assert_eq!(running(&fleet, Member(3)).await?, "web:1");

    set_image(&fleet, "web:1").await?;
    has_image(&fleet, Member(1), "web:1").await?;
    has_image(&fleet, Member(2), "web:1").await?;
    let last = deployments(fleet.member(Member(3)));
    let before = last.get(WEB).await?.spec;
    suspend(&fleet, Value::Null).await?;
    work_has(&fleet, Member(3), "Dispatching", "True", "web:1").await?;
    assert_eq!(last.get(WEB).await?.spec, before);
    Ok(())
}

/// Case 17: while paused, the template is scaled and an override made for one member; each member gets its
/// part at resume, and the other nothing of the override.
async fn what_changes_while_paused_arrives_at_resume(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (fleet, _programs) = deployed(server, &members).await?;
    let templates = deployments(&fleet.karmada);
    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    let scale = Patch::Merge(json!({ "spec": { "replicas": 6 } }));
    templates
        .patch(WEB, &PatchParams::default(), &scale)
        .await?;
    let tag = json!({ "component": "Tag", "operator": "replace", "value": "canary" });
    let rule = json!({ "targetCluster": { "clusterNames": ["member2"] },
        "overriders": { "imageOverrider": [tag] } });
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "overrideRules": [rule] });
    let overrides: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    create(
        &overrides,
        json!({ "metadata": { "name": WEB }, "spec": spec }),
    )
    .await?;
    work_has(&fleet, Member(2), "Dispatching", "False", "web:canary").await?;
    for member in members {
        let copies = deployments(fleet.member(member));
        let copy = copies.get(WEB).await?;
        assert_eq!(image(&copy).as_deref(), Some("web:1"));
        assert_eq!(copy.spec.unwrap().replicas, Some(2));
    }

    // A merge patch: what stays is `suspension: {}`.
    suspend(&fleet, json!({ "dispatching": null })).await?;
    has_image(&fleet, Member(2), "web:canary").await?;
    for member in members {
        let copies = deployments(fleet.member(member));
        until(&copies, WEB, "scaled", |copy| {
            let spec = copy.and_then(|copy| copy.spec.as_ref());
            spec.is_some_and(|spec| spec.replicas == Some(3))
        })
        .await?;
    }
    assert_eq!(running(&fleet, Member(1)).await?, "web:1");
    Ok(())
}

/// Case 18: what would leave a paused fleet is in its bindings and Works, and not in a member.
async fn what_would_leave_is_in_bindings_and_works(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (fleet, _programs) = deployed(server, &members).await?;
    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    scale(&deployments(&fleet.karmada), 6).await?;
    set_image(&fleet, "web:2").await?;

    let binding = names::binding("Deployment", WEB);
    until(&fleet.bindings(), &binding, "divided anew", |binding| {
        let spec = binding.map(|binding| &binding.spec);
        spec.is_some_and(|spec| {
            let mut clusters = spec.clusters.iter().flatten();
            spec.replicas == Some(6) && clusters.all(|cluster| cluster.replicas == Some(3))
        })
    })
    .await?;
    for member in members {
        until_work(&fleet, member, "Deployment", "with both edits", |work| {
            let manifest = work.and_then(|work| work.spec.workload.manifests.first());
            manifest.is_some_and(|manifest| {
                let image = manifest.pointer(super::IMAGE).and_then(Value::as_str);
                manifest["spec"]["replicas"] == 3 && image == Some("web:2")
            })
        })
        .await?;
        let copy = deployments(fleet.member(member)).get(WEB).await?;
        assert_eq!(image(&copy).as_deref(), Some("web:1"));
        assert_eq!(copy.spec.unwrap().replicas, Some(2));
    }
    Ok(())
}

/// Case 20: a suspension that is empty, gone or false suspends nothing.
async fn a_pause_ends_in_three_ways(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = with_settings(server, 1, json!({})).await?;
    let ways = [
        json!({ "dispatching": null }),
        Value::Null,
        json!({ "dispatching": false }),
    ];
    for (way, values) in ways.into_iter().zip([["1", "2"], ["2", "3"], ["3", "4"]]) {
        let [before, after] = values;
        has_data(&fleet, Member(1), &[("a", before)]).await?;
        suspend(&fleet, json!({ "dispatching": true })).await?;
        holds(&fleet, Member(1), before).await?;
        set_data(&fleet.karmada, json!({ "a": after })).await?;
        holds(&fleet, Member(1), after).await?;
        has_data(&fleet, Member(1), &[("a", before)]).await?;
        suspend(&fleet, way).await?;
        has_data(&fleet, Member(1), &[("a", after)]).await?;
    }
    Ok(())
}

/// Case 21: a template whose policy is paused from the start has Works, and copies with the resume only, each
/// by one write.
async fn a_first_placement_waits_for_the_resume(server: ApiKind) -> Result<()> {
    let paused = json!({ "suspension": { "dispatching": true } });
    let (fleet, _programs) = with_settings(server, 2, paused).await?;
    let members = [Member(1), Member(2)];
    for value in ["1", "2"] {
        set_data(&fleet.karmada, json!({ "a": value })).await?;
        for member in members {
            holds(&fleet, member, value).await?;
            assert!(maps(fleet.member(member)).get_opt(WEB).await?.is_none());
        }
    }
    suspend(&fleet, Value::Null).await?;
    for member in members {
        has_data(&fleet, member, &[("a", "2")]).await?;
        let copy = maps(fleet.member(member)).get(WEB).await?;
        // Two managers would be two writers.
        assert_eq!(copy.metadata.managed_fields.unwrap().len(), 1);
    }
    Ok(())
}

on_both!(
    a_pause_ends_a_fight_of_two_writers,
    a_new_version_goes_member_by_member,
    what_changes_while_paused_arrives_at_resume,
    what_would_leave_is_in_bindings_and_works,
    a_pause_ends_in_three_ways,
    a_first_placement_waits_for_the_resume,
);
