//! Leave to watch a signed stream: a compact JWT (RFC 7519 in RFC 7515 §3.1) in the path, in place of the playback id, so
//! that the relative addresses of playlists carry it on.
//!
//! What is not written exactly as [`TokenKey::issue`] writes it is no token: one header and with it one algorithm, one
//! spelling of base64url, an expiry always. The signature is looked at before anything that it covers.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{
    context::AppState,
    error::ApiError,
    signing::{self, Purpose, Signer},
};

/// Longer texts are no tokens; more than 25 short hosts in `dom` fit.
const MAX_CHARACTERS: usize = 4096;
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// What a token permits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlaybackGrant {
    /// The playback id.
    pub sub: String,
    /// Seconds since 1970; from then on it is worth nothing.
    pub exp: i64,
    /// Hosts, as in `allowedDomains`, whose pages may play; empty: those of the stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dom: Vec<String>,
}

/// Why a token permits nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not made here, or bent.
    Wrong,
    Expired,
}

/// Signs and checks tokens; derived from the installation's key. Never in Debug output.
pub(super) struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    /// The installation's, read once.
    pub(super) async fn of(state: &AppState) -> Result<&Self, ApiError> {
        let read = async || {
            let signer = Signer::of(&mut state.store.read().await?).await?;
            Ok(Self::derive(&signer))
        };
        state.playback_key.get_or_try_init(read).await
    }

    fn derive(signer: &Signer) -> Self {
        let key = signer.sign(Purpose::PlaybackKey, b"");
        Self(Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"))
    }

    /// `None` when it would be longer than a token may be.
    pub(super) fn issue(&self, grant: &PlaybackGrant) -> Option<String> {
        let claims = serde_json::to_vec(grant).expect("a grant is plain values");
        let signed = format!(
            "{}.{}",
            signing::encode(HEADER.as_bytes()),
            signing::encode(&claims)
        );
        let signature = self.mac(&signed).finalize().into_bytes();
        let token = format!("{signed}.{}", signing::encode(&signature));
        (token.len() <= MAX_CHARACTERS).then_some(token)
    }

    /// What a token permits at `now_s`, in seconds since 1970.
    pub(super) fn read(&self, token: &str, now_s: i64) -> Result<PlaybackGrant, Refusal> {
        let grant = self.opened(token).ok_or(Refusal::Wrong)?;
        match now_s < grant.exp {
            true => Ok(grant),
            false => Err(Refusal::Expired),
        }
    }

    fn opened(&self, token: &str) -> Option<PlaybackGrant> {
        if token.len() > MAX_CHARACTERS {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        self.mac(signed)
            .verify_slice(&signing::decode(signature)?)
            .ok()?;
        if signing::decode(header)? != HEADER.as_bytes() {
            return None;
        }
        serde_json::from_slice(&signing::decode(claims)?).ok()
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(signed.as_bytes());
        mac
    }
}

/// Whether a text that is no playback id is meant as a token, and so refused rather than not found.
pub(super) fn looks_like_token(text: &str) -> bool {
    text.contains('.') || text.starts_with("eyJ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn key() -> TokenKey {
        TokenKey::derive(&Signer::new(b"key"))
    }

    fn grant() -> PlaybackGrant {
        PlaybackGrant {
            sub: "pb_0123456789abcdefghij".to_owned(),
            exp: NOW + 60,
            dom: Vec::new(),
        }
    }

    /// A token with a right signature over whatever it says.
    fn signed(header: &str, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            signing::encode(header.as_bytes()),
            signing::encode(claims.as_bytes())
        );
        let signature = key().mac(&signed).finalize().into_bytes();
        format!("{signed}.{}", signing::encode(&signature))
    }

    #[test]
    fn a_grant_comes_back_until_it_expires() {
        let restricted = PlaybackGrant {
            dom: vec!["*.example.org".to_owned()],
            ..grant()
        };
        for grant in [grant(), restricted] {
            let token = key().issue(&grant).unwrap();
            assert!(looks_like_token(&token));
            assert_eq!(key().read(&token, NOW), Ok(grant.clone()));
            assert_eq!(key().read(&token, NOW + 59), Ok(grant));
            assert_eq!(key().read(&token, NOW + 60), Err(Refusal::Expired));
        }
        let long = PlaybackGrant {
            dom: vec!["a".repeat(200); 25],
            ..grant()
        };
        assert_eq!(key().issue(&long), None);
    }

    #[test]
    fn it_is_a_jwt_that_other_programs_read() {
        let token = key().issue(&grant()).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        assert_eq!(parts.len(), 3);
        assert_eq!(
            signing::decode(parts[1]).unwrap(),
            br#"{"sub":"pb_0123456789abcdefghij","exp":1800000060}"#
        );
        assert_eq!(signing::decode(parts[2]).unwrap().len(), 32);
    }

    #[test]
    fn nothing_but_our_own_tokens_is_believed() {
        let token = key().issue(&grant()).unwrap();
        let (signed_part, signature) = token.rsplit_once('.').unwrap();
        let claims = r#"{"sub":"pb_0123456789abcdefghij","exp":1800000060}"#;
        let last = if token.ends_with('A') { 'B' } else { 'A' };
        let other_key = TokenKey::derive(&Signer::new(b"other"))
            .issue(&grant())
            .unwrap();
        let cases = [
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            "....".to_owned(),
            signed_part.to_owned(),
            format!("{signed_part}."),
            format!("{signed_part}.{}", &signature[..42]),
            format!("{token}="),
            format!("{token}."),
            format!(".{token}"),
            format!("{token}.{signature}"),
            format!("{}{last}", &token[..token.len() - 1]),
            token.to_lowercase(),
            other_key,
            format!(
                "{}.{}.",
                signing::encode(br#"{"alg":"none"}"#),
                signing::encode(claims.as_bytes())
            ),
            signed(r#"{"alg":"none"}"#, claims),
            signed(r#"{"alg":"HS512","typ":"JWT"}"#, claims),
            signed(r#"{"alg":"hs256","typ":"JWT"}"#, claims),
            signed(r#"{"typ":"JWT","alg":"HS256"}"#, claims),
            signed(r#"{"alg":"HS256","typ":"JWT","crit":["exp"]}"#, claims),
            signed(HEADER, r#"{"sub":"pb_0123456789abcdefghij"}"#),
            signed(HEADER, r#"{"exp":1800000060}"#),
            signed(
                HEADER,
                r#"{"sub":"pb_0123456789abcdefghij","exp":"1800000060"}"#,
            ),
            signed(HEADER, r#"{"sub":"pb_0123456789abcdefghij","exp":1e99}"#),
            signed(HEADER, "[]"),
            "a".repeat(MAX_CHARACTERS + 1),
            format!("{}.a.a", "a".repeat(1 << 20)),
        ];
        for case in cases {
            let shown: String = case.chars().take(120).collect();
            assert_eq!(key().read(&case, NOW), Err(Refusal::Wrong), "{shown}");
        }
    }

    #[test]
    fn one_signature_has_one_spelling() {
        let token = key().issue(&grant()).unwrap();
        // 32 bytes leave two bits of the last letter unused.
        let spelled: Vec<String> =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                .chars()
                .map(|letter| format!("{}{letter}", &token[..token.len() - 1]))
                .filter(|token| key().read(token, NOW).is_ok())
                .collect();
        assert_eq!(spelled, [token]);
    }
}
