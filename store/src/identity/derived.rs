//! Tokens of delivery keys and stream keys, derived from an id under the installation's key, so that they can be shown
//! again; only their hashes are stored. The key of calls between nodes.
//!
//! One id has one token for ever: a token that can be replaced is derived from an id of its own, which each replacement makes.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use super::{credentials, installation};
use crate::{Connection, Error, Secret};

// These precede the id; never change one that is in use. None is the beginning of another, nor of one in
// `application::signing`, which signs with the same key.
const DELIVERY_TOKEN: &[u8] = b"sluice delivery token 1\0";
const STREAM_KEY: &[u8] = b"sluice stream key 1\0";
/// Name of the installation in an object store.
const OBJECT_OWNER: &[u8] = b"sluice object owner 1\0";
/// Key of the calls between nodes.
const PEER_KEY: &[u8] = b"sluice peer key 1\0";

/// Derives tokens. The key is never in Debug output.
#[derive(Clone)]
pub struct DerivedTokens {
    key: Hmac<Sha256>,
}

impl DerivedTokens {
    /// Reads the installation's key.
    pub async fn of(db: &mut impl Connection) -> Result<Self, Error> {
        Ok(Self::new(installation::get(db).await?.key()))
    }

    pub fn new(installation_key: &[u8]) -> Self {
        Self {
            key: Hmac::new_from_slice(installation_key).expect("HMAC takes keys of any length"),
        }
    }

    /// The token of a delivery key: `svc_pub_` and 32 base62.
    pub fn delivery_token(&self, id: Uuid) -> Secret {
        credentials::delivery_key_of(self.bytes(DELIVERY_TOKEN, id))
    }

    /// The stream key of a live input: `svc_live_` and 32 base62.
    pub fn stream_key(&self, id: Uuid) -> Secret {
        credentials::stream_key_of(self.bytes(STREAM_KEY, id))
    }

    /// Returns the key by which the nodes of the installation sign their calls to each other.
    pub fn peer_key(&self) -> [u8; 32] {
        self.bytes(PEER_KEY, Uuid::nil())
    }

    /// Returns the name of the installation in an object store: 32 hexadecimal digits.
    pub(crate) fn object_owner(&self) -> String {
        let bytes = self.bytes(OBJECT_OWNER, Uuid::nil());
        bytes[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn bytes(&self, domain: &[u8], id: Uuid) -> [u8; 32] {
        let mut mac = self.key.clone();
        mac.update(domain);
        mac.update(id.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for DerivedTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DerivedTokens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_for_its_key_purpose_and_id_only() {
        let (tokens, id) = (DerivedTokens::new(b"key"), Uuid::from_u128(7));
        let delivery = tokens.delivery_token(id);
        let stream = tokens.stream_key(id);
        assert!(credentials::is_delivery_key(delivery.expose()));
        assert!(stream.expose().starts_with("svc_live_"));
        assert_eq!(delivery, tokens.delivery_token(id), "shown again");
        assert_ne!(delivery, tokens.delivery_token(Uuid::from_u128(8)));
        assert_ne!(delivery, DerivedTokens::new(b"other").delivery_token(id));
        let random = |token: &Secret, prefix: &str| token.expose()[prefix.len()..].to_owned();
        assert_ne!(random(&delivery, "svc_pub_"), random(&stream, "svc_live_"));
        assert!(!format!("{tokens:?}").contains("key:"));
    }

    /// A token that is in use must be the same after an upgrade.
    #[test]
    fn tokens_stay_what_they_are() {
        let tokens = DerivedTokens::new(&[7; 32]);
        let id = Uuid::from_u128(0x0196_0000_0000_7000_8000_0000_0000_0001);
        assert_eq!(
            tokens.delivery_token(id).expose(),
            "svc_pub_UpjKkvqsQqgrRZJWCmftzUcXlwQ1VrSM"
        );
        assert_eq!(
            tokens.stream_key(id).expose(),
            "svc_live_tNmAOG1wA3qy1C1vvEY12i5WGDlIKPvk"
        );
    }
}
