//! First starts that fail at any step: the credentials that a later start shows are the ones in force.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, UdpSocket},
    os::fd::OwnedFd,
    path::Path,
    process::Stdio,
    time::Duration,
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::pipe,
};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    command::{Call, sluice},
    encoder::Publish,
    eventually,
    http::client,
    media::Recipe,
    server::{ADMIN_PASSWORD, API_KEY, Api, Server, Settings},
};

/// For what a start does, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);

/// A start with nothing fixed, on free ports.
fn first_start(data_dir: &Path) -> Call {
    sluice(&["serve"])
        .data_dir(data_dir)
        .env("SLUICE_SRT__LISTEN", "127.0.0.1:0")
        .env("SLUICE_STORE__MIN_FREE", "64 MB")
}

/// A start on the same folder that succeeds, and what it shows.
async fn next_start(data_dir: &Path) -> Result<(Server, String), Failure> {
    let unset = Settings::new()
        .env("SLUICE_BOOTSTRAP__API_KEY", "")
        .env("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", "");
    let server = unset.data_dir(data_dir).start().await?;
    let greeting = eventually("a greeting", SOON, async || {
        Some(server.greeting()).filter(|text| text.ends_with("\n\n"))
    });
    let greeting = greeting.await?;
    Ok((server, greeting))
}

fn shown(greeting: &str, label: &str) -> Result<String, Failure> {
    let mut lines = greeting.lines();
    let value = lines.find_map(|line| line.trim().strip_prefix(label));
    let value = value.ok_or_else(|| format!("no {label} in {greeting}"))?;
    Ok(value.trim().to_owned())
}

/// API key, password and stream key of a greeting are taken.
async fn check_in_force(server: &Server, greeting: &str) -> Result<(), Failure> {
    let key = shown(greeting, "API key")?;
    let api = Api::new(server.base_url(), &key, server.addresses().rtmp, None);
    let inputs = api.list().await?;
    assert_eq!(inputs.len(), 1, "one live input, however many starts");
    let (user, password) = (shown(greeting, "user")?, shown(greeting, "password")?);
    let signed_in = client()
        .post(format!("{}/api/session", server.base_url()))
        .json(&json!({"username": user, "password": password}));
    assert_eq!(signed_in.send().await?.status(), 201);

    check_welcome(server, greeting).await?;

    let (clip, target) = (
        Recipe::numbered(0).make()?,
        format!(
            "{}/{}",
            shown(greeting, "Server")?,
            shown(greeting, "Stream Key")?
        ),
    );
    let _encoder = Publish::new(&clip, &target)?.looped().start()?;
    let id = inputs[0]["id"].as_str().ok_or("no id")?;
    api.wait_status(id, "live", SOON).await?;
    Ok(())
}

/// The link at the end of a greeting opens the dashboard's page, and its code signs in once.
async fn check_welcome(server: &Server, greeting: &str) -> Result<(), Failure> {
    let link = shown(greeting, "Open")?;
    assert!(
        greeting.ends_with(&format!("\n  Open {link}\n\n")),
        "{greeting}"
    );
    let (page, code) = link.split_once('#').ok_or("no code")?;
    assert!(page.starts_with("http://localhost:"), "{page}");
    let (_, path) = page.split_once("/app/").ok_or("another page")?;
    let url = |path: &str| format!("{}{path}", server.base_url());
    let page = client().get(url(&format!("/app/{path}"))).send().await?;
    assert_eq!(page.status(), 200);
    let body = json!({"code": code, "newPassword": "a password of my own"});
    let welcome = async || {
        client()
            .post(url("/api/session/welcome"))
            .json(&body)
            .send()
            .await
    };
    let welcomed = welcome().await?;
    assert_eq!(welcomed.status(), 201);
    let welcomed: Value = welcomed.json().await?;
    assert_eq!(welcomed["user"]["operator"], true, "{welcomed}");
    assert_eq!(welcome().await?.status(), 410, "once");
    let (user, password) = (shown(greeting, "user")?, shown(greeting, "password")?);
    for (password, status) in [(password.as_str(), 401), ("a password of my own", 201)] {
        let sign_in = client()
            .post(url("/api/session"))
            .json(&json!({"username": user, "password": password}));
        assert_eq!(sign_in.send().await?.status(), status);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_whose_port_is_taken_loses_no_credentials() -> Result<(), Failure> {
    let (tcp, udp) = (
        TcpListener::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    );
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    for (variable, setting, taken) in [
        ("SLUICE_HTTP__LISTEN", "http.listen", tcp.local_addr()?),
        ("SLUICE_RTMP__LISTEN", "rtmp.listen", tcp.local_addr()?),
        ("SLUICE_SRT__LISTEN", "srt.listen", udp.local_addr()?),
        ("SLUICE_WEBRTC__LISTEN", "webrtc.listen", udp.local_addr()?),
        (
            "SLUICE_WEBRTC__TCP_LISTEN",
            "webrtc.tcp_listen",
            tcp.local_addr()?,
        ),
    ] {
        let refused = first_start(&data).env(variable, &taken.to_string());
        let refused = refused.run().await?;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let sentence = format!("sluice: {setting}: {taken} cannot be used: Address already in use");
        assert!(refused.stderr.contains(&sentence), "{}", refused.stderr);
        assert_eq!(refused.stdout, "", "nothing was made, so nothing is shown");
    }
    let (server, greeting) = next_start(&data).await?;
    check_in_force(&server, &greeting).await
}

/// Credentials are in the database and the pipe to the terminal is full: they cannot have been read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_killed_before_it_shows_them_loses_no_credentials() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let (reader, writer) = pipe()?;
    fill(&writer)?;
    let mut command = first_start(&data).into_command();
    command.stdout(Stdio::from(writer)).kill_on_drop(true);
    let mut process = command.spawn()?;
    drop(command);
    let announced = data.join("addresses.json");
    eventually("the service is ready", SOON, async || {
        let json = std::fs::read(&announced).ok()?;
        let addresses: Value = serde_json::from_slice(&json).ok()?;
        let url = format!("http://{}/readyz", addresses["http"].as_str()?);
        let answer = client().get(url).send().await.ok()?;
        (answer.status() == 200).then_some(())
    })
    .await?;
    process.kill().await?;
    let mut read = Vec::new();
    File::from(reader).read_to_end(&mut read)?;
    assert!(read.iter().all(|byte| *byte == b'.'), "something was shown");

    let (mut server, greeting) = next_start(&data).await?;
    check_in_force(&server, &greeting).await?;
    server.terminate().await?;
    server.restart().await?;
    let both = eventually("a second greeting", SOON, async || {
        Some(server.greeting()).filter(|text| text.matches("Sluice is running").count() == 2)
    });
    let both = both.await?;
    assert_eq!(both.matches("shown once").count(), 1, "{both}");
    let key = shown(&greeting, "API key")?;
    let api = Api::new(server.base_url(), &key, server.addresses().rtmp, None);
    assert_eq!(api.list().await?.len(), 1, "in force after another start");
    Ok(())
}

/// Writes dots until nothing more is taken; further writes wait.
fn fill(pipe: &OwnedFd) -> Result<(), Failure> {
    let flags = fcntl_getfl(pipe)?;
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?;
    let mut file = File::from(pipe.try_clone()?);
    // Whole pages first; then what is left of the last one.
    for piece in [&[b'.'; 4096][..], b"."] {
        let refused = loop {
            if let Err(error) = file.write_all(piece) {
                break error;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    }
    Ok(fcntl_setfl(pipe, flags)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_operator_fixed_is_not_shown() -> Result<(), Failure> {
    let server = Server::start().await?;
    let greeting = eventually("a greeting", SOON, async || {
        Some(server.greeting()).filter(|text| text.ends_with("\n\n"))
    });
    let greeting = greeting.await?;
    for (label, setting) in [
        ("password", "bootstrap.admin_password"),
        ("API key", "bootstrap.api_key"),
    ] {
        let value = shown(&greeting, label)?;
        assert!(value.contains(setting), "{greeting}");
    }
    assert!(!greeting.contains(API_KEY), "{greeting}");
    assert!(!greeting.contains(ADMIN_PASSWORD), "{greeting}");
    let link = shown(&greeting, "Open")?;
    assert!(
        link.ends_with("/app"),
        "no code for a password that is set: {link}"
    );
    // The stream key was generated, and is shown nowhere else.
    assert!(shown(&greeting, "Stream Key")?.contains(".svc_live_"));
    Ok(())
}
