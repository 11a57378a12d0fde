//! HTTPS with HTTP/2, RTMPS, certificates that are renewed, and addresses behind a proxy.

mod http2;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use reqwest::{Method, RequestBuilder, Version};
use rustix::process::Signal;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpStream, time::Instant};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::support::{
    Failure,
    command::sluice,
    encoder::Publish,
    eventually,
    http::{client, exchange},
    media::{Recipe, check_contiguous_to_a_cut},
    server::{ADMIN_PASSWORD, API_KEY, Server, Settings},
    viewer::Viewer,
};

/// `http.drain` of these scenarios is 1 s; the tree has its own bounds.
const STOP_BOUND: Duration = Duration::from_secs(15);

/// Certificate and key files that can be renewed.
struct Files {
    folder: TempDir,
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new() -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let (cert, key) = (
            folder.path().join("chain.pem"),
            folder.path().join("key.pem"),
        );
        Ok(Self { folder, cert, key })
    }

    /// Writes another pair over the one that is there, as certbot does.
    fn renew(&self) -> Result<CertificateDer<'static>, Failure> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        for (path, text) in [
            (&self.key, made.signing_key.serialize_pem()),
            (&self.cert, made.cert.pem()),
        ] {
            let fresh = self.folder.path().join("fresh");
            std::fs::write(&fresh, text)?;
            std::fs::rename(&fresh, path)?;
        }
        Ok(made.cert.der().clone())
    }

    fn settings(&self) -> Settings {
        let text = |path: &Path| path.display().to_string();
        Settings::new()
            .env("SLUICE_HTTP__TLS_CERT", &text(&self.cert))
            .env("SLUICE_HTTP__TLS_KEY", &text(&self.key))
            .env("SLUICE_HTTP__DRAIN", "1s")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_by_rtmps_plays_over_http_2() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = Settings::new()
        .tls()
        .env("SLUICE_HTTP__DRAIN", "1s")
        .start()
        .await?;
    let base = server.base_url();
    assert!(base.starts_with("https://"), "{base}");
    let api = server.api();
    let input = api.create(json!({})).await?;
    assert!(input.hls_url.starts_with(&base), "{}", input.hls_url);
    let mut encoder = Publish::new(&clip, &input.rtmps_url()?)?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_frames(60, Duration::from_secs(15)).await?;
    assert_eq!(api.health(&input.id).await?["protocol"], "rtmps");
    let playlist = client().get(&input.hls_url).send().await?;
    assert_eq!(playlist.version(), Version::HTTP_2);

    // Plain text is rejected on both encrypted ports, without effect on other connections.
    let addresses = server.addresses();
    for address in [Some(addresses.http), addresses.rtmps]
        .into_iter()
        .flatten()
    {
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = exchange(address, request).await;
        assert!(answer.is_err(), "{answer:?}");
    }
    encoder.stop().await?;
    let collection = viewing.until_ended(Duration::from_secs(10)).await?;
    check_contiguous_to_a_cut(&collection.numbers()?[0], 0)?;
    assert!(collection.hinted_parts > 0, "{}", collection.summary());

    // An idle connection of HTTP/2 is no reason to stay.
    let idle = client();
    assert_eq!(
        idle.get(format!("{base}/healthz")).send().await?.status(),
        200
    );
    let began = Instant::now();
    assert_eq!(server.terminate().await?.code(), Some(0));
    assert!(began.elapsed() < STOP_BOUND, "{:?}", began.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_taken_at_sighup() -> Result<(), Failure> {
    let files = Files::new()?;
    let first = files.renew()?;
    let server = files.settings().start().await?;
    let addresses = server.addresses();
    let ports = [Some(addresses.http), addresses.rtmps]
        .into_iter()
        .flatten();
    let ports: Vec<SocketAddr> = ports.collect();
    assert_eq!(ports.len(), 2, "HTTPS and RTMPS");
    for &port in &ports {
        shake_hands(port, &first).await?;
    }
    let second = files.renew()?;
    shake_hands(ports[0], &first).await?;
    server.signal(Signal::HUP)?;
    for &port in &ports {
        eventually(
            "the renewed certificate",
            Duration::from_secs(10),
            async || shake_hands(port, &second).await.ok(),
        )
        .await?;
        let old = shake_hands(port, &first).await;
        assert!(old.is_err(), "the first one is gone from {port}");
    }

    std::fs::write(&files.key, "no key")?;
    server.signal(Signal::HUP)?;
    eventually("a word in the log", Duration::from_secs(10), async || {
        server
            .log()
            .contains("the old certificate stays in use")
            .then_some(())
    })
    .await?;
    shake_hands(ports[0], &second).await
}

/// A handshake of a client that trusts this certificate alone.
async fn shake_hands(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> Result<(), Failure> {
    connect(address, trusted, &[]).await?;
    Ok(())
}

/// A TLS connection that offers the given protocols by ALPN.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    alpn: &[&[u8]],
) -> Result<TlsStream<TcpStream>, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone())?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    let connector = TlsConnector::from(Arc::new(config));
    Ok(connector.connect(name, socket).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_cannot_be_used_stops_the_start() -> Result<(), Failure> {
    let (files, other) = (Files::new()?, Files::new()?);
    files.renew()?;
    other.renew()?;
    let folder = tempfile::tempdir()?;
    let missing = folder.path().join("missing.pem");
    for (cert, key, named) in [
        (&files.cert, &other.key, &other.key),
        (&missing, &files.key, &missing),
        (&files.cert, &files.cert, &files.cert),
    ] {
        let rejection = sluice(&["serve"])
            .data_dir(&folder.path().join("data"))
            .env("SLUICE_HTTP__TLS_CERT", &cert.display().to_string())
            .env("SLUICE_HTTP__TLS_KEY", &key.display().to_string());
        let rejection = rejection.fail().await?;
        assert!(
            rejection.contains(&named.display().to_string()),
            "{rejection}"
        );
    }
    let half = sluice(&["serve"])
        .data_dir(&folder.path().join("data"))
        .env("SLUICE_HTTP__TLS_CERT", &files.cert.display().to_string());
    let rejection = half.fail().await?;
    assert!(rejection.contains("tls_key"), "{rejection}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trusted_proxy_says_where_the_service_is() -> Result<(), Failure> {
    let trusting = Settings::new().env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.0/8");
    let (trusting, careful) = (trusting.start().await?, Server::start().await?);
    let own = careful.base_url();
    for (server, headers, base, host) in [
        (
            &trusting,
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "live.example.org"),
            ][..],
            "https://live.example.org",
            "live.example.org",
        ),
        (
            &trusting,
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "evil.example, live.example.org:8443"),
            ],
            "https://live.example.org:8443",
            "live.example.org",
        ),
        (
            &trusting,
            &[
                ("host", "media.example.org"),
                ("x-forwarded-proto", "javascript"),
            ],
            "http://media.example.org",
            "media.example.org",
        ),
        (
            &careful,
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "evil.example"),
            ],
            own.as_str(),
            "127.0.0.1",
        ),
    ] {
        let mut request = client().post(format!("{}/api/live/inputs", server.base_url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let made: Value = request
            .bearer_auth(API_KEY)
            .json(&json!({}))
            .send()
            .await?
            .json()
            .await?;
        let (playback, ingest) = (&made["liveInput"]["playback"], &made["liveInput"]["ingest"]);
        let hls_url = playback["hlsUrl"].as_str().unwrap_or_default();
        assert!(
            hls_url.starts_with(&format!("{base}/live/v1/pb_")),
            "{headers:?}: {hls_url}"
        );
        let port = server.addresses().rtmp.port();
        assert_eq!(
            ingest["obsServer"],
            format!("rtmp://{host}:{port}/live"),
            "{headers:?}"
        );
    }
    clients_behind_a_proxy_are_distinguished(&trusting).await
}

/// The sign-in limit counts by client, and the cookie is for HTTPS where the client uses it.
async fn clients_behind_a_proxy_are_distinguished(server: &Server) -> Result<(), Failure> {
    let sign_in = |client_address: &str, password: &str| -> RequestBuilder {
        client()
            .request(Method::POST, format!("{}/api/session", server.base_url()))
            .header("x-forwarded-for", format!("10.9.8.7, {client_address}"))
            .header("x-forwarded-proto", "https")
            .json(&json!({"username": "admin", "password": password}))
    };
    for _ in 0..5 {
        assert_eq!(sign_in("203.0.113.1", "wrong").send().await?.status(), 401);
    }
    assert_eq!(
        sign_in("203.0.113.1", ADMIN_PASSWORD)
            .send()
            .await?
            .status(),
        429
    );
    let other = sign_in("203.0.113.2", ADMIN_PASSWORD).send().await?;
    assert_eq!(other.status(), 201);
    let cookie = other.headers()["set-cookie"].to_str()?;
    assert!(cookie.contains("Secure"), "{cookie}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_addresses_win() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_HTTP__BASE_URL", "https://media.example.org/sluice/")
        .env("SLUICE_RTMP__PUBLIC_URL", "rtmps://ingest.example.org:443")
        .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await?;
    let made: Value = client()
        .post(format!("{}/api/live/inputs", server.base_url()))
        .header("x-forwarded-host", "elsewhere.example")
        .bearer_auth(API_KEY)
        .json(&json!({}))
        .send()
        .await?
        .json()
        .await?;
    let record = &made["liveInput"];
    let hls_url = record["playback"]["hlsUrl"].as_str().unwrap_or_default();
    assert!(
        hls_url.starts_with("https://media.example.org/sluice/live/v1/pb_"),
        "{hls_url}"
    );
    assert_eq!(
        record["ingest"]["obsServer"],
        "rtmps://ingest.example.org:443/live"
    );
    let page = "https://media.example.org/sluice/live/pb_";
    eventually("the page's address", Duration::from_secs(5), async || {
        server.greeting().contains(page).then_some(())
    })
    .await
}
