//! STUN and TURN servers in settings: `stun:stun.example.org:3478`, `turn:user:password@turn.example.org?transport=tcp`.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest text of one server.
const LONGEST: usize = 512;
/// Characters that are written as they are in a user's name and password.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A server that helps clients to find a way (STUN), or relays their packets (TURN).
#[derive(Clone, PartialEq, Eq)]
pub struct IceServer {
    /// The address without user: `turn:turn.example.org:3478?transport=tcp`.
    pub url: String,
    /// User name and password of a TURN server; clients are given both.
    pub login: Option<(String, String)>,
}

impl FromStr for IceServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| {
            "expected stun:HOST:PORT, or turn:USER:PASSWORD@HOST:PORT?transport=tcp, with %3A for a colon and %40 for an @ in user and password".to_owned()
        })
    }
}

fn parse(text: &str) -> Option<IceServer> {
    let is_plain = text.bytes().all(|it| it.is_ascii_graphic());
    if text.len() > LONGEST || !is_plain || text.contains(['<', '>', '"', ',', ';', '\\']) {
        return None;
    }
    let (scheme, rest) = text.split_once(':')?;
    let is_turn = match scheme {
        "stun" | "stuns" => false,
        "turn" | "turns" => true,
        _ => return None,
    };
    let (login, host) = match rest.rsplit_once('@') {
        Some((login, host)) if is_turn => {
            let (user, password) = login.split_once(':')?;
            (Some((decoded(user)?, decoded(password)?)), host)
        }
        Some(_) => return None,
        None => (None, rest),
    };
    let name = host.split('?').next().unwrap_or_default();
    if name.is_empty() || name.contains('/') {
        return None;
    }
    Some(IceServer {
        url: format!("{scheme}:{host}"),
        login,
    })
}

/// The text without percent-encoding; `None` when it is empty or could not be put between quotes of a header.
fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
    let is_fit = !text.is_empty() && text.bytes().all(|it| (0x20..0x7f).contains(&it));
    is_fit.then_some(text)
}

impl IceServer {
    /// The text of the settings, with `password` in place of the password.
    fn text(&self, password: impl Fn(&str) -> String) -> String {
        match (&self.login, self.url.split_once(':')) {
            (Some((user, secret)), Some((scheme, host))) => {
                let user = utf8_percent_encode(user, PLAIN);
                format!("{scheme}:{user}:{}@{host}", password(secret))
            }
            _ => self.url.clone(),
        }
    }

    /// The text of the settings.
    fn exact(&self) -> String {
        self.text(|password| utf8_percent_encode(password, PLAIN).to_string())
    }

    /// The server with `shown` in place of its password.
    pub fn masked(&self, shown: &str) -> Self {
        let login = self.login.clone();
        Self {
            url: self.url.clone(),
            login: login.map(|(user, _)| (user, shown.to_owned())),
        }
    }
}

impl fmt::Debug for IceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|_| "…".to_owned()))
    }
}

impl Serialize for IceServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.exact())
    }
}

impl<'de> Deserialize<'de> for IceServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_with_and_without_login() {
        let cases = [
            (
                "stun:stun.example.org:3478",
                "stun:stun.example.org:3478",
                None,
            ),
            ("turn:[2001:db8::1]:3478", "turn:[2001:db8::1]:3478", None),
            (
                "turns:1700%3Aann:p%40ss@turn.example.org:5349?transport=tcp",
                "turns:turn.example.org:5349?transport=tcp",
                Some(("1700:ann", "p@ss")),
            ),
        ];
        for (text, url, login) in cases {
            let server: IceServer = text.parse().unwrap();
            assert_eq!(server.url, url);
            let read = server
                .login
                .as_ref()
                .map(|(user, password)| (&**user, &**password));
            assert_eq!(read, login);
            assert_eq!(server.exact(), text);
        }
    }

    #[test]
    fn anything_else_is_rejected_with_the_form() {
        for text in [
            "",
            "stun.example.org",
            "stun:",
            "http://stun.example.org",
            "stun:user:password@stun.example.org",
            "turn:user@turn.example.org",
            "turn::@turn.example.org",
            "turn:user:%0a@turn.example.org",
            "turn:user:a\"b@turn.example.org",
            "stun:stun.example.org>; rel=x",
        ] {
            let error = text.parse::<IceServer>().unwrap_err();
            assert!(error.contains("turn:USER:PASSWORD@HOST"), "{text}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let server: IceServer = "turn:ann:secret@turn.example.org".parse().unwrap();
        assert_eq!(format!("{server:?}"), "turn:ann:…@turn.example.org");
        let masked = server.masked("••••").login;
        assert_eq!(masked, Some(("ann".to_owned(), "••••".to_owned())));
    }
}
