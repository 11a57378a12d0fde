//! `url` of an output: syntax of `rtmp://`, `rtmps://` and `srt://` targets, default ports 1935 and 443, stream keys,
//! masking.
//!
//! The part behind the host is read from the given text: stream keys and stream ids hold characters that a parser of
//! addresses would encode, remove or resolve, and targets expect them unchanged.

use std::fmt;

use crate::{
    live::address::{self, MASK, Malformed},
    outbound::{Outbound, Rejection, Target},
};
use sluice_ingest::srt::caller::{CallFailure, CallOptions};

/// Default ports: RTMP's registered one; Facebook and others take RTMPS at HTTPS's port.
const RTMP_PORT: u16 = 1935;
const RTMPS_PORT: u16 = 443;
/// Parameters of an SRT address that are no secrets.
const SHOWN: [&str; 5] = ["latency", "mode", "pbkeylen", "pkt_size", "transtype"];

/// Error of an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputUrlError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("expected an address such as rtmp://live.example.com/app/key")]
    Syntax,
    #[error("it must begin with rtmp://, rtmps:// or srt://")]
    Scheme,
    #[error("user names and passwords in it are not supported: use the stream key alone")]
    UserInformation,
    #[error("it must end in application and stream key: rtmp://live.example.com/app/key")]
    NoKey,
    #[error("an SRT address must name its port: srt://live.example.com:8890?streamid=…")]
    NoPort,
    #[error(transparent)]
    Srt(#[from] CallFailure),
    #[error(transparent)]
    Refused(#[from] Rejection),
}

/// Scheme and secrets of a target. `Debug` hides it whole, because of the secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Scheme {
    Rtmp { app: String, stream: String },
    Srt(CallOptions),
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rtmp { .. } => "Rtmp",
            Self::Srt(_) => "Srt",
        })
    }
}

/// The address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputUrl {
    scheme: &'static str,
    host: String,
    port: u16,
    /// Authority as it was written.
    authority: String,
    way: Scheme,
}

impl OutputUrl {
    /// Reads an address; where it leads is not checked here.
    pub fn parse(text: &str) -> Result<Self, OutputUrlError> {
        let url = address::read(text)?.ok_or(OutputUrlError::Syntax)?;
        let (scheme, default_port) = match url.scheme() {
            "rtmp" => ("rtmp", Some(RTMP_PORT)),
            "rtmps" => ("rtmps", Some(RTMPS_PORT)),
            "srt" => ("srt", None),
            _ => return Err(OutputUrlError::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutputUrlError::UserInformation);
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(OutputUrlError::Syntax)?.to_owned();
        let port = url.port().or(default_port).ok_or(OutputUrlError::NoPort)?;
        if port == 0 {
            return Err(OutputUrlError::Syntax);
        }
        let (_, rest) = text.split_once("://").ok_or(OutputUrlError::Syntax)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let way = match scheme {
            "srt" => Scheme::Srt(CallOptions::parse(query_of(rest))?),
            _ => rtmp(rest)?,
        };
        Ok(Self {
            scheme,
            host,
            port,
            authority: authority.to_owned(),
            way,
        })
    }

    /// Returns the host to dial; a rejection when its literal address is not allowed.
    pub fn target(&self, outbound: &Outbound) -> Result<Target, Rejection> {
        outbound.check_peer(&self.host, self.port, self.scheme == "rtmps")
    }

    pub(super) fn way(&self) -> &Scheme {
        &self.way
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's address with the application, as RTMP's `connect` has it.
    pub(super) fn tc_url(&self, app: &str) -> String {
        format!("{}://{}/{app}", self.scheme, self.authority)
    }
}

/// Reads application and key; the key is all behind the last slash of the path, its query included.
fn rtmp(rest: &str) -> Result<Scheme, OutputUrlError> {
    let path = rest.strip_prefix('/').ok_or(OutputUrlError::NoKey)?;
    let path_end = path.find('?').unwrap_or(path.len());
    let slash = path[..path_end].rfind('/').ok_or(OutputUrlError::NoKey)?;
    let (app, stream) = (&path[..slash], &path[slash + 1..]);
    if app.is_empty() || stream.is_empty() || stream.starts_with('?') {
        return Err(OutputUrlError::NoKey);
    }
    Ok(Scheme::Rtmp {
        app: app.to_owned(),
        stream: stream.to_owned(),
    })
}

fn query_of(text: &str) -> &str {
    text.split_once('?').map_or("", |(_, query)| query)
}

/// Returns the address with its secrets hidden: all behind RTMP's application, and the values of SRT's parameters but for
/// `SHOWN`.
pub fn masked(text: &str) -> String {
    let Ok(url) = OutputUrl::parse(text) else {
        return MASK.to_owned();
    };
    let place = format!("{}://{}", url.scheme, url.authority);
    match &url.way {
        Scheme::Rtmp { app, .. } => {
            let application = app.split('/').next().unwrap_or_default();
            format!("{place}/{application}/{MASK}")
        }
        Scheme::Srt(_) => {
            let shown = |parameter: &str| {
                let (name, value) = parameter.split_once('=')?;
                let value = if SHOWN.contains(&name) { value } else { MASK };
                Some(format!("{name}={value}"))
            };
            let query: Vec<String> = query_of(text).split('&').filter_map(shown).collect();
            match query.is_empty() {
                true => place,
                false => format!("{place}?{}", query.join("&")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtmp_way(app: &str, stream: &str) -> Scheme {
        Scheme::Rtmp {
            app: app.to_owned(),
            stream: stream.to_owned(),
        }
    }

    #[test]
    fn addresses_of_rtmp_are_read_as_platforms_give_them() {
        for (text, port, way) in [
            (
                "rtmp://a.rtmp.youtube.com/live2/ab12-cd34",
                1935,
                rtmp_way("live2", "ab12-cd34"),
            ),
            (
                "rtmps://live-api-s.facebook.com:443/rtmp/FB-1?s_bl=1&s_l=/x",
                443,
                rtmp_way("rtmp", "FB-1?s_bl=1&s_l=/x"),
            ),
            (
                "rtmps://h/app/instance/key%20#1",
                443,
                rtmp_way("app/instance", "key%20#1"),
            ),
            ("RTMP://[::1]:19/live/k", 19, rtmp_way("live", "k")),
        ] {
            let url = OutputUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.port(), port, "{text}");
            assert!(*url.way() == way, "{text}");
        }
    }

    #[test]
    fn stream_ids_of_srt_are_read_encoded_or_not() {
        for (text, stream_id) in [
            ("srt://h:8890?streamid=publish:slug:key", "publish:slug:key"),
            ("srt://h:1?mode=caller&streamid=#!::r=a", "#!::r=a"),
            ("srt://h:1/?streamid=%23!::r=a&latency=200", "#!::r=a"),
        ] {
            let url = OutputUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let Scheme::Srt(options) = url.way() else {
                panic!("{text}");
            };
            assert_eq!(options.stream_id.as_deref(), Some(stream_id), "{text}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for (text, error) in [
            ("http://h/live/key", OutputUrlError::Scheme),
            ("rtmp:///live/key", OutputUrlError::Syntax),
            ("rtmp://h:0/live/key", OutputUrlError::Syntax),
            ("h/live/key", OutputUrlError::Syntax),
            ("rtmp://h", OutputUrlError::NoKey),
            ("rtmp://h/live", OutputUrlError::NoKey),
            ("rtmp://h/live/", OutputUrlError::NoKey),
            ("rtmp://h/live/?key", OutputUrlError::NoKey),
            ("rtmp://h//key", OutputUrlError::NoKey),
            (
                "rtmp://h/live/a b",
                OutputUrlError::Malformed(Malformed::Character),
            ),
            ("rtmp://u:p@h/live/key", OutputUrlError::UserInformation),
            ("srt://h?streamid=a", OutputUrlError::NoPort),
        ] {
            assert_eq!(OutputUrl::parse(text).err(), Some(error), "{text}");
        }
        let long = format!("rtmp://h/live/{}", "x".repeat(address::MAX_BYTES));
        assert_eq!(
            OutputUrl::parse(&long).err(),
            Some(OutputUrlError::Malformed(Malformed::TooLong))
        );
        let refused = OutputUrl::parse("srt://h:1?mode=listener");
        assert!(matches!(refused, Err(OutputUrlError::Srt(_))));
    }

    #[test]
    fn secrets_are_hidden() {
        for (text, shown) in [
            ("rtmp://h/live/key", "rtmp://h/live/••••"),
            ("rtmps://h:443/a/instance/key?q=s", "rtmps://h:443/a/••••"),
            (
                "srt://h:8890?streamid=a:b&passphrase=0123456789&latency=200&other=1",
                "srt://h:8890?streamid=••••&passphrase=••••&latency=200&other=••••",
            ),
            ("srt://h:1", "srt://h:1"),
            ("nonsense secret", "••••"),
            ("rtmp://u:p@h/live/key", "••••"),
        ] {
            assert_eq!(masked(text), shown);
        }
        let url = OutputUrl::parse("rtmp://h/live/topsecret").unwrap();
        assert!(!format!("{url:?}").contains("topsecret"));
    }
}
