//! The flags of the provider.

use std::str::FromStr;

use karmada_runtime::program::StartError;
use objects::Key;
use objects::qualified_name::is_subdomain;

/// The flags of the provider `gateway-api`.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayApiArgs {
    /// Gateway in the gateway cluster to which HTTPRoutes are attached.
    #[arg(long, env = "KARMADA_GATEWAY", value_name = "NAMESPACE/NAME")]
    gateway: Option<GatewayName>,
}

impl GatewayApiArgs {
    /// Returns the first flag that is set.
    pub(in crate::provider) fn first_set(&self) -> Option<&'static str> {
        self.gateway.as_ref().map(|_| "--gateway")
    }

    pub(super) fn gateway(&self) -> Result<Key, StartError> {
        let missing = "--provider gateway-api needs --gateway NAMESPACE/NAME: name the Gateway to which routes are attached";
        let GatewayName(key) = self
            .gateway
            .clone()
            .ok_or_else(|| StartError::Config(missing.to_owned()))?;
        Ok(key)
    }
}

/// A Gateway's namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GatewayName(Key);

impl FromStr for GatewayName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/');
        let valid = parts.filter(|(namespace, name)| {
            is_subdomain(namespace) && !namespace.contains('.') && is_subdomain(name)
        });
        match valid {
            Some((namespace, name)) => Ok(Self(Key::new(namespace, name))),
            None => Err("must be the Gateway's namespace and name, such as infra/web"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    fn gateway(value: &str) -> Option<String> {
        let flag = format!("--gateway={value}");
        let flags = ["i", "--provider=gateway-api", &flag];
        let args = Args::try_parse_from(flags).ok()?.provider;
        Some(args.gateway_api.gateway().unwrap().to_string())
    }

    /// The Gateway is named with its namespace.
    #[test]
    fn gateway_has_namespace_and_name() {
        assert_eq!(gateway("infra/web").unwrap(), "infra/web");
        assert_eq!(
            gateway("infra/web.example.com").unwrap(),
            "infra/web.example.com"
        );
        for wrong in ["", "web", "infra/", "/web", "a/b/c", "Infra/web", "a.b/web"] {
            assert_eq!(gateway(wrong), None, "{wrong}");
        }
    }
}
