//! Certificates: those that are trusted, and for which hosts.

use std::{io::Write as _, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;

use super::{
    super::{Error, Outbound, OutboundSettings, SetupError},
    Names, SOON, open_settings, post,
    receiver::{OK, Receiver, drain, read_request},
};

fn certificate(names: &[&str]) -> CertifiedKey<KeyPair> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    rcgen::generate_simple_self_signed(names).unwrap()
}

async fn secure_receiver(certified: &CertifiedKey<KeyPair>, alpn: &[&[u8]]) -> Receiver {
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let chain = vec![certified.cert.der().clone()];
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from(key))
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Receiver::start(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            while !read_request(&mut stream).await.is_empty() {
                let _gone = stream.write_all(OK.as_bytes()).await;
            }
        }
    })
    .await
}

fn believing(certified: &CertifiedKey<KeyPair>) -> (NamedTempFile, OutboundSettings) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(certified.cert.pem().as_bytes()).unwrap();
    let settings = OutboundSettings {
        ca_file: file.path().to_owned(),
        ..open_settings()
    };
    (file, settings)
}

fn with_names(settings: &OutboundSettings) -> Outbound {
    let names = Names::new([
        ("hooks.test", vec!["127.0.0.1"]),
        ("hooks.test.", vec!["127.0.0.1"]),
        ("other.test", vec!["127.0.0.1"]),
    ]);
    Outbound::with_resolver(settings, names).unwrap()
}

#[tokio::test]
async fn a_certificate_is_believed_by_ca_file_for_its_names_alone() {
    let certified = certificate(&["hooks.test", "127.0.0.1"]);
    let receiver = secure_receiver(&certified, &[b"h2", b"http/1.1"]).await;
    let (_file, settings) = believing(&certified);
    let outbound = with_names(&settings);
    let port = receiver.address.port();
    for (host, is_believed) in [
        ("hooks.test", true),
        ("hooks.test.", true),
        ("127.0.0.1", true),
        ("other.test", false),
    ] {
        let url = format!("https://{host}:{port}/");
        for _ in 0..2 {
            match post(&outbound, &url).await {
                Ok(answer) => assert!(is_believed && answer.status == 200, "{host}"),
                Err(Error::Tls { .. }) => assert!(!is_believed, "{host}"),
                Err(error) => panic!("{host}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn strangers_certificates_are_not_believed() {
    let stranger = certificate(&["hooks.test"]);
    let receiver = secure_receiver(&stranger, &[]).await;
    let (_file, settings) = believing(&certificate(&["hooks.test"]));
    let url = format!("https://hooks.test:{}/", receiver.address.port());
    for (settings, message) in [
        (settings, "certificate"),
        (open_settings(), "certificate is not known"),
        (open_settings(), "outbound.ca_file"),
    ] {
        let error = post(&with_names(&settings), &url)
            .await
            .expect_err("a stranger");
        assert!(matches!(error, Error::Tls { .. }), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn an_authoritys_own_certificate_is_recognized() {
    let mut params = CertificateParams::new(vec!["hooks.test".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let certified = CertifiedKey { cert, signing_key };
    let receiver = secure_receiver(&certified, &[]).await;
    let (_file, settings) = believing(&certified);
    let url = format!("https://hooks.test:{}/", receiver.address.port());
    let error = post(&with_names(&settings), &url)
        .await
        .expect_err("an authority");
    assert!(error.to_string().contains("CA:FALSE"), "{error}");
}

#[tokio::test]
async fn a_receiver_that_speaks_no_tls_is_reported_or_times_out() {
    let plain = Receiver::answering(OK).await;
    let mute = Receiver::start(drain).await;
    let settings = OutboundSettings {
        connect_timeout: SOON,
        ..open_settings()
    };
    let outbound = with_names(&settings);
    let to = |receiver: &Receiver| format!("https://{}/", receiver.address);
    let error = post(&outbound, &to(&mute)).await.expect_err("no TLS");
    assert_eq!(error.to_string(), "connecting took longer than 0.3 s");
    // It waits for the end of a request's head in vain.
    let error = post(&outbound, &to(&plain)).await.expect_err("no TLS");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[test]
fn a_ca_file_beyond_use_is_reported_by_its_key() {
    let mut text = NamedTempFile::new().unwrap();
    text.write_all(b"not a certificate").unwrap();
    let mut broken = NamedTempFile::new().unwrap();
    broken
        .write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    for path in [
        "/nonexistent".as_ref(),
        "/".as_ref(),
        text.path(),
        broken.path(),
    ] {
        let settings = OutboundSettings {
            ca_file: path.to_owned(),
            ..OutboundSettings::default()
        };
        let error = Outbound::new(&settings).expect_err("beyond use");
        assert!(matches!(error, SetupError::CaFile { .. }));
        let message = format!("outbound.ca_file {} cannot be used: ", path.display());
        assert!(error.to_string().starts_with(&message), "{error}");
    }
}
