//! TLS to receivers: the system's certificate authorities, `outbound.ca_file`, HTTP/1.1 alone, messages about untrusted
//! certificates.

use std::{io, path::Path, sync::Arc};

use rustls::{CertificateError, ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, ServerName, pem::PemObject as _};
use tokio_rustls::TlsConnector;
use tracing::warn;
use url::Host;

use super::{OutboundSettings, SetupError};

/// Makes the connector; warns in the log when there are no authorities at all.
pub(super) fn connector(ca_file: &Path) -> Result<TlsConnector, SetupError> {
    let (roots, errors) = authorities(ca_file)?;
    if roots.is_empty() {
        warn!(
            ?errors,
            "no certificate authorities found: no https receiver can be reached; install ca-certificates or set outbound.ca_file"
        );
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Counts the certificate authorities, for `sluice doctor`.
pub fn count_authorities(settings: &OutboundSettings) -> Result<usize, SetupError> {
    Ok(authorities(&settings.ca_file)?.0.len())
}

/// Reads all authorities. A file of the operator that cannot be used is an error; unusable certificates of the system are
/// left out, and returned as errors beside.
fn authorities(
    ca_file: &Path,
) -> Result<(RootCertStore, Vec<rustls_native_certs::Error>), SetupError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if !ca_file.as_os_str().is_empty() {
        add_file(&mut roots, ca_file).map_err(|reason| SetupError::CaFile {
            path: ca_file.to_owned(),
            reason,
        })?;
    }
    Ok((roots, system.errors))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    let mut count = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        count += 1;
    }
    if count == 0 {
        return Err("it has no certificate in PEM".to_owned());
    }
    Ok(())
}

/// Returns the reason why a handshake failed, and for a certificate that is not trusted, the change to make.
/// `CaUsedAsEndEntity` is what `openssl req -x509` makes without further options.
pub(super) fn explain(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the authority of its certificate is not known; the operator can add the authority by outbound.ca_file".to_owned()
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "its certificate is that of an authority (CA:TRUE), which no receiver may have; give it one with CA:FALSE".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns the name that the certificate must have; SNI takes names without their last dot (RFC 6066 §3).
pub(super) fn server_name(host: &Host<String>) -> Result<ServerName<'static>, InvalidDnsNameError> {
    Ok(match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(name.to_owned())?
        }
        Host::Ipv4(v4) => ServerName::IpAddress((*v4).into()),
        Host::Ipv6(v6) => ServerName::IpAddress((*v6).into()),
    })
}
