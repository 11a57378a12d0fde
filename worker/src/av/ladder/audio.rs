//! Audio rendition of an HLS asset: AAC-LC in two channels, sample rate, encoded or the source's own frames.

use std::sync::Arc;

use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{LadderAudio, MediaFacts},
    codec::{AudioCodec, AudioConfig},
    hls::vod::{AudioSegmenter, SegmentBoundaries},
    task::Failure,
    unit::CLOCK_90K,
};

use super::{
    super::{
        drive,
        graph::{BranchKind, Graph, Want},
        refused,
        sink::{filter, make},
        source::Input,
    },
    encoder, metronome,
    rendition_file::RenditionFile,
    unit::{Unit, UnitSink, configuration, sink_to},
};

/// Frames with which the encoder begins and that hold nothing of the source but what the next one needs: 1024 samples.
const PRIMING_FRAMES: u32 = 1;

/// Makes the whole rendition. `is_alone`: it is the only one, so its progress is the task's.
pub(super) fn perform(
    audio: LadderAudio,
    input: &Input,
    facts: &MediaFacts,
    cuts: SegmentBoundaries,
    rendition_file: &Arc<RenditionFile>,
    is_alone: bool,
) -> Result<(), Failure> {
    let (graph, chain) = match audio.copy {
        true => (Graph::parse(input, facts, Want::AUDIO, None)?, copied()?),
        false => (
            Graph::decode(input, facts, Want::AUDIO, None)?,
            encoded(audio, facts)?,
        ),
    };
    let maker = Arc::new(Mutex::new(AudioSegmentWriter {
        cuts,
        copied: audio.copy,
        priming: if audio.copy { 0 } else { PRIMING_FRAMES },
        next_90k: 0,
        clock: None,
        rendition_file: rendition_file.clone(),
        segmenter: None,
        sample_rate: 1,
        frame_samples: 1,
    }));
    let work = rendition_file.work();
    let sink = sink_to(maker.clone(), work.clone());
    let chain: Vec<&gst::Element> = chain.iter().chain([&sink]).collect();
    graph.add_chain(&chain)?;
    metronome::simplify_segments(chain[0]);
    graph.link(BranchKind::Audio, chain[0])?;
    drive::run(&graph, facts.duration_s().unwrap_or(0.0), &mut |report| {
        if is_alone {
            work.send(report);
        }
    })?;
    drop(graph);
    let mut maker = maker.lock();
    let last = maker.segmenter.take().and_then(AudioSegmenter::finish);
    last.map_or(Ok(()), |segment| rendition_file.store(&segment))
}

/// Frames as they are, without a header each.
fn copied() -> Result<Vec<gst::Element>, Failure> {
    let raw = gst::Caps::builder("audio/mpeg")
        .field("mpegversion", 4)
        .field("stream-format", "raw")
        .build();
    Ok(vec![make("aacparse")?, filter(&raw)?])
}

/// Two channels at a usual rate, holes filled with silence from the beginning on, then AAC.
fn encoded(audio: LadderAudio, facts: &MediaFacts) -> Result<Vec<gst::Element>, Failure> {
    let rate = match facts.audio_track().map(|track| track.sample_rate) {
        Some(11_025 | 22_050 | 44_100 | 88_200 | 176_400) => 44_100,
        _ => 48_000,
    };
    let stereo = gst::Caps::builder("audio/x-raw")
        .field("rate", rate)
        .field("channels", 2)
        .field("channel-mask", gst::Bitmask::new(0b11))
        .build();
    Ok(vec![
        make("audioconvert")?,
        make("audioresample")?,
        filter(&stereo)?,
        make("audiorate")?,
        make("audioconvert")?,
        encoder::aac(audio.bitrate)?,
    ])
}

/// Makes segments of frames.
struct AudioSegmentWriter {
    cuts: SegmentBoundaries,
    copied: bool,
    /// Frames that are still to be left out.
    priming: u32,
    /// Time of a frame that has none.
    next_90k: i64,
    /// Clock of encoded audio: its begin, and the frames since.
    clock: Option<(i64, i64)>,
    rendition_file: Arc<RenditionFile>,
    segmenter: Option<AudioSegmenter>,
    /// Samples per second, and of a frame.
    sample_rate: i64,
    frame_samples: i64,
}

impl AudioSegmentWriter {
    /// Returns the time of a frame. Frames of the encoder follow one another without a gap; their first one counts.
    fn place(&mut self, pts_90k: i64) -> i64 {
        if self.copied {
            return pts_90k;
        }
        let (from_90k, frames) = self.clock.get_or_insert((pts_90k.max(0), 0));
        let samples = *frames * self.frame_samples;
        *frames += 1;
        *from_90k + samples * CLOCK_90K / self.sample_rate
    }

    /// Makes the segmenter, once the configuration of the frames is known.
    fn begin(&mut self, caps: &gst::CapsRef) -> Result<(), Failure> {
        let config = AudioConfig::parse(AudioCodec::Aac, configuration(caps)?)
            .map_err(|_| refused("its audio is of a form that cannot be packaged"))?;
        self.sample_rate = i64::from(config.sample_rate.max(1));
        self.frame_samples = i64::from(config.samples_per_frame);
        let segmenter = AudioSegmenter::new(config, self.cuts.clone());
        let (init, info) = segmenter.init();
        self.rendition_file.begin(&init, info, self.copied)?;
        self.segmenter = Some(segmenter);
        Ok(())
    }
}

impl UnitSink for AudioSegmentWriter {
    fn take(&mut self, caps: &gst::CapsRef, unit: Unit) -> Result<(), Failure> {
        if self.segmenter.is_none() {
            self.begin(caps)?;
        }
        let pts_90k = unit.pts_90k.unwrap_or(self.next_90k);
        self.next_90k = pts_90k + self.frame_samples * CLOCK_90K / self.sample_rate;
        if self.priming > 0 {
            // The frame behind it holds the samples that came first.
            self.priming -= 1;
            self.clock.get_or_insert((pts_90k.max(0), 0));
            return Ok(());
        }
        let pts_90k = self.place(pts_90k);
        let made = match &mut self.segmenter {
            Some(segmenter) => segmenter.push(pts_90k, unit.data),
            None => Vec::new(),
        };
        made.iter()
            .try_for_each(|segment| self.rendition_file.store(segment))
    }
}
