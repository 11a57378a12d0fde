//! Routes of datagrams to sessions: by the ICE user fragment of a STUN request, by the address for everything else.
//!
//! An address is entered when a connectivity check from it was answered, so that nothing else of a stranger reaches a session. A
//! user fragment that no session has is dropped without reading further.

use std::{collections::HashMap, net::SocketAddr};

use parking_lot::RwLock;

use super::super::message::SessionId;

/// Length of a STUN header, and the attribute that names both user fragments (RFC 8489 §14.3).
const STUN_HEADER: usize = 20;
const USERNAME: u16 = 6;

/// Table of the receiving threads and all shards.
#[derive(Default)]
pub(super) struct Routes {
    by_ufrag: RwLock<HashMap<Box<str>, SessionId>>,
    by_address: RwLock<HashMap<SocketAddr, SessionId>>,
}

impl Routes {
    pub fn insert_ufrag(&self, ufrag: &str, session: SessionId) {
        self.by_ufrag.write().insert(ufrag.into(), session);
    }

    pub fn insert_address(&self, address: SocketAddr, session: SessionId) {
        self.by_address.write().insert(address, session);
    }

    /// Removes an address, where it still is the session's.
    pub fn remove_address(&self, address: SocketAddr, session: SessionId) {
        let mut by_address = self.by_address.write();
        if by_address.get(&address) == Some(&session) {
            by_address.remove(&address);
        }
    }

    /// Removes a session's routes. An address that another session has by now stays with that one.
    pub fn remove(&self, session: SessionId, ufrag: &str, addresses: &[SocketAddr]) {
        self.by_ufrag.write().remove(ufrag);
        for address in addresses {
            self.remove_address(*address, session);
        }
    }

    /// Returns the session of a STUN request.
    pub fn of_check(&self, datagram: &[u8]) -> Option<SessionId> {
        let ufrag = local_ufrag(datagram)?;
        self.by_ufrag.read().get(ufrag).copied()
    }

    /// Returns the session that a datagram of `source` is for.
    pub fn of_datagram(&self, source: SocketAddr, datagram: &[u8]) -> Option<SessionId> {
        match is_stun(datagram) {
            true => self.of_check(datagram),
            false => self.by_address.read().get(&source).copied(),
        }
    }
}

/// True for a datagram that can only be STUN (RFC 7983 §7).
pub(super) fn is_stun(datagram: &[u8]) -> bool {
    datagram.len() >= STUN_HEADER && datagram[0] < 2
}

/// Returns the receiver's user fragment of a STUN request.
fn local_ufrag(datagram: &[u8]) -> Option<&str> {
    let mut attributes = datagram.get(STUN_HEADER..)?;
    while let Some((head, rest)) = attributes.split_first_chunk::<4>() {
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if kind == USERNAME {
            let name = std::str::from_utf8(rest.get(..len)?).ok()?;
            return name.split_once(':').map(|(local, _)| local);
        }
        attributes = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(username: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0];
        bytes.extend_from_slice(&[7; 16]);
        // PRIORITY comes first.
        bytes.extend_from_slice(&[0, 0x24, 0, 4, 1, 2, 3, 4]);
        bytes.extend_from_slice(&USERNAME.to_be_bytes());
        bytes.extend_from_slice(&(username.len() as u16).to_be_bytes());
        bytes.extend_from_slice(username);
        bytes
    }

    #[test]
    fn a_check_is_routed_by_its_user_fragment() {
        let routes = Routes::default();
        routes.insert_ufrag("here", 3);
        let source = SocketAddr::from(([192, 0, 2, 1], 9));
        assert_eq!(routes.of_datagram(source, &request(b"here:there")), Some(3));
        for name in [&b"there:here"[..], b"here", b"", b"\xff\xff:x"] {
            assert_eq!(routes.of_datagram(source, &request(name)), None, "{name:?}");
        }
        let whole = request(b"here:there");
        for len in 0..whole.len() {
            let _ = routes.of_datagram(source, &whole[..len]);
        }
    }

    #[test]
    fn other_datagrams_are_routed_by_their_address_as_long_as_it_is_the_sessions() {
        let routes = Routes::default();
        let source = SocketAddr::from(([192, 0, 2, 1], 9));
        let media = [128, 96, 0, 0];
        assert_eq!(routes.of_datagram(source, &media), None);
        routes.insert_address(source, 1);
        assert_eq!(routes.of_datagram(source, &media), Some(1));
        routes.insert_address(source, 2);
        routes.remove(1, "gone", &[source]);
        assert_eq!(routes.of_datagram(source, &media), Some(2));
        routes.remove(2, "gone", &[source]);
        assert_eq!(routes.of_datagram(source, &media), None);
    }
}
