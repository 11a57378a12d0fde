//! Pulls one RTSP source: DESCRIBE, SETUP, PLAY, TCP or UDP, time-outs, error texts (401, 461), end of the stream.

use std::{net::SocketAddr, pin::pin, time::Duration};

use futures_util::StreamExt as _;
use retina::{
    client::{
        Credentials, Demuxed, Described, InitialTimestampPolicy, PlayOptions, Session,
        SessionOptions, SetupOptions, TeardownPolicy, Transport,
    },
    codec::{CodecItem, FrameFormat},
};
use sluice_media::unit::Unit;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{RtspSettings, guard, tracks::Tracks};
use crate::{
    Error,
    publish::{
        ADMIT_WITHIN, Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession,
        Rejection, Secret,
    },
};

const USER_AGENT: &str = "Sluice";
/// Interval of the reports for health.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Characters of a source's text that are shown.
const MAX_SHOWN_CHARS: usize = 200;
/// Status of a source that does not send its packets inside the connection (RFC 2326 §11.3.14).
const UNSUPPORTED_TRANSPORT: u16 = 461;

/// Source to be pulled.
#[derive(Clone)]
pub struct RtspSource {
    /// URL without user information. Over UDP its host is dialled, so it is an address that was checked.
    pub url: Url,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    pub remote: SocketAddr,
}

/// Transport of the packets.
pub enum RtspTransport<L> {
    /// Inside this connection to the source.
    Tcp(L),
    /// UDP, from any address that the source names: only for sources that the operator listed.
    Udp,
}

/// Reason why a pull ends before its stream.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The source requires UDP.
    #[error("the source does not send its packets over TCP")]
    WantsUdp,
    #[error(transparent)]
    Other(#[from] Error),
}

/// Tokens that end a pull from outside.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The service stops: the broadcast waits for the next process.
    pub stop: CancellationToken,
    /// Cancelled when the source is not wanted any more: the broadcast ends.
    pub over: CancellationToken,
}

/// Pulls a source into the authorizer until it ends.
pub async fn pull<G, L>(
    source: RtspSource,
    transport: RtspTransport<L>,
    settings: &RtspSettings,
    authorizer: &G,
    orders: &Orders,
) -> Result<(), Failure>
where
    G: PublishAuthorizer,
    L: AsyncRead + AsyncWrite + Unpin + Send,
{
    let RtspTransport::Tcp(socket) = transport else {
        return follow(
            source,
            Transport::Udp(Default::default()),
            settings,
            authorizer,
            orders,
        )
        .await;
    };
    let listener = guard::listen().await.map_err(Error::Io)?;
    let near = listener.local_addr().map_err(Error::Io)?;
    // The library dials the relay, which holds the connection to the source.
    let mut source = source;
    let host = near.ip().to_string();
    if source.url.set_host(Some(&host)).is_err() || source.url.set_port(Some(near.port())).is_err()
    {
        return Err(Error::invalid("RTSP address", "it names no host").into());
    }
    let relayed = pin!(guard::relay(listener, socket));
    let transport = Transport::Tcp(Default::default());
    let followed = pin!(follow(source, transport, settings, authorizer, orders));
    // The other side sees the end of the relay as the end of the connection; the relay's own finding takes precedence.
    let relayed = async {
        match relayed.await {
            Err(error) => error,
            Ok(()) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ended = followed => ended,
        error = relayed => Err(error.into()),
    }
}

async fn follow<G: PublishAuthorizer>(
    source: RtspSource,
    transport: Transport,
    settings: &RtspSettings,
    authorizer: &G,
    orders: &Orders,
) -> Result<(), Failure> {
    let mut tracks = Tracks::new();
    let remote = source.remote;
    let begun = begin(source, transport, settings, &mut tracks);
    let mut demuxed = tokio::select! {
        begun = begun => begun?,
        () = orders.over.cancelled() => return Ok(()),
        () = orders.stop.cancelled() => return Ok(()),
    };
    let encoder = demuxed
        .tool()
        .map(|tool| shown(format!("{tool:?}").trim_matches('"')));
    let request = PublishRequest {
        protocol: Protocol::Rtsp,
        remote,
        stream: Secret::default(),
        encoder: encoder.clone(),
    };
    let admitted = tokio::select! {
        admitted = timeout(ADMIT_WITHIN, authorizer.admit(request)) => {
            admitted.unwrap_or(Err(Rejection::Busy)).map_err(Error::from)?
        }
        () = orders.over.cancelled() => return Ok(()),
        () = orders.stop.cancelled() => return Ok(()),
    };
    let mut publishing = Publishing {
        publisher: admitted,
        tracks,
        units: Vec::new(),
        encoder,
        reported: Instant::now(),
    };
    publishing.report();
    let (how, outcome) = publishing.run(&mut demuxed, settings, orders).await;
    publishing.finish(how).await;
    outcome.map_err(Failure::Other)
}

/// Describes, sets up and plays, each within its time.
async fn begin(
    source: RtspSource,
    transport: Transport,
    settings: &RtspSettings,
    tracks: &mut Tracks,
) -> Result<Demuxed, Failure> {
    let credentials = source
        .credentials
        .map(|(username, password)| Credentials { username, password });
    // The end of the relay's connection ends the session, and its address has no listener afterwards.
    let teardown = match transport {
        Transport::Tcp(_) => TeardownPolicy::Never,
        _ => TeardownPolicy::Auto,
    };
    let options = SessionOptions::default()
        .teardown(teardown)
        .creds(credentials)
        .user_agent(USER_AGENT.to_owned());
    let within = settings.step_timeout;
    let describing = Session::<Described>::describe(source.url, options);
    let mut session = step("the description", within, describing).await?;
    let chosen = tracks.choose(session.streams());
    if chosen.is_empty() {
        let reason = "it has neither H.264 nor HEVC video nor AAC audio";
        return Err(Error::unsupported("RTSP source", reason).into());
    }
    for stream in chosen {
        let options = SetupOptions::default()
            .transport(transport.clone())
            .frame_format(FrameFormat::MP4);
        step("setting up", within, session.setup(stream, options)).await?;
    }
    let options = PlayOptions::default().initial_timestamp(InitialTimestampPolicy::Permissive);
    let playing = step("playing", within, session.play(options)).await?;
    playing.demuxed().map_err(failed)
}

async fn step<T>(
    what: &'static str,
    limit: Duration,
    asked: impl Future<Output = Result<T, retina::Error>>,
) -> Result<T, Failure> {
    match timeout(limit, asked).await {
        Ok(answered) => answered.map_err(failed),
        Err(_) => Err(Error::TimedOut { what, limit }.into()),
    }
}

fn failed(error: retina::Error) -> Failure {
    match error.status_code() {
        Some(UNSUPPORTED_TRANSPORT) => Failure::WantsUdp,
        Some(401) => {
            let reason = "it does not take the user name and password in pullUrl";
            Error::unsupported("RTSP source", reason).into()
        }
        Some(status) => Error::unsupported("RTSP source", format!("it answers {status}")).into(),
        None => Error::invalid("RTSP stream", shown(&error.to_string())).into(),
    }
}

/// Returns foreign text, shortened to one line.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars()
        .filter(|c| !c.is_control())
        .take(MAX_SHOWN_CHARS)
        .collect()
}

struct Publishing<P> {
    publisher: P,
    tracks: Tracks,
    units: Vec<Unit>,
    encoder: Option<String>,
    reported: Instant,
}

impl<P: PublishSession> Publishing<P> {
    /// Returns how the publish ended, and the error if it failed.
    async fn run(
        &mut self,
        demuxed: &mut Demuxed,
        settings: &RtspSettings,
        orders: &Orders,
    ) -> (Ended, Result<(), Error>) {
        let limit = settings.idle_timeout;
        let mut last_frame = Instant::now();
        loop {
            let next = tokio::select! {
                biased;
                _ = self.publisher.closed() => return (Ended::Dropped, Ok(())),
                () = orders.stop.cancelled() => return (Ended::Dropped, Ok(())),
                () = orders.over.cancelled() => return (Ended::Clean, Ok(())),
                next = tokio::time::timeout_at(last_frame + limit, demuxed.next()) => next,
            };
            let item = match next {
                Err(_) => {
                    let what = "the next frame";
                    return (Ended::Dropped, Err(Error::TimedOut { what, limit }));
                }
                Ok(None) => return (Ended::Dropped, Ok(())),
                Ok(Some(Err(error))) => {
                    let reason = shown(&error.to_string());
                    return (Ended::Dropped, Err(Error::invalid("RTSP stream", reason)));
                }
                Ok(Some(Ok(item))) => item,
            };
            match item {
                CodecItem::VideoFrame(frame) => {
                    last_frame = Instant::now();
                    self.tracks
                        .video_frame(demuxed.streams(), frame, &mut self.units);
                }
                CodecItem::AudioFrame(frame) => {
                    last_frame = Instant::now();
                    self.tracks
                        .audio(demuxed.streams(), &frame, &mut self.units);
                }
                _ => continue,
            }
            if self.deliver().await.is_err() {
                return (Ended::Dropped, Ok(()));
            }
        }
    }

    async fn deliver(&mut self) -> Result<(), Closed> {
        if self.reported.elapsed() >= REPORT_EVERY {
            self.report();
        }
        match self.units.is_empty() {
            true => Ok(()),
            false => self.publisher.deliver(&mut self.units).await,
        }
    }

    fn report(&mut self) {
        self.reported = Instant::now();
        let report = self.tracks.report(self.encoder.as_deref());
        self.publisher.report(report);
    }

    async fn finish(mut self, how: Ended) {
        self.tracks.flush(&mut self.units);
        let _ = self.deliver().await;
        self.report();
        self.publisher.end(how).await;
    }
}
