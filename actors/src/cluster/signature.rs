//! Signatures of calls between nodes: header `sluice-peer`, HMAC-SHA256 under a key derived from the installation's.
//!
//! ```text
//! call:   sluice-peer: v1 {id of the calling node} {Unix ms} {nonce} {HMAC in hexadecimal}
//! answer: sluice-peer: v1 {id of the answering node} {HMAC in hexadecimal}
//! ```
//!
//! A call's signature covers method, path with query, time, nonce, the SHA-256 of the body, and both nodes; an answer's covers
//! the nonce of its call, status, body and the answering node.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use sluice_store::{Error, Store, derived::DerivedTokens};
use uuid::Uuid;

/// Header of the signature.
pub const HEADER: &str = "sluice-peer";
/// Version of the calls that this program makes; calls of the version before are answered, too.
pub const PROTOCOL: u32 = 1;
/// The oldest version that is answered: the one before [`PROTOCOL`], as soon as there is one.
pub(super) const OLDEST_PROTOCOL: u32 = 1;
/// Longest difference between a call's time and the clock of the cluster.
pub(super) const MOST_SKEW: Duration = Duration::from_secs(30);

/// A call as it is signed.
#[derive(Clone, Copy, Debug)]
pub struct PeerCall<'a> {
    pub method: &'a str,
    /// With its query.
    pub path: &'a str,
    pub body: &'a [u8],
}

/// The header of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallHeader {
    pub(super) protocol: u32,
    pub(super) from: Uuid,
    pub(super) at_ms: i64,
    pub(super) nonce: u128,
    pub(super) signature: [u8; 32],
}

impl CallHeader {
    /// Reads the header; `None` when it has another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let header = Self {
            protocol: protocol(words.next()?)?,
            from: Uuid::try_parse(words.next()?).ok()?,
            at_ms: words.next()?.parse().ok()?,
            nonce: Uuid::try_parse(words.next()?).ok()?.as_u128(),
            signature: unhex(words.next()?)?,
        };
        words.next().is_none().then_some(header)
    }
}

fn protocol(text: &str) -> Option<u32> {
    text.strip_prefix('v')?.parse().ok()
}

/// Signs calls and answers, and checks signatures. Never in Debug output.
#[derive(Clone)]
pub(super) struct PeerKey(Hmac<Sha256>);

impl PeerKey {
    /// Reads the installation's key.
    pub(super) async fn of(store: &Store) -> Result<Self, Error> {
        let tokens = DerivedTokens::of(&mut store.read().await?).await?;
        Ok(Self::new(&tokens.peer_key()))
    }

    pub(super) fn new(key: &[u8]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// Makes the header of a call of the node `from` to the node `to`.
    pub(super) fn sign(
        &self,
        from: Uuid,
        to: Uuid,
        at_ms: i64,
        nonce: u128,
        call: PeerCall<'_>,
    ) -> String {
        let mut header = CallHeader {
            protocol: PROTOCOL,
            from,
            at_ms,
            nonce,
            signature: [0; 32],
        };
        header.signature = self
            .of_call(&header, to, call)
            .finalize()
            .into_bytes()
            .into();
        let (nonce, signature) = (Uuid::from_u128(nonce).simple(), hex(&header.signature));
        format!("v{PROTOCOL} {from} {at_ms} {nonce} {signature}")
    }

    /// Verifies in constant time that the call is for the node `to`.
    pub(super) fn accepts(&self, header: &CallHeader, to: Uuid, call: PeerCall<'_>) -> bool {
        let expected = self.of_call(header, to, call);
        expected.verify_slice(&header.signature).is_ok()
    }

    fn of_call(&self, header: &CallHeader, to: Uuid, call: PeerCall<'_>) -> Hmac<Sha256> {
        let CallHeader {
            protocol,
            from,
            at_ms,
            nonce,
            signature: _,
        } = header;
        let PeerCall { method, path, body } = call;
        // No part but the path has a blank or the end of a line, and neither is in a path.
        let signed = format!(
            "sluice peer call\n{protocol}\n{from}\n{to}\n{at_ms}\n{nonce}\n{method}\n{path}\n"
        );
        self.over(&signed, body)
    }

    /// Makes the header of the answer to the call with that nonce.
    pub(super) fn sign_answer(&self, from: Uuid, nonce: u128, status: u16, body: &[u8]) -> String {
        let mac = self.of_answer(from, nonce, status, body);
        let signature: [u8; 32] = mac.finalize().into_bytes().into();
        format!("v{PROTOCOL} {from} {}", hex(&signature))
    }

    /// Verifies in constant time that the node `from` answered the call with that nonce.
    pub(super) fn accepts_answer(
        &self,
        header: &str,
        from: Uuid,
        nonce: u128,
        status: u16,
        body: &[u8],
    ) -> bool {
        let mut words = header.split(' ').skip(2);
        let (Some(signature), None) = (words.next().and_then(unhex), words.next()) else {
            return false;
        };
        let expected = self.of_answer(from, nonce, status, body);
        expected.verify_slice(&signature).is_ok()
    }

    fn of_answer(&self, from: Uuid, nonce: u128, status: u16, body: &[u8]) -> Hmac<Sha256> {
        self.over(
            &format!("sluice peer answer\n{from}\n{nonce}\n{status}\n"),
            body,
        )
    }

    fn over(&self, head: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(head.as_bytes());
        let digest: [u8; 32] = Sha256::digest(body).into();
        mac.update(&digest);
        mac
    }
}

impl std::fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerKey").finish_non_exhaustive()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: PeerCall<'_> = PeerCall {
        method: "GET",
        path: "/peer/ping?a=b",
        body: b"body",
    };

    #[test]
    fn a_signature_is_of_one_call_between_two_nodes() {
        let (key, from, to) = (
            PeerKey::new(&[7; 32]),
            Uuid::from_u128(1),
            Uuid::from_u128(2),
        );
        let header = CallHeader::parse(&key.sign(from, to, 5, 9, CALL)).unwrap();
        assert_eq!((header.protocol, header.from), (PROTOCOL, from));
        assert_eq!((header.at_ms, header.nonce), (5, 9));
        assert!(key.accepts(&header, to, CALL));
        assert!(!PeerKey::new(&[8; 32]).accepts(&header, to, CALL));
        assert!(!key.accepts(&header, from, CALL), "for another node");
        let others = [
            PeerCall {
                method: "POST",
                ..CALL
            },
            PeerCall {
                path: "/peer/ping?a=c",
                ..CALL
            },
            PeerCall { body: b"", ..CALL },
        ];
        for other in others {
            assert!(!key.accepts(&header, to, other), "{other:?}");
        }
        let changed = [
            CallHeader { at_ms: 6, ..header },
            CallHeader {
                nonce: 10,
                ..header
            },
            CallHeader { from: to, ..header },
            CallHeader {
                protocol: 2,
                ..header
            },
        ];
        for header in changed {
            assert!(!key.accepts(&header, to, CALL), "{header:?}");
        }
    }

    #[test]
    fn an_answer_is_of_its_call() {
        let (key, from) = (PeerKey::new(&[7; 32]), Uuid::from_u128(1));
        let header = key.sign_answer(from, 9, 200, b"body");
        assert!(key.accepts_answer(&header, from, 9, 200, b"body"));
        assert!(!key.accepts_answer(&header, Uuid::from_u128(2), 9, 200, b"body"));
        assert!(!key.accepts_answer(&header, from, 8, 200, b"body"));
        assert!(!key.accepts_answer(&header, from, 9, 201, b"body"));
        assert!(!key.accepts_answer(&header, from, 9, 200, b"bodies"));
        for odd in [
            "",
            "v1",
            &header[..header.len() - 1],
            &format!("{header} x"),
        ] {
            assert!(!key.accepts_answer(odd, from, 9, 200, b"body"), "{odd}");
        }
    }

    #[test]
    fn odd_headers_are_rejected() {
        let id = Uuid::from_u128(1);
        let (nonce, signature) = ("0".repeat(32), "ab".repeat(32));
        let right = format!("v1 {id} 5 {nonce} {signature}");
        assert!(CallHeader::parse(&right).is_some());
        let wrong = [
            String::new(),
            format!("1 {id} 5 {nonce} {signature}"),
            format!("v1 {id} 5 {nonce} {signature} x"),
            format!("v1 {id} 5 {nonce}"),
            format!("v1 {id} five {nonce} {signature}"),
            format!("v1 {id} 5 {nonce} {}", "+a".repeat(32)),
            format!("v1 {id} 5 {nonce} é{}", "a".repeat(62)),
            format!("v1 x 5 {nonce} {signature}"),
        ];
        for wrong in wrong {
            assert_eq!(CallHeader::parse(&wrong), None, "{wrong}");
        }
    }
}
