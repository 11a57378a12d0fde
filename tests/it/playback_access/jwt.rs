//! Playback tokens (JWT) of any form, valid and invalid.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::{Sha256, Sha512};

pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Header and claims as they are signed.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes())
    )
}

pub fn hs256(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = unsigned(header, claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", encode(&mac.finalize().into_bytes()))
}

pub fn hs512(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = unsigned(header, claims);
    let mut mac = Hmac::<Sha512>::new_from_slice(secret).expect("a key of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", encode(&mac.finalize().into_bytes()))
}
