//! The SRT port, while a stream is on air and a strict viewer follows it.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::net::UdpSocket;

use super::wire::{HANDSHAKE_BYTES, conclusion, cookie_of, header, induction};
use crate::support::{
    Failure,
    dice::Dice,
    encoder::Publish,
    media::{Recipe, check_contiguous},
    server::Server,
    viewer::Viewer,
};

const PLAYED: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(15);
const DATAGRAMS: usize = 100_000;
/// Sent without a breath, so that a burst is one.
const BURST: usize = 50;
/// Handshakes that libsrt believes up to the stream id, each from a port of its own.
const HANDSHAKES: usize = 2_000;
/// Memory that the attacks may leave behind in the gateway.
const RESIDENT_GROWTH_KIB: u64 = 96 * 1024;

/// Stops the shared listener of a Rust implementation.
const STOPPER: [u32; 4] = [0xffff_0007, 0xd4e5_4952, 0xdfab_1c6f, 0xc60c_956c];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_stream_loses_nothing_to_floods_beside_it() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let address = server.addresses().srt.ok_or("no SRT listener")?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.srt_url()?)?.start()?;
    viewing.until_frames(60, SOON).await?;
    let service = server.process_id().ok_or("the service does not run")?;
    let gateway = super::gateway::gateway_of(service).ok_or("no gateway")?;
    let resident_kib = resident_kib(gateway)?;

    let mut dice = Dice::new(crate::support::dice::seed()?);
    let mutated = tokio::spawn(send_mutated(address, dice.another()));
    let flood = tokio::spawn(shake_hands(address, dice.another()));
    mutated.await??;
    let answered = flood.await??;
    assert!(answered > HANDSHAKES / 2, "only {answered} cookies came");

    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    let seen = viewing.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(
        ranges.len(),
        1,
        "the session has gone on: {}",
        seen.summary()
    );
    check_contiguous(&ranges[0], clip.first())?;
    let missing = clip.frames() as usize - ranges[0].len();
    assert!(missing <= 1, "{missing} frames are missing");

    assert_eq!(super::gateway::gateway_of(service), Some(gateway));
    let grown_kib = self::resident_kib(gateway)?.saturating_sub(resident_kib);
    assert!(grown_kib < RESIDENT_GROWTH_KIB, "{grown_kib} KiB more");
    // No one was let in, and anyone with the address still is.
    let mut again = Publish::new(&clip, &input.srt_url()?)?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    again.stop().await?;
    Ok(())
}

async fn send_mutated(address: SocketAddr, mut dice: Dice) -> Result<(), Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    for count in 0..DATAGRAMS {
        let mut packet = match dice.below(6) {
            0 => STOPPER.iter().flat_map(|word| word.to_be_bytes()).collect(),
            1 => induction(dice.next() as u32),
            2 => conclusion(
                dice.next() as u32,
                dice.next() as u32,
                b"publish:unknown:key",
            ),
            3 => control(dice.below(9) as u16, &mut dice),
            4 => data(&mut dice),
            _ => random(&mut dice),
        };
        mutate(&mut packet, &mut dice);
        // A full buffer of the kernel's is as good as a full line.
        let _ = socket.try_send_to(&packet, address);
        if count % BURST == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(())
}

/// Callers that answer the cookie, with stream ids of all kinds; how many got one.
async fn shake_hands(address: SocketAddr, mut dice: Dice) -> Result<usize, Failure> {
    let mut answered = 0;
    for _ in 0..HANDSHAKES {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let id = dice.next() as u32;
        socket.send_to(&induction(id), address).await?;
        let mut answer = [0; 256];
        let reply = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut answer));
        let Ok(Ok(len)) = reply.await else { continue };
        let Some(cookie) = cookie_of(&answer[..len]) else {
            continue;
        };
        answered += 1;
        let mut packet = match dice.below(4) {
            0 => conclusion(id, cookie, b"publish:unknown:svc_live_x"),
            1 => conclusion(id, cookie, &[b'%'; 512]),
            2 => conclusion(id, cookie, &random(&mut dice)),
            _ => conclusion(id, cookie, b""),
        };
        if dice.below(2) == 0 {
            let at = HANDSHAKE_BYTES + dice.below((packet.len() - HANDSHAKE_BYTES) as u64) as usize;
            packet[at] = dice.next() as u8;
        }
        socket.send_to(&packet, address).await?;
    }
    Ok(answered)
}

fn control(kind: u16, dice: &mut Dice) -> Vec<u8> {
    let mut packet = header(kind, (1 << 29) + dice.below(1 << 29) as u32);
    packet.extend(random(dice));
    packet
}

fn data(dice: &mut Dice) -> Vec<u8> {
    let mut packet = random(dice);
    packet.resize(packet.len().max(16), 0);
    packet[0] &= 0x7f;
    packet
}

fn random(dice: &mut Dice) -> Vec<u8> {
    let len = dice.below(1500) as usize;
    (0..len).map(|_| dice.next() as u8).collect()
}

fn mutate(packet: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..dice.below(4) {
        if packet.is_empty() {
            return;
        }
        let at = dice.below(packet.len() as u64) as usize;
        match dice.below(3) {
            0 => packet[at] = dice.next() as u8,
            1 => packet[at] ^= 1 << dice.below(8),
            _ => packet.truncate(at),
        }
    }
}

fn resident_kib(process: u32) -> Result<u64, Failure> {
    Ok(sluice_testkit::process::status_field(process, "VmRSS:").ok_or("no VmRSS")?)
}
