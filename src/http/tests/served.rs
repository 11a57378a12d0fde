//! The server on a real socket: HTTP, HTTPS with HTTP/2, ports, shutdown.

use std::{net::TcpListener, time::Duration};

use super::Site;
use crate::{
    http::{bind, server},
    tls::Certificates,
};

#[actix_web::test]
async fn https_speaks_http_2_and_serves_a_renewed_certificate() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
    let issue = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
    };
    let client = |trusted| {
        reqwest::Client::builder()
            .tls_certs_only([trusted])
            .no_proxy()
            .build()
            .unwrap()
    };
    let fetch = async |trusted: reqwest::Certificate, port: u16| {
        let address = format!("https://localhost:{port}/healthz");
        client(trusted).get(address).send().await
    };
    let first = issue();
    let certificates = Certificates::load(&cert, &key).unwrap();
    let site = Site::open_with(|config| {
        config.http.listen = "127.0.0.1:0".parse().unwrap();
        config.http.drain = Duration::from_secs(1);
    })
    .await;
    let listener = bind(site.app.platform.config.http.listen).await.unwrap();
    let bound = server(site.app.clone(), listener, Some(certificates.clone())).unwrap();
    let (handle, port) = (bound.server.handle(), bound.address.port());
    assert!(bound.is_https && port != 0);
    let running = actix_web::rt::spawn(bound.server);

    let answer = fetch(first.clone(), port).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.version()),
        (200, reqwest::Version::HTTP_2)
    );
    let list = client(first.clone())
        .get(format!("https://localhost:{port}/api/live/inputs"))
        .bearer_auth(site.first.api_key.expose())
        .send();
    let list: serde_json::Value = list.await.unwrap().json().await.unwrap();
    let address = list["liveInputs"][0]["playback"]["hlsUrl"]
        .as_str()
        .unwrap();
    assert!(
        address.starts_with(&format!("https://localhost:{port}/live/v1/")),
        "{address}"
    );

    let second = issue();
    certificates.reload().unwrap();
    assert!(
        fetch(first, port).await.is_err(),
        "the old certificate is still served"
    );
    assert_eq!(fetch(second, port).await.unwrap().status().as_u16(), 200);

    handle.stop(true).await;
    running.await.unwrap().unwrap();
}

#[actix_web::test]
async fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind(address).await.err().unwrap().to_string();
    assert!(
        error.contains("http.listen") && error.contains(&address.to_string()),
        "{error}"
    );
}

#[actix_web::test]
async fn a_port_that_is_freed_at_start_is_waited_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let freeing = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        drop(taken);
    };
    let (bound, ()) = futures_util::future::join(bind(address), freeing).await;
    assert_eq!(bound.unwrap().local_addr().unwrap(), address);
}
