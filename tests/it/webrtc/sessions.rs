//! Ends of sessions: whatever ends the permission to watch ends the session, and the address of a session answers as WHEP says.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{SOON, chromium::Chromium, offers::offer, until_viewers};
use crate::{
    playback_access::{jwt, minting::Key},
    support::{Failure, encoder::Publish, http::client, media::Recipe, server::Server},
};

/// Seconds that a token is good for: more than a busy machine takes to open a page with it.
const TOKEN_S: u64 = 20;
const SECONDS: u32 = 240;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_with_their_permission() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let key = Key::make(&api).await?;
    let names = ["token", "signed", "disabled", "deleted", "ended"];
    let (mut inputs, mut encoders) = (Vec::new(), Vec::new());
    for name in names {
        let input = api.create(json!({"name": name})).await?;
        encoders.push(Publish::new(&clip, &input.rtmp_url())?.start()?);
        inputs.push(input);
    }
    for input in &inputs {
        api.wait_status(&input.id, "live", SOON).await?;
    }
    for (name, input) in names.iter().zip(&inputs) {
        let url = match *name {
            "token" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
                let token = jwt::hs256(
                    key.secret.as_bytes(),
                    &json!({"alg": "HS256", "typ": "JWT", "kid": key.id}),
                    &json!({"sub": input.playback_id, "exp": now + TOKEN_S}),
                );
                input.whep_url()?.replace(&input.playback_id, &token)
            }
            _ => input.whep_url()?,
        };
        chromium.view(name, &url).await?;
        chromium.expect(name, "decoded", 10.0).await?;
    }

    api.patch(&inputs[1].id, json!({"requireSignedPlayback": true}))
        .await?;
    chromium.expect_closed("signed").await?;
    api.patch(&inputs[2].id, json!({"enabled": false})).await?;
    chromium.expect_closed("disabled").await?;
    api.delete(&inputs[3].id).await?;
    chromium.expect_closed("deleted").await?;
    encoders[4].stop().await?;
    chromium.expect_closed("ended").await?;
    // The input of the token is on air all the time, and open to all.
    chromium.expect_closed("token").await?;
    let health = until_viewers(&api, &inputs[0].id, 0).await?;
    assert_eq!(health["status"], "live", "{health}");
    Ok(())
}

/// The address of a session (draft-ietf-wish-whep): what each method is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_a_session_answers_as_whep_says() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let url = input.whep_url()?;
    let post = |offer: String| {
        client()
            .post(&url)
            .header("Content-Type", "application/sdp")
            .body(offer)
    };
    let early = post(offer(1)).send().await?;
    assert_eq!(early.status(), StatusCode::NOT_FOUND, "nothing is on air");
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;

    let answer = post(offer(2)).send().await?;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let header = |name: &str| {
        let value = answer.headers().get(name).and_then(|it| it.to_str().ok());
        value.map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(header("content-type"), "application/sdp");
    assert!(header("cache-control").contains("no-store"));
    let session = header("location");
    assert!(session.starts_with(&server.base_url()), "{session}");
    let sdp = answer.text().await?;
    let port = server.addresses().webrtc.ok_or("no WebRTC")?.port();
    assert!(sdp.contains(&format!("127.0.0.1 {port} typ host")), "{sdp}");
    assert!(
        sdp.contains("a=sendonly") && sdp.contains("a=ice-lite"),
        "{sdp}"
    );

    let trickle = client()
        .patch(&session)
        .header("Content-Type", "application/trickle-ice-sdpfrag")
        .body("a=end-of-candidates\r\n");
    assert_eq!(trickle.send().await?.status(), StatusCode::NO_CONTENT);
    for expected in [StatusCode::OK, StatusCode::OK] {
        let ended = client().delete(&session).send().await?;
        assert_eq!(ended.status(), expected, "also when it is over");
    }
    let other = if session.ends_with('0') { '1' } else { '0' };
    let unknown = format!("{}{other}", &session[..session.len() - 1]);
    let unknown = client().delete(unknown).send().await?;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);

    let preflight = client().request(Method::OPTIONS, &url).send().await?;
    assert!(preflight.status().is_success());
    let wrong = client()
        .post(&url)
        .header("Content-Type", "application/json")
        .body(offer(3))
        .send()
        .await?;
    assert_eq!(wrong.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    Ok(())
}
