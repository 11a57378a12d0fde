//! A publisher without permission is rejected in the handshake, by SRT's own codes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{transmit::Transmit, wire::rejection};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    media::Recipe,
    server::{Input, Server, Settings},
};

const SOON: Duration = Duration::from_secs(15);

/// The pasted address with another stream id, written as encoders take it.
fn with_stream_id(input: &Input, id: &str) -> Result<String, Failure> {
    let url = input.srt_url()?;
    let (server, rest) = url.split_once("?streamid=").ok_or("no stream id")?;
    let (_, passphrase) = rest.split_once("&passphrase=").ok_or("no passphrase")?;
    Ok(format!("{server}?streamid={id}&passphrase={passphrase}"))
}

fn slug_and_key(input: &Input) -> Result<(&str, &str), Failure> {
    Ok(input.obs_stream_key.split_once('.').ok_or("no slug")?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_reason_has_its_code() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let address = server.addresses().srt.ok_or("no SRT listener")?;
    let api = server.api();
    let input = api.create(json!({"name": "open"})).await?;
    let disabled = api.create(json!({"name": "closed"})).await?;
    api.patch(&disabled.id, json!({"enabled": false})).await?;
    let rotated = api.create(json!({"name": "rotated"})).await?;
    let fresh = api.rotate(&rotated.id).await?;
    let published = |input: &Input| format!("publish:{}", input.obs_stream_key.replace('.', ":"));
    let (slug, key) = slug_and_key(&input)?;
    let wrong = format!("svc_live_{}", "x".repeat(32));

    const UNSECURE: u32 = 11;
    // The gateway gets an input a moment after its owner's answer.
    eventually("the gateway knows the last one", SOON, async || {
        let refused = rejection(address, &published(&fresh)).await.ok()?;
        (refused == Some(UNSECURE)).then_some(())
    })
    .await?;
    for (id, code) in [
        (format!("publish:{slug}:{wrong}"), 1401),
        (wrong.clone(), 1401),
        (String::new(), 1401),
        (published(&rotated), 1401),
        (published(&fresh), UNSECURE),
        (published(&disabled), 1403),
        (format!("publish:unknown:{key}"), 1404),
        (format!("read:{slug}:{key}"), 1405),
        (format!("#!::r={slug},m=request,s={key}"), 1405),
        ("what is this?".to_owned(), 1400),
        (published(&input), UNSECURE),
    ] {
        assert_eq!(rejection(address, &id).await?, Some(code), "{id}");
    }

    // ffmpeg's messages for the rejections.
    let pasted = input.srt_url()?;
    let (bare, _) = pasted.split_once("&passphrase=").ok_or("no passphrase")?;
    for (url, words) in [
        (rotated.srt_url()?, "Application-defined rejection"),
        (
            format!("{bare}&passphrase=notTheRightOne"),
            "Incorrect passphrase",
        ),
        (bare.to_owned(), "Password required"),
    ] {
        Transmit::start(&clip.flv, &url)?.says(words).await?;
    }
    let status = api.get(&input.id).await?["status"].clone();
    assert_eq!(status, "idle", "no one was let in");
    // The log says who was rejected and why.
    let is_logged =
        |line: &str| line.contains("a wrong passphrase, or none") && line.contains(&input.id);
    eventually("the rejection in the log", SOON, async || {
        server.log().lines().any(is_logged).then_some(())
    })
    .await?;
    let log = server.log();
    assert!(
        !log.contains(&wrong) && !log.contains(key) && !log.contains("notTheRightOne"),
        "a key is in the log"
    );

    // Rejected callers do not affect the listener.
    let _encoder = Publish::new(&clip, &pasted)?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_the_stream_id_is_taken() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let api = server.api();
    for form in ["pairs", "key", "encoded"] {
        let input = api.create(json!({"name": form})).await?;
        let (slug, key) = slug_and_key(&input)?;
        let id = match form {
            "pairs" => format!("#!::r={slug},m=publish,s={key}"),
            "key" => key.to_owned(),
            _ => format!("publish%3A{slug}%3A{key}"),
        };
        let _encoder = Publish::new(&clip, &with_stream_id(&input, &id)?)?.start()?;
        api.wait_status(&input.id, "live", SOON).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_displaced_encoder_is_refused_while_the_newer_one_sends() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    // An encoder counts as sending also where a busy machine lets it pause.
    let server = Settings::new()
        .env("SLUICE_LIVE__FRESH_FOR", "60s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let url = input.srt_url()?;
    let sends = |sessions: u64| {
        move |health: &Value| health["sessions"] == sessions && health["frameRate"].is_number()
    };
    let mut first = Publish::new(&clip, &url)?.start()?;
    api.wait_health(&input.id, "the first sends", SOON, sends(1))
        .await?;
    // By another protocol, for by the same and from the same address it would be the same encoder.
    let _second = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_health(&input.id, "the second sends", SOON, sends(2))
        .await?;
    first.wait(SOON).await?;

    let address = server.addresses().srt.ok_or("no SRT listener")?;
    let id = format!("publish:{}", input.obs_stream_key.replace('.', ":"));
    eventually("1409", SOON, async || {
        let code = rejection(address, &id).await.ok()?;
        (code == Some(1409)).then_some(())
    })
    .await?;
    let is_counted = |health: &Value| health["conflicts"].as_u64() >= Some(1);
    let health = api
        .wait_health(&input.id, "a conflict is counted", SOON, is_counted)
        .await?;
    assert_eq!(health["protocol"], "rtmp");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_connections_is_bounded() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Settings::new()
        .env("SLUICE_SRT__MAX_CONNECTIONS", "1")
        .start()
        .await?;
    let api = server.api();
    let (one, two) = (
        api.create(json!({"name": "one"})).await?,
        api.create(json!({"name": "two"})).await?,
    );
    let _encoder = Publish::new(&clip, &one.srt_url()?)?.start()?;
    api.wait_status(&one.id, "live", SOON).await?;
    let address = server.addresses().srt.ok_or("no SRT listener")?;
    let id = format!("publish:{}", two.obs_stream_key.replace('.', ":"));
    assert_eq!(rejection(address, &id).await?, Some(1402));
    Ok(())
}
