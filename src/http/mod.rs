//! The façade: HTTP for the API, for pages and for playback.
//!
//! The route table below is the whole of it. Every path knows its methods (405 with `Allow`, HEAD beside GET), every
//! handler of `/api` takes a [`extract::Caller`], and every route is in the OpenAPI document because both are made from
//! this table.

pub mod address;
mod answer;
mod bytes;
mod cdn;
mod cdn_presets;
mod context;
mod convert;
mod delivery_keys;
mod docs;
mod downloads;
pub mod error;
mod extract;
mod field;
mod filename;
mod files;
mod folders;
mod health;
mod jobs;
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
mod signing;
mod table;
mod tools;
mod uploads;
mod usage;

pub use context::{AppState, MediaHandles, Stage};
pub use error::ApiError;
pub use extract::Reached;
pub use live_port::LivePort;
use openapi::Shared;
pub use server::{Bound, StartError, server};

table::routes! {
    // These put their routes below /cdn/v1 and /live/v1 themselves; here their handlers join the description.
    delivery: deliver, deliver_preset;
    playback: multivariant, media_playlist, state, media;

    "/api/session"                     => GET session::show, POST session::create, DELETE session::end;
    "/api/keys"                        => GET keys::list, POST keys::create;
    "/api/keys/{id}"                   => DELETE keys::revoke;
    "/api/live/inputs"                 => GET live_inputs::list, POST live_inputs::create;
    "/api/live/inputs/{id}"            => GET live_inputs::show, PATCH live_inputs::change, DELETE live_inputs::delete;
    "/api/live/inputs/{id}/rotate-key" => POST live_inputs::rotate_key;
    "/api/live/inputs/{id}/health"     => GET live_inputs::health;

    "/api/files"                       => GET files::list, POST files::create;
    "/api/files/{id}"                  => GET files::show, PATCH files::change, DELETE files::delete;
    "/api/folders"                     => GET folders::list, POST folders::create;
    "/api/folders/{id}"                => GET folders::show, PATCH folders::change, DELETE folders::delete;
    "/api/uploads"                     => POST uploads::create;
    "/api/uploads/complete"            => POST uploads::complete;
    "/api/uploads/{id}/content"        => PUT uploads::put, OPTIONS uploads::preflight;
    "/api/downloads/{token}"           => GET downloads::fetch;

    "/api/delivery-keys"               => GET delivery_keys::list, POST delivery_keys::create;
    "/api/delivery-keys/alias"         => GET delivery_keys::alias;
    "/api/delivery-keys/{id}"          => DELETE delivery_keys::revoke;
    "/api/cdn-presets"                 => GET cdn_presets::list, POST cdn_presets::create;
    "/api/cdn-presets/{id}"            => GET cdn_presets::show, PATCH cdn_presets::change, DELETE cdn_presets::delete;
    "/api/cdn-purge"                   => POST cdn::purge;
    "/api/cdn/stats"                   => GET cdn::stats;

    "/api/convert"                     => POST convert::convert;
    "/api/compress"                    => POST convert::compress;
    "/api/media/{tool}"                => POST tools::on_upload;
    "/api/files/{id}/tools"            => POST tools::on_file;
    "/api/jobs"                        => GET jobs::list, POST jobs::create;
    "/api/jobs/{id}"                   => GET jobs::show, DELETE jobs::cancel;
    "/api/jobs/{id}/events"            => GET jobs::events;
    "/api/usage"                       => GET usage::show;

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
