//! The route table: every path of the API, of pages and of playback with its methods and handlers. Below it all is HTTP; the use
//! cases are in `crate::application`.
//!
//! Every path knows its methods (405 with `Allow`, HEAD beside GET), every
//! handler of `/api` takes a [`extract::Caller`], and every route is in the OpenAPI document because both are made from
//! this table.

mod archive;
mod audit;
mod bytes;
mod catalogue;
mod cdn;
mod cdn_presets;
mod changes;
mod content_disposition;
mod context;
mod convert;
mod cors;
mod dashboard;
mod delivery_keys;
mod docs;
mod downloads;
mod embedded;
pub mod error;
mod event_stream;
mod events;
pub(crate) mod extract;
pub(crate) mod files;
mod folders;
pub(crate) mod fuzzing;
mod health;
mod html;
mod https;
mod invitations;
pub(crate) mod jobs;
mod keys;
mod length_only;
pub(crate) mod live_inputs;
mod mcp;
mod middleware;
mod multipart;
mod openapi;
mod page_frame;
mod plans;
pub mod playback;
mod playback_access;
mod playback_keys;
mod range;
mod server;
mod session;
mod sessions;
pub(crate) mod share;
mod site;
mod system;
mod table;
mod tools;
mod tus;
pub(crate) mod uploads;
mod usage;
mod users;
mod video;
mod webhooks;
mod webrtc;
pub(crate) mod workflows;

use openapi::Shared;
pub use server::{Bound, StartError, bind, server};

table::routes! {
    // These put their routes below /cdn/v1, /live/v1, /video/v1, /mcp and /app themselves; here their handlers join the description.
    delivery: deliver, deliver_preset;
    playback: multivariant, media_playlist, state, live_poster, media;
    streams: master, rendition_file, picture, captions_file;
    agents: message;
    screens: screen;

    "/api/session"                     => GET session::show, POST session::create, DELETE session::end;
    "/api/session/welcome"             => POST session::welcome;
    "/api/session/password"            => PATCH session::change_password;
    "/api/sessions"                    => GET sessions::list;
    "/api/sessions/{id}"               => DELETE sessions::revoke;
    "/api/keys"                        => GET keys::list, POST keys::create;
    "/api/keys/{id}"                   => DELETE keys::revoke;
    "/api/users"                       => GET users::list;
    "/api/users/{id}"                  => PATCH users::change, DELETE users::remove;
    "/api/users/{id}/reset-link"       => POST users::reset_link;
    "/api/invitations"                 => GET invitations::list_invitations, POST invitations::create;
    "/api/invitations/look"            => POST invitations::look;
    "/api/invitations/redeem"          => POST invitations::redeem;
    "/api/invitations/{id}"            => DELETE invitations::revoke;
    "/api/audit"                       => GET audit::list;
    "/api/live/inputs"                 => GET live_inputs::list, POST live_inputs::create;
    "/api/live/inputs/{id}"            => GET live_inputs::show, PATCH live_inputs::change, DELETE live_inputs::delete;
    "/api/live/inputs/{id}/rotate-key" => POST live_inputs::rotate_key;
    "/api/live/inputs/{id}/reveal-key" => POST live_inputs::reveal_key;
    "/api/live/inputs/{id}/end"        => POST live_inputs::end;
    "/api/live/inputs/{id}/health"     => GET live_inputs::health;
    "/api/live/inputs/{id}/health/history" => GET live_inputs::health_history;
    "/api/live/inputs/{id}/connections" => GET live_inputs::connections;
    "/api/live/inputs/{id}/broadcasts" => GET live_inputs::broadcasts;
    "/api/live/inputs/{id}/recordings" => GET live_inputs::recordings;
    "/api/live/inputs/{id}/clips"      => POST live_inputs::clip;
    "/api/live/inputs/{id}/outputs"    => GET live_inputs::outputs, POST live_inputs::add_output;
    "/api/live/inputs/{id}/outputs/{outputId}" => GET live_inputs::output, PATCH live_inputs::change_output, DELETE live_inputs::remove_output;
    "/api/live/inputs/{id}/playback-token" => POST live_inputs::playback_token;
    "/api/playback-keys"               => GET playback_keys::list, POST playback_keys::create;
    "/api/playback-keys/{id}"          => DELETE playback_keys::revoke;

    "/api/files"                       => GET files::list, POST files::create;
    "/api/files/search"                => GET files::search;
    "/api/files/bulk"                  => POST files::bulk;
    "/api/files/zip"                   => POST files::zip;
    "/api/files/{id}"                  => GET files::show, PATCH files::change, DELETE files::delete;
    "/api/files/{id}/lineage"          => GET files::lineage;
    "/api/files/{id}/preview"          => GET files::preview;
    "/api/folders"                     => GET folders::list, POST folders::create;
    "/api/folders/path"                => POST folders::ensure_path;
    "/api/folders/{id}"                => GET folders::show, PATCH folders::change, DELETE folders::delete;
    "/api/folders/{id}/zip"            => GET archive::download;
    "/api/folders/{id}/share"          => GET share::show, POST share::create, DELETE share::revoke;
    "/api/shares"                      => GET share::list;
    "/api/share/folder/{token}"        => GET share::browse;
    "/api/share/folder/{token}/unlock" => POST share::unlock;
    "/api/share/folder/{token}/zip"    => GET share::zip;
    "/api/share/folder/{token}/files/{fileId}" => GET share::download;
    "/api/share/folder/{token}/files/{fileId}/preview" => GET share::preview;
    "/api/uploads"                     => GET uploads::list, POST uploads::create;
    "/api/uploads/complete"            => POST uploads::complete;
    "/api/uploads/{id}/content"        => PUT uploads::put, OPTIONS uploads::preflight;
    "/api/uploads/tus"                 => POST tus::create, OPTIONS tus::offer;
    "/api/uploads/tus/{id}"            => GET tus::show, PATCH tus::append, DELETE tus::end, POST tus::overridden, OPTIONS tus::offer_here;
    "/api/uploads/{id}"                => DELETE uploads::cancel;
    "/api/downloads/{token}"           => GET downloads::fetch;

    "/api/delivery-keys"               => GET delivery_keys::list, POST delivery_keys::create;
    "/api/delivery-keys/alias"         => GET delivery_keys::alias;
    "/api/delivery-keys/{id}"          => PATCH delivery_keys::change, DELETE delivery_keys::revoke;
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
    "/api/usage/history"               => GET usage::history;
    "/api/catalogue"                   => GET catalogue::show;

    "/api/workflows"                   => GET workflows::list, POST workflows::save;
    "/api/workflows/lint"              => POST workflows::lint;
    "/api/workflows/dry-run"           => POST workflows::dry_run;
    "/api/workflows/runs"              => GET workflows::all_runs;
    "/api/workflows/runs/{runId}"      => GET workflows::show_run;
    "/api/workflows/runs/{runId}/retry"  => POST workflows::retry;
    "/api/workflows/runs/{runId}/cancel" => POST workflows::cancel;
    "/api/workflows/runs/{runId}/events" => GET workflows::events;
    "/api/workflows/{id}"              => GET workflows::show, PATCH workflows::change, DELETE workflows::delete;
    "/api/workflows/{id}/run"          => GET workflows::runs, POST workflows::run;
    "/api/workflows/{id}/run-file"     => POST workflows::run_file;
    "/api/workflows/{id}/runs/{runId}/rerun" => POST workflows::rerun;
    "/api/workflows/{id}/rotate-secret" => POST workflows::rotate_secret;
    "/api/workflows/{id}/statistics"   => GET workflows::statistics;
    "/api/workflows/{id}/versions"     => GET workflows::versions;
    "/api/workflows/{id}/versions/{version}" => GET workflows::version;

    "/api/video/streams"               => GET video::list, POST video::create;
    "/api/video/streams/{id}"          => GET video::show, PATCH video::change, DELETE video::delete;
    "/api/video/streams/{id}/captions" => POST video::add_captions;
    "/api/video/streams/{id}/captions/{language}" => DELETE video::remove_captions;
    "/api/video/streams/{id}/playback-token" => POST video::playback_token;
    "/api/video/streams/{id}/events"   => GET video::events;

    "/api/webhooks"                    => GET webhooks::list, POST webhooks::create;
    "/api/webhooks/deliveries"         => GET webhooks::deliveries;
    "/api/webhooks/deliveries/{id}"    => GET webhooks::delivery;
    "/api/webhooks/deliveries/{deliveryId}/retry" => POST webhooks::retry;
    "/api/webhooks/{id}"               => GET webhooks::show, PATCH webhooks::change, DELETE webhooks::delete;
    "/api/webhooks/{id}/rotate-secret" => POST webhooks::rotate_secret;
    "/api/webhooks/{id}/test"          => POST webhooks::test;
    "/api/webhooks/{id}/recover"       => POST webhooks::recover;
    "/api/webhooks/{id}/probe"         => POST webhooks::probe;
    "/api/events"                      => GET events::list;
    "/api/events/stream"               => GET events::stream;
    "/api/events/{id}"                 => GET events::show;

    "/api/changes"                     => GET changes::follow;

    "/api/system"                      => GET system::show;
    "/api/system/log"                  => GET system::log;
    "/api/system/doctor"               => GET system::doctor;
    "/api/system/settings"             => GET system::settings;
    "/api/system/accounts"             => GET system::list_accounts, POST system::create_account;
    "/api/system/accounts/{id}"        => PATCH system::change_account;

    "/healthz"                         => GET health::alive;
    "/readyz"                          => GET health::ready;
    "/metrics"                         => GET health::metrics;
    "/openapi.json"                    => GET docs::openapi;

    "/"                                => GET dashboard::start;
    "/app"                             => GET dashboard::app;
    "/docs"                            => GET docs::docs;
    "/plans"                           => GET plans::show;
    "/assets/{file}"                   => GET embedded::asset;
    "/live/v1/{playback_id}/whep"      => POST webrtc::whep, GET webrtc::whep_get, OPTIONS webrtc::whep_options;
    "/live/whip"                       => POST webrtc::whip_by_token, OPTIONS webrtc::whip_by_token_options;
    "/live/whip/{stream}"              => POST webrtc::whip, OPTIONS webrtc::whip_options;
    "/live/webrtc/{session}"           => GET webrtc::session, PATCH webrtc::session_patch, DELETE webrtc::session_delete, OPTIONS webrtc::session_options;
    "/embed/{file}"                    => GET embedded::embed;
    "/live/{playbackId}"               => GET docs::player;
    "/live/publish/{inputSlug}"        => GET docs::publish;
    "/video/{playbackId}"              => GET docs::watch;
    "/share/folder/{token}"            => GET share::open_page, POST share::enter_password;
}

#[cfg(test)]
mod tests;
