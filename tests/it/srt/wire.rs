//! SRT's handshake, packet by packet (draft-sharabayko-srt-01 §4.3.1), for callers that are no encoders.

use std::{net::SocketAddr, time::Duration};

use tokio::{net::UdpSocket, time::timeout};

use crate::support::Failure;

const HEADER_BYTES: usize = 16;
/// A handshake without extensions.
pub const HANDSHAKE_BYTES: usize = HEADER_BYTES + 48;
const KIND_AT: usize = HEADER_BYTES + 20;
const COOKIE_AT: usize = HEADER_BYTES + 28;
/// Offset of a reason in the place of the handshake's kind.
const REFUSED: u32 = 1000;
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// Returns the code with which a caller of this stream id is rejected; `None` when it is admitted. It has no
/// passphrase.
pub async fn rejection(address: SocketAddr, stream_id: &str) -> Result<Option<u32>, Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let id = 0x1234_5678;
    let mut answer = [0; 256];
    socket.send_to(&induction(id), address).await?;
    let len = timeout(ANSWERED_WITHIN, socket.recv(&mut answer)).await??;
    let cookie = cookie_of(&answer[..len]).ok_or("no cookie")?;
    let packet = conclusion(id, cookie, stream_id.as_bytes());
    socket.send_to(&packet, address).await?;
    let len = timeout(ANSWERED_WITHIN, socket.recv(&mut answer)).await??;
    let kind = word_at(&answer[..len], KIND_AT).ok_or("no handshake")?;
    Ok(kind.checked_sub(REFUSED).filter(|code| *code < 10_000))
}

/// Returns the cookie of an answered induction.
pub fn cookie_of(answer: &[u8]) -> Option<u32> {
    word_at(answer, COOKIE_AT)
}

fn word_at(packet: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?))
}

/// A control packet's header (draft-sharabayko-srt-01 §3.2).
pub fn header(kind: u16, destination: u32) -> Vec<u8> {
    let mut packet = vec![0; HEADER_BYTES];
    packet[..2].copy_from_slice(&(0x8000 | kind).to_be_bytes());
    packet[12..16].copy_from_slice(&destination.to_be_bytes());
    packet
}

/// A handshake (§3.2.1).
fn handshake(version: u32, extension: u32, kind: u32, id: u32, cookie: u32) -> Vec<u8> {
    let mut packet = header(0, 0);
    for word in [
        version,
        extension,
        1234,
        1500,
        8192,
        kind,
        id,
        cookie,
        0x0100_007f,
        0,
        0,
        0,
    ] {
        packet.extend_from_slice(&word.to_be_bytes());
    }
    packet
}

pub fn induction(id: u32) -> Vec<u8> {
    handshake(4, 2, 1, id, 0)
}

/// With the extensions HSREQ and SID (§3.2.1.1, §3.2.1.3), whose text is swapped in each word.
pub fn conclusion(id: u32, cookie: u32, stream_id: &[u8]) -> Vec<u8> {
    let mut packet = handshake(5, 1 | 4, 0xffff_ffff, id, cookie);
    for word in [0x0001_0003, 0x0001_0501, 0xbf, 0x0190_0190] {
        packet.extend_from_slice(&u32::to_be_bytes(word));
    }
    if stream_id.is_empty() {
        return packet;
    }
    let mut text = stream_id[..stream_id.len().min(512)].to_vec();
    text.resize(text.len().next_multiple_of(4), 0);
    packet.extend_from_slice(&5_u16.to_be_bytes());
    packet.extend_from_slice(&((text.len() / 4) as u16).to_be_bytes());
    for word in text.chunks_exact(4) {
        packet.extend(word.iter().rev());
    }
    packet
}
