//! The flags of the provider.

use std::path::PathBuf;

use http::Uri;
use http::uri::Scheme;
use karmada_runtime::client::{Server, Source};
use karmada_runtime::program::StartError;

/// The flags of a load balancer's own program.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "the flags are called as the fields are"
)]
pub(crate) struct WebhookArgs {
    /// URL of the program that serves the traffic, with --provider webhook: it gets each ingress by PUT as JSON at URL/NAMESPACE/NAME.
    #[arg(long, env = "KARMADA_PROVIDER_URL", value_name = "URL")]
    provider_url: Option<String>,
    /// File of the certificates by which that program is known.
    #[arg(
        long,
        env = "KARMADA_PROVIDER_CERTIFICATE_AUTHORITY",
        value_name = "PATH"
    )]
    provider_certificate_authority: Option<PathBuf>,
    /// File of the bearer token for that program. It is read again when it changes.
    #[arg(long, env = "KARMADA_PROVIDER_TOKEN_FILE", value_name = "PATH")]
    provider_token_file: Option<PathBuf>,
}

impl WebhookArgs {
    /// Returns the first flag that is set.
    pub(crate) fn first_set(&self) -> Option<&'static str> {
        let flags = [
            (self.provider_url.is_some(), "--provider-url"),
            (
                self.provider_certificate_authority.is_some(),
                "--provider-certificate-authority",
            ),
            (self.provider_token_file.is_some(), "--provider-token-file"),
        ];
        let set = flags.into_iter().find(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag)
    }

    /// Returns where the program is, and how to log in there.
    pub(super) fn source(&self) -> Result<Source, StartError> {
        let wrong = |text: &str| StartError::Config(text.to_owned());
        let Some(text) = &self.provider_url else {
            return Err(wrong(
                "--provider webhook needs --provider-url: name the URL of the program that serves the traffic",
            ));
        };
        let url = url(text).map_err(|expected| {
            // It is not repeated: part of it may be a password.
            StartError::Config(format!("--provider-url is no URL of a program: {expected}"))
        })?;
        if url.scheme() == Some(&Scheme::HTTP) && self.provider_token_file.is_some() {
            return Err(wrong(
                "--provider-token-file needs a --provider-url that begins with https://: the token would be readable on the way",
            ));
        }
        Ok(Source {
            server: Some(Server {
                url: url.to_string(),
                ca_file: self.provider_certificate_authority.clone(),
                token_file: self.provider_token_file.clone(),
                ..Server::default()
            }),
            ..Source::default()
        })
    }
}

/// Parses a URL to which the paths of ingresses can be added.
fn url(text: &str) -> Result<Uri, &'static str> {
    let expected = "write https://HOST[:PORT][/PATH] or http://HOST[:PORT][/PATH]";
    let url: Uri = text.parse().map_err(|_| expected)?;
    if ![Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&url.scheme()) {
        return Err(expected);
    }
    let has_user = url
        .authority()
        .is_some_and(|all| all.as_str().contains('@'));
    if has_user || url.query().is_some() {
        return Err(
            "it may have neither a user nor a query; a token belongs into the file of --provider-token-file",
        );
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;
    use crate::provider::ProviderName;

    fn source(flags: &[&str]) -> Result<String, String> {
        let all = ["ingress-controller", "--provider=webhook"];
        let args = Args::try_parse_from(all.iter().chain(flags));
        let args = args.map_err(|error| error.to_string())?.provider;
        assert_eq!(args.provider, ProviderName::Webhook);
        let source = args.webhook.source().map_err(|error| error.to_string())?;
        let server = source.server.unwrap();
        let files = [server.ca_file, server.token_file];
        let files = files.map(|file| file.map_or_else(String::new, |f| f.display().to_string()));
        Ok(format!("{} {}", server.url, files.join(" ")))
    }

    /// The flags name the program and the files that it is known by.
    #[test]
    fn flags_name_the_program() {
        let all = [
            "--provider-url=https://lb.example.com/fleet",
            "--provider-certificate-authority=/ca",
            "--provider-token-file=/token",
        ];
        assert_eq!(
            source(&all).unwrap(),
            "https://lb.example.com/fleet /ca /token"
        );
        assert_eq!(
            source(&["--provider-url=http://127.0.0.1:9000"]).unwrap(),
            "http://127.0.0.1:9000/  "
        );
    }

    /// An impossible address is refused at the start, without a word that may be a password.
    #[test]
    fn unusable_urls_are_refused() {
        for (flags, reason) in [
            (&[][..], "needs --provider-url"),
            (&["--provider-url=lb.example.com"], "write https://"),
            (&["--provider-url=ftp://lb.example.com"], "write https://"),
            (&["--provider-url=https://"], "write https://"),
            (&["--provider-url=https://lb/?token=secret"], "nor a query"),
            (&["--provider-url=https://me:secret@lb"], "neither a user"),
            (
                &["--provider-url=http://lb", "--provider-token-file=/t"],
                "begins with https://",
            ),
        ] {
            let error = source(flags).unwrap_err();
            assert!(error.contains(reason), "{flags:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
