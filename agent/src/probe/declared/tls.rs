//! TLS with servers that authorities in a file certify.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use karmada_runtime::error::Chain;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::bounded::read_up_to;
use super::unmet::Unmet;

/// The largest file of authorities, in bytes. Those of the public have a quarter of a million.
const LARGEST: usize = 4 * 1024 * 1024;

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The authorities in each file, for as long as it stays the same. Those of the public are many, and a round is short.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorities(Arc<Mutex<BTreeMap<PathBuf, Known>>>);

#[derive(Clone, Debug)]
struct Known {
    version: Version,
    roots: Arc<RootCertStore>,
}

/// The mark of a file that changes with it. A `ConfigMap` or a Secret that changes leads to another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    modified: SystemTime,
    length: u64,
}

impl Authorities {
    /// Speaks TLS over `stream` with a server that has a certificate of one of the authorities in the file `ca`.
    pub(super) async fn secured(
        &self,
        (stream, server): (TcpStream, SocketAddr),
        host: &str,
        ca: &Path,
        protocol: &[u8],
        deadline: Instant,
    ) -> Result<Box<dyn Stream>, Unmet> {
        let roots = self.of(ca).map_err(Unmet::unobserved)?;
        let mut config = trusting(roots).map_err(Unmet::unobserved)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Unmet::unobserved(format!("{host} is no name of a server")))?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        match timeout_at(deadline, connecting).await {
            Ok(Ok(secured)) => Ok(Box::new(secured)),
            Ok(Err(error)) => Err(Unmet::by_io(&error, server)),
            Err(_) => Err(Unmet::late(server)),
        }
    }

    /// Returns the authorities in a file, read anew if it has changed.
    fn of(&self, ca: &Path) -> Result<Arc<RootCertStore>, String> {
        let path = ca.display();
        let version =
            Version::of(ca).map_err(|error| format!("cannot read {path}: {}", Chain(&error)))?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(ca).filter(|known| known.version == version) {
            return Ok(Arc::clone(&known.roots));
        }
        let roots = Arc::new(read(ca)?);
        let read = Known {
            version,
            roots: Arc::clone(&roots),
        };
        known.insert(ca.to_owned(), read);
        Ok(roots)
    }
}

impl Version {
    fn of(file: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(file)?;
        Ok(Self {
            modified: metadata.modified()?,
            length: metadata.len(),
        })
    }
}

fn read(ca: &Path) -> Result<RootCertStore, String> {
    let path = ca.display();
    let pem = read_up_to(ca, LARGEST)
        .map_err(|error| format!("cannot read {path}: {}", Chain(&error)))?;
    if pem.len() > LARGEST {
        return Err(format!("{path} is larger than {LARGEST} bytes"));
    }
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates =
        certificates.map_err(|error| format!("cannot read {path}: {}", Chain(&error)))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(format!("{path} has no certificate of an authority"));
    }
    Ok(roots)
}

fn trusting(roots: Arc<RootCertStore>) -> Result<ClientConfig, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use lab_parts::tls::Authority;

    use super::*;

    /// A file is read once, and again when it has changed; one that is gone or empty has no authorities.
    #[test]
    fn changed_file_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.crt");
        let authorities = Authorities::default();
        authorities.of(&ca).unwrap_err();
        let one = Authority::generate().pem();
        fs::write(&ca, &one).unwrap();
        let read = authorities.of(&ca).unwrap();
        assert!(Arc::ptr_eq(&read, &authorities.of(&ca).unwrap()));
        fs::write(&ca, one + &Authority::generate().pem()).unwrap();
        assert_eq!(authorities.of(&ca).unwrap().len(), 2);
        fs::write(&ca, "").unwrap();
        let problem = authorities.of(&ca).unwrap_err();
        assert!(problem.contains("has no certificate"), "{problem}");
    }
}
