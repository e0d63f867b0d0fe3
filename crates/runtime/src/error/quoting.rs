//! The errors of libraries that quote a text that they could not read: kubeconfigs, credentials, the answers of auth-providers.

use std::error::Error;

use kube::client::AuthError;
use kube::config::{KubeconfigError, LoadDataError};
use objects::Mistake;
use rustls::pki_types::pem;

use super::exec::ExecError;

/// Returns the text of an error that quotes its input, in place of its own and those of its sources: without a quotation.
pub(super) fn disclosed(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<KubeconfigError>() {
        return of_kubeconfig(error);
    }
    if let Some(error) = error.downcast_ref::<AuthError>() {
        return of_credentials(error);
    }
    if error.is::<pem::Error>() {
        return Some("it is no PEM".to_owned());
    }
    Mistake::of(error).map(|mistake| mistake.to_string())
}

fn of_kubeconfig(error: &KubeconfigError) -> Option<String> {
    use KubeconfigError::{
        LoadCertificateAuthority, LoadClientCertificate, LoadClientKey, Parse, ParseCertificates,
    };
    let (part, error) = match error {
        Parse(error) => return Some(Mistake::from(&**error).to_string()),
        ParseCertificates(_) => return Some("certificate-authority is no PEM".to_owned()),
        LoadCertificateAuthority(error) => ("certificate-authority", error),
        LoadClientCertificate(error) => ("client-certificate", error),
        LoadClientKey(error) => ("client-key", error),
        _ => return None,
    };
    Some(match error {
        LoadDataError::DecodeBase64(_) => format!("{part}-data is no Base64"),
        // Somebody may have put there the value of the field beside it.
        LoadDataError::ReadFile(error, _) => format!("cannot read the file of {part}: {error}"),
        LoadDataError::NoBase64DataOrFile => format!("{part}: {error}"),
    })
}

fn of_credentials(error: &AuthError) -> Option<String> {
    let command = "the command of the auth-provider";
    let answer = format!("cannot read the answer of {command}");
    Some(match error {
        // Its arguments may have a credential, too.
        AuthError::AuthExecRun { out, .. } => {
            ExecError::failed(command.to_owned(), out).to_string()
        }
        AuthError::ParseTokenKey(error) => format!("{answer}: {}", Mistake::from(error)),
        AuthError::MalformedTokenExpirationDate(_) => {
            format!("{answer}: its expirationTimestamp is no time")
        }
        AuthError::ReadTokenFile(error, _) => format!("cannot read the token file: {error}"),
        _ => return None,
    })
}
