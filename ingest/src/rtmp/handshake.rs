//! RTMP handshake of the server, simple (RTMP 1.0 §5.2) and with digests; RTMPE is not supported.
//!
//! Flash Player and clients that follow it (ffmpeg among them) put an HMAC-SHA256 digest into C1 at one of two places
//! and expect S1 and S2 to be signed likewise; all others get C1 echoed. C2 is read and not checked: nothing depends on
//! it.

use bytes::{Buf, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Error;

/// Bytes of C1, C2, S1 and S2 each.
pub const PACKET_LEN: usize = 1536;
const DIGEST_LEN: usize = 32;
const VERSION: u8 = 3;
/// C0 of a client that insists on Adobe's encryption.
const VERSION_RTMPE: u8 = 6;
/// Version in S1 that makes clients check our digests; in C1, zero means that there is no digest.
const SERVER_VERSION: [u8; 4] = [4, 5, 0, 1];

const CLIENT_KEY: &[u8] = b"Genuine Adobe Flash Player 001";
const SERVER_KEY: &[u8] = b"Genuine Adobe Flash Media Server 001";
/// Follows [`SERVER_KEY`] in the key that signs S2.
const KEY_TAIL: [u8; 32] = [
    0xF0, 0xEE, 0xC2, 0x4A, 0x80, 0x68, 0xBE, 0xE8, 0x2E, 0x00, 0xD0, 0xD1, 0x02, 0x9E, 0x7E, 0x57,
    0x6E, 0xEC, 0x5D, 0x2D, 0x29, 0x80, 0x6F, 0xAB, 0x93, 0xB8, 0xE6, 0x36, 0xCF, 0xEB, 0x31, 0xAE,
];

/// Position of the four bytes from which the digest's offset follows. Each block has 764 bytes: the four, then 728
/// offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    DigestFirst,
    KeyFirst,
}

/// Fills a buffer with random bytes.
pub type FillRandom = fn(&mut [u8]);

/// Handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    fill_random: FillRandom,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    AwaitC1,
    AwaitC2,
    Done,
}

impl Handshake {
    pub fn new(fill_random: FillRandom) -> Self {
        Self {
            fill_random,
            stage: Stage::AwaitC1,
        }
    }

    /// Consumes what it can of `input` and appends answers to `output`; returns `true` once the handshake is complete
    /// and the rest of `input` is chunks.
    pub fn advance(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<bool, Error> {
        if self.stage == Stage::AwaitC1 {
            if let Some(&version) = input.first() {
                check_version(version)?;
            }
            if input.len() < 1 + PACKET_LEN {
                return Ok(false);
            }
            self.answer(&input[1..=PACKET_LEN], output);
            input.advance(1 + PACKET_LEN);
            self.stage = Stage::AwaitC2;
        }
        if self.stage == Stage::AwaitC2 {
            if input.len() < PACKET_LEN {
                return Ok(false);
            }
            input.advance(PACKET_LEN);
            self.stage = Stage::Done;
        }
        Ok(true)
    }

    fn answer(&self, c1: &[u8], output: &mut Vec<u8>) {
        output.push(VERSION);
        let mut s1 = [0; PACKET_LEN];
        (self.fill_random)(&mut s1[8..]);
        match find_digest(c1) {
            None => {
                output.extend(s1);
                output.extend(c1);
            }
            Some((scheme, client_digest)) => {
                s1[4..8].copy_from_slice(&SERVER_VERSION);
                let digest_at = scheme.digest_position(&s1);
                let digest = packet_digest(&s1, digest_at, SERVER_KEY);
                s1[digest_at..digest_at + DIGEST_LEN].copy_from_slice(&digest);
                output.extend(s1);
                output.extend(self.signed_s2(&client_digest));
            }
        }
    }

    fn signed_s2(&self, client_digest: &[u8; DIGEST_LEN]) -> [u8; PACKET_LEN] {
        let mut s2 = [0; PACKET_LEN];
        let (body, signature) = s2.split_at_mut(PACKET_LEN - DIGEST_LEN);
        (self.fill_random)(body);
        let key = hmac(&[SERVER_KEY, &KEY_TAIL].concat(), &[client_digest]);
        signature.copy_from_slice(&hmac(&key, &[body]));
        s2
    }
}

fn check_version(version: u8) -> Result<(), Error> {
    match version {
        VERSION => Ok(()),
        VERSION_RTMPE => Err(Error::unsupported("RTMPE", "use rtmp:// or rtmps://")),
        other => Err(Error::invalid(
            "RTMP version",
            format!("{other}, expected 3"),
        )),
    }
}

impl Scheme {
    fn digest_position(self, packet: &[u8]) -> usize {
        let offset_at = match self {
            Self::DigestFirst => 8,
            Self::KeyFirst => 772,
        };
        let sum: usize = packet[offset_at..offset_at + 4]
            .iter()
            .map(|&b| usize::from(b))
            .sum();
        offset_at + 4 + sum % 728
    }
}

fn find_digest(c1: &[u8]) -> Option<(Scheme, [u8; DIGEST_LEN])> {
    if c1[4..8] == [0; 4] {
        return None;
    }
    [Scheme::DigestFirst, Scheme::KeyFirst]
        .into_iter()
        .find_map(|scheme| {
            let at = scheme.digest_position(c1);
            let digest = packet_digest(c1, at, CLIENT_KEY);
            (c1[at..at + DIGEST_LEN] == digest).then_some((scheme, digest))
        })
}

/// Computes the digest of a packet over everything except the digest's own bytes.
fn packet_digest(packet: &[u8], digest_at: usize, key: &[u8]) -> [u8; DIGEST_LEN] {
    hmac(
        key,
        &[&packet[..digest_at], &packet[digest_at + DIGEST_LEN..]],
    )
}

fn hmac(key: &[u8], pieces: &[&[u8]]) -> [u8; DIGEST_LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for piece in pieces {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(buffer: &mut [u8]) {
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = (i % 251) as u8;
        }
    }

    fn c1_with_digest(scheme: Scheme) -> Vec<u8> {
        let mut c1 = vec![0; PACKET_LEN];
        counting(&mut c1[4..]);
        let at = scheme.digest_position(&c1);
        let digest = packet_digest(&c1, at, CLIENT_KEY);
        c1[at..at + DIGEST_LEN].copy_from_slice(&digest);
        c1
    }

    fn answer_to(c1: &[u8]) -> Vec<u8> {
        let mut input = BytesMut::from(&[&[3], c1].concat()[..]);
        let mut output = Vec::new();
        let mut handshake = Handshake::new(counting);
        assert!(!handshake.advance(&mut input, &mut output).unwrap());
        assert_eq!(output.len(), 1 + 2 * PACKET_LEN);
        assert!(input.is_empty());
        output
    }

    #[test]
    fn a_simple_client_gets_its_own_bytes_back() {
        let mut c1 = vec![7; PACKET_LEN];
        c1[4..8].fill(0);
        let output = answer_to(&c1);
        assert_eq!(output[0], 3);
        assert_eq!(&output[5..9], &[0; 4]);
        assert_eq!(&output[1 + PACKET_LEN..], &c1);
    }

    #[test]
    fn a_version_without_a_right_digest_is_simple() {
        let c1 = vec![9; PACKET_LEN];
        assert_eq!(&answer_to(&c1)[1 + PACKET_LEN..], &c1);
    }

    #[test]
    fn digests_are_answered_in_the_scheme_of_the_client() {
        for scheme in [Scheme::DigestFirst, Scheme::KeyFirst] {
            let c1 = c1_with_digest(scheme);
            assert_eq!(find_digest(&c1).unwrap().0, scheme);
            let output = answer_to(&c1);
            let (s1, s2) = output[1..].split_at(PACKET_LEN);
            let at = scheme.digest_position(s1);
            assert_eq!(s1[at..at + DIGEST_LEN], packet_digest(s1, at, SERVER_KEY));

            let at = scheme.digest_position(&c1);
            let key = hmac(
                &[SERVER_KEY, &KEY_TAIL].concat(),
                &[&c1[at..at + DIGEST_LEN]],
            );
            assert_eq!(s2[1504..], hmac(&key, &[&s2[..1504]]));
        }
    }

    #[test]
    fn other_versions_are_refused_at_the_first_byte() {
        for version in [0, 6, b'G', 0x16, 255] {
            let mut input = BytesMut::from(&[version][..]);
            let result = Handshake::new(counting).advance(&mut input, &mut Vec::new());
            assert!(result.is_err(), "version {version}");
        }
    }

    #[test]
    fn the_handshake_ends_with_c2_and_leaves_what_follows() {
        let mut handshake = Handshake::new(counting);
        let mut output = Vec::new();
        let mut input = BytesMut::from(&[3][..]);
        assert!(!handshake.advance(&mut input, &mut output).unwrap());
        input.extend([0; 2 * PACKET_LEN]);
        input.extend(b"chunk");
        assert!(handshake.advance(&mut input, &mut output).unwrap());
        assert_eq!(&input[..], b"chunk");
    }
}
