//! An HLS asset as a viewer fetches it, and what must hold of all its parts together.

use bytes::Bytes;
use reqwest::StatusCode;

use super::{
    Failure,
    checker::vod::{Master, Media, Variant},
    ffprobe, fmp4, media,
    server::Api,
};

/// An access unit of AAC at 48 kHz and one tick: audio is cut between its own frames.
const AUDIO_SLACK_S: f64 = 1_024.0 / 44_100.0 + 0.001;
/// Five decimals, added up.
const ROUNDING_S: f64 = 0.001;

/// An asset with all its bytes.
pub struct Asset {
    pub master: Master,
    /// In the order of the multivariant playlist.
    pub video_frames: Vec<Rendition>,
    pub audio: Option<Rendition>,
    /// Every address that was fetched, relative to the asset's.
    pub addresses: Vec<String>,
    manifest_url: String,
}

/// A rendition with its bytes.
pub struct Rendition {
    /// Its folder.
    pub name: String,
    pub playlist: Media,
    pub init: Bytes,
    pub segments: Vec<Bytes>,
}

impl Rendition {
    /// The init section and all segments.
    pub fn whole(&self) -> Vec<u8> {
        let parts = std::iter::once(&self.init).chain(&self.segments);
        parts.flat_map(|part| part.to_vec()).collect()
    }

    /// Checks that its audio and its frames begin where the playlist says, to `slack_s`, and the lengths too.
    fn check_times(&self, slack_s: f64) -> Result<(), Failure> {
        let tracks = fmp4::tracks(&self.init)?;
        let [track] = &tracks[..] else {
            return Err(format!("{}: {} tracks", self.name, tracks.len()).into());
        };
        let seconds = |ticks: u64| ticks as f64 / f64::from(track.timescale);
        let (mut start_s, mut next) = (0.0, 0);
        for (segment, listed) in self.segments.iter().zip(&self.playlist.segments) {
            let runs = fmp4::runs(segment)?;
            let duration: u64 = runs.iter().map(|run| run.duration).sum();
            let first = runs.first().ok_or("a segment without a run")?.decode_time;
            let is_gapless = first == next;
            let is_in_time = (seconds(first) - start_s).abs() <= slack_s
                && (seconds(duration) - listed.duration_s).abs() <= ROUNDING_S;
            if !is_gapless || !is_in_time {
                return Err(format!(
                    "{}/{}: from tick {first} after {next}, {} s long, listed with {} s at {start_s} s",
                    self.name,
                    listed.uri,
                    seconds(duration),
                    listed.duration_s
                )
                .into());
            }
            next = first + duration;
            start_s += listed.duration_s;
        }
        Ok(())
    }

    /// Bits per second over all, and the most of any segment that is not much shorter than the others.
    fn rates(&self) -> (f64, f64) {
        let rate = |bytes: usize, seconds: f64| bytes as f64 * 8.0 / seconds;
        let whole = self.segments.iter().map(Bytes::len).sum();
        let half_s = self.playlist.target_duration_s as f64 / 2.0;
        let long = self.segments.iter().zip(&self.playlist.segments);
        let most = long
            .filter(|(_, listed)| listed.duration_s >= half_s)
            .map(|(bytes, listed)| rate(bytes.len(), listed.duration_s))
            .fold(0.0, f64::max);
        (rate(whole, self.playlist.duration_s()), most)
    }
}

impl Asset {
    /// Fetches the playlists, and everything they name.
    pub async fn fetch(api: &Api, manifest_url: &str) -> Result<Self, Failure> {
        let (base, name) = manifest_url.rsplit_once('/').ok_or("no path")?;
        let mut fetching = Fetching {
            api,
            base,
            addresses: Vec::new(),
        };
        let master = Master::parse(&fetching.text(name).await?)?;
        let mut video_frames = Vec::new();
        for variant in &master.variants {
            video_frames.push(fetching.rendition(&variant.uri).await?);
        }
        let audio = match &master.audio[..] {
            [] => None,
            [audio] => Some(fetching.rendition(&audio.uri).await?),
            more => return Err(format!("{} renditions of the audio", more.len()).into()),
        };
        for captions in &master.captions {
            let list = Media::parse(&fetching.text(&captions.uri).await?)?;
            let (folder, _) = captions.uri.rsplit_once('/').ok_or("no folder")?;
            for part in &list.segments {
                let text = fetching.text(&format!("{folder}/{}", part.uri)).await?;
                if !text.starts_with("WEBVTT\n") {
                    return Err(format!("captions {text:?}").into());
                }
            }
        }
        Ok(Self {
            master,
            video_frames,
            audio,
            addresses: fetching.addresses,
            manifest_url: manifest_url.to_owned(),
        })
    }

    /// All of what must hold of a finished one.
    pub async fn check(&self, api: &Api) -> Result<(), Failure> {
        for rendition in self.video_frames.iter().chain(&self.audio) {
            if !rendition.playlist.is_ended {
                return Err(format!("{} is not ended", rendition.name).into());
            }
        }
        self.check_boundaries()?;
        for (variant, rendition) in self.master.variants.iter().zip(&self.video_frames) {
            self.check_bandwidth(variant, rendition)?;
            check_codecs(variant, rendition)?;
        }
        self.check_key_video_frames(api).await?;
        for rendition in self.video_frames.iter().chain(&self.audio) {
            let streams = ffprobe::probe_bytes(&rendition.whole()).await?;
            if streams.len() != 1 {
                return Err(format!("{}: {streams:?}", rendition.name).into());
            }
        }
        let streams = ffprobe::probe(&self.manifest_url).await?;
        match streams.len() >= self.video_frames.len() {
            true => Ok(()),
            false => Err(format!("ffprobe finds {streams:?} in the multivariant playlist").into()),
        }
    }

    /// The same segments in all renditions of the frames; the audio's within one of its frames.
    fn check_boundaries(&self) -> Result<(), Failure> {
        let durations = |rendition: &Rendition| -> Vec<f64> {
            let segments = rendition.playlist.segments.iter();
            segments.map(|segment| segment.duration_s).collect()
        };
        for rendition in &self.video_frames {
            rendition.check_times(ROUNDING_S)?;
            if durations(rendition) != durations(&self.video_frames[0]) {
                return Err(format!("{} is cut elsewhere than the first", rendition.name).into());
            }
        }
        let Some(audio) = &self.audio else {
            return Ok(());
        };
        audio.check_times(AUDIO_SLACK_S)?;
        let (mut video_frame_s, mut audio_s) = (0.0, 0.0);
        let both = durations(&self.video_frames[0])
            .into_iter()
            .zip(durations(audio));
        for (at, (video_frame, audio)) in both.enumerate() {
            if f64::abs(video_frame_s - audio_s) > AUDIO_SLACK_S {
                return Err(
                    format!("segment {at} at {video_frame_s} s, audio at {audio_s} s").into(),
                );
            }
            (video_frame_s, audio_s) = (video_frame_s + video_frame, audio_s + audio);
        }
        match audio
            .segments
            .len()
            .abs_diff(self.video_frames[0].segments.len())
        {
            0 | 1 => Ok(()),
            _ => Err("audio and video have different numbers of segments".into()),
        }
    }

    /// Declared against measured: the average to a hundredth, the peak never below any segment.
    fn check_bandwidth(&self, variant: &Variant, rendition: &Rendition) -> Result<(), Failure> {
        let (average, most) = rendition.rates();
        let (audio_average, audio_most) = self.audio.as_ref().map_or((0.0, 0.0), Rendition::rates);
        let declared = variant.average_bandwidth as f64;
        let is_average = (declared / (average + audio_average) - 1.0).abs() < 0.01;
        let is_peak = variant.bandwidth as f64 + 2.0 >= most.max(average) + audio_most;
        match is_average && is_peak {
            true => Ok(()),
            false => Err(format!(
                "{variant:?}: measured {average} + {audio_average} on average, {most} + {audio_most} at most"
            )
            .into()),
        }
    }

    /// Each entry is one frame that decodes by itself, the first of its segment.
    async fn check_key_video_frames(&self, api: &Api) -> Result<(), Failure> {
        let (base, _) = self.manifest_url.rsplit_once('/').ok_or("no path")?;
        if self.master.key_video_frames.len() != self.video_frames.len() {
            return Err("not every rendition has a playlist of key frames".into());
        }
        for variant in &self.master.key_video_frames {
            let (folder, _) = variant.uri.rsplit_once('/').ok_or("no folder")?;
            let text = api.fetch(&format!("{base}/{}", variant.uri)).await?;
            let list = Media::parse(&String::from_utf8(text.expect(200)?.bytes.to_vec())?)?;
            let rendition = self.video_frames.iter().find(|each| each.name == folder);
            let rendition = rendition.ok_or_else(|| format!("no rendition {folder}"))?;
            if list.segments.len() != rendition.segments.len() || !list.key_video_frames_only {
                return Err(format!("{} entries in {}", list.segments.len(), variant.uri).into());
            }
            for (entry, segment) in list.segments.iter().zip(&rendition.segments) {
                let (length, offset) = entry.range.ok_or("an entry without a range")?;
                let range = format!("bytes={offset}-{}", offset + length - 1);
                let url = format!("{base}/{folder}/{}", entry.uri);
                let part = api
                    .fetch_with(&url, &[("range", &range)])
                    .await?
                    .expect(206)?;
                if part.bytes != segment[..part.bytes.len()] {
                    return Err(format!("{url}: the range is another than the segment's").into());
                }
                let video_frame = [&rendition.init[..], &part.bytes[..]].concat();
                let [stream] = &ffprobe::probe_bytes(&video_frame).await?[..] else {
                    return Err("not one track".into());
                };
                if stream.packets() != 1 {
                    return Err(format!("{url}: {} frames", stream.packets()).into());
                }
                media::decode(&video_frame)?;
            }
        }
        Ok(())
    }
}

/// The string says what the decoder configuration does (RFC 6381 §3.3, ISO/IEC 14496-15 §5.3.3.1).
fn check_codecs(variant: &Variant, rendition: &Rendition) -> Result<(), Failure> {
    let init = &rendition.init;
    let at = init.windows(4).position(|window| window == b"avcC");
    let at = at.ok_or_else(|| format!("no avcC in {}", rendition.name))?;
    let [profile, compatibility, level] = init[at + 5..at + 8] else {
        return Err("a cut avcC".into());
    };
    let expected = format!("avc1.{profile:02x}{compatibility:02x}{level:02x}");
    match variant.codecs.first() {
        Some(codec) if codec.eq_ignore_ascii_case(&expected) => Ok(()),
        other => Err(format!("{other:?} instead of {expected}").into()),
    }
}

struct Fetching<'a> {
    api: &'a Api,
    base: &'a str,
    addresses: Vec<String>,
}

impl Fetching<'_> {
    async fn bytes(&mut self, address: &str) -> Result<Bytes, Failure> {
        let fetched = self.api.fetch(&format!("{}/{address}", self.base)).await?;
        if fetched.status != StatusCode::OK {
            return Err(format!("{address}: {}", fetched.status).into());
        }
        self.addresses.push(address.to_owned());
        Ok(fetched.bytes)
    }

    async fn text(&mut self, address: &str) -> Result<String, Failure> {
        Ok(String::from_utf8(self.bytes(address).await?.to_vec())?)
    }

    async fn rendition(&mut self, address: &str) -> Result<Rendition, Failure> {
        let playlist = Media::parse(&self.text(address).await?)
            .map_err(|reason| format!("{address}: {reason}"))?;
        let (name, _) = address.rsplit_once('/').ok_or("no folder")?;
        let map = playlist.map.as_deref().ok_or("no map")?;
        let init = self.bytes(&format!("{name}/{map}")).await?;
        let mut segments = Vec::new();
        for segment in &playlist.segments {
            segments.push(self.bytes(&format!("{name}/{}", segment.uri)).await?);
        }
        Ok(Rendition {
            name: name.to_owned(),
            playlist,
            init,
            segments,
        })
    }
}
