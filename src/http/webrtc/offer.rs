//! Bodies of offers: `Content-Type` (415), 64 KiB (413), `http.body_timeout` (408); facts of the client that sent one.

use actix_web::{HttpMessage as _, HttpRequest, dev::Payload, web};
use sluice_ingest::webrtc::message::MAX_SDP;

use super::{LocalAddress, SDP, live};
use crate::{
    application::{
        address::is_trusted,
        error::ApiError,
        reached::Reached,
        webrtc::{RawOffer, Reach, addresses, own_addresses, too_large},
    },
    http::extract,
};

/// Reads an offer.
pub(super) async fn read(
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<RawOffer, ApiError> {
    let sdp = body(request, payload, SDP).await?;
    let reached = Reached::of(request);
    let peer = request.peer_addr();
    let trusted = &live(request).config.http.trusted_proxies;
    let reach = Reach {
        host: &reached.address.host,
        local: request.conn_data::<LocalAddress>().map(|local| local.0),
        is_proxied: peer.is_some_and(|peer| is_trusted(peer.ip(), trusted)),
    };
    Ok(RawOffer {
        sdp,
        reached_at: addresses(reach, own_addresses),
        client: reached.client,
        client_port: peer.map_or(0, |peer| peer.port()),
    })
}

/// Reads a body of this media type, of at most the bytes of an offer.
pub(super) async fn body(
    request: &HttpRequest,
    payload: web::Payload,
    media_type: &str,
) -> Result<Vec<u8>, ApiError> {
    if !request
        .content_type()
        .trim()
        .eq_ignore_ascii_case(media_type)
    {
        return Err(ApiError::UnsupportedType(format!(
            "send the body with `Content-Type: {media_type}`"
        )));
    }
    let payload: Payload = payload.into_inner();
    let bytes = extract::bounded(request, payload, MAX_SDP as u64, too_large).await?;
    Ok(bytes.to_vec())
}
