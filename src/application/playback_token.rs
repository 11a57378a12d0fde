//! Playback tokens: JWT (HS256) of the service and of an account's signing keys; claims `sub`, `exp`, `dom`, `nbf`, longest token.
//! The token (RFC 7519 in RFC 7515 §3.1) is in the path, in place of the playback id, so that the relative addresses of playlists
//! keep it.
//!
//! There are two kinds, both HS256 and nothing else. What the service issues is written exactly as [`TokenKeys::issue`]
//! writes it: one header, one spelling of base64url, an expiry always. What an account mints itself names its signing key as
//! `kid`, is written by whatever library the account has, and permits only what belongs to that account. The signature is
//! looked at before anything that it covers, but for the header that says which key it is to be checked with.

use std::collections::HashMap;

use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Number;
use sha2::Sha256;
use sluice_store::{Secret, now_ms, playback_keys};
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    context::PlaybackTokens,
    error::ApiError,
    signing::{self, Purpose, Signer},
};

/// Longest token; more than 25 short hosts in `dom` fit.
const MAX_CHARACTERS: usize = 4096;
/// Header of the tokens that the service issues.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const ALGORITHM: &str = "HS256";
const TYPE: &str = "JWT";
/// Prefix of signing keys.
const SECRET_PREFIX: &str = "svc_play_";

/// Permission that a token gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaybackGrant {
    /// The playback id.
    pub sub: String,
    /// Seconds since 1970; it is not valid from then on.
    pub exp: i64,
    /// Hosts, as in `allowedDomains`, whose pages may play; empty: those of the stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dom: Vec<String>,
}

/// Claims of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerifiedClaims {
    pub grant: PlaybackGrant,
    /// Owner of the signing key that minted it; `None`: the service issued it.
    minter: Option<Uuid>,
}

impl VerifiedClaims {
    /// Returns whether it is for the resource with this playback id in this account.
    pub fn is_for(&self, playback_id: &str, account_id: Uuid) -> bool {
        self.grant.sub == playback_id && self.minter.is_none_or(|minter| minter == account_id)
    }
}

/// Reason why a token permits nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Malformed, altered, or signed with an unknown key.
    Wrong,
    Expired,
}

/// Header of a token that was minted outside. Other header fields (`crit`, `jku`, `jwk`, `x5c` …) would change how the
/// token is to be checked, and are rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MintedHeader {
    alg: String,
    kid: Uuid,
    typ: Option<String>,
}

/// Claims of a token that was minted outside; claims not named here have no meaning to the service.
#[derive(Deserialize)]
struct MintedClaims {
    sub: String,
    exp: Number,
    nbf: Option<Number>,
    #[serde(default)]
    dom: Vec<String>,
    /// Rejected when present: the service is not an audience of any token (RFC 7519 §4.1.3).
    aud: Option<IgnoredAny>,
}

/// Signs and checks tokens; all keys are derived from the installation's. Never in Debug output.
pub(crate) struct TokenKeys {
    signer: Signer,
    issued: Hmac<Sha256>,
    /// Accounts by the ids of their signing keys.
    minters: RwLock<HashMap<Uuid, Uuid>>,
}

impl TokenKeys {
    /// Returns the installation's keys, with every account's; read once.
    pub(crate) async fn of(tokens: &PlaybackTokens) -> Result<&Self, ApiError> {
        tokens.keys.get_or_try_init(|| Self::load(tokens)).await
    }

    async fn load(tokens: &PlaybackTokens) -> Result<Self, ApiError> {
        let mut db = tokens.store.read().await?;
        let keys = Self::new(Signer::of(&mut db).await?);
        for key in playback_keys::all(&mut db).await? {
            keys.made(key.id, key.account_id);
        }
        Ok(keys)
    }

    /// Reads the row of a key again, and adds or removes it.
    pub(crate) async fn read_again(tokens: &PlaybackTokens, key_id: Uuid) -> Result<(), ApiError> {
        let keys = Self::of(tokens).await?;
        let _changes = tokens.key_changes.lock().await;
        match playback_keys::by_id(&mut tokens.store.read().await?, key_id).await? {
            Some(key) => keys.made(key.id, key.account_id),
            None => keys.revoked(key_id),
        }
        Ok(())
    }

    /// Reads all keys again.
    pub(crate) async fn read_all_again(tokens: &PlaybackTokens) -> Result<(), ApiError> {
        let keys = Self::of(tokens).await?;
        let _changes = tokens.key_changes.lock().await;
        let rows = playback_keys::all(&mut tokens.store.read().await?).await?;
        let minters = rows.into_iter().map(|key| (key.id, key.account_id));
        *keys.minters.write() = minters.collect();
        Ok(())
    }

    pub(crate) fn new(signer: Signer) -> Self {
        let key = signer.sign(Purpose::PlaybackKey, b"");
        Self {
            signer,
            issued: mac_of(&key),
            minters: RwLock::default(),
        }
    }

    /// The secret of an account's signing key: its text is what HS256 is keyed with.
    pub(crate) fn secret(&self, key_id: Uuid) -> Secret {
        let derived = self
            .signer
            .sign(Purpose::PlaybackSigningKey, key_id.as_bytes());
        Secret::new(format!("{SECRET_PREFIX}{}", signing::encode(&derived)))
    }

    /// Adds a signing key whose creation is committed.
    pub(crate) fn made(&self, key_id: Uuid, account_id: Uuid) {
        let mut minters = self.minters.write();
        minters.insert(key_id, account_id);
    }

    /// Removes a signing key whose revocation is committed: tokens minted with it are not valid from here on.
    pub(crate) fn revoked(&self, key_id: Uuid) {
        let mut minters = self.minters.write();
        minters.remove(&key_id);
    }

    /// Issues a token; `None` when it would be longer than a token may be.
    pub(crate) fn issue(&self, grant: &PlaybackGrant) -> Option<String> {
        let claims = serde_json::to_vec(grant).expect("a grant is plain values");
        let signed = format!(
            "{}.{}",
            signing::encode(HEADER.as_bytes()),
            signing::encode(&claims)
        );
        let signature = over(&self.issued, &signed).finalize().into_bytes();
        let token = format!("{signed}.{}", signing::encode(&signature));
        (token.len() <= MAX_CHARACTERS).then_some(token)
    }

    /// Adds the signature of an account's key to a header and claims.
    pub(crate) fn signed(&self, key_id: Uuid, signed: &str) -> String {
        let key = mac_of(self.secret(key_id).expose().as_bytes());
        let signature = over(&key, signed).finalize().into_bytes();
        format!("{signed}.{}", signing::encode(&signature))
    }

    /// Verifies a token and returns its permission at `now_s`, in seconds since 1970.
    pub(crate) fn read(&self, token: &str, now_s: i64) -> Result<VerifiedClaims, Rejection> {
        let claims = self.opened(token, now_s).ok_or(Rejection::Wrong)?;
        match now_s < claims.grant.exp {
            true => Ok(claims),
            false => Err(Rejection::Expired),
        }
    }

    fn opened(&self, token: &str, now_s: i64) -> Option<VerifiedClaims> {
        if token.len() > MAX_CHARACTERS {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let (header, signature) = (signing::decode(header)?, signing::decode(signature)?);
        let minter = match header == HEADER.as_bytes() {
            true => None,
            false => Some(self.minter(&header)?),
        };
        let key = match &minter {
            None => &self.issued,
            Some(minter) => &minter.key,
        };
        // Verified before the claims are decoded: nothing unverified is parsed but the header, which names the key.
        over(key, signed).verify_slice(&signature).ok()?;
        let claims = signing::decode(claims)?;
        let grant = match &minter {
            None => serde_json::from_slice(&claims).ok()?,
            Some(_) => minted(&claims, now_s)?,
        };
        Some(VerifiedClaims {
            grant,
            minter: minter.map(|minter| minter.account_id),
        })
    }

    fn minter(&self, header: &[u8]) -> Option<Minter> {
        let header: MintedHeader = serde_json::from_slice(header).ok()?;
        let is_jwt = header.typ.is_none_or(|typ| typ.eq_ignore_ascii_case(TYPE));
        if header.alg != ALGORITHM || !is_jwt {
            return None;
        }
        let minters = self.minters.read();
        let account_id = *minters.get(&header.kid)?;
        Some(Minter {
            account_id,
            key: mac_of(self.secret(header.kid).expose().as_bytes()),
        })
    }
}

/// An account's signing key, as a token named it.
struct Minter {
    account_id: Uuid,
    key: Hmac<Sha256>,
}

/// Reads the claims of a minted token; `None` also before its `nbf` time.
fn minted(claims: &[u8], now_s: i64) -> Option<PlaybackGrant> {
    let claims: MintedClaims = serde_json::from_slice(claims).ok()?;
    let is_early = match &claims.nbf {
        None => false,
        Some(nbf) => seconds(nbf)? > now_s,
    };
    if is_early || claims.aud.is_some() {
        return None;
    }
    Some(PlaybackGrant {
        sub: claims.sub,
        exp: seconds(&claims.exp)?,
        dom: claims.dom,
    })
}

/// Reads a NumericDate (RFC 7519 §2), which may have a fraction.
fn seconds(date: &Number) -> Option<i64> {
    /// Largest `f64` that is exact to the second.
    const LATEST: f64 = 9e15;
    let fractional = || date.as_f64().filter(|date| date.abs() < LATEST);
    date.as_i64()
        .or_else(|| fractional().map(|date| date.floor() as i64))
}

fn mac_of(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn over(key: &Hmac<Sha256>, signed: &str) -> Hmac<Sha256> {
    let mut mac = key.clone();
    mac.update(signed.as_bytes());
    mac
}

/// A token as its owner gets it.
pub(crate) struct Issued {
    pub token: String,
    pub expires_at: Timestamp,
}

/// Issues a token of the service for a stream that the caller owns.
pub(crate) async fn issue(
    tokens: &PlaybackTokens,
    playback_id: String,
    lifetime_s: u32,
    domains: Vec<String>,
) -> Result<Issued, ApiError> {
    let grant = PlaybackGrant {
        sub: playback_id,
        exp: now_ms() / 1_000 + i64::from(lifetime_s),
        dom: domains,
    };
    let token = TokenKeys::of(tokens).await?.issue(&grant).ok_or_else(|| {
        invalid!("allowedDomains are too long together for an address: name fewer hosts")
    })?;
    Ok(Issued {
        token,
        expires_at: Timestamp(grant.exp * 1_000),
    })
}

/// Returns whether a text that is no playback id is meant as a token, and so rejected rather than not found: base64url,
/// perhaps padded, and dots alone (RFC 7515 §3.1).
pub(crate) fn looks_like_token(text: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    (text.contains('.') || text.starts_with("eyJ")) && text.chars().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    const KEY_ID: Uuid = Uuid::from_u128(7);
    const ACCOUNT: Uuid = Uuid::from_u128(70);

    fn key() -> TokenKeys {
        let keys = TokenKeys::new(Signer::new(b"key"));
        keys.made(KEY_ID, ACCOUNT);
        keys
    }

    fn issued(grant: PlaybackGrant) -> VerifiedClaims {
        VerifiedClaims {
            grant,
            minter: None,
        }
    }

    /// Mints a token in the form of any JWT library.
    fn minted_by(secret: &[u8], header: &str, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            signing::encode(header.as_bytes()),
            signing::encode(claims.as_bytes())
        );
        let signature = over(&mac_of(secret), &signed).finalize().into_bytes();
        format!("{signed}.{}", signing::encode(&signature))
    }

    fn grant() -> PlaybackGrant {
        PlaybackGrant {
            sub: "pb_0123456789abcdefghij".to_owned(),
            exp: NOW + 60,
            dom: Vec::new(),
        }
    }

    /// Signs any header and claims with a valid signature of the service.
    fn signed(header: &str, claims: &str) -> String {
        minted_by(
            &Signer::new(b"key").sign(Purpose::PlaybackKey, b""),
            header,
            claims,
        )
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
            assert_eq!(key().read(&token, NOW), Ok(issued(grant.clone())));
            assert_eq!(key().read(&token, NOW + 59), Ok(issued(grant)));
            assert_eq!(key().read(&token, NOW + 60), Err(Rejection::Expired));
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
        let other_key = TokenKeys::new(Signer::new(b"other"))
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
            assert_eq!(key().read(&case, NOW), Err(Rejection::Wrong), "{shown}");
        }
    }

    #[test]
    fn one_signature_has_one_spelling() {
        let token = key().issue(&grant()).unwrap();
        // 32 bytes claims two bits of the last letter unused.
        let spelled: Vec<String> =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                .chars()
                .map(|letter| format!("{}{letter}", &token[..token.len() - 1]))
                .filter(|token| key().read(token, NOW).is_ok())
                .collect();
        assert_eq!(spelled, [token]);
    }

    #[test]
    fn an_account_mints_with_its_key_for_itself_alone() {
        let keys = key();
        let secret = keys.secret(KEY_ID);
        let header = format!(r#"{{"typ":"JWT","alg":"HS256","kid":"{KEY_ID}"}}"#);
        let claims = format!(
            r#"{{"sub":"pb_0123456789abcdefghij","iat":{NOW},"exp":{},"name":"x"}}"#,
            NOW + 60
        );
        let token = minted_by(secret.expose().as_bytes(), &header, &claims);
        let claims = keys.read(&token, NOW).unwrap();
        assert_eq!(claims.grant, grant());
        let sub = &claims.grant.sub;
        assert!(claims.is_for(sub, ACCOUNT));
        assert!(!claims.is_for(sub, Uuid::from_u128(71)), "another account");
        assert!(!claims.is_for("pb_another", ACCOUNT));
        assert!(issued(grant()).is_for(sub, Uuid::from_u128(71)));
        assert_eq!(keys.read(&token, NOW + 60), Err(Rejection::Expired));
        keys.revoked(KEY_ID);
        assert_eq!(keys.read(&token, NOW), Err(Rejection::Wrong));
    }

    #[test]
    fn times_of_minted_tokens_may_have_fractions() {
        let keys = key();
        let header = format!(r#"{{"alg":"HS256","kid":"{KEY_ID}"}}"#);
        let read = |times: &str| {
            let claims = format!(r#"{{"sub":"pb_0123456789abcdefghij",{times}}}"#);
            let token = minted_by(keys.secret(KEY_ID).expose().as_bytes(), &header, &claims);
            keys.read(&token, 1_000).map(|claims| claims.grant.exp)
        };
        let cases = [
            (r#""exp":1060.9"#, Ok(1_060)),
            (r#""exp":1.06e3,"nbf":1000"#, Ok(1_060)),
            (r#""exp":1060,"nbf":1001"#, Err(Rejection::Wrong)),
            (r#""exp":1060,"nbf":"999""#, Err(Rejection::Wrong)),
            (r#""exp":1060,"aud":"other""#, Err(Rejection::Wrong)),
            (r#""exp":1060,"exp":1061"#, Err(Rejection::Wrong)),
            (r#""exp":1e300"#, Err(Rejection::Wrong)),
            (r#""exp":"1060""#, Err(Rejection::Wrong)),
            (r#""exp":null"#, Err(Rejection::Wrong)),
            (r#""exp":1000"#, Err(Rejection::Expired)),
            (r#""exp":-1"#, Err(Rejection::Expired)),
        ];
        for (times, expected) in cases {
            assert_eq!(read(times), expected, "{times}");
        }
    }

    #[test]
    fn a_header_changes_nothing_but_the_key() {
        let keys = key();
        let secret = keys.secret(KEY_ID);
        let claims = format!(r#"{{"sub":"pb_0123456789abcdefghij","exp":{}}}"#, NOW + 60);
        let of_service = Signer::new(b"key").sign(Purpose::PlaybackKey, b"");
        let kid = format!(r#""kid":"{KEY_ID}""#);
        let headers = [
            format!(r#"{{"alg":"none",{kid}}}"#),
            format!(r#"{{"alg":"hs256",{kid}}}"#),
            format!(r#"{{"alg":"HS384",{kid}}}"#),
            format!(r#"{{"alg":"RS256",{kid}}}"#),
            format!(r#"{{"alg":"HS256","typ":"JWE",{kid}}}"#),
            format!(r#"{{"alg":"HS256","crit":["b64"],"b64":false,{kid}}}"#),
            format!(r#"{{"alg":"HS256","jku":"https://evil.example/keys",{kid}}}"#),
            format!(r#"{{"alg":"HS256","jwk":{{"kty":"oct","k":"AA"}},{kid}}}"#),
            format!(r#"{{"alg":"HS256","zip":"DEF",{kid}}}"#),
            format!(r#"{{"alg":"HS256","alg":"none",{kid}}}"#),
            format!(r#"{{"alg":"HS256","kid":"{}"}}"#, Uuid::from_u128(8)),
            r#"{"alg":"HS256","kid":"../../key"}"#.to_owned(),
            r#"{"alg":"HS256","kid":null}"#.to_owned(),
            r#"{"alg":"HS256"}"#.to_owned(),
        ];
        for header in headers {
            for key in [secret.expose().as_bytes(), &of_service, b""] {
                let token = minted_by(key, &header, &claims);
                assert_eq!(keys.read(&token, NOW), Err(Rejection::Wrong), "{header}");
            }
        }
        // Neither key verifies a token signed by the other one.
        let minted = format!(r#"{{"alg":"HS256",{kid}}}"#);
        let crossed = [
            minted_by(&of_service, &minted, &claims),
            minted_by(secret.expose().as_bytes(), HEADER, &claims),
        ];
        for token in crossed {
            assert_eq!(keys.read(&token, NOW), Err(Rejection::Wrong), "{token}");
        }
    }
}
