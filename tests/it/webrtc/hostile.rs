//! Strangers at the offers' address and at the gateway's port, while a viewer watches.

use std::{net::SocketAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::process;
use tokio::net::UdpSocket;

use super::{
    SOON,
    chromium::{Chromium, check_played},
    offers::{hostile, offer},
    wait_gateway,
};
use crate::support::{
    Failure,
    dice::{Dice, seed},
    encoder::Publish,
    eventually,
    http::client,
    media::Recipe,
    server::{Server, Settings},
};

const SECONDS: u32 = 240;
const OFFERS: u32 = 2_500;
const AT_ONCE: usize = 32;
const DATAGRAMS: usize = 100_000;
/// Sent without a pause.
const BURST: usize = 50;
/// Memory that the attacks may leave behind in the gateway.
const RESIDENT_GROWTH_KIB: u64 = 64 * 1024;
/// STUN's magic cookie (RFC 8489, section 5).
const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_cost_a_viewer_nothing() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Settings::new()
        // Enough for a viewer on a busy machine, and for such a machine to fill all places.
        .env("SLUICE_WEBRTC__HANDSHAKE_TIMEOUT", "5s")
        // Each offer seems to come from a network of its own.
        .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    let (url, http) = (input.whep_url()?, client());
    chromium.view("viewer", &url).await?;
    let from = chromium.played("viewer", 30).await?;
    let gateway = wait_gateway(&server, None).await?;
    let resident_kib = resident_kib(gateway)?;

    for (name, offer) in hostile() {
        let answer = post(&http, &url, 0, offer).await?;
        let allowed = [400, 413, 422].contains(&answer.0.as_u16());
        assert!(
            allowed && answer.1["error"].is_string(),
            "{name}: {answer:?}"
        );
    }
    flood(&server).await?;
    offer_without_end(&http, &url).await?;

    let to = chromium.played("viewer", 30).await?;
    check_played("beside strangers", &from, &to);
    assert_eq!(to["connections"], 1, "{to}");
    assert_eq!(wait_gateway(&server, None).await?, gateway, "it still runs");
    let grown_kib = self::resident_kib(gateway)?.saturating_sub(resident_kib);
    assert!(grown_kib < RESIDENT_GROWTH_KIB, "{grown_kib} KiB more");
    // Their time is soon over, and a viewer joins as before.
    eventually("a viewer is let in", SOON, async || {
        is_let_in(&mut chromium, "next", &url)
            .await
            .ok()?
            .then_some(())
    })
    .await?;
    chromium.played("next", 30).await?;
    Ok(())
}

/// Opens the guide's player; false when it is asked to try again later.
async fn is_let_in(chromium: &mut Chromium, name: &str, url: &str) -> Result<bool, Failure> {
    chromium.view(name, url).await?;
    eventually("an answer to the offer", SOON, async || {
        let seen = chromium.report(name).await.ok()?;
        let is_connected = seen["state"] == "connected";
        (is_connected || seen["error"].is_string()).then_some(is_connected)
    })
    .await
}

async fn post(
    http: &Client,
    url: &str,
    client_number: u32,
    offer: String,
) -> Result<(StatusCode, Value), Failure> {
    let [_, a, b, c] = client_number.to_be_bytes();
    let answer = http
        .post(url)
        .header("Content-Type", "application/sdp")
        .header("X-Forwarded-For", format!("10.{a}.{b}.{c}"))
        .body(offer)
        .send()
        .await?;
    let (status, text) = (answer.status(), answer.text().await?);
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

/// Offers that no packet follows: so many are accepted as the settings allow, the others are answered with a time to wait.
async fn offer_without_end(http: &Client, url: &str) -> Result<(), Failure> {
    let same = stream::iter(0..64).map(|number| post(http, url, 1, offer(number)));
    let same: Vec<_> = same.buffer_unordered(AT_ONCE).collect().await;
    let mut busy = 0;
    for answer in same {
        busy += usize::from(answer?.0 == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(busy > 0, "an address may only have some");
    let sent = stream::iter(2..OFFERS).map(|number| post(http, url, number, offer(number)));
    let mut sent = sent.buffer_unordered(AT_ONCE);
    let (mut accepted, mut full) = (0, 0);
    while let Some(answer) = sent.next().await {
        match answer? {
            (StatusCode::CREATED, _) => accepted += 1,
            (StatusCode::SERVICE_UNAVAILABLE, body) => {
                assert_eq!(body["code"], "webrtc_full", "{body}");
                full += 1;
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    assert!(accepted > 0 && full > 0, "{accepted} accepted, {full} not");
    // An honest viewer finds room again when the time of the last ones is over.
    eventually("there is room again", SOON, async || {
        let (status, _) = post(http, url, 1, offer(1)).await.ok()?;
        (status == StatusCode::CREATED).then_some(())
    })
    .await
}

/// Datagrams to the gateway's port: checks with user names of no one, DTLS, RTP and RTCP from elsewhere, noise.
async fn flood(server: &Server) -> Result<(), Failure> {
    let address = server.addresses().webrtc.ok_or("no WebRTC listener")?;
    let sockets = [
        UdpSocket::bind("127.0.0.1:0").await?,
        UdpSocket::bind("127.0.0.1:0").await?,
    ];
    let mut dice = Dice::new(seed()?);
    for count in 0..DATAGRAMS {
        let packet = datagram(&mut dice);
        // A full buffer of the kernel's is as good as a full line.
        let _ = sockets[count % 2].try_send_to(&packet, address);
        if count % BURST == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    check_silence(&sockets, address)
}

/// No answer has come: an answer to who has no password would be amplification.
fn check_silence(sockets: &[UdpSocket], address: SocketAddr) -> Result<(), Failure> {
    let mut answer = [0; 2048];
    for socket in sockets {
        if let Ok((len, from)) = socket.try_recv_from(&mut answer) {
            return Err(format!("{len} bytes came from {from}, asked was {address}").into());
        }
    }
    Ok(())
}

fn datagram(dice: &mut Dice) -> Vec<u8> {
    let mut packet = random(dice);
    match dice.below(5) {
        0 => return binding_request(dice),
        // DTLS: a handshake record of version 1.2 (RFC 7983).
        1 => put(&mut packet, &[22, 0xFE, 0xFD]),
        2 => put(&mut packet, &[0x80, 96]),
        3 => put(&mut packet, &[0x81, 201]),
        _ => {}
    }
    packet
}

/// A binding request (RFC 8489) with a user name of no one and an integrity of noise.
fn binding_request(dice: &mut Dice) -> Vec<u8> {
    let mut attributes = vec![0, 6, 0, 17];
    attributes.extend((0..17).map(|at| match at {
        8 => b':',
        _ => b'a' + dice.below(26) as u8,
    }));
    attributes.extend([0; 3]);
    attributes.extend([0, 8, 0, 20]);
    attributes.extend((0..20).map(|_| dice.next() as u8));
    let mut packet = vec![0, 1];
    packet.extend((attributes.len() as u16).to_be_bytes());
    packet.extend(COOKIE);
    packet.extend((0..12).map(|_| dice.next() as u8));
    packet.extend(attributes);
    packet
}

fn put(packet: &mut Vec<u8>, head: &[u8]) {
    packet.resize(packet.len().max(16), 0);
    packet[..head.len()].copy_from_slice(head);
}

fn random(dice: &mut Dice) -> Vec<u8> {
    let len = dice.below(1_400) as usize;
    (0..len).map(|_| dice.next() as u8).collect()
}

fn resident_kib(process_id: u32) -> Result<u64, Failure> {
    Ok(process::status_field(process_id, "VmRSS:").ok_or("no VmRSS")?)
}
