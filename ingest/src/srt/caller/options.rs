//! Query of an output's `srt://` address: `streamid`, `passphrase`, `latency`, `mode`, as ffmpeg, OBS and
//! srt-live-transmit write it.

use std::{ops::RangeInclusive, time::Duration};

use percent_encoding::percent_decode_str;

use super::{CallFailure, check};
use crate::publish::Secret;

/// Latency of an address without one: four times the round trip of a long link.
const DEFAULT_LATENCY: Duration = Duration::from_millis(400);
/// Latencies in milliseconds that an address may name.
const LATENCY_MS: RangeInclusive<u64> = 20..=8_000;
/// Latencies in microseconds, which ffmpeg and OBS use; all others use milliseconds. The two ranges do not overlap.
const LATENCY_US: RangeInclusive<u64> = 20_000..=8_000_000;

/// The options of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOptions {
    pub stream_id: Option<Secret>,
    pub passphrase: Option<Secret>,
    /// Time for the retransmission of losses; SRT takes the larger of both sides.
    pub latency: Duration,
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
fn decoded(what: &'static str, value: &str) -> Result<Secret, CallFailure> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(Secret::from).map_err(|_| CallFailure::Invalid {
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
                stream_id: stream_id.map(Secret::from),
                passphrase: passphrase.map(Secret::from),
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
        assert!(!format!("{options:?}").contains("secret"));
    }
}
