//! Certificates of HTTPS and RTMPS (`http.tls_cert`, `http.tls_key`): load, reload at SIGHUP.
//!
//! Connections resolve the certificate at their handshake, so a renewed one serves the next client without a restart.
//! When the new files cannot be used, the old certificate stays and the log says why.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

/// Reason why a certificate cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{what} {path} cannot be read: {reason}", path = path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        reason: String,
    },
    #[error("the private key {key} does not fit the certificate {cert}: {reason}", key = key.display(), cert = cert.display())]
    Mismatch {
        cert: PathBuf,
        key: PathBuf,
        reason: String,
    },
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The certificate in use and the files it came from.
#[derive(Debug)]
pub struct Certificates {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
}

impl Certificates {
    /// Reads a PEM chain and its PEM key (PKCS#8, PKCS#1 or SEC1).
    pub fn load(cert: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let current = read(cert, key)?;
        Ok(Arc::new(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            current: ArcSwap::from_pointee(current),
        }))
    }

    /// Reads the files again; on an error the certificate in use stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(read(&self.cert, &self.key)?));
        Ok(())
    }

    /// Settings for a listener whose certificate follows this one. `alpn` in order of preference.
    pub fn acceptor_config(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<ServerConfig, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(config)
    }

    /// Reads the files again at each SIGHUP; runs until it is dropped.
    pub async fn follow_hangups(self: Arc<Self>) -> std::io::Result<()> {
        let mut hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
        while hangups.recv().await.is_some() {
            let certificates = self.clone();
            match tokio::task::spawn_blocking(move || certificates.reload()).await {
                Ok(Ok(())) => tracing::info!(cert = %self.cert.display(), "certificate read again"),
                Ok(Err(error)) => tracing::error!(%error, "the old certificate stays in use"),
                Err(error) => tracing::error!(%error, "reading the certificate panicked"),
            }
        }
        Ok(())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(unreadable("the certificate", cert))?;
    if chain.is_empty() {
        return Err(unreadable("the certificate", cert)(
            "it holds no PEM certificate",
        ));
    }
    let private_key =
        PrivateKeyDer::from_pem_file(key).map_err(unreadable("the private key", key))?;
    CertifiedKey::from_der(chain, private_key, &ring::default_provider()).map_err(|error| {
        TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
            reason: error.to_string(),
        }
    })
}

fn unreadable<E: std::fmt::Display>(what: &'static str, path: &Path) -> impl FnOnce(E) -> TlsError {
    let path = path.to_owned();
    move |error| TlsError::File {
        what,
        path,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_pair(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (cert, key) = (
            folder.join(format!("{name}.crt")),
            folder.join(format!("{name}.key")),
        );
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert, key)
    }

    fn leaf(certificates: &Certificates) -> CertificateDer<'static> {
        let current = certificates.current.load_full();
        current.end_entity_cert().unwrap().clone().into_owned()
    }

    #[test]
    fn a_renewed_certificate_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write_pair(folder.path(), "a");
        let certificates = Certificates::load(&cert, &key).unwrap();
        let first = leaf(&certificates);

        let (new_cert, new_key) = write_pair(folder.path(), "b");
        std::fs::rename(new_cert, &cert).unwrap();
        std::fs::rename(new_key, &key).unwrap();
        certificates.reload().unwrap();
        let second = leaf(&certificates);
        assert_ne!(first, second);

        std::fs::write(&key, "gone").unwrap();
        assert!(certificates.reload().is_err());
        assert_eq!(leaf(&certificates), second);
    }

    #[test]
    fn wrong_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write_pair(folder.path(), "a");
        let (_, other_key) = write_pair(folder.path(), "b");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        let missing = folder.path().join("missing.pem");
        let cases = [
            (&missing, &key, "missing.pem"),
            (&cert, &missing, "missing.pem"),
            (&empty, &key, "empty.pem"),
            (&cert, &empty, "empty.pem"),
            (&cert, &other_key, "b.key does not fit the certificate"),
        ];
        for (cert, key, named) in cases {
            let message = Certificates::load(cert, key).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn alpn_is_offered_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write_pair(folder.path(), "a");
        let certificates = Certificates::load(&cert, &key).unwrap();
        let config = certificates.acceptor_config(&[b"h2", b"http/1.1"]).unwrap();
        assert_eq!(
            config.alpn_protocols,
            [b"h2".to_vec(), b"http/1.1".to_vec()]
        );
    }
}
