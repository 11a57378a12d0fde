//! Fuzz targets of this crate's parsers: addresses of requests, outputs and pulls, names of fetched files (see
//! [`sluice_media::fuzzing`]).

use hyper::header::{CONTENT_DISPOSITION, HeaderMap, HeaderValue};
use sluice_media::fuzzing::Target;

use crate::{
    live::{pull, restream},
    outbound,
};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target::new("outbound_url", outbound_url),
    Target::new("output_url", output_url),
    Target::new("pull_url", pull_url),
    Target::new("fetched_filename", fetched_filename),
];

/// Reads the address of a request that the service makes, and a redirect from it: two lines.
fn outbound_url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (url, location) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(target) = outbound::Target::parse(url) else {
        return;
    };
    let again = outbound::Target::parse(target.as_str());
    assert_eq!(again.as_ref(), Ok(&target));
    if let Ok(next) = target.join(location) {
        assert!(matches!(next.is_tls(), true | false) && next.port() > 0);
    }
}

/// Reads the address of a restream output; what is shown of it holds no secret longer than the address.
fn output_url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = restream::url::OutputUrl::parse(&text);
    let _ = restream::url::masked(&text);
}

/// Reads the address of an RTSP source.
fn pull_url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = pull::url::PullUrl::parse(&text);
    let _ = pull::url::masked(&text);
}

/// Takes the name of a fetched file from a `Content-Disposition` header, or from the path.
fn fetched_filename(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    let name = outbound::filename::filename(&headers, &String::from_utf8_lossy(bytes));
    // What is not UTF-8 takes three bytes in the path, and each of these two as ISO-8859-1.
    assert!(name.is_none_or(|name| name.len() <= 6 * bytes.len()));
}
