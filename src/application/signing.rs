//! HMAC signatures of addresses and tokens by `Purpose` (downloads, uploads, shares), under the installation's key. No secret is
//! stored.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use sluice_store::{Connection, installation};
use uuid::Uuid;

use crate::application::error::ApiError;

/// Bytes of a signature: HMAC-SHA256, whole.
pub(crate) const SIGNATURE_BYTES: usize = 32;

/// Permission of an address; a signature for one purpose is invalid for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Download,
    Upload,
    /// Key of playback tokens, not an address; tokens are signed as in RFC 7515.
    PlaybackKey,
    /// Secret of an account's own key for playback tokens.
    PlaybackSigningKey,
    /// The token of a folder's link.
    Share,
    /// The password of a link was shown.
    ShareUnlock,
}

impl Purpose {
    /// Precedes the message; never change one that is in use.
    fn domain(self) -> &'static [u8] {
        match self {
            Self::Download => b"sluice download 1\0",
            Self::Upload => b"sluice upload 1\0",
            Self::PlaybackKey => b"sluice playback key 1\0",
            Self::PlaybackSigningKey => b"sluice playback signing key 1\0",
            Self::Share => b"sluice share 1\0",
            Self::ShareUnlock => b"sluice share unlock 1\0",
        }
    }
}

/// Signs messages and checks signatures. Never in Debug output.
pub(crate) struct Signer {
    key: Hmac<Sha256>,
}

impl Signer {
    pub(crate) async fn of(db: &mut impl Connection) -> Result<Self, ApiError> {
        Ok(Self::new(installation::get(db).await?.key()))
    }

    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            key: Hmac::new_from_slice(key).expect("HMAC takes keys of any length"),
        }
    }

    pub(crate) fn sign(&self, purpose: Purpose, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.begin(purpose, message).finalize().into_bytes().into()
    }

    /// Verifies a signature in constant time.
    pub(crate) fn accepts(&self, purpose: Purpose, message: &[u8], signature: &[u8]) -> bool {
        self.begin(purpose, message).verify_slice(signature).is_ok()
    }

    fn begin(&self, purpose: Purpose, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(purpose.domain());
        mac.update(message);
        mac
    }
}

/// Makes the message that is signed for an id until a time in milliseconds since 1970.
pub(crate) fn id_until(id: Uuid, expires_at: i64) -> [u8; 24] {
    let mut message = [0; 24];
    message[..16].copy_from_slice(id.as_bytes());
    message[16..].copy_from_slice(&expires_at.to_be_bytes());
    message
}

/// Encodes base64url without padding, as tokens appear in addresses.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url; `None` for what [`encode`] never writes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_key_purpose_and_message_only() {
        let signer = Signer::new(b"key");
        let signature = signer.sign(Purpose::Download, b"message");
        assert!(signer.accepts(Purpose::Download, b"message", &signature));
        let mut bent = signature;
        bent[31] ^= 1;
        assert!(!signer.accepts(Purpose::Download, b"message", &bent));
        assert!(!signer.accepts(Purpose::Download, b"message", &signature[..31]));
        assert!(!signer.accepts(Purpose::Download, b"message", b""));
        assert!(!signer.accepts(Purpose::Upload, b"message", &signature));
        assert!(!signer.accepts(Purpose::Download, b"messages", &signature));
        assert!(!Signer::new(b"other").accepts(Purpose::Download, b"message", &signature));
    }
}
