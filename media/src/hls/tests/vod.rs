//! Segments and playlists of assets, read back by other implementations (mp4-atom, m3u8-rs).

use mp4_atom::{Any, DecodeMaybe, Moof, TrunSamples};
use proptest::prelude::*;

use super::{
    encoder::{audio_config, video_config},
    sampled,
};
use crate::hls::{
    StreamInfo,
    vod::{
        AudioSegmenter, Bandwidth, Caption, CodedFrame, FrameClock, MadeSegment, SegmentBoundaries,
        VideoRendition, VideoSegmenter, VodSegment, VodTrack, bandwidth, captions_playlist,
        iframe_playlist, media_playlist, multivariant, names,
    },
};

const CLOCK: (u32, u32) = (30, 1);
const DELAY_90K: u32 = 6_000;

fn rendition(cuts: SegmentBoundaries) -> VideoRendition {
    VideoRendition {
        config: video_config(None, 40).as_ref().clone(),
        frame_rate: Some(30.0),
        delay_90k: DELAY_90K,
        cuts,
    }
}

fn even(video_frames: u32) -> SegmentBoundaries {
    SegmentBoundaries::Even {
        clock: FrameClock::new(CLOCK),
        video_frames,
    }
}

/// Indices of `count` frames in decode order: groups of `group`, in which each P comes before the B shown before it.
fn decode_order(count: u64, group: u64) -> Vec<(u64, bool)> {
    let mut order = Vec::new();
    for start in (0..count).step_by(group as usize) {
        let end = (start + group).min(count);
        order.push((start, true));
        let mut next = start + 1;
        while next < end {
            let ahead = (next + 2).min(end - 1);
            order.push((ahead, false));
            order.extend((next..ahead).rev().map(|index| (index, false)));
            next = ahead + 1;
        }
    }
    order
}

fn video_frame(index: u64, key: bool) -> CodedFrame {
    CodedFrame {
        pts_90k: FrameClock::new(CLOCK).at_90k(index),
        key,
        data: index.to_be_bytes().to_vec().into(),
    }
}

/// Segments of `count` frames.
fn cut(count: u64, group: u64, cuts: SegmentBoundaries) -> Vec<MadeSegment> {
    let mut segmenter = VideoSegmenter::new(rendition(cuts), 0);
    let mut made = Vec::new();
    for (index, key) in decode_order(count, group) {
        made.extend(segmenter.push(video_frame(index, key)).unwrap());
    }
    let end_90k = FrameClock::new(CLOCK).at_90k(count);
    made.extend(segmenter.finish(end_90k).unwrap());
    made
}

/// A sample: decode time, presentation time, duration, key, bytes.
type Sample = (u64, i64, u32, bool, Vec<u8>);

/// The samples of a segment's only track, in decode order, and its fragments' numbers.
fn read(data: &[u8], delay: i64) -> (Vec<Sample>, Vec<u32>) {
    let (mut samples, mut numbers, mut base) = (Vec::new(), Vec::new(), 0);
    while base < data.len() {
        let mut rest = &data[base..];
        let moof = Moof::decode_maybe(&mut rest).unwrap().unwrap();
        let Any::Mdat(_) = Any::decode_maybe(&mut rest).unwrap().unwrap() else {
            panic!("media follows its fragment")
        };
        numbers.push(moof.mfhd.sequence_number);
        let [traf] = moof.traf.as_slice() else {
            panic!("one track")
        };
        let mut at = traf.tfdt.as_ref().unwrap().base_media_decode_time;
        let mut offset = base + traf.trun[0].data_offset.unwrap() as usize;
        let TrunSamples::Explicit(entries) = &traf.trun[0].samples else {
            panic!("entries are written out")
        };
        for entry in entries {
            let (duration, size) = (entry.duration.unwrap(), entry.size.unwrap() as usize);
            let cts = entry.cts.unwrap_or(0);
            let bytes = data[offset..offset + size].to_vec();
            let key = entry.flags.is_none_or(|flags| flags == 0x0200_0000);
            samples.push((at, at as i64 + cts - delay, duration, key, bytes));
            assert!(cts >= 0, "an offset of {cts}");
            at += u64::from(duration);
            offset += size;
        }
        base = data.len() - rest.len();
    }
    (samples, numbers)
}

#[test]
fn frames_keep_their_time_and_order() {
    let made = cut(200, 30, even(60));
    assert_eq!(made.len(), 4);
    let (mut order, mut next, mut fragment) = (decode_order(200, 30).into_iter(), 0, 0);
    for (number, segment) in made.iter().enumerate() {
        assert_eq!((segment.number as usize, segment.start_90k), (number, next));
        next += i64::from(segment.duration_90k);
        let (samples, numbers) = read(&segment.data, i64::from(DELAY_90K));
        assert!(
            numbers
                .iter()
                .all(|number| std::mem::replace(&mut fragment, *number) < *number)
        );
        assert_eq!(samples[0].0 as i64, segment.start_90k);
        for (_, pts, _, key, bytes) in samples {
            let (index, is_key) = order.next().unwrap();
            assert_eq!((pts, key), (index as i64 * 3_000, is_key));
            assert_eq!(bytes, index.to_be_bytes());
        }
        let (key, _) = read(
            &segment.data[..segment.key_length as usize],
            i64::from(DELAY_90K),
        );
        assert!(matches!(key.as_slice(), [(_, _, _, true, _)]));
    }
    assert_eq!((order.next(), next), (None, 600_000));
}

#[test]
fn a_later_start_gives_the_same_segments() {
    let whole = cut(200, 30, even(60));
    let mut segmenter = VideoSegmenter::new(rendition(even(60)), 2);
    let mut rest = Vec::new();
    for (index, key) in decode_order(200, 30) {
        if index >= 120 {
            rest.extend(segmenter.push(video_frame(index, key)).unwrap());
        }
    }
    rest.extend(segmenter.finish(600_000).unwrap());
    assert_eq!(rest, whole[2..]);
}

#[test]
fn frames_without_order_are_refused() {
    let pushed = |video_frames: &[(u64, bool)]| {
        let mut segmenter = VideoSegmenter::new(rendition(even(10)), 0);
        let taken = video_frames
            .iter()
            .try_for_each(|&(index, key)| segmenter.push(video_frame(index, key)).map(drop));
        taken.and_then(|()| segmenter.finish(0).map(drop))
    };
    assert!(pushed(&[]).is_ok());
    assert!(pushed(&[(0, true)]).is_ok());
    assert!(pushed(&[(0, false)]).is_err(), "no key at the beginning");
    assert!(
        pushed(&[(0, true), (10, false)]).is_err(),
        "no key at a cut"
    );
    assert!(
        pushed(&[(5, true), (3, false)]).is_err(),
        "before its segment"
    );
    assert!(
        pushed(&[(0, true), (1 << 40, true)]).is_err(),
        "years apart"
    );
}

#[test]
fn init_sections_take_the_delay_back() {
    let (init, info) = VideoSegmenter::new(rendition(even(10)), 0).init();
    assert_eq!(info.codecs, "avc1.640028");
    let mut rest = init.as_ref();
    let mut times = Vec::new();
    while let Some(found) = Any::decode_maybe(&mut rest).unwrap() {
        if let Any::Moov(moov) = found {
            let edits = moov.trak[0].edts.as_ref().unwrap().elst.as_ref().unwrap();
            times.extend(edits.entries.iter().map(|edit| edit.media_time));
        }
    }
    assert_eq!(times, [Some(u64::from(DELAY_90K))]);
}

/// Segments of frames that begin at these samples of a clock of 48 kHz.
fn cut_audio(starts: impl IntoIterator<Item = i64>, cuts: SegmentBoundaries) -> Vec<MadeSegment> {
    let mut segmenter = AudioSegmenter::new(audio_config(48_000).as_ref().clone(), cuts);
    let mut made = Vec::new();
    for start in starts {
        made.extend(segmenter.push(start * 15 / 8, b"frame".as_slice().into()));
    }
    made.extend(segmenter.finish());
    made
}

#[test]
fn audio_is_cut_at_the_nearest_frame() {
    let made = cut_audio((0..600).map(|frame| frame * 1_024), even(60));
    let mut end_90k = 0;
    for (number, segment) in (0_i64..).zip(&made) {
        assert_eq!(
            (i64::from(segment.number), segment.start_90k),
            (number, end_90k)
        );
        assert!((segment.start_90k - number * 180_000).abs() <= 960);
        end_90k += i64::from(segment.duration_90k);
        let (samples, _) = read(&segment.data, 0);
        assert_eq!(samples[0].0 as i64 * 15 / 8, segment.start_90k);
    }
    assert_eq!((made.len(), end_90k), (7, 600 * 1_920));
}

#[test]
fn holes_in_the_audio_are_filled() {
    for (what, starts, seconds) in [
        (
            "late",
            (300..600).map(|frame| frame * 1_024).collect::<Vec<_>>(),
            12.8,
        ),
        (
            "a hole",
            (0..600)
                .filter(|frame| *frame < 100 || *frame > 400)
                .map(|frame| frame * 1_024)
                .collect(),
            12.8,
        ),
        ("early", (-3..300).map(|frame| frame * 1_024).collect(), 6.4),
        (
            "twice",
            (0..300)
                .chain(150..300)
                .map(|frame| frame * 1_024)
                .collect(),
            6.4,
        ),
        (
            "jitter",
            (0..300)
                .map(|frame| frame * 1_024 + frame % 7 * 48)
                .collect(),
            6.4,
        ),
    ] {
        let made = cut_audio(starts, SegmentBoundaries::seconds(2));
        let ends: Vec<i64> = made
            .iter()
            .map(|one| one.start_90k + i64::from(one.duration_90k))
            .collect();
        let starts: Vec<i64> = made.iter().map(|one| one.start_90k).collect();
        assert_eq!(starts[1..], ends[..ends.len() - 1], "{what}");
        assert_eq!(starts[0], 0, "{what}");
        let end = *ends.last().unwrap() as f64 / 90_000.0;
        assert!((end - seconds).abs() < 0.05, "{what}: {end}");
        let longest = made.iter().map(|one| one.duration_90k).max().unwrap();
        assert!(longest <= 182_000, "{what}: {longest}");
    }
}

fn info(has_video: bool) -> StreamInfo {
    StreamInfo {
        codecs: if has_video {
            "avc1.64001f"
        } else {
            "mp4a.40.2"
        }
        .to_owned(),
        resolution: has_video.then_some((1_280, 720)),
        frame_rate: has_video.then_some(29.97),
        has_video,
        has_audio: !has_video,
    }
}

/// Builds a track from the durations and sizes of its segments.
fn track(name: &str, has_video: bool, segments: &[(u32, u64)]) -> VodTrack {
    let mut start_90k = 0;
    let segment = |(number, &(duration_90k, length)): (u32, &(u32, u64))| {
        let segment = VodSegment {
            number,
            start_90k,
            duration_90k,
            length,
            key_length: if has_video { length / 3 } else { 0 },
        };
        start_90k += i64::from(duration_90k);
        segment
    };
    VodTrack {
        name: name.to_owned(),
        info: info(has_video),
        target_duration_s: 6,
        segments: (0..).zip(segments).map(segment).collect(),
    }
}

#[test]
fn a_media_playlist_as_text() {
    let track = track("720p", true, &[(540_540, 3_000), (180_181, 900)]);
    let expected = "#EXTM3U\n\
        #EXT-X-VERSION:7\n\
        #EXT-X-TARGETDURATION:6\n\
        #EXT-X-MEDIA-SEQUENCE:0\n\
        #EXT-X-PLAYLIST-TYPE:EVENT\n\
        #EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MAP:URI=\"init.mp4\"\n\
        #EXTINF:6.00600,\n\
        0.m4s\n\
        #EXTINF:2.00201,\n\
        1.m4s\n";
    let unfinished = media_playlist(&track, false);
    assert_eq!(unfinished, expected);
    let finished = media_playlist(&track, true);
    assert_eq!(
        finished,
        expected.replace("EVENT", "VOD") + "#EXT-X-ENDLIST\n"
    );

    let iframes = iframe_playlist(&track, true).unwrap();
    assert!(iframes.contains("#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP"));
    assert!(iframes.contains("#EXTINF:6.00600,\n#EXT-X-BYTERANGE:1000@0\n0.m4s\n"));
}

#[test]
fn a_multivariant_playlist_as_text() {
    let tracks = [
        track("1080p", true, &[(540_000, 3_600_000), (270_000, 2_400_000)]),
        track("360p", true, &[(540_000, 600_000), (270_000, 300_000)]),
        track("720p", true, &[(540_000, 1_500_000), (270_000, 750_000)]),
        track("audio", false, &[(540_000, 96_000), (270_000, 48_000)]),
        track("480p", true, &[]),
    ];
    let captions = [Caption {
        name: "Deutsch \"A\"\n".to_owned(),
        language: Some("de".to_owned()),
        uri: "captions/de.m3u8".to_owned(),
        default: false,
    }];
    let expected = "#EXTM3U\n\
        #EXT-X-VERSION:7\n\
        #EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"Audio\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"audio/media.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"captions\",NAME=\"Deutsch 'A' \",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,LANGUAGE=\"de\",URI=\"captions/de.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2128000,AVERAGE-BANDWIDTH=2128000,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO=\"audio\",SUBTITLES=\"captions\",CLOSED-CAPTIONS=NONE\n\
        720p/media.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=928000,AVERAGE-BANDWIDTH=928000,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO=\"audio\",SUBTITLES=\"captions\",CLOSED-CAPTIONS=NONE\n\
        360p/media.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=6528000,AVERAGE-BANDWIDTH=5461334,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO=\"audio\",SUBTITLES=\"captions\",CLOSED-CAPTIONS=NONE\n\
        1080p/media.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=666667,AVERAGE-BANDWIDTH=666667,CODECS=\"avc1.64001f\",RESOLUTION=1280x720,URI=\"720p/iframes.m3u8\"\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=266667,AVERAGE-BANDWIDTH=266667,CODECS=\"avc1.64001f\",RESOLUTION=1280x720,URI=\"360p/iframes.m3u8\"\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=2133334,AVERAGE-BANDWIDTH=1777778,CODECS=\"avc1.64001f\",RESOLUTION=1280x720,URI=\"1080p/iframes.m3u8\"\n";
    assert_eq!(multivariant(&tracks, &captions), expected);
}

#[test]
fn audio_alone_and_nothing_at_all() {
    let text = multivariant(&[track("audio", false, &[(540_000, 96_000)])], &[]);
    assert!(text.ends_with(
        "#EXT-X-STREAM-INF:BANDWIDTH=128000,AVERAGE-BANDWIDTH=128000,CODECS=\"mp4a.40.2\"\naudio/media.m3u8\n"
    ));
    assert!(!text.contains("EXT-X-MEDIA"));
    assert!(multivariant(&[], &[]).ends_with("#EXT-X-INDEPENDENT-SEGMENTS\n"));
    assert_eq!(iframe_playlist(&track("audio", false, &[]), true), None);
    assert!(captions_playlist("de.vtt", 0).contains("#EXT-X-TARGETDURATION:1\n"));
    assert!(captions_playlist("de.vtt", 540_001).contains("#EXT-X-TARGETDURATION:7\n"));
}

#[test]
fn peaks_are_of_runs_that_last_about_a_target_duration() {
    type Case<'a> = (&'a [(u32, u64)], Option<(u64, u64)>);
    let cases: &[Case<'_>] = &[
        (&[], None),
        (&[(0, 5)], None),
        // Too short to be measured alone: with its neighbour it is not too long.
        (
            &[(540_000, 600_000), (90_000, 500_000)],
            Some((1_257_143, 1_257_143)),
        ),
        (
            &[(540_000, 600_000), (540_000, 1_200_000)],
            Some((1_600_000, 1_200_000)),
        ),
        (&[(90_000, 1_000)], Some((8_000, 8_000))),
    ];
    for (segments, expected) in cases {
        let found = bandwidth(&track("720p", true, segments));
        let expected = expected.map(|(peak_bps, average_bps)| Bandwidth {
            peak_bps,
            average_bps,
        });
        assert_eq!(found, expected, "{segments:?}");
    }
}

proptest! {
    #![proptest_config(sampled(64))]

    #[test]
    fn playlists_only_grow_and_are_read_back(
        segments in prop::collection::vec((1_u32..585_000, 30_u64..10_000_000), 0..40),
        listed in 0_usize..40,
    ) {
        let whole = track("720p", true, &segments);
        let mut part = whole.clone();
        part.segments.truncate(listed);
        let (early, late) = (media_playlist(&part, false), media_playlist(&whole, false));
        prop_assert!(late.starts_with(&early));

        let text = media_playlist(&whole, true);
        let (_, read) = m3u8_rs::parse_media_playlist(text.as_bytes()).unwrap();
        prop_assert!(read.end_list && !read.i_frames_only && read.independent_segments);
        prop_assert_eq!(read.segments.len(), segments.len());
        for (number, (segment, (duration, _))) in (0..).zip(read.segments.iter().zip(&segments)) {
            prop_assert_eq!(names::parse(&segment.uri), Some(names::VodName::Segment(number)));
            let exact = *duration as f32 / 90_000.0;
            prop_assert!((segment.duration - exact).abs() < 1e-4);
            prop_assert!(segment.duration.round() as u64 <= read.target_duration);
        }

        let text = iframe_playlist(&whole, true).unwrap();
        let (_, read) = m3u8_rs::parse_media_playlist(text.as_bytes()).unwrap();
        prop_assert!(read.i_frames_only);
        for (segment, (_, length)) in read.segments.iter().zip(&segments) {
            let range = segment.byte_range.as_ref().unwrap();
            prop_assert_eq!((range.length, range.offset), (length / 3, Some(0)));
        }
    }

    #[test]
    fn variants_say_no_less_than_was_measured(
        video in prop::collection::vec((90_000_u32..585_000, 1_000_u64..10_000_000), 1..20),
        audio in prop::collection::vec((90_000_u32..585_000, 1_000_u64..100_000), 1..20),
    ) {
        let tracks = [track("720p", true, &video), track("audio", false, &audio)];
        let text = multivariant(&tracks, &[]);
        let (_, read) = m3u8_rs::parse_master_playlist(text.as_bytes()).unwrap();
        let variant = &read.variants[0];
        let bits = |segments: &[(u32, u64)]| -> f64 {
            let bytes: u64 = segments.iter().map(|segment| segment.1).sum();
            let ticks: u64 = segments.iter().map(|segment| u64::from(segment.0)).sum();
            bytes as f64 * 8.0 * 90_000.0 / ticks as f64
        };
        let average = bits(&video) + bits(&audio);
        let said = variant.average_bandwidth.unwrap();
        prop_assert!((said as f64 - average).abs() < 3.0);
        prop_assert!(variant.bandwidth >= said);
        prop_assert!(read.variants.iter().any(|variant| variant.is_i_frame));
        prop_assert_eq!(read.alternatives.len(), 1);
    }
}
