//! Form of API keys (`svc_`), stream keys, delivery keys, webhook secrets, playback ids, session tokens and welcome
//! codes; hashes, comparison.
//!
//! Pure, except that making draws from the operating system's random numbers. Nothing secret has a Debug output or a Display.

mod password;

use std::fmt;

pub use password::{
    CONCURRENT_HASHES, MIN_CHOSEN_CHARACTERS, PasswordHash, check_chosen_password, check_password,
    hash_password, release_memory, verify_no_one, verify_password,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const BASE36: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Digits and letters that are not mistaken for one another when they are read aloud or typed.
const READABLE: &[u8] = b"23456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters between two dashes of a welcome code.
const CODE_GROUP: usize = 4;

const API_KEY: Form = Form::new("svc_", 43, BASE62);
const STREAM_KEY: Form = Form::new("svc_live_", 32, BASE62);
const DELIVERY_KEY: Form = Form::new("svc_pub_", 32, BASE62);
const WEBHOOK_SECRET: Form = Form::new("whsec_", 32, BASE62);
const PLAYBACK_ID: Form = Form::new("pb_", 20, BASE62);
const INPUT_SLUG: Form = Form::new("", 12, BASE36);
const SESSION_TOKEN: Form = Form::new("", 43, BASE62);
const WELCOME_CODE: Form = Form::new("", 20, READABLE);
const PASSWORD: Form = Form::new("", 20, BASE62);

/// Characters of a token that are stored and shown, so that its owner can distinguish tokens.
const SHOWN_PREFIX: usize = 12;

/// Text that must not show up in logs. It has no Display, and Debug shows dots.
#[derive(Clone, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the plain text, for showing it once and for sending it to its recipient.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(••••)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Form of a token or identifier: a prefix and a number of characters of an alphabet.
struct Form {
    prefix: &'static str,
    length: usize,
    alphabet: &'static [u8],
}

impl Form {
    const fn new(prefix: &'static str, length: usize, alphabet: &'static [u8]) -> Self {
        Self {
            prefix,
            length,
            alphabet,
        }
    }

    fn make(&self) -> String {
        let mut text = String::with_capacity(self.prefix.len() + self.length);
        text.push_str(self.prefix);
        text.extend(random_characters(self.alphabet, self.length));
        text
    }

    /// Writes bytes that only their maker can distinguish from random ones in this form: the last digits of the number
    /// that they are.
    fn of_bytes(&self, bytes: [u8; 32]) -> String {
        let digits = digits(self.alphabet, bytes);
        let mut text = String::with_capacity(self.prefix.len() + self.length);
        text.push_str(self.prefix);
        text.extend(digits.take(self.length));
        text
    }

    fn fits(&self, text: &str) -> bool {
        text.strip_prefix(self.prefix).is_some_and(|rest| {
            rest.len() == self.length && rest.bytes().all(|b| self.alphabet.contains(&b))
        })
    }
}

/// Characters that are all equally likely: bytes beyond the largest multiple of the alphabet's size are drawn again.
fn random_characters(alphabet: &'static [u8], length: usize) -> impl Iterator<Item = char> {
    let size = u8::try_from(alphabet.len()).expect("an alphabet has at most 62 characters");
    let unbiased = u8::MAX - u8::MAX % size;
    std::iter::repeat_with(random_bytes::<64>)
        .flatten()
        .filter(move |byte| *byte < unbiased)
        .map(move |byte| char::from(alphabet[usize::from(byte % size)]))
        .take(length)
}

/// The digits of a 256-bit number whose base is the alphabet's size, the last one first. Of numbers that are all equally likely,
/// 32 digits of base 62 are equally likely but for one part in 2^65.
fn digits(alphabet: &'static [u8], mut number: [u8; 32]) -> impl Iterator<Item = char> {
    let size = u16::try_from(alphabet.len()).expect("an alphabet has at most 62 characters");
    std::iter::repeat_with(move || {
        let mut rest = 0;
        for byte in &mut number {
            let part = (rest << 8) | u16::from(*byte);
            // A rest is less than the size, so that the quotient is less than 256.
            *byte = (part / size) as u8;
            rest = part % size;
        }
        char::from(alphabet[usize::from(rest)])
    })
}

/// Bytes from the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// `svc_` and 43 base62.
pub fn api_key() -> Secret {
    Secret(API_KEY.make())
}

/// `svc_live_` and 32 base62: the stream key that is made of bytes of the installation, see [`super::derived`].
pub(super) fn stream_key_of(bytes: [u8; 32]) -> Secret {
    Secret(STREAM_KEY.of_bytes(bytes))
}

/// `svc_pub_` and 32 base62: the token of a delivery key that is made of bytes of the installation, see [`super::derived`].
pub(super) fn delivery_key_of(bytes: [u8; 32]) -> Secret {
    Secret(DELIVERY_KEY.of_bytes(bytes))
}

/// `whsec_` and 32 base62.
pub fn webhook_secret() -> Secret {
    Secret(WEBHOOK_SECRET.make())
}

/// `pb_` and 20 base62; public.
pub fn playback_id() -> String {
    PLAYBACK_ID.make()
}

/// 12 of `0-9 a-z`; public.
pub fn input_slug() -> String {
    INPUT_SLUG.make()
}

/// The cookie's value: 43 base62.
pub fn session_token() -> Secret {
    Secret(SESSION_TOKEN.make())
}

/// A password for a user who did not choose one: 20 base62.
pub fn password() -> Secret {
    Secret(PASSWORD.make())
}

/// A one-time code for a link: 20 readable characters in groups of four, `XXXX-XXXX-XXXX-XXXX-XXXX`.
pub fn welcome_code() -> Secret {
    let code = WELCOME_CODE.make();
    Secret(grouped(&code))
}

fn grouped(code: &str) -> String {
    let mut text = String::new();
    for (at, character) in code.chars().enumerate() {
        if at > 0 && at.is_multiple_of(CODE_GROUP) {
            text.push('-');
        }
        text.push(character);
    }
    text
}

/// The one spelling of a welcome code that a person typed or copied, in any case and with any blanks and dashes; `None` for
/// what is none.
pub fn read_welcome_code(text: &str) -> Option<String> {
    let is_separator = |c: char| c.is_whitespace() || c == '-';
    let code: String = text
        .chars()
        .filter(|c| !is_separator(*c))
        .map(|c| c.to_ascii_uppercase())
        .take(WELCOME_CODE.length + 1)
        .collect();
    WELCOME_CODE.fits(&code).then(|| grouped(&code))
}

pub fn is_api_key(text: &str) -> bool {
    API_KEY.fits(text)
}

pub fn is_delivery_key(text: &str) -> bool {
    DELIVERY_KEY.fits(text)
}

pub fn is_playback_id(text: &str) -> bool {
    PLAYBACK_ID.fits(text)
}

pub fn is_session_token(text: &str) -> bool {
    SESSION_TOKEN.fits(text)
}

/// The CSRF token of a session, derived from the cookie's token so that it can be shown again at every read.
pub fn csrf_token(session_token: &Secret) -> Secret {
    Secret(hash(&format!("csrf:{}", session_token.expose())))
}

/// SHA-256, hexadecimal: how a token is stored. Tokens are random enough to need no salt.
pub fn hash(token: &str) -> String {
    hexadecimal(&Sha256::digest(token.as_bytes()))
}

/// Lower-case hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// The first 12 characters of a token, which may be stored and shown.
pub fn prefix(token: &str) -> &str {
    match token.char_indices().nth(SHOWN_PREFIX) {
        Some((end, _)) => &token[..end],
        None => token,
    }
}

/// Compares in a time that does not depend on where the texts differ.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_welcome_code_is_read_however_it_is_typed() {
        let code = welcome_code();
        let code = code.expose();
        assert_eq!(code.len(), 24);
        assert_eq!(read_welcome_code(code).as_deref(), Some(code));
        let typed = format!(" {} ", code.to_lowercase().replace('-', " "));
        assert_eq!(read_welcome_code(&typed).as_deref(), Some(code));
        let joined = code.replace('-', "");
        assert_eq!(read_welcome_code(&joined).as_deref(), Some(code));
        for odd in [
            "",
            "----",
            &code[1..],
            &format!("{code}2"),
            &code.replace(&code[..1], "0"),
            &"ſ".repeat(20),
            &"2".repeat(1 << 20),
        ] {
            assert_eq!(read_welcome_code(odd), None, "{odd:.40}");
        }
    }

    #[test]
    fn what_is_made_has_its_form_and_no_other() {
        let forms = [
            ("API key", API_KEY),
            ("stream key", STREAM_KEY),
            ("delivery key", DELIVERY_KEY),
            ("webhook secret", WEBHOOK_SECRET),
            ("playback id", PLAYBACK_ID),
            ("input slug", INPUT_SLUG),
            ("session token", SESSION_TOKEN),
        ];
        let made = [
            api_key().expose().to_owned(),
            stream_key_of(random_bytes()).expose().to_owned(),
            delivery_key_of(random_bytes()).expose().to_owned(),
            webhook_secret().expose().to_owned(),
            playback_id(),
            input_slug(),
            session_token().expose().to_owned(),
        ];
        for (m, text) in made.iter().enumerate() {
            for (c, (what, form)) in forms.iter().enumerate() {
                assert_eq!(form.fits(text), m == c, "{text} as {what}");
            }
        }
        assert_eq!(made.map(|text| text.len()), [47, 41, 40, 38, 23, 12, 43]);
    }

    #[test]
    fn odd_texts_are_no_api_keys() {
        let rest = "A".repeat(43);
        let cases = [
            (format!("svc_{rest}"), true),
            (rest.clone(), false),
            (format!("SVC_{rest}"), false),
            (format!(" svc_{rest}"), false),
            (format!("svc_{rest}\n"), false),
            (format!("svc_{}", &rest[1..]), false),
            (format!("svc_{rest}A"), false),
            (format!("svc_{}-", &rest[1..]), false),
            (format!("svc_{}é", &rest[2..]), false),
            (String::new(), false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_api_key(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_character_is_equally_likely() {
        const DRAWS: usize = 62_000;
        let mut counts = [0_usize; 128];
        for character in random_characters(BASE62, DRAWS) {
            counts[character as usize] += 1;
        }
        // 1000 each on average; eight standard deviations off would not be chance, and 256 % 62 would show as 1.2 to 1.
        for character in BASE62 {
            let count = counts[usize::from(*character)];
            assert!(
                (750..1250).contains(&count),
                "{}: {count}",
                char::from(*character)
            );
        }
        assert_eq!(counts.iter().sum::<usize>(), DRAWS);
    }

    #[test]
    fn a_hash_is_sha_256_in_hexadecimal() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash("abc"), expected);
    }

    #[test]
    fn a_prefix_never_cuts_a_character() {
        for (token, expected) in [
            ("", ""),
            ("svc_short", "svc_short"),
            ("svc_live_AbCdEf", "svc_live_AbC"),
            ("éééééééééééééé", "éééééééééééé"),
        ] {
            assert_eq!(prefix(token), expected);
        }
    }

    #[test]
    fn a_csrf_token_belongs_to_its_session() {
        let (one, other) = (session_token(), session_token());
        assert_eq!(csrf_token(&one), csrf_token(&one.clone()));
        assert_ne!(csrf_token(&one), csrf_token(&other));
        assert_ne!(
            csrf_token(&one).expose(),
            hash(one.expose()),
            "the stored hash is no CSRF token"
        );
    }

    proptest! {
        #[test]
        fn comparing_in_constant_time_compares(a in ".{0,20}", b in ".{0,20}") {
            prop_assert_eq!(same(&a, &b), a == b);
            prop_assert!(same(&a, &a));
        }
    }
}
