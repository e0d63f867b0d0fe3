//! The gateway part of docs/install.md, followed in its order by somebody whose two members have load balancers. On a real API only: the
//! embedded one has no tokens.
//!
//! No pod runs here: the test is the kubelet of the host, and the cloud of each cluster. In Karmada's place our programs propagate.

mod real {
    use std::time::Instant;

    use anyhow::{Context, Result, ensure};
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{Secret, Service},
        networking::v1::Ingress,
    };
    use kube::Api;
    use pipeline_tests::{
        api::merge_status,
        backend::HttpBackend,
        control_plane::{ApiKind, ControlPlane},
        fleet::{
            Fleet, GATEWAY_CLASS, HOST, Member, NAMESPACE, PROXY, SERVICE, isolated, proxy_access,
        },
        programs::{Binary, Profile, Running},
        propagation::{PropagationFleet, namespaced},
        served::Served,
        test_name,
        traefik::Traefik,
        traffic::{LEFT_AFTER, Traffic, reaches},
    };
    use serde_json::json;

    use super::super::{MEMBERS, Page, Reader};
    use crate::{
        gateway::{has_addresses, report_address},
        install::mount,
    };

    /// Waits until the members have the Service.
    const APPLIED: &str =
        "kubectl --context karmada -n shop wait rb web-service --for create --timeout 1m
kubectl --context karmada -n shop wait rb web-service --for condition=FullyApplied --timeout 1m";

    /// The namespace of the programs on the host.
    const SYSTEM: &str = "karmada-system";

    /// A Karmada with two members, whose host has an ingress controller, and nothing of ours for traffic.
    struct Stage {
        fleet: PropagationFleet,
        host: ControlPlane,
        proxy: Traefik,
        reader: Reader,
    }

    impl Stage {
        async fn start() -> Result<Self> {
            Fleet::lay_network(&MEMBERS)?;
            let kinds = [ApiKind::Real, ApiKind::Embedded];
            let (fleet, host) = tokio::try_join!(
                PropagationFleet::start_on(kinds, 2, Profile::Debug),
                ControlPlane::start("host", ApiKind::Real),
            )?;
            host.namespace(SYSTEM).await?;
            let access = proxy_access(&host).await?;
            let proxy = Traefik::start(PROXY.parse()?, &access, Some(GATEWAY_CLASS)).await?;
            let contexts = [("karmada", &fleet.karmada), ("host", &host)];
            let reader = Reader::of(&contexts, ApiKind::Real)?;
            reader.install_plugin()?;
            Ok(Self {
                fleet,
                host,
                proxy,
                reader,
            })
        }

        /// Makes the host the gateway, and installs the controllers.
        async fn install(&self) -> Result<[Running; 2]> {
            let steps = self.reader.steps(Page::Before, "The gateway");
            let [context, classes] = &steps[..] else {
                anyhow::bail!("the page has other commands: {steps:?}");
            };
            self.reader.run(context).await?;
            let classes = self.reader.run(classes).await?;
            ensure!(classes.contains(GATEWAY_CLASS), "{classes}");

            let steps = self.reader.steps(Page::Install, "2. ");
            let [rights, .., access] = &steps[..] else {
                anyhow::bail!("the page has other commands: {steps:?}");
            };
            let gateway = self.reader.steps(Page::Install, "3. ");
            let programs = self.reader.steps(Page::Install, "4. ").concat();
            // The page says so to whom step 3 has given an overlay.
            let programs = programs.replace("-k manifests/host", "-k overlays/host");
            for step in [rights, access].into_iter().chain(&gateway) {
                self.reader.run(step).await?;
            }
            self.reader.run(&programs).await?;
            Ok([
                self.run(Binary::RemedyController).await?,
                self.run(Binary::IngressController).await?,
            ])
        }

        /// Starts a program as the kubelet would: with the arguments of its Deployment, and the files of its Secrets.
        async fn run(&self, program: Binary) -> Result<Running> {
            let client = self.host.client();
            let deployments: Api<Deployment> = Api::namespaced(client.clone(), SYSTEM);
            let deployment = deployments.get(program.name()).await?;
            let deployment = serde_json::to_value(deployment)?;
            let pod = &deployment["spec"]["template"]["spec"];
            let mut arguments = pod["containers"][0]["args"].to_string();
            let secrets: Api<Secret> = Api::namespaced(client, SYSTEM);
            for volume in pod["volumes"].as_array().into_iter().flatten() {
                let name = volume["name"].as_str().context("no name")?;
                let secret = volume["secret"]["secretName"].as_str();
                let secret = secret.context("no Secret")?;
                let folder = self.reader.path(secret);
                mount(secrets.get(secret).await?, &folder)?;
                let folder = format!("{}/", folder.display());
                arguments = arguments.replace(&format!("/etc/{name}/"), &folder);
            }
            let arguments: Vec<String> = serde_json::from_str(&arguments)?;
            Running::start(program, Profile::Debug, arguments).await
        }

        /// Gives the Service of each member an address, as its cloud does, and has a backend answer there.
        async fn balance_loads(&self) -> Result<Vec<HttpBackend>> {
            let mut backends = Vec::new();
            for member in MEMBERS {
                let mut address = member.backend();
                address.set_port(80);
                backends.push(HttpBackend::start(address, &member.name()).await?);
                let entry = json!({ "ip": address.ip() });
                let status = json!({ "loadBalancer": { "ingress": [entry] } });
                let services: Api<Service> = namespaced(self.fleet.member(member).client());
                merge_status(&services, SERVICE, &status).await?;
            }
            Ok(backends)
        }

        /// Reports the address of the gateway, as its cloud does.
        async fn report(&self) -> Result<()> {
            let address = self.proxy.address().ip().to_string();
            let ingresses: Api<Ingress> = namespaced(self.host.client());
            report_address(&ingresses, &address).await?;
            let ingresses = namespaced(self.fleet.karmada.client());
            has_addresses(&ingresses, &[&address]).await
        }

        /// Sends requests through the gateway, and takes a member out of the traffic for a while.
        async fn try_it(&self) -> Result<()> {
            let steps = self.reader.steps(Page::Install, "7. ");
            let [
                templates,
                addresses,
                endpoints,
                ask,
                block,
                ask_again,
                unblock,
            ] = &steps[..]
            else {
                anyhow::bail!("the page has other commands: {steps:?}");
            };
            let served = Served::watch(self.host.client(), NAMESPACE);
            self.reader.run(templates).await?;
            self.reader.run(APPLIED).await?;
            let shown = self.reader.run(addresses).await?;
            for member in MEMBERS {
                let line = format!("{} has no address yet", member.name());
                ensure!(shown.lines().any(|shown| shown == line), "{shown}");
            }

            let _backends = self.balance_loads().await?;
            served.becomes(&MEMBERS.map(Member::backend)).await?;
            let shown = self.reader.run(addresses).await?;
            let of_gateway = self.reader.run(endpoints).await?;
            for member in MEMBERS {
                let address = member.backend().ip().to_string();
                let line = format!("{} {address}", member.name());
                ensure!(shown.lines().any(|shown| shown == line), "{shown}");
                ensure!(of_gateway.contains(&address), "{of_gateway}");
            }

            self.report().await?;
            let proxy = self.proxy.address();
            reaches(proxy, HOST, &MEMBERS.map(Member::name)).await?;
            let answers = self.reader.run(ask).await?;
            for member in MEMBERS {
                let name = member.name();
                ensure!(answers.lines().any(|answer| answer == name), "{answers}");
            }

            let [blocked, left] = MEMBERS;
            let traffic = Traffic::start(proxy, HOST);
            self.reader.run(block).await?;
            served.becomes(&[left.backend()]).await?;
            let since = Instant::now();
            traffic.left(&blocked.name(), LEFT_AFTER, since).await?;
            let answers = self.reader.run(ask_again).await?;
            let expected = format!("{}\n", left.name()).repeat(4);
            ensure!(answers == expected, "{answers}");
            self.reader.run(unblock).await?;
            served.becomes(&MEMBERS.map(Member::backend)).await
        }
    }

    /// Case T11: who follows the page as far as its last request is answered by both members, and while one is blocked by the other
    /// alone.
    #[test]
    #[ignore = "long"]
    fn page_leads_to_both_members() {
        isolated(test_name!(), async || {
            let stage = Stage::start().await?;
            let propagation = stage.fleet.run().await?;
            let controllers = stage.install().await?;
            stage.try_it().await?;
            for controller in controllers {
                controller.stop().await?;
            }
            propagation.stop().await
        });
    }
}
