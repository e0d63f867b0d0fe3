//! Kubectl and `kubectl remedy` at an API that only a proxy knows.

use std::fs;

use anyhow::{Context, Result};
use lab_parts::connect_proxy::{Answer, ConnectProxy};
use pipeline_tests::{
    control_plane::ApiKind, fleet::Fleet, kubectl::Kubectl, on_both, programs::Profile,
};
use serde_json::{Value, json};

/// A kubeconfig names a proxy, and the API by a name that nobody else can look up. `kubectl remedy` gets there, and does not
/// where the proxy refuses; then it names both.
async fn proxy_leads_to_api(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.create_cluster("member1").await?;
    let direct = fleet.karmada.kubeconfig_path();
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(direct)?)?;
    let address = fleet.karmada.address();
    let cluster = &mut kubeconfig["clusters"][0]["cluster"];
    let url = cluster["server"].as_str().context("no server")?;
    cluster["server"] = json!(url.replace(&address.ip().to_string(), "karmada.invalid"));
    // Its certificate is not for a name of the test's.
    cluster["tls-server-name"] = json!(address.ip().to_string());
    let path = direct.with_file_name("proxied");
    let proxied = |proxy: &ConnectProxy| {
        let mut kubeconfig = kubeconfig.clone();
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] =
            json!(format!("http://{}", proxy.address()));
        fs::write(&path, kubeconfig.to_string())?;
        Kubectl::new(path.clone())
    };

    let proxy = ConnectProxy::start(Answer::Leads(address)).await?;
    let status = proxied(&proxy)?.remedy(&["status"], "").await?;
    assert_eq!(status.code, Some(0), "{status:?}");
    assert!(status.stdout.contains("member1"), "{status:?}");
    let asked = format!("CONNECT karmada.invalid:{} ", address.port());
    let log = proxy.asked();
    assert!(log.iter().all(|head| head.starts_with(&asked)), "{log:?}");
    assert!(!log.is_empty());
    // Kubectl takes the same way to a server by TLS.
    if server == ApiKind::Real {
        let named = proxied(&proxy)?.run("get clusters -o name").await?;
        assert_eq!(named, "cluster.cluster.karmada.io/member1\n");
    }

    let closed = ConnectProxy::start(Answer::Refuses(403)).await?;
    let status = proxied(&closed)?.remedy(&["status"], "").await?;
    assert_eq!(status.code, Some(2), "{status:?}");
    let refusal = format!(
        "the proxy {} does not lead to karmada.invalid",
        closed.address()
    );
    assert!(status.stderr.contains(&refusal), "{status:?}");
    Ok(())
}

on_both!(long: proxy_leads_to_api);
