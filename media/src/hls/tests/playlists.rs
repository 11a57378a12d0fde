//! Playlists as text: exact where the text is the contract, and read by another implementation.

use super::{encoder::Encoder, reader, *};

const KEPT: WindowLimits = WindowLimits {
    list_for: Duration::from_secs(20),
    min_segments: 6,
};

/// Outputs of sessions of so many seconds.
fn broadcast(seconds: &[f64]) -> Vec<Output> {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    for (session, &seconds) in (0_i64..).zip(seconds) {
        let now_ms = NOON_MS + session * 60_000;
        packager.begin_session(&mut out);
        for unit in Encoder::default().units(seconds) {
            packager.push(unit, now_ms, &mut out);
        }
    }
    out
}

fn render(window: &Window) -> String {
    media_playlist(window, MediaOptions::default())
}

fn parse(text: &str) -> m3u8_rs::MediaPlaylist {
    let (_, playlist) = m3u8_rs::parse_media_playlist(text.as_bytes()).unwrap();
    playlist
}

#[test]
fn the_first_parts_as_text() {
    let window = window_of(&broadcast(&[0.5]), 4);
    let expected = "#EXTM3U\n\
        #EXT-X-VERSION:9\n\
        #EXT-X-TARGETDURATION:4\n\
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.60300,CAN-SKIP-UNTIL=24.00000\n\
        #EXT-X-PART-INF:PART-TARGET=0.20100\n\
        #EXT-X-MEDIA-SEQUENCE:0\n\
        #EXT-X-GAP\n\
        #EXT-X-PART:DURATION=0.20100,URI=\"8fJ2/0.0.m4s\",GAP=YES\n\
        #EXTINF:0.20100,\n\
        8fJ2/0.m4s\n\
        #EXT-X-MAP:URI=\"8fJ2/init0.mp4\"\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T11:00:00.000Z\n\
        #EXT-X-PART:DURATION=0.20000,URI=\"8fJ2/1.0.m4s\",INDEPENDENT=YES\n\
        #EXT-X-PART:DURATION=0.20000,URI=\"8fJ2/1.1.m4s\"\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"8fJ2/1.2.m4s\"\n";
    assert_eq!(render(&window), expected);
}

#[test]
fn the_gap_leaves_with_the_first_segment() {
    let mut window = Window::new(header(4));
    let mut media_sequences = Vec::new();
    for output in broadcast(&[30.0]) {
        window.apply(&output);
        window.retire(KEPT);
        let text = render(&window);
        let first = window.segment(FIRST_MSN);
        let has_parts = text.contains("\"8fJ2/1.0.m4s\"");
        for (mark, listed) in [
            ("#EXT-X-GAP\n", first.is_some()),
            ("\n8fJ2/0.m4s\n", first.is_some()),
            ("GAP=YES", has_parts),
            ("\"8fJ2/0.0.m4s\"", has_parts),
        ] {
            assert_eq!(text.matches(mark).count(), usize::from(listed), "{text}");
        }
        media_sequences.push(parse(&text).media_sequence);
    }
    media_sequences.dedup();
    assert_eq!(media_sequences, [0, 2, 3, 4, 5], "both leave at once");
}

#[test]
fn no_removal_leaves_less_than_three_target_durations() {
    let mut window = Window::new(header(4));
    let (mut media_sequence, mut removals) = (parse(&render(&window)).media_sequence, 0);
    for output in broadcast(&[0.5, 7.0, 30.0]) {
        window.apply(&output);
        // A viewer may see the list before and after segments are retired.
        for retires in [false, true] {
            if retires {
                window.retire(KEPT);
            }
            let playlist = parse(&render(&window));
            let whole_s: f32 = playlist.segments.iter().map(|listed| listed.duration).sum();
            let now = playlist.media_sequence;
            assert!(now >= media_sequence, "{now} after {media_sequence}");
            assert!(now == media_sequence || whole_s >= 12.0, "{whole_s} s stay");
            removals += u32::from(now > media_sequence);
            media_sequence = now;
        }
    }
    assert!(removals > 3, "{removals}");
}

#[test]
fn a_delta_update_keeps_the_gap() {
    for seconds in [1.9, 13.9] {
        let window = window_of(&broadcast(&[seconds]), 2);
        let delta = media_playlist(&window, MediaOptions { skip: true });
        assert!(delta.contains("#EXT-X-GAP\n"));
        assert_eq!(delta, render(&window));
    }
}

#[test]
fn an_independent_reader_takes_the_gap_for_a_segment() {
    let playlist = parse(&render(&window_of(&broadcast(&[0.5]), 4)));
    assert_eq!(playlist.media_sequence, 0);
    let [gap] = &playlist.segments[..] else {
        panic!("the open segment is none yet: {:?}", playlist.segments)
    };
    assert_eq!(gap.uri, "8fJ2/0.m4s");
    assert!((gap.duration - 0.201).abs() < 1e-4);
    assert!(gap.map.is_none() && gap.program_date_time.is_none() && !gap.discontinuity);
    assert!(gap.unknown_tags.iter().any(|tag| tag.tag == "X-GAP"));
}

#[test]
fn no_gap_leads_at_standard_latency() {
    let mut window = Window::new(Header {
        low_latency: false,
        ..header(4)
    });
    broadcast(&[0.5])
        .iter()
        .for_each(|output| window.apply(output));
    assert!(window.open.as_ref().is_some());
    let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:1\n";
    assert_eq!(render(&window), expected);
}

#[test]
fn the_gap_stays_after_the_end() {
    let open = window_of(&broadcast(&[0.5]), 4);
    let mut lost = open.clone();
    lost.truncate_to(|_| None);
    assert_eq!(lost.segments().count(), 0);
    assert!(render(&lost).contains("#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-GAP\n"));
    for (mut window, media_sequence, listed) in [(open, 0, 2), (lost, 1, 1)] {
        window.end(NOON_MS + 90_000);
        let text = render(&window);
        let led = format!("#EXT-X-MEDIA-SEQUENCE:{media_sequence}\n#EXT-X-GAP\n");
        assert!(
            text.contains(&led) && text.ends_with("#EXT-X-ENDLIST\n"),
            "{text}"
        );
        let playlist = parse(&text);
        assert_eq!(playlist.media_sequence, media_sequence);
        assert_eq!(playlist.segments.len(), listed);
    }
}

#[test]
fn before_the_first_part_nothing_is_listed() {
    let window = Window::new(header(4));
    let expected = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n";
    assert_eq!(render(&window), expected);
    assert_eq!(
        multivariant_playlist(&window, ""),
        "#EXTM3U\n#EXT-X-VERSION:9\n"
    );
    assert_eq!(window.next(), (1, 0));
    for msn in [0, 1] {
        assert!(!window.has(msn, None) && !window.has(msn, Some(0)), "{msn}");
    }
}

#[test]
fn parts_are_listed_for_three_target_durations() {
    let window = window_of(&broadcast(&[21.0]), 4);
    let text = render(&window);
    let with_parts: Vec<u64> = (0..12)
        .filter(|msn| text.contains(&format!("URI=\"8fJ2/{msn}.0.m4s\"")))
        .collect();
    // 20.8 s are listed, so parts reach back to 8.8 s.
    assert_eq!(with_parts, [5, 6, 7, 8, 9, 10, 11]);
    assert!(text.contains("#EXT-X-GAP\n") && !text.contains("GAP=YES"));
    assert_eq!(parse(&text).segments.len(), 11, "ten and the gap");
}

#[test]
fn a_delta_update_skips_what_lies_before_the_boundary() {
    let skipping = |seconds: f64, target_duration_s: u32| {
        let window = window_of(&broadcast(&[seconds]), target_duration_s);
        media_playlist(&window, MediaOptions { skip: true })
    };
    assert!(!skipping(23.0, 4).contains("EXT-X-SKIP"), "24 s must stay");
    let text = skipping(21.0, 2);
    // 20.8 s are listed and 12 s stay: four segments and the gap end before 8.8 s.
    assert!(
        text.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=5\n#EXT-X-PROGRAM-DATE-TIME"),
        "{text}"
    );
    assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:0\n") && !text.contains("GAP"));
    assert!(!text.contains("8fJ2/4.m4s") && text.contains("8fJ2/5.m4s"));
    assert!(
        !text.contains("EXT-X-MAP"),
        "the init section is known from before"
    );
}

#[test]
fn a_delta_update_and_what_it_skips_are_the_whole_list() {
    let mut window = Window::new(header(2));
    let mut skips = Vec::new();
    for output in broadcast(&[40.0]) {
        window.apply(&output);
        window.retire(KEPT);
        let full = parse(&render(&window));
        let text = media_playlist(&window, MediaOptions { skip: true });
        let skipped = text
            .split_once("SKIPPED-SEGMENTS=")
            .and_then(|(_, rest)| rest.lines().next())
            .map_or(0, |count| count.parse().unwrap());
        let delta = parse(&text);
        assert_eq!(delta.media_sequence, full.media_sequence);
        let uris = |list: &m3u8_rs::MediaPlaylist| -> Vec<String> {
            list.segments
                .iter()
                .map(|listed| listed.uri.clone())
                .collect()
        };
        assert_eq!(uris(&delta), uris(&full)[skipped..]);
        skips.push((full.media_sequence, skipped));
    }
    assert!(skips.contains(&(0, 2)), "the gap and the first: {skips:?}");
    assert!(skips.iter().all(|&skip| skip != (0, 1)), "never it alone");
    assert!(
        skips
            .iter()
            .any(|&(first, skipped)| first > 0 && skipped > 0)
    );
}

/// With the window that a broadcast has by default, whatever its target duration, a delta update of a full list leaves
/// segments out.
#[test]
fn a_full_window_is_longer_than_the_skip_boundary() {
    for target_duration_s in 2..=6 {
        let header = header(target_duration_s);
        let keep = WindowLimits {
            list_for: header.list_for(KEPT.list_for),
            ..KEPT
        };
        let mut window = Window::new(header);
        let mut is_full = false;
        for output in broadcast(&[70.0]) {
            window.apply(&output);
            is_full |= !window.retire(keep).is_empty();
            if !is_full {
                continue;
            }
            let delta = media_playlist(&window, MediaOptions { skip: true });
            let boundary = format!("CAN-SKIP-UNTIL={}.00000", target_duration_s * 6);
            assert!(delta.contains(&boundary), "{delta}");
            assert!(delta.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS="), "{delta}");
        }
        assert!(is_full, "the window of {target_duration_s} s never filled");
    }
    let standard = Header {
        low_latency: false,
        ..header(4)
    };
    assert_eq!(standard.list_for(KEPT.list_for), KEPT.list_for);
}

#[test]
fn an_independent_reader_agrees() {
    let out = broadcast(&[9.0, 5.0]);
    let window = window_of(&out, 4);
    let playlist = parse(&render(&window));
    let segments = reader::segments(&out);
    assert_eq!(playlist.target_duration, 4);
    let (gap, whole) = playlist.segments.split_first().unwrap();
    assert_eq!(gap.uri, "8fJ2/0.m4s");
    assert_eq!(
        whole.len(),
        segments.iter().filter(|segment| segment.ended).count()
    );
    for (listed, segment) in whole.iter().zip(&segments) {
        assert!((f64::from(listed.duration) - segment.duration_s()).abs() < 1e-4);
        assert_eq!(listed.discontinuity, segment.discontinuity());
        let start = segment.parts[0].part.segment.unwrap();
        let date_time = listed.program_date_time.unwrap();
        assert_eq!(date_time.timestamp_millis(), start.program_date_time_ms);
        assert_eq!(
            listed.uri,
            format!("8fJ2/{}.m4s", segment.parts[0].part.msn)
        );
    }
}

#[test]
fn segments_leave_and_their_discontinuities_are_counted() {
    let mut window = Window::new(header(4));
    let mut left = 0;
    for output in broadcast(&[5.0, 5.0, 5.0, 30.0]) {
        window.apply(&output);
        left += window.retire(KEPT).len() as u64;
    }
    let playlist = parse(&render(&window));
    assert_eq!(playlist.media_sequence, FIRST_MSN + left);
    assert_eq!(playlist.discontinuity_sequence, 3);
    let listed: f32 = playlist
        .segments
        .iter()
        .map(|segment| segment.duration)
        .sum();
    assert!((20.0..22.1).contains(&listed), "{listed}");
    assert_eq!(window.inits().len(), 1);
}

#[test]
fn the_end_has_no_hint_and_nothing_is_waited_for() {
    let mut window = window_of(&broadcast(&[5.0]), 4);
    assert!(!window.has(9, Some(3)));
    window.end(NOON_MS + 90_000);
    let text = render(&window);
    assert!(text.ends_with("8fJ2/3.m4s\n#EXT-X-ENDLIST\n"), "{text}");
    assert!(!text.contains("PRELOAD-HINT"));
    assert!(window.has(9, Some(3)) && window.is_ended());
}

#[test]
fn standard_latency_is_a_plain_playlist() {
    let mut window = Window::new(Header {
        low_latency: false,
        ..header(4)
    });
    broadcast(&[5.0])
        .iter()
        .for_each(|output| window.apply(output));
    let text = render(&window);
    assert!(text.starts_with("#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n"));
    for tag in ["EXT-X-PART", "PRELOAD-HINT", "SERVER-CONTROL", "3.0.m4s"] {
        assert!(!text.contains(tag), "{tag}");
    }
    assert!(text.ends_with("#EXTINF:2.00000,\n8fJ2/2.m4s\n"));
}

#[test]
fn what_a_blocking_reload_waits_for() {
    let window = window_of(&broadcast(&[4.5]), 4);
    assert_eq!(window.next(), (3, 2));
    // msn, part, whether the playlist already has it.
    let cases = [
        (0, None, true),
        (0, Some(9), true),
        (1, None, true),
        (2, None, true),
        (3, None, false),
        (1, Some(9), true),
        (2, Some(9), true),
        (2, Some(10), true),
        (3, Some(1), true),
        (3, Some(2), false),
        (4, Some(0), false),
    ];
    for (msn, part, expected) in cases {
        assert_eq!(window.has(msn, part), expected, "{msn} {part:?}");
    }
}

#[test]
fn a_reload_does_not_wait_for_the_gap() {
    let low_latency = window_of(&broadcast(&[0.5]), 4);
    let mut standard = Window::new(Header {
        low_latency: false,
        ..header(4)
    });
    broadcast(&[0.5])
        .iter()
        .for_each(|output| standard.apply(output));
    for (window, has_gap) in [(low_latency, true), (standard, false)] {
        let cases = [
            (0, None, has_gap),
            (0, Some(0), true),
            (0, Some(1), true),
            (1, None, false),
            (1, Some(1), true),
            (1, Some(2), false),
            (2, Some(0), false),
        ];
        for (msn, part, expected) in cases {
            assert_eq!(window.has(msn, part), expected, "{msn} {part:?} {has_gap}");
        }
    }
}

#[test]
fn the_multivariant_playlist() {
    let window = window_of(&broadcast(&[5.0]), 4);
    let bandwidth = window.bandwidth().unwrap();
    assert!(bandwidth.peak_bps >= bandwidth.average_bps && bandwidth.average_bps > 1_000);
    let expected = format!(
        "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},\
         CODECS=\"avc1.640028,mp4a.40.2\",RESOLUTION=1920x1080,FRAME-RATE=30.000\nmedia.m3u8\n",
        bandwidth.peak_bps, bandwidth.average_bps
    );
    assert_eq!(multivariant_playlist(&window, ""), expected);
    let asked = expected.replace("media.m3u8", "media.m3u8?play=1");
    assert_eq!(multivariant_playlist(&window, "?play=1"), asked);
}

/// A broadcast of this many parts, and never a whole segment.
fn begun(low_latency: bool, parts: usize) -> Window {
    let mut window = Window::new(Header {
        low_latency,
        ..header(4)
    });
    let is_part = |output: &&Output| matches!(output, Output::Part(_));
    let outputs = broadcast(&[1.9]);
    let last = outputs.iter().filter(is_part).nth(parts);
    outputs
        .iter()
        .take_while(|output| Some(*output) != last)
        .for_each(|output| window.apply(output));
    window
}

#[test]
fn a_player_can_start_once_there_is_what_it_holds_back() {
    let cases = [
        ("nothing yet", begun(true, 0), false),
        ("too few parts", begun(true, 2), false),
        ("enough parts", begun(true, 3), true),
        ("parts that are not listed", begun(false, 3), false),
    ];
    for (name, mut window, expected) in cases {
        assert_eq!(window.is_playable(), expected, "{name}");
        let has_media = window.segments().next().is_some();
        let mut ended = window.clone();
        ended.end(NOON_MS);
        assert_eq!(ended.is_playable(), has_media, "{name}, ended");
        window.close_open();
        assert_eq!(window.is_playable(), has_media, "{name}, a whole segment");
    }
}
