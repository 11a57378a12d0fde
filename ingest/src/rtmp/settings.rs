//! Settings of RTMP and RTMPS (`[rtmp]`) with their defaults: addresses, connections, time-outs, message sizes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// The `[rtmp]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RtmpSettings {
    /// Address of the RTMP listener; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the RTMPS listener, used once a certificate is configured (`http.tls_cert`, `http.tls_key`).
    pub tls_listen: SocketAddr,
    /// The address shown to people in place of the request's host and the listener's port, for instance
    /// `rtmp://live.example.org:1935`. Empty: not overridden.
    pub public_url: String,
    /// Connections at a time, over both listeners; further ones are closed at once.
    pub max_connections: usize,
    /// Connections of one client network that have not been admitted; further ones are closed at once.
    pub max_unadmitted: usize,
    /// Time from the first byte to the end of the handshake.
    #[serde(with = "duration")]
    pub handshake_timeout: Duration,
    /// Time from the end of the handshake until the `publish` command.
    #[serde(with = "duration")]
    pub publish_timeout: Duration,
    /// Silence after which a publisher counts as lost.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// Time within which the peer must read what we sent.
    #[serde(with = "duration")]
    pub write_timeout: Duration,
    /// Interval of our pings.
    #[serde(with = "duration")]
    pub ping_interval: Duration,
    /// Chunk streams a connection may use.
    pub max_chunk_streams: usize,
    /// The largest command or metadata message.
    pub max_command: ByteSize,
    /// The largest audio, video or aggregate message.
    pub max_media: ByteSize,
    /// Bytes of unfinished messages that a publishing connection may hold.
    pub max_unfinished: ByteSize,
    /// The same for a connection that has not shown a key yet.
    pub max_unfinished_before_publish: ByteSize,
}

impl Default for RtmpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 1935)),
            tls_listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 1936)),
            public_url: String::new(),
            max_connections: 1024,
            max_unadmitted: 256,
            handshake_timeout: Duration::from_secs(5),
            publish_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            write_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(30),
            max_chunk_streams: 16,
            max_command: ByteSize::kib(16),
            max_media: ByteSize::mib(8),
            max_unfinished: ByteSize::mib(12),
            max_unfinished_before_publish: ByteSize::kib(64),
        }
    }
}
