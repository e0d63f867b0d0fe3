//! A real ExternalDNS makes records of our objects. Its cloud is a mock: zones in memory, served as DNS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;
use karmada_api::DnsEndpoint;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use pipeline_tests::{
    api::merge,
    control_plane::ApiKind,
    external_dns::ExternalDns,
    fleet::{Fleet, HOST, INGRESS, Member, SERVICE, isolated, maintenance, on_dns},
    manifests, netns,
    programs::Profile,
    wait::until,
};
use serde_json::{Value, json};
use tools::definitions;

const MEMBERS: [Member; 2] = [Member(1), Member(2)];
const NAME_SERVER: SocketAddr = SocketAddr::new(ip([10, 244, 0, 53]), 53);
const KIND: &str = "MultiClusterIngress";

const fn ip([a, b, c, d]: [u8; 4]) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

fn address(member: Member) -> IpAddr {
    member.backend().ip()
}

/// Runs a test with the definition of ExternalDNS's kind, which is downloaded where there is a network.
fn run(name: &str, body: impl AsyncFnOnce(Fleet) -> Result<()>) {
    let definitions = definitions::external_dns();
    isolated(name, async move || {
        let definitions = definitions?;
        let fleet = Fleet::with_members(ApiKind::Real, Profile::Debug, &MEMBERS).await?;
        fleet.gateway.install_crds(&[definitions]).await?;
        manifests::apply(&fleet.gateway.client(), "dns/ingress-controller.yaml").await?;
        netns::add_address(NAME_SERVER.ip())?;
        netns::mount_resolv_conf(&format!("nameserver {}\n", NAME_SERVER.ip()))?;
        body(fleet).await
    });
}

async fn external_dns(fleet: &Fleet, theirs: &[(&str, IpAddr)]) -> Result<ExternalDns> {
    ExternalDns::start(NAME_SERVER, fleet.gateway.kubeconfig_path(), theirs).await
}

fn published(fleet: &Fleet) -> Api<DnsEndpoint> {
    Api::namespaced(fleet.gateway.client(), "karmada-rs")
}

/// The host leads to the members that may serve, by both families, and to no address that ExternalDNS would refuse. While every
/// member is blocked by its condition, and at each change, it resolves. Where a person has blocked all, it ends, and returns.
async fn records_follow_blocks(fleet: Fleet) -> Result<()> {
    let [first, second] = MEMBERS;
    let both = MEMBERS.map(address);
    let dns = external_dns(&fleet, &[]).await?;
    let _remedies = fleet.remedy_controller().await?;
    let controller = fleet.ingress_controller_with_dns(&[]).await?;
    fleet.report_load_balancers(&MEMBERS).await?;
    dns.becomes(HOST, &both).await?;
    let left_out =
        "AddressUnusable Service web gets no request at an address: 127.0.0.1 of cluster member1";
    fleet.has_event(KIND, INGRESS, left_out).await?;

    fleet.create_remedy("dns", on_dns()).await?;
    let steps = async {
        fleet.set_dns(first, "False").await?;
        dns.becomes(HOST, &[address(second)]).await?;
        fleet.set_dns(second, "False").await?;
        dns.becomes(HOST, &both).await?;
        fleet.set_dns(first, "True").await?;
        dns.becomes(HOST, &[address(first)]).await?;
        fleet.set_dns(second, "True").await?;
        dns.becomes(HOST, &both).await?;
        let of_both: IpAddr = "2001:db8::1".parse()?;
        let reported = [
            (first.name(), vec![address(first), of_both]),
            (second.name(), vec![address(second)]),
        ];
        fleet.report_addresses(SERVICE, &reported).await?;
        let [one, other] = both;
        dns.becomes(HOST, &[one, other, of_both]).await
    };
    tokio::select! {
        ended = dns.stays(HOST) => match ended? {},
        taken = steps => taken?,
    }

    fleet.create_remedy("first", maintenance(first)).await?;
    dns.becomes(HOST, &[address(second)]).await?;
    fleet.create_remedy("second", maintenance(second)).await?;
    dns.becomes(HOST, &[]).await?;
    fleet.delete_remedy("second").await?;
    dns.becomes(HOST, &[address(second)]).await?;
    controller.stop().await
}

/// A second ingress leads the host to another Service. It is told so, the record stays that of the first one, and becomes
/// that of the second when the first is deleted. With the last ingress, the record goes.
async fn host_has_one_ingress(fleet: Fleet) -> Result<()> {
    let dns = external_dns(&fleet, &[]).await?;
    let controller = fleet.ingress_controller_with_dns(&[]).await?;
    fleet.report_load_balancers(&MEMBERS).await?;
    let both = MEMBERS.map(address);
    dns.becomes(HOST, &both).await?;

    let elsewhere = SocketAddr::new(ip([10, 244, 2, 11]), 8080);
    let name = Member(2).name();
    let placed = [(name.clone(), elsewhere)];
    fleet.place_service("other", &placed).await?;
    let reported = [(name, vec![elsewhere.ip()])];
    fleet.report_addresses("other", &reported).await?;
    fleet
        .create_ingress_to("other", "second", "karmada-rs", HOST)
        .await?;
    let refused = format!(
        "DnsHostRefused host {HOST} is published for MultiClusterIngress shop/{INGRESS} and leads to other addresses"
    );
    fleet.has_event(KIND, "second", &refused).await?;
    dns.becomes(HOST, &both).await?;

    let ingresses = fleet.ingresses();
    ingresses.delete(INGRESS, &DeleteParams::default()).await?;
    dns.becomes(HOST, &[elsewhere.ip()]).await?;
    ingresses.delete("second", &DeleteParams::default()).await?;
    until(&ingresses, "second", "gone", |found| found.is_none()).await?;
    dns.becomes(HOST, &[]).await?;
    let left = published(&fleet).list(&ListParams::default()).await?;
    assert_eq!(left.items, []);
    controller.stop().await
}

/// Somebody else has a record of the host. ExternalDNS leaves it alone and says nothing, so the name itself tells, a minute
/// and a time to live later. Another host is followed, and nothing is told of it.
async fn foreign_record_is_told(fleet: Fleet) -> Result<()> {
    const OURS: &str = "ours.example.com";
    let theirs = ip([192, 0, 2, 9]);
    let dns = external_dns(&fleet, &[(HOST, theirs)]).await?;
    let controller = fleet.ingress_controller_with_dns(&["--dns-ttl=1s"]).await?;
    fleet.create_ingress_for("ours", "karmada-rs", OURS).await?;
    fleet.report_load_balancers(&MEMBERS).await?;
    dns.becomes(OURS, &MEMBERS.map(address)).await?;
    let told = format!("DnsRecordNotServed host {HOST} resolves to {theirs}, and");
    fleet.has_event(KIND, INGRESS, &told).await?;
    let unserved = "karmada_ingress_controller_unserved_dns_records";
    controller
        .until_metric(unserved, |hosts| (0.5..1.5).contains(&hosts))
        .await?;
    dns.becomes(HOST, &[theirs]).await?;
    dns.becomes(OURS, &MEMBERS.map(address)).await?;
    controller.stop().await
}

/// ExternalDNS takes a record away for one address of another family, and those beside it too. So none of ours has one.
async fn bad_address_ends_a_record(fleet: Fleet) -> Result<()> {
    const THEIRS: &str = "theirs.example.com";
    let good = ip([192, 0, 2, 1]);
    let spec = |targets: Value| {
        let record =
            json!({ "dnsName": THEIRS, "recordType": "A", "recordTTL": 60, "targets": targets });
        json!({ "endpoints": [record] })
    };
    let dns = external_dns(&fleet, &[]).await?;
    let endpoints = published(&fleet);
    let theirs = serde_json::from_value(json!({
        "apiVersion": DnsEndpoint::API_VERSION,
        "kind": DnsEndpoint::KIND,
        "metadata": { "name": "theirs" },
        "spec": spec(json!([good])),
    }))?;
    endpoints.create(&PostParams::default(), &theirs).await?;
    dns.becomes(THEIRS, &[good]).await?;
    for bad in ["2001:db8::1", "192.0.2.2.", "lb.example.com"] {
        for (targets, expected) in [(json!([good, bad]), &[][..]), (json!([good]), &[good][..])] {
            let change = json!({ "spec": spec(targets) });
            merge(&endpoints, "theirs", &change).await?;
            dns.becomes(THEIRS, expected).await?;
        }
    }
    Ok(())
}

mod with_tools {
    use pipeline_tests::test_name;

    use super::{
        bad_address_ends_a_record, foreign_record_is_told, host_has_one_ingress,
        records_follow_blocks, run,
    };

    /// Case T31.
    #[test]
    fn blocked_cluster_leaves_its_records() {
        run(test_name!(), records_follow_blocks);
    }

    /// Case T32.
    #[test]
    #[ignore = "long"]
    fn host_belongs_to_one_ingress() {
        run(test_name!(), host_has_one_ingress);
    }

    /// Case T33.
    #[test]
    #[ignore = "long"]
    fn record_of_others_is_told() {
        run(test_name!(), foreign_record_is_told);
    }

    /// Case T34.
    #[test]
    #[ignore = "long"]
    fn bad_address_ends_its_record() {
        run(test_name!(), bad_address_ends_a_record);
    }
}
