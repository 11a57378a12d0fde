//! RTMP as encoders and attackers use it: `serve` on a loopback listener, with an authorizer that only records.

mod client;
mod ffmpeg;
mod hostile;
mod never_panics;
mod publish;
mod restream;
mod session;
mod support;
