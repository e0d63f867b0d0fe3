//! A server whose address and credentials are given one by one, as the agents of a KubeFleet are.

use std::path::PathBuf;

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

/// A server and its credentials.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The URL.
    pub url: String,
    /// The file of the certificates by which the server is known.
    pub ca_file: Option<PathBuf>,
    /// The same certificates themselves, in Base64.
    pub ca_data: Option<String>,
    /// True if the server's certificate is not verified.
    pub insecure: bool,
    /// The file of the bearer token.
    pub token_file: Option<PathBuf>,
    /// The file of the client's certificate.
    pub certificate_file: Option<PathBuf>,
    /// The file of that certificate's key.
    pub key_file: Option<PathBuf>,
}

impl Server {
    /// Returns the kubeconfig that says the same.
    pub(crate) fn kubeconfig(&self) -> Kubeconfig {
        const NAME: &str = "server";
        let files = [
            &self.ca_file,
            &self.token_file,
            &self.certificate_file,
            &self.key_file,
        ];
        let [ca, token, certificate, key] =
            files.map(|file| file.as_ref().map(|path| path.display().to_string()));
        let cluster = Cluster {
            server: Some(self.url.clone()),
            certificate_authority: ca,
            certificate_authority_data: self.ca_data.clone(),
            insecure_skip_tls_verify: self.insecure.then_some(true),
            ..Cluster::default()
        };
        let user = AuthInfo {
            token_file: token,
            client_certificate: certificate,
            client_key: key,
            ..AuthInfo::default()
        };
        let context = Context {
            cluster: NAME.to_owned(),
            user: Some(NAME.to_owned()),
            ..Context::default()
        };
        Kubeconfig {
            clusters: vec![NamedCluster {
                name: NAME.to_owned(),
                cluster: Some(cluster),
                ..Default::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: NAME.to_owned(),
                auth_info: Some(user),
                ..Default::default()
            }],
            contexts: vec![NamedContext {
                name: NAME.to_owned(),
                context: Some(context),
                ..Default::default()
            }],
            current_context: Some(NAME.to_owned()),
            ..Kubeconfig::default()
        }
    }
}
