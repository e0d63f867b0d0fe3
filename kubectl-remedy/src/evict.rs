//! `kubectl remedy evict`: asks that a placement leave a cluster, within its budget.

use fleet_api::ClusterResourcePlacementEviction as Eviction;
use fleet_api::eviction::EvictionSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use objects::Metadata;
use objects::write::Write;

use crate::answer::Answer;
use crate::args::{DryRun, EvictArgs};
use crate::error::Error;
use crate::send::send;
use crate::terminal;

/// Creates an eviction, and says how to follow it.
pub(crate) async fn run(args: &EvictArgs, client: &Client) -> Result<Answer, Error> {
    let placement = args.placement.strip_prefix("crp/");
    let placement = placement.unwrap_or(&args.placement);
    let dry_run = args.dry_run.dry_run;
    let name = create(&eviction(placement, &args.target), client, dry_run).await?;
    if dry_run == DryRun::None {
        terminal::print_error(&format!(
            "`kubectl wait crpe/{name} --for condition=Executed` waits for it, and `kubectl describe crpe/{name}` tells why not"
        ));
    }
    Ok(Answer::Yes)
}

/// Creates an eviction, and returns its name.
pub(crate) async fn create(
    eviction: &Eviction,
    client: &Client,
    dry_run: DryRun,
) -> Result<String, Error> {
    let prefix = eviction.metadata.generate_name.as_deref();
    let mut name = format!("{}…", prefix.unwrap_or_default());
    if dry_run != DryRun::Client {
        let write = Write::create("eviction", eviction, &());
        let created = send::<Eviction>(client, &write, dry_run).await;
        let attempt = "create a ClusterResourcePlacementEviction";
        let created = created.map_err(|source| Error::request(attempt, source))?;
        created.metadata.name().clone_into(&mut name);
    }
    let suffix = dry_run.suffix();
    terminal::print(&format!(
        "clusterresourceplacementeviction.placement.kubernetes-fleet.io/{name} created{suffix}\n"
    ));
    Ok(name)
}

/// Returns the eviction of a placement from a cluster.
pub(crate) fn eviction(placement: &str, cluster: &str) -> Eviction {
    Eviction {
        api_version: Eviction::API_VERSION.to_owned(),
        kind: Eviction::KIND.to_owned(),
        metadata: ObjectMeta {
            // Each is decided once: another attempt is another one.
            generate_name: Some(format!("{placement}-from-{cluster}-")),
            ..ObjectMeta::default()
        },
        spec: EvictionSpec {
            placement_name: placement.to_owned(),
            cluster_name: cluster.to_owned(),
        },
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use fleet_api::definitions;
    use lab_parts::test_api::TestApi;
    use serde_json::json;

    use super::*;
    use crate::args::DryRunArgs;

    const EVICTIONS: &str =
        "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementevictions";

    /// Each call is an eviction of its own, and a dry run is none.
    #[tokio::test]
    async fn each_call_is_an_eviction() {
        let api = TestApi::with_kinds(definitions());
        for dry_run in [DryRun::Client, DryRun::None, DryRun::None] {
            let args = EvictArgs {
                placement: "crp/shop".to_owned(),
                target: "member1".to_owned(),
                dry_run: DryRunArgs { dry_run },
            };
            assert_eq!(run(&args, &api.client()).await.unwrap(), Answer::Yes);
        }
        let made = api.get(EVICTIONS).await;
        let made = made["items"].as_array().unwrap();
        assert_eq!(made.len(), 2);
        for eviction in made {
            assert!(eviction.name().starts_with("shop-from-member1-"));
            let spec = json!({ "placementName": "shop", "clusterName": "member1" });
            assert_eq!(eviction["spec"], spec);
        }
    }
}
