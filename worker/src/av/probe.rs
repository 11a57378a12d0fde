//! Probe of a clip: facts by its headers and first decoded frame, time-outs, limits (`av_workers.max_side`,
//! `av_workers.max_duration`).
//!
//! The looking is done by GStreamer's discoverer on a thread of its own, because it may hang on broken files: it has a
//! time-out, a second chance, and is left behind when even the time-out does not come.

mod chain;
mod declared;
mod measure;
mod names;
mod tags;
mod tracks;

use std::{sync::mpsc, thread, time::Duration};

use gstreamer as gst;
use gstreamer_pbutils as gst_pbutils;
use sluice_media::{
    av::MediaFacts,
    format::Format,
    task::{Failure, FailureCode, Limits},
};

use super::{bus, internal, source::Input};

/// Time-outs of the discoverer, try by try. What it does not see in the first is mostly not there.
const GIVE_UP: [gst::ClockTime; 2] = [
    gst::ClockTime::from_seconds(2),
    gst::ClockTime::from_seconds(5),
];
/// Time after its deadline until it is abandoned.
const LEAVE: Duration = Duration::from_secs(3);
/// Bytes by which a format is recognised.
const HEAD_BYTES: usize = 4096;

/// Returns the facts of a clip within the limits. At least one track decodes, as far as a beginning can show.
pub fn probe(input: &Input, limits: &Limits) -> Result<MediaFacts, Failure> {
    if input.is_empty() {
        return Err(Failure::new(FailureCode::Undecodable, "the file is empty"));
    }
    let head = input
        .head(HEAD_BYTES)
        .map_err(|error| internal(format!("an input cannot be read: {error}")))?;
    let chain = chain::of(input, &head)?;
    let first_part = chain
        .as_ref()
        .map(|chain| input.beginning(chain.first_bytes));
    let discovered = discover_twice(first_part.as_ref().unwrap_or(input));
    let mut facts = discovered.map_err(|failure| or_too_large(failure, input, limits))?;
    if let Some(chain) = chain {
        chain.describe(&mut facts)?;
    }
    facts.format = Format::sniff(&head);
    if facts.format == Some(Format::Mov) {
        facts.container = "QuickTime".into();
    }
    if facts.video_track().is_none() && facts.audio_track().is_none() {
        return Err(Failure::new(
            FailureCode::UnsupportedType,
            "the file has neither video nor audio",
        ));
    }
    check_sides(&facts, limits)?;
    if facts.container == "MPEG-TS" {
        // A short one is said not to be, and is all the same: its bytes can be read at any place.
        facts.seekable = true;
    }
    if let Some(duration) = measure::duration(input, &facts, &head) {
        facts.duration_ms = Some(duration.mseconds());
    }
    check_duration(&facts, limits)?;
    facts.bitrate = bitrate(input.len(), facts.duration_ms);
    Ok(facts)
}

fn bitrate(bytes: u64, duration_ms: Option<u64>) -> Option<u64> {
    let duration_ms = duration_ms.filter(|duration| *duration > 0)?;
    u64::try_from(u128::from(bytes) * 8_000 / u128::from(duration_ms)).ok()
}

/// Nothing decodes frames larger than any codec has them: then that is what is said.
fn or_too_large(failure: Failure, input: &Input, limits: &Limits) -> Failure {
    if failure.code != FailureCode::UnsupportedType {
        return failure;
    }
    let declared = declared::size(input);
    let too_large = declared.and_then(|size| check_side(size, limits).err());
    too_large.unwrap_or(failure)
}

fn check_sides(facts: &MediaFacts, limits: &Limits) -> Result<(), Failure> {
    let video_frames = facts.video.iter().filter(|track| !track.is_cover);
    video_frames
        .map(|track| (track.width, track.height))
        .try_for_each(|size| check_side(size, limits))
}

fn check_side((width, height): (u32, u32), limits: &Limits) -> Result<(), Failure> {
    if width.max(height) <= limits.max_side {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::TooLarge,
        format!(
            "the frames have {width}×{height} pixels, at most {} a side are allowed (av_workers.max_side)",
            limits.max_side
        ),
    ))
}

fn check_duration(facts: &MediaFacts, limits: &Limits) -> Result<(), Failure> {
    match facts.duration_ms {
        Some(duration) if duration > limits.max_duration_ms => Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the file lasts {} seconds, at most {} are allowed (av_workers.max_duration)",
                duration / 1_000,
                limits.max_duration_ms / 1_000
            ),
        )),
        _ => Ok(()),
    }
}

fn discover_twice(input: &Input) -> Result<MediaFacts, Failure> {
    for give_up in GIVE_UP {
        if let Some(outcome) = discover(input.uri(), give_up)? {
            return outcome;
        }
    }
    Err(Failure::new(
        FailureCode::Undecodable,
        "the file is damaged: reading its beginning comes to no end",
    ))
}

/// Runs the discoverer; `None`: it took too long.
fn discover(
    uri: String,
    give_up: gst::ClockTime,
) -> Result<Option<Result<MediaFacts, Failure>>, Failure> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("discoverer".into())
        .spawn(move || {
            let discovered = gst_pbutils::Discoverer::new(give_up)
                .and_then(|discoverer| discoverer.discover_uri(&uri));
            // No one listens to one that was left behind.
            let _ = sender.send(discovered);
        })
        .map_err(|_| {
            // Each track of the look before has some, and their stacks lie in the address space.
            Failure::new(
                FailureCode::TooLarge,
                "the file has more tracks than the memory of a task suffices for (av_workers.memory)",
            )
        })?;
    let Ok(discovered) = receiver.recv_timeout(Duration::from(give_up) + LEAVE) else {
        return Ok(None);
    };
    let info = match discovered {
        Ok(info) => info,
        Err(error) => return Ok(Some(Err(bus::failure(&error)))),
    };
    Ok(match info.result() {
        gst_pbutils::DiscovererResult::Timeout => None,
        gst_pbutils::DiscovererResult::Ok | gst_pbutils::DiscovererResult::MissingPlugins => {
            Some(Ok(facts(&info)))
        }
        _ => Some(Err(Failure::new(
            FailureCode::Undecodable,
            "the file is damaged: its tracks do not decode",
        ))),
    })
}

fn facts(info: &gst_pbutils::DiscovererInfo) -> MediaFacts {
    MediaFacts {
        format: None,
        container: tracks::container(info),
        duration_ms: info
            .duration()
            .filter(|duration| !duration.is_zero())
            .map(gst::ClockTime::mseconds),
        bitrate: None,
        seekable: info.is_seekable(),
        video: tracks::video(info),
        audio: tracks::audio(info),
        subtitles: tracks::subtitles(info),
        parts: None,
        tags: tags::words(&tags::lists(info)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitrate_is_that_of_the_whole_file() {
        for (bytes, duration_ms, expected) in [
            (1_000, Some(1_000), Some(8_000)),
            (0, Some(1), Some(0)),
            (1_000, Some(0), None),
            (1_000, None, None),
            (u64::MAX, Some(1), None),
        ] {
            assert_eq!(bitrate(bytes, duration_ms), expected);
        }
    }
}
