//! Fields of a live input in answers: `status`, ingest and playback addresses (`rtmpUrl`, `srtUrl`, `whipUrl`, `hlsUrl`, `watchUrl`),
//! masked secrets.

use std::cmp::Ordering;

use serde::Serialize;
use sluice_actors::live::{InputStatus, address::MASK, pull::masked};
use sluice_store::live_inputs::LiveInput;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{answer::Timestamp, context::LiveContext, reached::Reached},
    protocols,
};

/// Form in which the record shows the stream key.
#[derive(Clone, Copy)]
pub(crate) enum Shown<'a> {
    InPlain(&'a str),
    Masked,
}

/// A live input. Addresses that do not work yet are null.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputRecord {
    id: Uuid,
    name: String,
    /// `idle`, `live` or `reconnecting`.
    status: &'static str,
    /// Players that watch now; null when they are not counted.
    viewers: Option<u64>,
    input_slug: String,
    playback_id: String,
    enabled: bool,
    reconnect_window_seconds: u32,
    require_signed_playback: bool,
    allowed_domains: Vec<String>,
    /// `off` or `automatic`.
    record_mode: &'static str,
    /// `low` or `standard`.
    latency: &'static str,
    /// The RTSP source that the service fetches; user name, password and query show `••••`.
    pull_url: Option<String>,
    stream_key_prefix: String,
    /// True: `reveal-key` shows the stream key again. False: an earlier version made it, and only a new one can be shown.
    stream_key_revealable: bool,
    ingest: Ingest,
    playback: Playback,
    /// Begin of the broadcast that is live or reconnecting; null while idle.
    started_at: Option<Timestamp>,
    /// End of the reconnect window; null but while reconnecting.
    reconnect_until: Option<Timestamp>,
    last_started_at: Option<Timestamp>,
    /// Null while a broadcast is live or reconnecting, then the time of its last media.
    last_ended_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Addresses to publish to. Secrets show `••••` outside create, rotate-key and reveal-key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingest {
    /// Server and key in one address.
    rtmp_url: String,
    /// Server, stream id and passphrase in one address; null when SRT is turned off.
    srt_url: Option<String>,
    /// "Server" in OBS.
    obs_server: String,
    /// "Stream Key" in OBS.
    obs_stream_key: String,
    srt_passphrase: Option<String>,
    /// Server of SRT without stream id and passphrase; null when SRT is turned off.
    srt_server: Option<String>,
    /// Address for WebRTC encoders (WHIP) with the key in it; null when WebRTC is turned off.
    whip_url: Option<String>,
}

/// Addresses to play from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Playback {
    hls_url: String,
    /// Address for WebRTC players (WHEP). They play within a fraction of a second of live; `hlsUrl` is for all others, and when WebRTC
    /// is turned off or does not connect.
    web_rtc_url: String,
    /// The newest key frame, a few seconds old at most.
    poster_url: String,
    /// The page that plays it.
    watch_url: String,
    playback_id: String,
}

/// Everything that a record needs besides its row.
pub(crate) struct Record<'a> {
    pub(crate) context: &'a LiveContext,
    pub(crate) reached: &'a Reached,
}

impl Record<'_> {
    pub(crate) fn of(&self, input: LiveInput, shown: Shown<'_>) -> LiveInputRecord {
        let status = self.context.live.status(input.id);
        let (last_started_at, last_ended_at) = self.times(&input, status);
        let is_on_air = status != InputStatus::Idle;
        LiveInputRecord {
            id: input.id,
            status: status_name(status),
            viewers: self.viewers(input.id),
            ingest: self.ingest(&input, shown),
            playback: self.playback(&input.playback_id),
            name: input.name,
            input_slug: input.input_slug,
            playback_id: input.playback_id,
            enabled: input.enabled,
            reconnect_window_seconds: input.reconnect_window_s,
            require_signed_playback: input.require_signed_playback,
            allowed_domains: input.allowed_domains,
            record_mode: input.record_mode.as_str(),
            latency: input.latency.as_str(),
            pull_url: input.pull_url.as_deref().map(masked),
            stream_key_prefix: input.stream_key_prefix,
            stream_key_revealable: input.stream_key_id.is_some(),
            started_at: last_started_at.filter(|_| is_on_air),
            reconnect_until: self.reconnect_until(input.id),
            last_started_at,
            last_ended_at,
            created_at: Timestamp(input.created_at),
            updated_at: Timestamp(input.updated_at),
        }
    }

    fn viewers(&self, input_id: Uuid) -> Option<u64> {
        let is_counted = self.context.config.live.count_viewers;
        is_counted.then(|| self.context.live.viewers(input_id))
    }

    fn reconnect_until(&self, input_id: Uuid) -> Option<Timestamp> {
        let playback = self.context.live.playback_of(input_id)?;
        playback.now().reconnect_until_ms.map(Timestamp)
    }

    /// Returns the times of the broadcast; the process has them a moment before the row does, and the row alone has those of a
    /// broadcast on another node.
    fn times(
        &self,
        input: &LiveInput,
        status: InputStatus,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        let known = self.context.live.times(input.id);
        let (started, ended) = match input.last_started_at.cmp(&known.last_started_ms) {
            Ordering::Greater => (input.last_started_at, input.last_ended_at),
            Ordering::Equal => (
                known.last_started_ms,
                known.last_ended_ms.or(input.last_ended_at),
            ),
            Ordering::Less => (known.last_started_ms, known.last_ended_ms),
        };
        let ended = ended.filter(|_| status == InputStatus::Idle);
        (started.map(Timestamp), ended.map(Timestamp))
    }

    fn ingest(&self, input: &LiveInput, shown: Shown<'_>) -> Ingest {
        let input_slug = &input.input_slug;
        let (srt_url, srt_passphrase) = self.srt(input, shown).unzip();
        let (config, address) = (&self.context.config, &self.reached.address);
        let obs_server = protocols::RTMP.server(config, address, self.context.rtmp_port);
        let base = &address.base;
        let [rtmp_url, whip_url, obs_stream_key] = match shown {
            Shown::InPlain(key) => [
                format!("{obs_server}/{input_slug}.{key}"),
                format!("{base}/live/whip/{input_slug}.{key}"),
                format!("{input_slug}.{key}"),
            ],
            Shown::Masked => [MASK; 3].map(str::to_owned),
        };
        Ingest {
            rtmp_url,
            srt_url,
            obs_server,
            obs_stream_key,
            srt_passphrase,
            srt_server: self.srt_server(),
            whip_url: config.webrtc.enabled.then_some(whip_url),
        }
    }

    fn srt_server(&self) -> Option<String> {
        let srt = self.context.srt.as_ref()?;
        let (config, address) = (&self.context.config, &self.reached.address);
        Some(protocols::SRT.server(config, address, srt.port))
    }

    /// The whole address without a latency, whose unit encoders disagree on; and the passphrase in it.
    fn srt(&self, input: &LiveInput, shown: Shown<'_>) -> Option<(String, String)> {
        let srt = self.context.srt.as_ref()?;
        let Shown::InPlain(key) = shown else {
            return Some((MASK.to_owned(), MASK.to_owned()));
        };
        let server = self.srt_server()?;
        let (slug, passphrase) = (&input.input_slug, srt.passphrases.of(input));
        let url = format!("{server}?streamid=publish:{slug}:{key}&passphrase={passphrase}");
        Some((url, passphrase))
    }

    fn playback(&self, playback_id: &str) -> Playback {
        Playback {
            hls_url: playback_url(self.reached, playback_id, "index.m3u8"),
            web_rtc_url: playback_url(self.reached, playback_id, "whep"),
            poster_url: playback_url(self.reached, playback_id, "poster.jpg"),
            watch_url: format!("{}/live/{playback_id}", self.reached.address.base),
            playback_id: playback_id.to_owned(),
        }
    }
}

/// Returns the address of an input's page, below the request's own address; `playback_id` is the playback id or a
/// token.
pub(crate) fn playback_url(reached: &Reached, playback_id: &str, name: &str) -> String {
    format!("{}/live/v1/{playback_id}/{name}", reached.address.base)
}

fn status_name(status: InputStatus) -> &'static str {
    match status {
        InputStatus::Idle => "idle",
        InputStatus::Live => "live",
        InputStatus::Reconnecting => "reconnecting",
    }
}
