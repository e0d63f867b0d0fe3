//! Two ingresses of one host, records that somebody else has, and a cluster that is not prepared.

use std::io::ErrorKind;
use std::net::IpAddr;

use karmada_runtime::lease::{self, CampaignMode, LeaseConfig};
use karmada_runtime::metrics::WriteMetrics;
use tokio::sync::watch;

use super::*;

/// The host of Service `s` of ingress `i`.
const HOST: &str = "s.i.example.com";

/// Returns an ingress `name` with the host of ingress `i`.
fn of_same_host(name: &str, clusters: &[&str]) -> Desired {
    Desired {
        key: contract::key(name),
        ..contract::desired("i", &["s"], clusters)
    }
}

async fn ensure(provider: &Dns, desired: &Desired) -> Vec<(Reason, String)> {
    let ensured = provider.ensure(desired).await.unwrap();
    let obstacles = ensured.obstacles.into_iter();
    obstacles.map(|one| (one.reason, one.message)).collect()
}

/// A host has one object. A second ingress that leads it elsewhere is refused, and one that leads it to the same addresses is
/// served; both take the host over when the first one is gone.
#[tokio::test]
async fn second_ingress_takes_over() {
    let api = api().await;
    let provider = provider(&api, &nowhere());
    list(&api, &provider).await;
    let first = of_same_host("i", &["m1", "m2"]);
    assert_eq!(ensure(&provider, &first).await, []);
    list(&api, &provider).await;
    api.calls();
    let (elsewhere, same) = (of_same_host("j", &["m1"]), of_same_host("k", &["m1", "m2"]));
    let refused = "host s.i.example.com is published for MultiClusterIngress ns/i and leads to other addresses; name it in one of them";
    assert_eq!(
        ensure(&provider, &elsewhere).await,
        [(Reason::DnsHostRefused, refused.to_owned())]
    );
    assert_eq!(ensure(&provider, &same).await, []);
    assert_eq!(api.calls(), [""; 0]);
    let none = BTreeSet::new();
    provider.delete(&first.key, &none).await.unwrap();
    let woken = list(&api, &provider).await;
    assert!(
        woken.contains(&elsewhere.key) && woken.contains(&same.key),
        "{woken:?}"
    );
    assert_eq!(ensure(&provider, &same).await, []);
    list(&api, &provider).await;
    assert_eq!(provider.keys(), [same.key]);
}

/// Somebody else's object with the name of ours is left alone, and named.
#[tokio::test]
async fn unlabelled_object_is_a_clash() {
    let api = api().await;
    let provider = provider(&api, &nowhere());
    list(&api, &provider).await;
    let desired = contract::desired("i", &["s"], &["m1"]);
    let mut theirs = publisher().wanted(&desired, &[]).endpoints.remove(0);
    theirs.metadata.labels = None;
    theirs.metadata.annotations = None;
    let theirs = api.create(&theirs).await;
    let obstacles = ensure(&provider, &desired).await;
    assert!(
        matches!(&*obstacles, [(Reason::GatewayClash, _)]),
        "{obstacles:?}"
    );
    let name = theirs.metadata.name.as_deref().unwrap();
    let all = Api::<DnsEndpoint>::namespaced(api.user(), NAMESPACE);
    assert_eq!(all.get(name).await.unwrap(), theirs);
}

/// Without the namespace there is one clear line, and no retry hides it.
#[tokio::test]
async fn missing_namespace_is_named() {
    let api = TestApi::with_kinds([kind()]);
    let provider = provider(&api, &nowhere());
    list(&api, &provider).await;
    let desired = contract::desired("i", &["s"], &["m1"]);
    let obstacles = ensure(&provider, &desired).await;
    let [(Reason::GatewayRefused, message)] = &*obstacles else {
        panic!("{obstacles:?}");
    };
    assert!(message.contains("no namespace dns"), "{message}");
}

/// The right answer of DNS acknowledges a record, once ExternalDNS and resolvers have had their time; while DNS does not answer,
/// the last verdict stays.
#[tokio::test]
async fn resolved_name_acknowledges() {
    let api = api().await;
    let zone = nowhere();
    let provider = provider(&api, &zone);
    list(&api, &provider).await;
    let desired = contract::desired("i", &["s"], &["m1"]);
    assert_eq!(ensure(&provider, &desired).await, []);
    tokio::time::pause();
    assert!(provider.answers.look_up().await.is_empty(), "too early");
    tokio::time::advance(Duration::from_secs(90)).await;
    let ours: IpAddr = Ipv4Addr::new(10, 1, 0, 0).into();
    let theirs: IpAddr = Ipv4Addr::new(192, 0, 2, 9).into();
    let foreign = "host s.i.example.com resolves to 192.0.2.9, and 10.1.0.0 was published: the record belongs to somebody else, or ExternalDNS does not follow";
    let missing = "host s.i.example.com does not resolve, though 10.1.0.0 was published: ExternalDNS does not run, or does not have this zone";
    for (answer, wakes, expected) in [
        (Ok(vec![theirs]), true, Some(foreign)),
        (Err(ErrorKind::TimedOut), false, Some(foreign)),
        (Ok(vec![ours]), true, None),
        (Ok(vec![ours]), false, None),
        (Err(ErrorKind::NotFound), true, Some(missing)),
    ] {
        *zone.lock() = Box::new(move |name| {
            assert_eq!(name, format!("{HOST}."));
            answer.clone().map_err(Into::into)
        });
        let woken = provider.answers.look_up().await;
        assert_eq!(woken.contains(&desired.key), wakes);
        let expected = expected.map(|text| (Reason::DnsRecordNotServed, text.to_owned()));
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(ensure(&provider, &desired).await, expected);
    }
    // Another target has its own time.
    let moved = contract::desired("i", &["s"], &["m2"]);
    assert_eq!(ensure(&provider, &moved).await, []);
    let none = BTreeSet::new();
    provider.delete(&desired.key, &none).await.unwrap();
    tokio::time::advance(Duration::from_secs(90)).await;
    *zone.lock() = Box::new(|name| panic!("{name} is asked for"));
    assert!(provider.answers.look_up().await.is_empty());
}

/// A replica that leads no more says nothing of records that another one keeps.
#[tokio::test]
async fn former_leader_forgets() {
    let api = api().await;
    let provider = provider(&api, &nowhere());
    list(&api, &provider).await;
    let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
    let never = LeaseConfig {
        mode: watch::channel(CampaignMode::Off).1,
        ..LeaseConfig::eager(NAMESPACE.to_owned(), "l", "h".to_owned())
    };
    let never = lease::campaign(&mut program, api.client(), never);
    let former = Writer::new(never, WriteMetrics::default());
    let desired = contract::desired("i", &["s"], &["m1"]);
    assert_eq!(ensure(&provider, &desired).await, []);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(90)).await;
    // Without, the host that does not resolve would be told of.
    assert!(provider.look_up(&former).await.is_empty());
}
