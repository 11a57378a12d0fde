//! SRT passphrases of inputs (`srtPassphrase`), derived from the installation's key, so that none is stored or chosen.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use sluice_store::live_inputs::LiveInput as InputRow;

/// Prefix of the message; never change one that is in use.
const DOMAIN: &[u8] = b"sluice srt passphrase 1\0";
/// Bytes of the MAC: 32 characters, between the 10 and 79 that SRT takes.
const BYTES: usize = 24;

/// Makes passphrases by the installation's key. Never in Debug output.
#[derive(Clone)]
pub struct Passphrases(Hmac<Sha256>);

impl Passphrases {
    pub fn new(installation_key: &[u8]) -> Self {
        let mut mac =
            Hmac::new_from_slice(installation_key).expect("HMAC takes keys of any length");
        mac.update(DOMAIN);
        Self(mac)
    }

    /// Returns the passphrase of an input, which changes with its stream key.
    pub fn of(&self, input: &InputRow) -> String {
        let mut mac = self.0.clone();
        mac.update(input.id.as_bytes());
        mac.update(input.stream_key_hash.as_bytes());
        URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..BYTES])
    }
}

impl std::fmt::Debug for Passphrases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrases")
    }
}
