//! Query of an output's `srt://` address: `streamid`, `passphrase`, `latency`, `mode`, as ffmpeg, OBS and
//! srt-live-transmit write it.

use std::{fmt, net::SocketAddr, ops::RangeInclusive, time::Duration};

use super::{CallFailure, SrtTarget, check};
use crate::publish::Hidden;

/// Latency of an address without one: four times the round trip of a long link.
const DEFAULT_LATENCY: Duration = Duration::from_millis(400);
/// Latencies in milliseconds that an address may name.
const LATENCY_MS: RangeInclusive<u64> = 20..=8_000;
/// Latencies in microseconds, which ffmpeg and OBS use; all others use milliseconds. The two ranges do not overlap.
const LATENCY_US: RangeInclusive<u64> = 20_000..=8_000_000;

/// The options of a call. `Debug` hides the secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct CallOptions {
    pub stream_id: Option<String>,
    pub passphrase: Option<String>,
    pub latency: Duration,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("stream_id", &self.stream_id.as_ref().map(|_| Hidden))
            .field("passphrase", &self.passphrase.as_ref().map(|_| Hidden))
            .field("latency", &self.latency)
            .finish()
    }
}

impl CallOptions {
    /// Parses the text after the `?`, a `#` of the stream id included. Unknown options are skipped.
    pub fn parse(query: &str) -> Result<Self, CallFailure> {
        let mut options = Self {
            stream_id: None,
            passphrase: None,
            latency: DEFAULT_LATENCY,
        };
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "streamid" => options.stream_id = Some(decoded("the stream id", value)?),
                "passphrase" if value.is_empty() => options.passphrase = None,
                "passphrase" => options.passphrase = Some(decoded("the passphrase", value)?),
                "latency" => options.latency = latency(value)?,
                "mode" if value != "caller" => {
                    return Err(CallFailure::Invalid {
                        what: "the mode",
                        reason: "must be caller: the receiver is the listener",
                    });
                }
                _ => {}
            }
        }
        check(options.stream_id.as_deref(), options.passphrase.as_deref())?;
        Ok(options)
    }

    /// Returns the target of a call with these options.
    pub fn for_remote(self, remote: SocketAddr) -> SrtTarget {
        SrtTarget {
            remote,
            stream_id: self.stream_id,
            passphrase: self.passphrase,
            latency: self.latency,
        }
    }
}

fn latency(value: &str) -> Result<Duration, CallFailure> {
    match value.parse() {
        Ok(ms) if LATENCY_MS.contains(&ms) => Ok(Duration::from_millis(ms)),
        Ok(us) if LATENCY_US.contains(&us) => Ok(Duration::from_micros(us)),
        _ => Err(CallFailure::Invalid {
            what: "the latency",
            reason: "must be 20 to 8000 (milliseconds), or as many microseconds",
        }),
    }
}

/// Decodes percent-encoding; a plus sign stays.
fn decoded(what: &'static str, value: &str) -> Result<String, CallFailure> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind
            .first_chunk::<2>()
            .filter(|_| byte == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(plain).map_err(|_| CallFailure::Invalid {
        what,
        reason: "is not text",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_paste_them() {
        let ms = Duration::from_millis;
        for (query, stream_id, passphrase, latency) in [
            ("", None, None, ms(400)),
            (
                "streamid=publish:studio:key&passphrase=0123456789",
                Some("publish:studio:key"),
                Some("0123456789"),
                ms(400),
            ),
            (
                "mode=caller&latency=250&streamid=#!::r=studio,m=publish,s=key&pkt_size=1316",
                Some("#!::r=studio,m=publish,s=key"),
                None,
                ms(250),
            ),
            (
                "latency=250000&passphrase=&streamid=%23%21%3A%3Ar%3Da+b%",
                Some("#!::r=a+b%"),
                None,
                ms(250),
            ),
        ] {
            let expected = CallOptions {
                stream_id: stream_id.map(str::to_owned),
                passphrase: passphrase.map(str::to_owned),
                latency,
            };
            assert_eq!(CallOptions::parse(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused_without_its_secret() {
        let long = format!("streamid={}", "x".repeat(513));
        for (query, words) in [
            (
                "mode=listener",
                "the mode of the SRT address must be caller",
            ),
            ("mode=rendezvous", "the mode of the SRT address must be"),
            ("latency=19", "the latency of the SRT address must be 20"),
            ("latency=9000", "the latency of the SRT address must be 20"),
            ("latency=x", "the latency of the SRT address must be 20"),
            (
                "passphrase=secret",
                "the passphrase of the SRT address must have 10 to 79 characters",
            ),
            (
                "passphrase=%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff",
                "the passphrase of the SRT address is not text",
            ),
            (&long, "the stream id of the SRT address must have"),
        ] {
            let said = CallOptions::parse(query).unwrap_err().to_string();
            assert!(said.starts_with(words), "{said}");
            assert!(!said.contains("secret") && !said.contains("xxx"));
        }
        let options = CallOptions::parse("streamid=secret&passphrase=0123456789secret").unwrap();
        let target = options.clone().for_remote(([127, 0, 0, 1], 1).into());
        assert!(!format!("{options:?} {target:?}").contains("secret"));
    }
}
