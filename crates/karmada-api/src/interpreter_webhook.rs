//! The webhooks by which users interpret kinds.

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::resource::kind;

kind! {
    /// Webhooks that interpret the objects of kinds.
    ResourceInterpreterWebhookConfiguration, "ResourceInterpreterWebhookConfiguration", "config.karmada.io", "v1alpha1",
    "resourceinterpreterwebhookconfigurations", ClusterResourceScope,
    {
        /// The webhooks.
        #[serde(deserialize_with = "lenient::nullable")]
        webhooks: Vec<InterpreterWebhook>,
    }
}

/// A webhook, and the questions that it answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["clientConfig", "interpreterContextVersions", "name"]))]
pub struct InterpreterWebhook {
    /// A domain of its own.
    pub name: String,
    /// Its address.
    #[serde(deserialize_with = "lenient::nullable")]
    pub client_config: WebhookClientConfig,
    /// Rules of which one must match what it is asked.
    #[serde(deserialize_with = "lenient::nullable")]
    pub rules: Vec<WebhookRule>,
    /// The longest that a call may take, in seconds: 1 to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// The versions of `ResourceInterpreterContext` that it speaks: `v1alpha1` among them.
    #[serde(deserialize_with = "lenient::nullable")]
    pub interpreter_context_versions: Vec<String>,
}

/// The address of a webhook: a Service, or a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookClientConfig {
    /// The authorities that verify its server, in PEM and base64. Without them, those of the system do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "byte"))]
    pub ca_bundle: Option<String>,
    /// The Service before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<WebhookService>,
    /// Its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A Service before a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct WebhookService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its port: 443 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Questions about kinds. In each list `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiGroups", "apiVersions", "kinds", "operations"]))]
pub struct WebhookRule {
    /// The groups of the kinds.
    #[serde(deserialize_with = "lenient::nullable")]
    pub api_groups: Vec<String>,
    /// Their versions.
    #[serde(deserialize_with = "lenient::nullable")]
    pub api_versions: Vec<String>,
    /// The kinds.
    #[serde(deserialize_with = "lenient::nullable")]
    pub kinds: Vec<String>,
    /// Operations that are asked about their objects.
    #[serde(deserialize_with = "lenient::nullable")]
    pub operations: Vec<String>,
}
