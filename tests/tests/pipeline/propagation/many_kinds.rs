//! More kinds than a connection carries watches, where each API allows as many streams as kube-apiserver does.

use anyhow::{Result, ensure};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::NAMESPACE,
    kinds::{Kinds, keeps_its_lease},
    programs::Profile,
    propagation::PropagationFleet,
};
use serde_json::json;

/// A policy over so many kinds: each travels, and its edits, and no program loses its lease.
async fn travel(kinds: [ApiKind; 2], number: u16, members: u8, edits: u16) -> Result<()> {
    let fleet = PropagationFleet::start_on(kinds, members, Profile::Debug).await?;
    let kinds = Kinds::of(number, NAMESPACE);
    let apis: Vec<_> = fleet.members().map(|member| fleet.member(member)).collect();
    for api in apis.iter().copied().chain([&fleet.karmada]) {
        api.namespace(NAMESPACE).await?;
        kinds.install(api).await?;
    }
    for member in fleet.members() {
        fleet.enable(member, kinds.served()).await?;
    }
    kinds.allow_propagation(&fleet.karmada).await?;
    let programs = fleet.run().await?;
    let spec = json!({ "resourceSelectors": kinds.selectors(), "placement": {} });
    fleet.create_policy("all", spec).await?;
    // Each edit is awaited in one member, and the last one in all: a look costs the laboratory more than the edit costs us.
    for edit in 0..=edits {
        kinds.write(&fleet.karmada, edit).await?;
        kinds.arrive(apis[0], edit).await?;
    }
    for api in &apis {
        kinds.arrive(api, edits).await?;
    }
    for (program, name) in programs.all() {
        let lease = match name {
            // That of Karmada's own.
            "scheduler" => "karmada-scheduler".to_owned(),
            name => name.replace('_', "-"),
        };
        let (prefix, lease) = (format!("karmada_{name}"), ["karmada-system", &*lease]);
        keeps_its_lease(program, &prefix, &fleet.karmada, lease).await?;
    }
    let watches = "karmada_execution_controller_api_streams{api=\"members\",purpose=\"watches\"}";
    let watches = programs.execution_controller.metric(watches).await?;
    let least = f64::from(number) * f64::from(members);
    ensure!(watches >= least, "{watches} watches of members");
    programs.stop().await
}

mod embedded {
    use pipeline_tests::{both, control_plane::ApiKind, test_name};

    /// Case P83: a policy over 110 kinds.
    #[test]
    fn hundred_kinds_travel() {
        both::run(test_name!(), ApiKind::EmbeddedByTls, async |server| {
            super::travel([server, server], 110, 1, 1).await
        });
    }

    /// Case P83: the same 110 kinds in sixty members, each edited ten times.
    #[test]
    #[ignore = "long"]
    fn sixty_members_have_them() {
        both::run(test_name!(), ApiKind::EmbeddedByTls, async |server| {
            super::travel([server, server], 110, 60, 10).await
        });
    }
}

mod real {
    use pipeline_tests::{both, control_plane::ApiKind, test_name};

    /// Case P83: a policy over 110 kinds, and a kube-apiserver.
    #[test]
    #[ignore = "long"]
    fn hundred_kinds_travel() {
        both::run(test_name!(), ApiKind::Real, async |server| {
            super::travel([server, ApiKind::EmbeddedByTls], 110, 2, 1).await
        });
    }

    /// Case P83: 500 kinds, each edited a hundred times.
    #[test]
    #[ignore = "long"]
    fn five_hundred_kinds_travel() {
        both::run(test_name!(), ApiKind::Real, async |server| {
            super::travel([server, ApiKind::EmbeddedByTls], 500, 1, 100).await
        });
    }
}
