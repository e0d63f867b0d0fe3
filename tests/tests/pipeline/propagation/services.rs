//! The ports that each API allocates to a Service by itself.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use karmada_api::names;
use kube::{Api, api::PostParams};
use pipeline_tests::{
    both,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    propagation::PropagationFleet,
    test_name,
    wait::until,
};
use serde_json::{Value, from_value, json};

use super::has_condition;

const MEMBER: Member = Member(1);
/// The port that a user asks for.
const ASKED: i32 = 30_080;

fn services(api: &ControlPlane, namespace: &str) -> Api<Service> {
    Api::namespaced(api.client(), namespace)
}

async fn create(services: &Api<Service>, ports: Value) -> Result<Service> {
    let service = json!({ "metadata": { "name": "web" },
        "spec": { "type": "NodePort", "selector": { "app": "web" }, "ports": ports } });
    let service = from_value(service)?;
    Ok(services.create(&PostParams::default(), &service).await?)
}

fn node_ports(service: &Service) -> Vec<i32> {
    let ports = service.spec.iter().flat_map(|spec| &spec.ports).flatten();
    ports.filter_map(|port| port.node_port).collect()
}

/// Cases P95 and P114: the port that the control plane's API has chosen is another's in the member, which chooses its own; the one
/// that a user asked for is the same. A restart writes nothing.
async fn members_choose_their_ports(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let member = fleet.member(MEMBER);
    let ports =
        json!([{ "name": "open", "port": 80 }, { "name": "asked", "port": 81, "nodePort": ASKED }]);
    let template = create(&services(&fleet.karmada, NAMESPACE), ports).await?;
    let chosen = *node_ports(&template).first().context("no port")?;
    let theirs = json!([{ "port": 80, "nodePort": chosen }]);
    create(&services(member, "default"), theirs).await?;
    let spec = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "Service", "name": "web" }],
        "placement": {},
    });
    fleet.create_policy("web", spec).await?;
    let programs = fleet.run().await?;
    let work = names::work("Service", NAMESPACE, "web");
    until(&fleet.works(MEMBER), &work, "applied", |work| {
        work.is_some_and(|work| has_condition(work, "Applied", "True"))
    })
    .await?;
    let copy = services(member, NAMESPACE).get("web").await?;
    let ports = node_ports(&copy);
    ensure!(
        ports[0] != chosen && ports[1] == ASKED,
        "{ports:?}, not {chosen}"
    );

    // It looks a minute later if the member has the port free by then.
    programs.settled_but_for(1).await?;
    programs.stop().await?;
    let before = member.successful_writes().await?;
    let programs = fleet.run().await?;
    programs.settled_but_for(1).await?;
    let written = member.successful_writes().await?.since(&before);
    ensure!(written.to_string() == "no writes", "{written}");
    programs.stop().await
}

// On the real API only: the embedded one allocates nothing.
mod real {
    use super::*;

    #[test]
    fn members_choose_their_ports() {
        both::run(
            test_name!(),
            ApiKind::Real,
            super::members_choose_their_ports,
        );
    }
}
