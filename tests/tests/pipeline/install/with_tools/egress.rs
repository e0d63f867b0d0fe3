//! A member whose only way out is a proxy, and whose registry wants a secret.

mod real {
    use std::fs;

    use anyhow::{Context, Result, ensure};
    use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Secret};
    use karmada_api::condition::DNS_READY;
    use kube::Api;
    use lab_parts::{
        connect_proxy::{Answer, ConnectProxy},
        dns::{self, DnsServer},
        thresholds::ProbeTiming,
    };
    use pipeline_tests::{
        agents::{MEMBER, has_condition},
        control_plane::ApiKind,
        fleet::{Fleet, isolated},
        kubectl::Kubectl,
        programs::{Binary, Profile, Running},
        test_name,
    };
    use serde_json::{Value, json};

    use super::super::Reader;
    use crate::install::mount;

    const PAGE: &str = include_str!("../../../../../docs/kubectl-remedy-join.md");
    /// The proxy of the page.
    const PROXY: &str = "http://proxy.example:3128";
    /// The credentials of the member, of which a check reads the end.
    const CREDENTIALS: &str = "
kubectl --context karmada create namespace karmada-cluster
kubectl --context karmada -n karmada-cluster create secret generic member1 --from-literal=token=t
";

    /// Returns the page's component, which has this proxy.
    fn component(proxy: &ConnectProxy) -> Result<String> {
        let (_, section) = PAGE
            .split_once("\n## With a kustomization\n")
            .context("the page has no such section")?;
        let lines = section.lines().skip_while(|line| !line.starts_with("    "));
        let block: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
        let component = block.join("\n");
        ensure!(component.contains(PROXY), "{component}");
        Ok(component.replace(PROXY, &format!("http://{}", proxy.address())))
    }

    /// Returns the pods' variables whose values are written down.
    fn variables(pod: &Value) -> impl Iterator<Item = (String, String)> {
        let variables = pod["containers"][0]["env"].as_array().into_iter().flatten();
        variables.filter_map(|variable| {
            let (name, value) = (variable["name"].as_str()?, variable["value"].as_str()?);
            Some((name.to_owned(), value.to_owned()))
        })
    }

    /// A member knows the Karmada API by a name that only its proxy can look up. It joins with the component that the page shows: its
    /// pods have the pull secret, its agents report through the proxy, and a check is content.
    #[test]
    #[ignore = "long"]
    fn member_joins_through_proxy() {
        isolated(test_name!(), async || {
            Fleet::lay_network(&[MEMBER])?;
            let fleet = Fleet::start(ApiKind::Real, Profile::Debug).await?;
            fleet.register(MEMBER).await?;
            let controllers = [
                fleet.remedy_controller().await?,
                fleet.ingress_controller().await?,
            ];
            let reader = Reader::new(&fleet, ApiKind::Real)?;
            reader.run(CREDENTIALS).await?;
            let karmada = fleet.karmada.address();
            let proxy = ConnectProxy::start(Answer::Leads(karmada)).await?;
            let settings = reader.path("member-settings");
            fs::create_dir(&settings)?;
            fs::write(settings.join("kustomization.yaml"), component(&proxy)?)?;

            let kubectl = Kubectl::new(reader.path(".kube/config"))?;
            let member = MEMBER.name();
            let server = format!("--server=https://karmada.invalid:{}", karmada.port());
            // Its certificate is not for a name of the test's.
            let name = format!("--tls-server-name={}", karmada.ip());
            let given = format!("--kustomize={}", settings.display());
            let join = [
                "join",
                &member,
                "--context=karmada",
                "--member-context=member1",
                "--image=registry.example/cluster-health-agent:0.1.0",
                &server,
                &name,
                &given,
                "--wait=false",
            ];
            let joined = kubectl.remedy(&join, "").await?;
            ensure!(joined.code == Some(0), "{joined:?}");

            let client = fleet.gateway.client();
            let agents: Api<DaemonSet> = Api::namespaced(client.clone(), "karmada-rs");
            let agents = serde_json::to_value(agents.get("cluster-health-agent").await?)?;
            let pod = &agents["spec"]["template"]["spec"];
            let secrets = &pod["imagePullSecrets"];
            ensure!(*secrets == json!([{ "name": "registry-example" }]), "{pod}");
            let secrets: Api<Secret> = Api::namespaced(client, "karmada-rs");
            let secret = secrets.get("cluster-health-agent-karmada").await?;
            let mounted = reader.path("mounted");
            mount(secret, &mounted)?;
            let dns = DnsServer::start(dns::cluster()).await?;
            let mut flags = vec![
                format!(
                    "--karmada-kubeconfig={}",
                    mounted.join("kubeconfig").display()
                ),
                format!("--nameserver={}", dns.address()),
            ];
            flags.extend(ProbeTiming::SHORT.flags());
            let agent = Running::start_in(variables(pod), Binary::Agent, Profile::Debug, flags);
            let agent = agent.await?;

            has_condition(&fleet, DNS_READY, "True", "").await?;
            let check = ["check", "--context=karmada", "--wait=1m"];
            let checked = kubectl.remedy(&check, "").await?;
            ensure!(checked.code == Some(0), "{checked:?}");
            let reports = format!("✓ {member} reports: {DNS_READY} is True");
            ensure!(checked.stdout.contains(&reports), "{checked:?}");
            let asked = format!("CONNECT karmada.invalid:{} ", karmada.port());
            let log = proxy.asked();
            ensure!(!log.is_empty(), "nobody asked the proxy");
            ensure!(log.iter().all(|head| head.starts_with(&asked)), "{log:?}");

            agent.stop().await?;
            for controller in controllers {
                controller.stop().await?;
            }
            Ok(())
        });
    }
}
