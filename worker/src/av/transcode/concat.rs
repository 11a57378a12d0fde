//! Joins several audio files into one: each decoded to the same samples, with gaps of silence, into one encoder.

use std::{ops::ControlFlow, os::fd::OwnedFd};

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use sluice_media::{
    av::{AudioTrack, Concat, MediaFacts, Report, plan::AudioEncoding},
    format::Class,
    task::{Done, Failure, FailureCode, Limits},
};

use super::{
    audio,
    check::{self, CheckedSource, Expected},
    encoder,
    writer::Writer,
};
use crate::av::{
    bus, drive,
    graph::{BranchKind, Graph, Want},
    internal, probe, refused,
    sink::to_us,
    source::Input,
};

/// Bytes of samples that wait for the encoder.
const WAITING_BYTES: u64 = 1 << 20;
/// Longest time of the encoder for its queue, after the last samples came.
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// Joins the audio of all inputs, in their order.
pub fn concat(
    task: &Concat,
    inputs: &[Input],
    output: &OwnedFd,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    if task.format.class() != Class::Audio {
        return Err(Failure::new(
            FailureCode::Impossible,
            format!(
                "audio files are joined into an audio format, not into {}",
                task.format.name()
            ),
        ));
    }
    let parts = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| Part::open(index, input, limits))
        .collect::<Result<Vec<_>, _>>()?;
    let audio = AudioEncoding::of(task.format, &common(&parts), task.bitrate_kbps);
    let mut joint = Joint::start(task, &audio, output)?;
    let whole_s: f64 = parts.iter().map(|part| part.duration_s()).sum();
    let gap_frames = u64::from(task.gap_ms) * u64::from(audio.rate) / 1_000;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            joint.silence(gap_frames)?;
        }
        let before = joint.frames;
        joint
            .play(part, whole_s, on_report)
            .map_err(|failure| part.named(failure))?;
        let reached_s = (joint.frames - before) as f64 / f64::from(audio.rate);
        part.check(reached_s)
            .map_err(|failure| part.named(failure))?;
    }
    joint.end()?;
    let expected = Expected {
        format: task.format,
        video_frames: false,
        audio: true,
        turn: 0,
    };
    let facts = parts.into_iter().next().map(|part| part.facts);
    check::result(&expected, output, limits, facts.unwrap_or_default())
}

/// An audio file of the sequence.
struct Part<'a> {
    /// From 1, for people.
    number: usize,
    input: &'a Input,
    facts: MediaFacts,
    track: AudioTrack,
}

impl<'a> Part<'a> {
    fn open(index: usize, input: &'a Input, limits: &Limits) -> Result<Self, Failure> {
        let number = index + 1;
        let facts = probe::probe(input, limits).map_err(|failure| named(number, failure))?;
        let track = facts.audio_track().cloned().ok_or_else(|| {
            named(
                number,
                Failure::new(FailureCode::Impossible, "it has no audio"),
            )
        })?;
        Ok(Self {
            number,
            input,
            facts,
            track,
        })
    }

    fn named(&self, failure: Failure) -> Failure {
        named(self.number, failure)
    }

    fn duration_s(&self) -> f64 {
        self.facts.duration_s().unwrap_or(0.0)
    }

    fn check(&self, reached_s: f64) -> Result<(), Failure> {
        let source = CheckedSource {
            input: self.input,
            facts: &self.facts,
            is_part: self.facts.video_track().is_some(),
        };
        source.check_reached(reached_s, self.duration_s(), 0.0)
    }
}

fn named(number: usize, failure: Failure) -> Failure {
    Failure::new(failure.code, format!("file {number}: {}", failure.message))
}

/// A track that loses nothing of any of them: the highest rate, the most channels, the deepest samples.
fn common(parts: &[Part<'_>]) -> AudioTrack {
    let tracks = || parts.iter().map(|part| &part.track);
    let deepest = tracks().max_by_key(|track| track.bits_per_sample);
    AudioTrack {
        codec: deepest.map(|track| track.codec.clone()).unwrap_or_default(),
        bits_per_sample: deepest.and_then(|track| track.bits_per_sample),
        channels: tracks().map(|track| track.channels).max().unwrap_or(0),
        sample_rate: tracks().map(|track| track.sample_rate).max().unwrap_or(0),
        ..AudioTrack::default()
    }
}

/// The encoder's graph, which is fed by hand.
struct Joint<'a> {
    graph: Graph,
    source: gst_app::AppSrc,
    audio: &'a AudioEncoding,
    caps: gst::Caps,
    /// Samples of each channel so far.
    frames: u64,
}

impl<'a> Joint<'a> {
    fn start(task: &Concat, audio: &'a AudioEncoding, output: &OwnedFd) -> Result<Self, Failure> {
        let graph = Graph::new();
        let caps: gst::Caps = audio::samples(audio, form(audio))
            .parse()
            .map_err(|_| refused("its audio is of no usual form"))?;
        let source = gst_app::AppSrc::builder()
            .caps(&caps)
            .format(gst::Format::Time)
            .block(true)
            .max_bytes(WAITING_BYTES)
            .build();
        let mut elements = vec![source.clone().upcast()];
        elements.extend(audio::chain(audio, None)?);
        elements.extend(encoder::audio(audio)?);
        graph.add_chain(&elements.iter().collect::<Vec<_>>())?;
        let mut writer = Writer::new(&graph, task.format, output)?;
        writer.take(BranchKind::Audio, elements.last())?;
        writer.finish(1)?;
        graph
            .pipeline
            .set_state(gst::State::Playing)
            .map_err(|_| refused("its audio cannot be encoded in this form"))?;
        Ok(Self {
            graph,
            source,
            audio,
            caps,
            frames: 0,
        })
    }

    /// Puts the audio of a part behind what is there.
    fn play(
        &mut self,
        part: &Part<'_>,
        whole_s: f64,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<(), Failure> {
        let graph = Graph::decode(part.input, &part.facts, Want::AUDIO, None)?;
        let elements = audio::to_samples(self.audio, form(self.audio))?;
        let sink = to_us(&self.caps);
        let mut chain: Vec<&gst::Element> = elements.iter().collect();
        chain.push(sink.upcast_ref());
        graph.add_chain(&chain)?;
        graph.link(BranchKind::Audio, chain[0])?;
        let mut reported_s = self.seconds();
        drive::pull_frames(&graph, &sink, &mut |sample| {
            if let Some(buffer) = sample.buffer() {
                self.push(buffer.copy_deep().map_err(|_| internal("no memory"))?)?;
            }
            if self.seconds() > reported_s + 1.0 && whole_s > 0.0 {
                reported_s = self.seconds();
                on_report(Report::Working {
                    share: (reported_s / whole_s).min(0.99) as f32,
                });
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn silence(&mut self, frames: u64) -> Result<(), Failure> {
        let mut left = frames;
        while left > 0 {
            let now = left.min(u64::from(self.audio.rate));
            let bytes = vec![0_u8; now as usize * self.frame_bytes()];
            self.push(gst::Buffer::from_mut_slice(bytes))?;
            left -= now;
        }
        Ok(())
    }

    /// Times are counted in samples, so that nothing overlaps and nothing is missing.
    fn push(&mut self, mut buffer: gst::Buffer) -> Result<(), Failure> {
        let start = self.frames;
        self.frames += (buffer.size() / self.frame_bytes()) as u64;
        let (from, to) = (self.time(start), self.time(self.frames));
        let writable = buffer.make_mut();
        writable.unset_flags(gst::BufferFlags::DISCONT | gst::BufferFlags::RESYNC);
        writable.set_pts(from);
        writable.set_dts(gst::ClockTime::NONE);
        writable.set_duration(to.saturating_sub(from));
        writable.set_offset(start);
        writable.set_offset_end(self.frames);
        match self.source.push_buffer(buffer) {
            Ok(_) => Ok(()),
            Err(_) => {
                bus::check(&self.graph.pipeline)?;
                Err(refused("its audio cannot be encoded in this form"))
            }
        }
    }

    fn end(self) -> Result<(), Failure> {
        self.source
            .end_of_stream()
            .map_err(|_| refused("its audio cannot be encoded in this form"))?;
        while !bus::has_ended(&self.graph.pipeline, LOOK)? {}
        Ok(())
    }

    fn time(&self, frames: u64) -> gst::ClockTime {
        let nanoseconds = u128::from(frames) * 1_000_000_000 / u128::from(self.audio.rate.max(1));
        gst::ClockTime::from_nseconds(u64::try_from(nanoseconds).unwrap_or(u64::MAX - 1))
    }

    fn seconds(&self) -> f64 {
        self.frames as f64 / f64::from(self.audio.rate)
    }

    fn frame_bytes(&self) -> usize {
        let sample = match form(self.audio) {
            "F32LE" => 4,
            "S24LE" => 3,
            _ => 2,
        };
        sample * self.audio.channels as usize
    }
}

/// The samples between decoders and the encoder: the encoder's own where none may change.
fn form(audio: &AudioEncoding) -> &'static str {
    audio::exact_form(audio).unwrap_or(audio::FLOATS)
}
