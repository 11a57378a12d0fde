//! WebRTC over HTTP: offers of viewers (WHEP, `/live/v1/{playbackId}/whep`) and publishers (WHIP, `/live/whip`), and the
//! addresses of their sessions (`/live/webrtc/{session}`).
//!
//! A session's address is one of 128 random bits for viewers and publishers alike, and not below the playback id: with signed
//! playback that is a token, which would be in one more header, and expires while its session must still be ended.

mod connection;
mod offer;
mod session;
mod whep;
mod whip;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
};
use sluice_actors::live::webrtc::Answer;
use sluice_ingest::webrtc::IceServer;

pub(super) use connection::LocalAddress;
pub use session::{
    __path_session, __path_session_delete, __path_session_options, __path_session_patch, session,
    session_delete, session_options, session_patch,
};
pub use whep::{__path_whep, __path_whep_get, __path_whep_options, whep, whep_get, whep_options};
pub use whip::{
    __path_whip, __path_whip_by_token, __path_whip_by_token_options, __path_whip_options, whip,
    whip_by_token, whip_by_token_options, whip_options,
};

use super::{context, site::Cors};
use crate::application::{
    context::{LiveContext, Platform},
    error::ApiError,
    reached::Reached,
};

/// Media type of offers and answers.
const SDP: &str = "application/sdp";
/// Entity tag of every session's ICE: there is one, because nothing restarts it.
const ICE_TAG: &str = "\"1\"";
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
/// Methods of an endpoint and of a session's address.
const METHODS: &str = "GET, HEAD, POST, PATCH, DELETE, OPTIONS";
/// Request headers that a page of another origin may send.
const REQUEST_HEADERS: &str = "Content-Type, Authorization, If-Match";
/// Headers that a page of another origin may read.
const RESPONSE_HEADERS: &str = "Location, ETag, Link, Retry-After, Accept-Post";
/// Seconds for which a browser may keep the answer to a preflight.
const PREFLIGHT_MAX_AGE_S: &str = "86400";

/// The answer to an accepted offer.
fn created(request: &HttpRequest, answer: Answer) -> HttpResponse {
    let base = Reached::of(request).address.base;
    let mut response = HttpResponse::Created();
    response
        .insert_header((
            header::LOCATION,
            format!("{base}/live/webrtc/{}", answer.session),
        ))
        .insert_header((header::ETAG, ICE_TAG))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_TYPE, SDP));
    for server in &context::of::<Platform>(request).config.webrtc.ice_servers {
        response.append_header((header::LINK, link(server)));
    }
    response.body(answer.sdp)
}

/// A server in the form of RFC 9725 §4.6.
fn link(server: &IceServer) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let login = server.login.as_ref().map(|(user, password)| {
        let (user, password) = (quoted(user), quoted(password));
        format!("; username=\"{user}\"; credential=\"{password}\"; credential-type=\"password\"")
    });
    let login = login.unwrap_or_default();
    format!("<{}>; rel=\"ice-server\"{login}", server.url)
}

/// Answers a preflight, and says what may be posted.
fn preflight(cors: &Cors) -> HttpResponse {
    let response = HttpResponse::NoContent()
        .insert_header((ACCEPT_POST, SDP))
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE_S))
        .finish();
    readable(response, cors)
}

/// Adds the CORS headers to an answer or an error's.
fn answer(answered: Result<HttpResponse, ApiError>, cors: &Cors) -> HttpResponse {
    use actix_web::ResponseError as _;
    let response = answered.unwrap_or_else(|error| error.error_response());
    readable(response, cors)
}

fn readable(mut response: HttpResponse, cors: &Cors) -> HttpResponse {
    let headers: &mut HeaderMap = response.headers_mut();
    cors.apply(headers);
    if headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        let exposed = HeaderValue::from_static(RESPONSE_HEADERS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

fn live(request: &HttpRequest) -> &actix_web::web::Data<LiveContext> {
    context::of::<LiveContext>(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_its_login() {
        let stun: IceServer = "stun:stun.example.org:3478".parse().unwrap();
        assert_eq!(
            link(&stun),
            "<stun:stun.example.org:3478>; rel=\"ice-server\""
        );
        let turn: IceServer = "turn:ann:a%22b%5C@turn.example.org?transport=udp"
            .parse()
            .unwrap();
        assert_eq!(
            link(&turn),
            "<turn:turn.example.org?transport=udp>; rel=\"ice-server\"; username=\"ann\"; credential=\"a\\\"b\\\\\"; credential-type=\"password\""
        );
    }
}
