//! The façade: HTTP for the API, for pages and for playback.
//!
//! The route table below is the whole of it. Every path knows its methods (405 with `Allow`, HEAD beside GET), every
//! handler of `/api` takes a [`extract::Caller`], and every route is in the OpenAPI document because both are made from
//! this table.

pub mod address;
mod answer;
mod bytes;
mod context;
mod docs;
pub mod error;
mod extract;
mod field;
mod filename;
mod health;
mod keys;
mod live_inputs;
mod live_port;
mod middleware;
mod multipart;
mod openapi;
pub mod playback;
mod range;
mod rate_limit;
mod server;
mod session;
mod sign_in;
mod table;

pub use context::{AppState, MediaHandles, Stage};
pub use error::ApiError;
pub use extract::Reached;
pub use live_port::LivePort;
use openapi::Shared;
pub use server::{Bound, StartError, server};

table::routes! {
    // `playback` puts its routes below /live/v1 itself; here its handlers join the description.
    playback: multivariant, media_playlist, state, media;

    "/api/session"                     => GET session::show, POST session::create, DELETE session::end;
    "/api/keys"                        => GET keys::list, POST keys::create;
    "/api/keys/{id}"                   => DELETE keys::revoke;
    "/api/live/inputs"                 => GET live_inputs::list, POST live_inputs::create;
    "/api/live/inputs/{id}"            => GET live_inputs::show, PATCH live_inputs::change, DELETE live_inputs::delete;
    "/api/live/inputs/{id}/rotate-key" => POST live_inputs::rotate_key;
    "/api/live/inputs/{id}/health"     => GET live_inputs::health;

    "/healthz"                         => GET health::alive;
    "/readyz"                          => GET health::ready;
    "/metrics"                         => GET health::metrics;
    "/openapi.json"                    => GET docs::openapi;

    "/"                                => GET docs::start;
    "/docs"                            => GET docs::docs;
    "/assets/{file}"                   => GET docs::asset;
    "/live/{playbackId}"               => GET docs::player;
}

#[cfg(test)]
mod tests;
