//! The whole service as a user meets it: the real binary, real encoders, strict viewers.

mod api;
mod browser;
mod continuity;
mod convert;
mod crash;
mod delivery;
mod events;
mod faults;
mod files;
mod hostile;
mod images;
mod mcp;
mod operations;
mod outbound;
mod playback_access;
mod publish;
mod recording;
mod rtsp;
mod smoke;
mod srt;
mod support;
mod tls;
mod video;
mod webhooks;
mod worker;
mod workflows;
