//! The kind in which ExternalDNS is told of records (`--source=crd`).

use objects::lenient;
use serde::{Deserialize, Serialize};

use objects::resource::kind;

kind! {
    /// The records of a name.
    DnsEndpoint, "DNSEndpoint", "externaldns.k8s.io", "v1alpha1", "dnsendpoints", NamespaceResourceScope,
    {
        /// The records.
        #[serde(deserialize_with = "lenient::or_default")]
        spec: DnsEndpointSpec,
    }
}

/// The records of a [`DnsEndpoint`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsEndpointSpec {
    /// One for each type.
    #[serde(deserialize_with = "lenient::or_default")]
    pub endpoints: Vec<DnsRecord>,
}

/// The records of one name and type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsRecord {
    /// The name, in lower case and without a dot at its end.
    pub dns_name: String,
    /// `A`, `AAAA` or `CNAME`.
    pub record_type: String,
    /// The time to live, in seconds.
    #[serde(rename = "recordTTL", deserialize_with = "lenient::or_default")]
    pub record_ttl: u32,
    /// The addresses, or the name. ExternalDNS makes an update to nothing of an empty list.
    #[serde(deserialize_with = "lenient::or_default")]
    pub targets: Vec<String>,
    /// The identifier that tells records of one name and type apart; empty without any.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub set_identifier: String,
    /// The further settings for a provider of DNS.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub provider_specific: Vec<DnsProviderProperty>,
}

/// A setting of a record for a provider of DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DnsProviderProperty {
    /// Its name, such as `aws/weight`.
    pub name: String,
    /// Its value.
    pub value: String,
}
