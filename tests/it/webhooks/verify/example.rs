use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const TOLERANCE_SECONDS: u64 = 300;

/// `header`: the value of `service-signature`; `body`: the bytes as they came.
pub fn verified(header: &str, body: &[u8], secret: &str) -> bool {
    let Some(t) = values(header, "t=").next() else {
        return false;
    };
    let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
        return false;
    };
    let is_fresh = |t: u64| now.as_secs().abs_diff(t) <= TOLERANCE_SECONDS;
    if !t.parse().is_ok_and(is_fresh) {
        return false;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(t.as_bytes());
    mac.update(b".");
    mac.update(body);
    // verify_slice compares in constant time.
    let fits = |hash: Vec<u8>| mac.clone().verify_slice(&hash).is_ok();
    values(header, "v1=").filter_map(from_hex).any(fits)
}

fn values<'a>(header: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = header.split(',');
    parts.filter_map(move |part| part.trim().strip_prefix(name))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
