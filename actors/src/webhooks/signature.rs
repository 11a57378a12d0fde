//! Signatures of webhooks (`service-signature`, `webhook-signature`, `whsec_` secrets): made here, and checked here as a
//! receiver checks them. Pure.
//!
//! Each attempt carries two forms over the same body, so that a receiver may use either library:
//!
//! | form | headers | key | signed | written |
//! |---|---|---|---|---|
//! | the service's (specification §6) | `service-timestamp`, `service-signature` | the secret as it is shown | `{t}.{body}` | `t={t},v1={hex}` |
//! | Standard Webhooks 1.0 | `webhook-id`, `webhook-timestamp`, `webhook-signature` | the part behind `whsec_`, base64-decoded | `{id}.{t}.{body}` | `v1,{base64}` |
//!
//! Both are HMAC-SHA256. While two secrets overlap after a rotation, each form carries a signature of each.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use sluice_store::credentials;

/// Prefix of secrets.
pub const SECRET_PREFIX: &str = "whsec_";
/// Largest distance of a signature's time from the receiver's clock: the default of receivers' libraries.
pub const DEFAULT_TOLERANCE_S: u64 = 300;

/// Header of the service's form.
pub const SIGNATURE_HEADER: &str = "service-signature";

/// Reason why a receiver does not accept a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    #[error("the signature header is not of the form t=<Unix seconds>,v1=<hash>")]
    Malformed,
    #[error("the signature's time {timestamp_s} is more than {tolerance_s} s from now, {now_s}")]
    OutsideTolerance {
        timestamp_s: i64,
        now_s: i64,
        tolerance_s: u64,
    },
    #[error("no signature fits: the body was changed on the way, or the secret is another")]
    Mismatch,
}

/// Returns the headers that name and sign one attempt. `secrets`: newest first; `event_id`: with its `evt_`; `timestamp_s`:
/// of the attempt, in Unix seconds.
///
/// A secret that Standard Webhooks cannot use (see [`standard_key`]) signs in the service's form only.
pub fn headers(
    secrets: &[&str],
    event_id: &str,
    event_type: &str,
    timestamp_s: i64,
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let timestamp = timestamp_s.to_string();
    let mut headers = vec![
        ("service-event", event_type.to_owned()),
        ("service-timestamp", timestamp.clone()),
        (SIGNATURE_HEADER, service_form(secrets, &timestamp, body)),
        ("webhook-id", event_id.to_owned()),
        ("webhook-timestamp", timestamp.clone()),
    ];
    let standard = standard_form(secrets, event_id, &timestamp, body);
    if !standard.is_empty() {
        headers.push(("webhook-signature", standard));
    }
    headers
}

/// Checks the service's form as a receiver does. `header`: the value of `service-signature`; `body`: the bytes as they
/// came. One `v1` that fits is enough; parts of other names are ignored.
pub fn verify(
    secret: &str,
    header: &str,
    body: &[u8],
    now_s: i64,
    tolerance_s: u64,
) -> Result<(), Unverified> {
    let timestamp = values(header, "t").next().ok_or(Unverified::Malformed)?;
    let timestamp_s = unix_seconds(timestamp).ok_or(Unverified::Malformed)?;
    if values(header, "v1").next().is_none() {
        return Err(Unverified::Malformed);
    }
    if now_s.abs_diff(timestamp_s) > tolerance_s {
        return Err(Unverified::OutsideTolerance {
            timestamp_s,
            now_s,
            tolerance_s,
        });
    }
    let expected = service_hash(secret, timestamp, body);
    values(header, "v1")
        .any(|candidate| credentials::same(candidate, &expected))
        .then_some(())
        .ok_or(Unverified::Mismatch)
}

/// Returns the key that Standard Webhooks makes of a secret; `None` when the part behind `whsec_` is no base64. Secrets of
/// the service always have one: 32 base62 characters are base64 of 24 bytes.
pub fn standard_key(secret: &str) -> Option<Vec<u8>> {
    /// Padding is optional, since libraries differ in it.
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    ENGINE
        .decode(secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret))
        .ok()
}

fn service_form(secrets: &[&str], timestamp: &str, body: &[u8]) -> String {
    let mut form = format!("t={timestamp}");
    for secret in secrets {
        form.push_str(",v1=");
        form.push_str(&service_hash(secret, timestamp, body));
    }
    form
}

fn service_hash(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let hash = authenticate(
        secret.as_bytes(),
        &[timestamp.as_bytes(), b".".as_slice(), body],
    );
    credentials::hexadecimal(&hash)
}

fn standard_form(secrets: &[&str], event_id: &str, timestamp: &str, body: &[u8]) -> String {
    let head = format!("{event_id}.{timestamp}.");
    secrets
        .iter()
        .filter_map(|secret| standard_key(secret))
        .map(|key| STANDARD.encode(authenticate(&key, &[head.as_bytes(), body])))
        .map(|hash| format!("v1,{hash}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn authenticate(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for piece in message {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the values of `name` in `name=value,name=value`.
fn values<'a>(header: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    header
        .split(',')
        .filter_map(|part| part.trim().split_once('='))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Reads digits only: the text is signed, and a number has one spelling.
fn unix_seconds(text: &str) -> Option<i64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV0b5sSYspob7oD";
    const EVENT: &str = "evt_0193a1b2-0000-7000-8000-000000000001";
    const T: i64 = 1_795_276_800;
    const BODY: &str = r#"{"id":"evt_0193a1b2-0000-7000-8000-000000000001","type":"file.uploaded","created":1795276800,"data":{"filename":"café \u2603.jpg","sequence":1}}"#;

    fn header_of(headers: &[(&'static str, String)], name: &str) -> String {
        let found = headers.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// Expected values: Python's `hmac` and `base64`.
    #[test]
    fn known_answers() {
        let newest = "62ed17180ae8ea7754746f23e47cd725f57099b9aa18ded9b797dcc8c6d97fac";
        let oldest = "eb91f45a38ab0a280e3289f59e5f874abdd9bb592f02146bc910f8043a24f5bb";
        let empty = "1f244f8d331d4dd6fd8611102775bbaf2cdf369b97d1c420bbcb5fcff426a47f";
        let binary = "2f12fe2447c8b104b2afdb46416314e97f07a4e7337a31f14c9680e4212b22e7";
        let not_base64 = format!("whsec_{}", "A".repeat(33));
        for (case, secrets, body, service, standard) in [
            (
                "one secret",
                vec![SECRET],
                BODY.as_bytes(),
                format!("t={T},v1={newest}"),
                "v1,j/xEHMzxAzh8adqRNOclX6hwcEPRtwpIhORwCfskoX4=",
            ),
            (
                "two secrets",
                vec![SECRET, OTHER],
                BODY.as_bytes(),
                format!("t={T},v1={newest},v1={oldest}"),
                "v1,j/xEHMzxAzh8adqRNOclX6hwcEPRtwpIhORwCfskoX4= v1,MvBvSM3oP6VLCkF5N/rXzDzHbO1TPXd/mLi63rwCjHg=",
            ),
            (
                "an empty body",
                vec![SECRET],
                b"",
                format!("t={T},v1={empty}"),
                "v1,gbcREtwLqraspCqnISeRH5hKKfPHj5OkMJxjQ1C2J88=",
            ),
            (
                "bytes that are no text",
                vec![SECRET],
                b"\x00\xff\n.",
                format!("t={T},v1={binary}"),
                "v1,BP5OHKH6PtTQd24OdDM5TdyE2N3K4hO2QQFvQ5JnSl8=",
            ),
            (
                "a secret that is no base64",
                vec![&not_base64],
                BODY.as_bytes(),
                format!(
                    "t={T},v1=1658baaab7acf9413987520c94e2a52a8667f6448c58e1fc64aacedbc939e1d0"
                ),
                "",
            ),
        ] {
            let headers = headers(&secrets, EVENT, "file.uploaded", T, body);
            assert_eq!(header_of(&headers, "service-signature"), service, "{case}");
            assert_eq!(header_of(&headers, "webhook-signature"), standard, "{case}");
            assert_eq!(header_of(&headers, "service-event"), "file.uploaded");
            assert_eq!(header_of(&headers, "webhook-id"), EVENT);
            assert_eq!(header_of(&headers, "service-timestamp"), T.to_string());
            assert_eq!(header_of(&headers, "webhook-timestamp"), T.to_string());
        }
    }

    #[test]
    fn the_key_of_standard_webhooks_is_what_follows_the_prefix() {
        for (secret, bytes) in [
            ("whsec_AAAA", Some(3)),
            ("AAAA", Some(3)),
            ("whsec_AAA=", Some(2)),
            ("whsec_AAA", Some(2)),
            (SECRET, Some(24)),
            ("whsec_", Some(0)),
            ("whsec_AAAAA", None),
            ("whsec_A-_A", None),
            ("whsec_schlüssel", None),
        ] {
            assert_eq!(standard_key(secret).map(|key| key.len()), bytes, "{secret}");
        }
    }

    #[test]
    fn what_is_not_signed_so_is_refused() {
        let good = service_form(&[SECRET], &T.to_string(), BODY.as_bytes());
        let hash = good.rsplit_once('=').expect("v1=").1;
        let malformed = Err(Unverified::Malformed);
        let mismatch = Err(Unverified::Mismatch);
        for (header, expected) in [
            (good.clone(), Ok(())),
            (format!("t={T}, v1={hash}"), Ok(())),
            (format!("v1={hash},t={T}"), Ok(())),
            (format!("t={T},v1=00,v1={hash},v0=x,nonsense,="), Ok(())),
            (String::new(), malformed),
            (hash.to_owned(), malformed),
            (format!("v1={hash}"), malformed),
            (format!("t={T}"), malformed),
            (format!("t={T},v0={hash}"), malformed),
            (format!("t=,v1={hash}"), malformed),
            (format!("t=+{T},v1={hash}"), malformed),
            (format!("t=-{T},v1={hash}"), malformed),
            (format!("t={T}.0,v1={hash}"), malformed),
            (format!("t=99999999999999999999,v1={hash}"), malformed),
            (format!("T={T},V1={hash}"), malformed),
            (format!("t={T},v1="), mismatch),
            (format!("t={T},v1={}", &hash[..63]), mismatch),
            (format!("t={T},v1={hash}0"), mismatch),
            (format!("t={T},v1={}", hash.to_uppercase()), mismatch),
            (format!("t=0{T},v1={hash}"), mismatch),
            (format!("t={},v1={hash}", T + 1), mismatch),
            (format!("t={},t={T},v1={hash}", T + 1), mismatch),
            ("\u{0},=,t=\u{fffd}".repeat(1_000), malformed),
        ] {
            let verified = verify(SECRET, &header, BODY.as_bytes(), T, DEFAULT_TOLERANCE_S);
            assert_eq!(verified, expected, "{header}");
        }
        let stripped = SECRET.trim_start_matches(SECRET_PREFIX);
        assert_eq!(verify(stripped, &good, BODY.as_bytes(), T, 0), mismatch);
    }

    #[test]
    fn a_signature_is_believed_within_the_tolerance_to_both_sides() {
        let header = service_form(&[SECRET], &T.to_string(), b"{}");
        for (now_s, tolerance_s, believed) in [
            (T, 0, true),
            (T + 1, 0, false),
            (T + 300, 300, true),
            (T + 301, 300, false),
            (T - 300, 300, true),
            (T - 301, 300, false),
            (i64::MIN, 300, false),
            (i64::MAX, 300, false),
            (i64::MIN, u64::MAX, true),
        ] {
            let verified = verify(SECRET, &header, b"{}", now_s, tolerance_s);
            assert_eq!(verified.is_ok(), believed, "{now_s} ± {tolerance_s}");
        }
    }

    fn secret() -> impl Strategy<Value = String> {
        "whsec_[0-9A-Za-z]{32}"
    }

    proptest! {
        /// For any body, each of the secrets in force verifies, and no other.
        #[test]
        fn each_secret_in_force_verifies(
            secrets in prop::collection::vec(secret(), 1..=3),
            stranger in secret(),
            body in prop::collection::vec(any::<u8>(), 0..600),
            t in 0..4_000_000_000_i64,
        ) {
            let in_force: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let headers = headers(&in_force, EVENT, "file.uploaded", t, &body);
            let header = header_of(&headers, SIGNATURE_HEADER);
            for secret in &secrets {
                prop_assert_eq!(verify(secret, &header, &body, t, 0), Ok(()));
            }
            let believed = verify(&stranger, &header, &body, t, 0).is_ok();
            prop_assert_eq!(believed, secrets.contains(&stranger));
            let standard = header_of(&headers, "webhook-signature");
            prop_assert_eq!(standard.split(' ').count(), secrets.len());
        }

        /// A body with one changed bit is another delivery.
        #[test]
        fn a_changed_body_is_refused(
            body in prop::collection::vec(any::<u8>(), 1..600),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let header = service_form(&[SECRET], &T.to_string(), &body);
            let mut changed = body.clone();
            changed[at.index(body.len())] ^= 1 << bit;
            prop_assert_eq!(verify(SECRET, &header, &changed, T, 0), Err(Unverified::Mismatch));
        }

        /// A header may hold anything.
        #[test]
        fn garbage_is_refused_without_a_panic(header in ".*", body in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(verify(SECRET, &header, &body, T, u64::MAX).is_err());
        }
    }
}
