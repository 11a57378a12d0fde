//! `?dvr=1` of live playlists: the broadcast since its beginning, where it is recorded.

use actix_web::HttpRequest;
use sluice_actors::live::View;
use url::form_urlencoded;

use crate::application::error::ApiError;

/// Name of the query parameter.
pub(super) const NAME: &str = "dvr";

/// Returns whether the client requests it.
pub(super) fn is_asked(request: &HttpRequest) -> bool {
    let query = request.query_string().as_bytes();
    form_urlencoded::parse(query).any(|(name, value)| name == NAME && value == "1")
}

/// Returns the playlist of the whole recording; 404 when the broadcast is not recorded, or has no segment yet.
pub(super) fn playlist(view: &View) -> Result<actix_web::web::Bytes, ApiError> {
    view.segment_store
        .recording_writer()
        .and_then(|recording_writer| recording_writer.playlist(view.window.is_ended()))
        .ok_or(ApiError::NotFound("recording of the live stream"))
}

/// Returns the query for the address of the media playlist.
pub(super) fn passed_on(view: &View, query: &str) -> Result<String, ApiError> {
    playlist(view)?;
    let separator = if query.is_empty() { '?' } else { '&' };
    Ok(format!("{query}{separator}{NAME}=1"))
}
