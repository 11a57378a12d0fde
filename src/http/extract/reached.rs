//! Client address and base address of a request: `Host`, `X-Forwarded-For`, `-Proto`, `-Host`.

use std::{borrow::Cow, convert::Infallible, future::Ready, net::IpAddr};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::{self, HeaderMap},
};

use crate::{
    application::{
        address::{self, PublicAddress, Seen},
        context::Platform,
        reached::Reached,
    },
    http::context,
};

impl Reached {
    pub fn of(request: &HttpRequest) -> Self {
        let http = &context::of::<Platform>(request).config.http;
        let seen = seen(request);
        Self {
            address: PublicAddress::of(&http.base_url, &seen, &http.trusted_proxies),
            client: address::client(&seen, &http.trusted_proxies),
        }
    }

    /// Returns the client's address alone.
    pub fn client_of(request: &HttpRequest) -> Option<IpAddr> {
        let http = &context::of::<Platform>(request).config.http;
        address::client(&seen(request), &http.trusted_proxies)
    }
}

fn seen(request: &HttpRequest) -> Seen<'_> {
    let headers = request.headers();
    Seen {
        peer: request.peer_addr().map(|peer| peer.ip()),
        tls: request.app_config().secure(),
        host: request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
            .or_else(|| text(headers, header::HOST.as_str())),
        forwarded_for: list(headers, "x-forwarded-for"),
        forwarded_proto: list(headers, "x-forwarded-proto"),
        forwarded_host: list(headers, "x-forwarded-host"),
        local_port: request.app_config().local_addr().port(),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// All lines of a list, joined in their order (RFC 9110 §5.3): a proxy may write a line of its own after the client's. A line that
/// is not text stays as an entry that nothing can be read from.
fn list<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let lines = headers.get_all(name);
    let lines: Vec<&str> = lines
        .map(|line| line.to_str().unwrap_or("unknown"))
        .collect();
    match lines.as_slice() {
        [] => None,
        [line] => Some(Cow::Borrowed(line)),
        lines => Some(Cow::Owned(lines.join(", "))),
    }
}

impl FromRequest for Reached {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(Ok(Self::of(request)))
    }
}
