//! An API that is upgraded, and with it the defaults of a kind, while a Lazy policy waits.

use std::time::Duration;

use anyhow::{Context, Result};
use karmada_api::names;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use pipeline_tests::{
    api::merge,
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::PropagationFleet,
    wait::until,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{WEB, change, policy_applied};

const KIND: &str = "Shop";

/// The limit until an upgraded definition is in effect, and the interval between two looks: there is no event.
const UPGRADED_WITHIN: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(20);

/// Returns the definition of [`KIND`], whose tier is described by this schema.
fn definition(tier: &Value) -> Result<DynamicObject> {
    let fields = json!({ "size": { "type": "integer" }, "tier": tier });
    crds::definition("example.com", KIND, "shops", &fields)
}

/// Returns the shops of an API.
fn shops(api: &ControlPlane) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", KIND));
    Api::namespaced_with(api.client(), NAMESPACE, &resource)
}

/// Starts a fleet of two members that serve [`KIND`].
async fn with_shops(server: ApiKind) -> Result<PropagationFleet> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let definition = definition(&json!({ "type": "string" }))?;
    let definitions = std::slice::from_ref(&definition);
    crds::apply(&fleet.karmada.client(), definitions).await?;
    fleet.allow("example.com/shops").await?;
    for member in fleet.members() {
        crds::apply(&fleet.member(member).client(), definitions).await?;
        let kinds = [("example.com/v1", KIND, "shops")];
        fleet.enable(member, kinds).await?;
    }
    Ok(fleet)
}

/// A Lazy policy that places the shop in one member.
fn lazily(member: Member) -> Value {
    json!({
        "activationPreference": "Lazy",
        "resourceSelectors": [{ "apiVersion": "example.com/v1", "kind": KIND, "name": WEB }],
        "placement": { "clusterAffinity": { "clusterNames": [member.name()] } },
    })
}

/// Gives the tier of all shops in the fleet's API a default.
async fn upgrade(fleet: &PropagationFleet) -> Result<()> {
    let tier = json!({ "type": "string", "default": "front" });
    crds::apply(&fleet.karmada.client(), &[definition(&tier)?]).await?;
    let templates = shops(&fleet.karmada);
    let upgraded = async {
        while templates.get(WEB).await?.data["spec"]["tier"] != "front" {
            sleep(POLL).await;
        }
        anyhow::Ok(())
    };
    let upgraded = timeout(UPGRADED_WITHIN, upgraded).await;
    upgraded.context("the API still answers without the new default")?
}

/// Creates the shop whose template travels.
async fn create_shop(fleet: &PropagationFleet) -> Result<()> {
    let shop = json!({ "apiVersion": "example.com/v1", "kind": KIND,
        "metadata": { "name": WEB }, "spec": { "size": 3 } });
    let shop = serde_json::from_value(shop)?;
    let parameters = PostParams::default();
    shops(&fleet.karmada).create(&parameters, &shop).await?;
    Ok(())
}

/// Waits until a member has the shop.
async fn comes(fleet: &PropagationFleet, member: Member) -> Result<()> {
    until(&shops(fleet.member(member)), WEB, "there", |copy| {
        copy.is_some()
    })
    .await?;
    Ok(())
}

/// Cases P30 and P49: a program that starts reads a template with a new default, and that is no edit.
async fn new_defaults_move_nothing(server: ApiKind) -> Result<()> {
    let (one, two) = (Member(1), Member(2));
    let fleet = with_shops(server).await?;
    fleet.create_policy(WEB, lazily(one)).await?;
    let programs = fleet.run().await?;
    create_shop(&fleet).await?;
    comes(&fleet, one).await?;
    change(&fleet, WEB, lazily(two)).await?;
    policy_applied(&fleet, KIND, "False", "waits for the next edit").await?;

    upgrade(&fleet).await?;
    programs.stop().await?;
    let programs = fleet.run().await?;
    programs.settled().await?;
    let binding = fleet.bindings().get(&names::binding(KIND, WEB)).await?;
    let clusters = binding.spec.clusters.unwrap_or_default();
    assert_eq!(clusters[0].name, one.name());

    let edit = json!({ "metadata": { "labels": { "team": "front" } } });
    merge(&shops(&fleet.karmada), WEB, &edit).await?;
    comes(&fleet, two).await?;
    until(&shops(fleet.member(one)), WEB, "gone", |copy| {
        copy.is_none()
    })
    .await?;
    programs.stop().await
}

on_both!(long: new_defaults_move_nothing);
