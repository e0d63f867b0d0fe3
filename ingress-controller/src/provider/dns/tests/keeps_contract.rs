use super::*;
use crate::provider::contract::{self, provider_contract};

/// The records that ExternalDNS finds.
struct Records {
    api: TestApi,
    /// The object of somebody else.
    foreign: Mutex<Option<DnsEndpoint>>,
}

impl Records {
    async fn all(&self) -> Vec<DnsEndpoint> {
        let all = Api::<DnsEndpoint>::all(self.api.user());
        all.list(&ListParams::default()).await.unwrap().items
    }
}

impl contract::Stage for Records {
    type Provider = Dns;

    async fn new() -> Self {
        Self {
            api: api().await,
            foreign: Mutex::default(),
        }
    }

    async fn provider(&self) -> Dns {
        let provider = provider(&self.api, &nowhere());
        self.catch_up(&provider).await;
        provider
    }

    async fn catch_up(&self, provider: &Dns) {
        list(&self.api, provider).await;
    }

    async fn served(&self, host: &str) -> BTreeSet<String> {
        let all = self.all().await;
        let records = all.iter().flat_map(|one| &one.spec.endpoints);
        let records = records.filter(|record| record.dns_name == host);
        records.flat_map(|record| record.targets.clone()).collect()
    }

    fn changes(&self) -> usize {
        self.api.writes().len()
    }

    fn fail_once(&self) {
        let faults = self.api.server.faults();
        faults.inject(embedded_apiserver::Fault::Unavailable.times(1));
    }

    fn refuse_routes(&self, _: &Key) {
        // A route is a host here, and its object is new.
        let creation = format!("POST {ENDPOINTS}");
        self.api.refuse(&creation, 422, "Invalid", "Invalid it is");
    }

    async fn add_foreign(&self) {
        let theirs = json!({
            "apiVersion": DnsEndpoint::API_VERSION,
            "kind": DnsEndpoint::KIND,
            "metadata": { "name": "theirs", "namespace": NAMESPACE },
            "spec": { "endpoints": [{ "dnsName": "theirs.example.com", "recordType": "A", "targets": ["192.0.2.9"] }] },
        });
        let theirs: DnsEndpoint = serde_json::from_value(theirs).unwrap();
        *self.foreign.lock() = Some(self.api.create(&theirs).await);
    }

    async fn is_foreign_intact(&self) -> bool {
        let mut all = self.all().await.into_iter();
        let found = all.find(|one| one.metadata.name.as_deref() == Some("theirs"));
        found == *self.foreign.lock()
    }
}

provider_contract!(Records);
