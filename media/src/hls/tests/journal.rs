//! The journal returns what was written, up to the first corrupted line.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{
    super::{journal::*, names::MediaName},
    encoder::Encoder,
    *,
};

/// Effect of a power loss on the bytes of a file.
type Corrupt = fn(&mut Vec<u8>);

/// The files of a broadcast.
type Files = HashMap<MediaName, Vec<u8>>;

/// A broadcast of some sessions, its journal, and its window.
fn recorded(seconds: &[f64], retire: bool) -> (Vec<u8>, Window) {
    let (journal, window, _) = recorded_with_files(seconds, retire);
    (journal, window)
}

fn recorded_with_files(seconds: &[f64], retire: bool) -> (Vec<u8>, Window, Files) {
    let mut files = Files::new();
    let mut packager = Packager::new(settings(4), None);
    let mut window = Window::new(header(4));
    let mut journal = Vec::new();
    encode(&Record::Header(header(4)), &mut journal);
    for (session, &seconds) in (0_i64..).zip(seconds) {
        let now_ms = NOON_MS + session * 60_000;
        let mut out = Vec::new();
        packager.begin_session(&mut out);
        encode(&Record::SessionBegin { at_ms: now_ms }, &mut journal);
        for unit in (Encoder {
            name: session as u8,
            ..Encoder::default()
        })
        .units(seconds)
        {
            packager.push(unit, now_ms, &mut out);
        }
        for output in &out {
            window.apply(output);
            encode(&Record::of(output, now_ms), &mut journal);
            let (name, bytes) = match output {
                Output::Init(init) => (MediaName::Init(init.number), &init.data),
                Output::Part(part) => (MediaName::Segment(part.msn), &part.data),
                Output::SegmentEnd { .. } => continue,
            };
            files.entry(name).or_default().extend_from_slice(bytes);
        }
    }
    if retire {
        window.retire(WindowLimits {
            list_for: Duration::from_secs(8),
            min_segments: 3,
        });
    }
    (journal, window, files)
}

/// The end, or the time of the newest sample, or of the beginning.
fn last_ms(window: &Window) -> i64 {
    let newest = window.segments().next_back();
    let newest_ms = newest
        .map(|it| it.program_date_time_ms + i64::from(it.duration_90k) / 90)
        .unwrap_or(window.header().started_ms);
    window.ended_ms().unwrap_or(newest_ms)
}

proptest! {
    #![proptest_config(sampled(40))]

    #[test]
    fn a_rewritten_journal_is_the_window(
        seconds in prop::collection::vec(0.0..12.0_f64, 0..4),
        retire: bool,
        end: bool,
    ) {
        let (_, mut window) = recorded(&seconds, retire);
        if end {
            window.end(NOON_MS + 90_000);
        }
        let recovered = replay(&compact(&window)).unwrap();
        prop_assert_eq!(&recovered.window, &window);
        prop_assert_eq!(recovered.ended, end);
        prop_assert_eq!(recovered.last_ms, last_ms(&window));
        prop_assert_eq!(compact(&recovered.window), compact(&window));
    }

    #[test]
    fn a_torn_or_damaged_line_ends_the_journal(cut in 0.0..1.0_f64, flip in 1_u8..) {
        let (journal, _) = recorded(&[3.0], false);
        let cut = (journal.len() as f64 * cut) as usize;
        let torn = &journal[..cut];
        let mut damaged = journal.clone();
        damaged[cut] ^= flip;
        let last_line_end = torn.iter().rposition(|&byte| byte == b'\n');
        let whole = last_line_end.map_or(0, |end| end + 1);
        for bytes in [torn, &damaged[..]] {
            prop_assert_eq!(replay(bytes).ok(), replay(&journal[..whole]).ok());
        }
    }
}

#[test]
fn the_running_journal_gives_the_window_too() {
    let (journal, window) = recorded(&[5.0, 3.0], false);
    let recovered = replay(&journal).unwrap();
    assert_eq!(recovered.window, window);
    assert_eq!(recovered.last_ms, NOON_MS + 60_000);
    assert!(!recovered.ended);
}

/// An ended broadcast that is served again keeps the time of its end, however often the service restarts.
#[test]
fn the_end_keeps_its_time_over_rewritten_journals() {
    let (mut journal, _) = recorded(&[5.0], false);
    let ended_ms = NOON_MS + 5_000;
    encode(&Record::Ended { at_ms: ended_ms }, &mut journal);
    for restart in 0..3 {
        let recovered = replay(&journal).unwrap();
        assert!(recovered.ended, "{restart}");
        assert_eq!(recovered.last_ms, ended_ms, "{restart}");
        journal = compact(&recovered.window);
    }
}

#[test]
fn a_journal_without_a_whole_header_is_invalid() {
    let (journal, _) = recorded(&[], false);
    for bytes in [
        &b""[..],
        b"\n",
        b"00000000 {}\n",
        &journal[..20],
        &journal[9..],
    ] {
        assert!(replay(bytes).is_err());
    }
}

#[test]
fn parts_that_no_file_holds_are_dropped_and_their_numbers_are_not_used_again() {
    let (journal, window) = recorded(&[7.0], false);
    let whole = |msn: u64| window.segment(msn).map(|segment| segment.len);
    let next_msn = window.continuation().next_msn;

    let mut intact = replay(&journal).unwrap();
    assert!(intact.truncate_to(whole).is_empty());
    assert_eq!(intact.window.segments().count(), 4);

    let mut torn = replay(&journal).unwrap();
    let left = torn.truncate_to(|msn| whole(msn).map(|len| if msn == 2 { len / 2 } else { len }));
    assert_eq!(
        left.iter().map(|segment| segment.msn).collect::<Vec<_>>(),
        [3, 4]
    );
    let kept = torn.window.segment(2).unwrap();
    assert!(kept.closed && kept.parts.len() < 10 && kept.len <= whole(2).unwrap() / 2);
    assert_eq!(torn.window.continuation().next_msn, next_msn);

    let mut missing = replay(&journal).unwrap();
    let left = missing.truncate_to(|msn| whole(msn).filter(|_| msn != 2));
    assert_eq!(left.len(), 3);
    assert_eq!(missing.window.segments().count(), 1);
}

#[test]
fn after_a_power_loss_the_list_begins_again_behind_the_gap() {
    let (journal, _, files) = recorded_with_files(&[7.0], false);
    let mut recovered = replay(&journal).unwrap();
    let first_lost =
        recovered.after_power_loss(16, "another boot", |name| files.get(&name).cloned());
    assert_eq!(first_lost, 4, "the open segment");
    let continuation = recovered.window.continuation();
    assert_eq!((continuation.next_msn, continuation.next_init), (21, 17));
    assert_eq!(recovered.window.segments().count(), 3, "still served");
    assert!(
        !recovered.window.has(5, None),
        "a reload waits for what comes"
    );

    let mut packager = Packager::new(settings(4), Some(continuation));
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    for unit in Encoder::default().units(3.0) {
        packager.push(unit, NOON_MS, &mut out);
    }
    let mut window = recovered.window;
    out.iter().for_each(|output| window.apply(output));
    let listed: Vec<u64> = window.segments().map(|segment| segment.msn).collect();
    assert_eq!(listed, [21, 22]);
    assert!(window.has(5, None) && window.has(5, Some(0)));
    let keep = WindowLimits {
        list_for: Duration::from_secs(20),
        min_segments: 6,
    };
    assert_eq!(window.retire(keep).len(), 3);
}

/// A restart as the service makes it: numbers are skipped only when the machine booted since.
fn restart(journal: &[u8], files: &Files, boot_id: &str) -> Vec<u8> {
    let mut recovered = replay(journal).unwrap();
    if recovered.window.header().boot_id != boot_id {
        recovered.after_power_loss(16, boot_id, |name| files.get(&name).cloned());
    }
    compact(&recovered.window)
}

#[test]
fn a_power_loss_counts_once() {
    let (mut journal, _, files) = recorded_with_files(&[7.0], false);
    for (boot_id, next_msn) in [("second", 21), ("second", 21), ("third", 37), ("third", 37)] {
        journal = restart(&journal, &files, boot_id);
        let window = replay(&journal).unwrap().window;
        assert_eq!(window.continuation().next_msn, next_msn, "{boot_id}");
        assert_eq!(window.header().boot_id, boot_id);
    }
}

#[test]
fn after_a_power_loss_a_gap_leads_the_segment_that_begins_the_list() {
    let (journal, _, files) = recorded_with_files(&[7.0], false);
    let mut recovered = replay(&journal).unwrap();
    recovered.after_power_loss(16, "another boot", |name| files.get(&name).cloned());
    let mut window = recovered.window;
    let render = |window: &Window| media_playlist(window, MediaOptions::default());
    assert!(
        render(&window).contains("#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-GAP\n"),
        "the first segment is listed still"
    );

    let mut packager = Packager::new(settings(4), Some(window.continuation()));
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    let mut units = Encoder::default().units(30.0).into_iter();
    while !matches!(out.last(), Some(Output::Part(_))) {
        packager.push(units.next().unwrap(), NOON_MS, &mut out);
    }
    out.drain(..).for_each(|output| window.apply(&output));
    let led = "#EXT-X-MEDIA-SEQUENCE:20\n\
        #EXT-X-GAP\n\
        #EXT-X-PART:DURATION=0.20100,URI=\"8fJ2/20.0.m4s\",GAP=YES\n\
        #EXTINF:0.20100,\n\
        8fJ2/20.m4s\n\
        #EXT-X-DISCONTINUITY\n\
        #EXT-X-MAP:URI=\"8fJ2/init17.mp4\"\n";
    let text = render(&window);
    assert!(text.contains(led), "{text}");

    assert!(window.has(20, None) && !window.has(21, None));
    assert_eq!(replay(&compact(&window)).unwrap().window.gap(), Some(20));

    units.for_each(|unit| packager.push(unit, NOON_MS, &mut out));
    for output in out {
        window.apply(&output);
        window.retire(WindowLimits {
            list_for: Duration::from_secs(20),
            min_segments: 6,
        });
        let first = window.segments().next().unwrap().msn;
        let (media_sequence, is_led) = if first == 21 {
            (20, true)
        } else {
            (first, false)
        };
        let text = render(&window);
        assert!(text.contains(&format!("#EXT-X-MEDIA-SEQUENCE:{media_sequence}\n")));
        assert_eq!(text.contains("#EXT-X-GAP\n"), is_led, "{text}");
    }
    assert!(window.segment(21).is_none(), "it left at last");
}

/// Returns what is left of a broadcast after a power loss: the numbers that are listed, and the first that is lost.
fn after_power_loss(journal: &[u8], files: &Files) -> (Vec<u64>, u64) {
    let mut recovered = replay(journal).unwrap();
    let first_lost = recovered.after_power_loss(16, "another", |name| files.get(&name).cloned());
    let listed = recovered.window.segments().map(|segment| segment.msn);
    (listed.collect(), first_lost)
}

#[test]
fn after_a_power_loss_only_whole_segments_with_the_journalled_bytes_are_listed() {
    let (journal, window, files) = recorded_with_files(&[3.0, 7.0], false);
    let numbers: Vec<u64> = window.segments().map(|segment| segment.msn).collect();
    let (&open, closed) = numbers.split_last().unwrap();
    assert!(closed.len() >= 4 && !window.segment(open).unwrap().closed);
    assert_eq!(after_power_loss(&journal, &files), (closed.to_vec(), open));

    let second = MediaName::Segment(closed[1]);
    let len = files[&second].len();
    let damages: [(&str, Corrupt); 4] = [
        ("short", |bytes| bytes.truncate(bytes.len() - 1)),
        ("empty", Vec::clear),
        ("zeros at its end", |bytes| {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        }),
        ("one bit", |bytes| bytes[100] ^= 1),
    ];
    for (damage, make) in damages {
        let mut files = files.clone();
        make(files.get_mut(&second).unwrap());
        let expected = (closed[..1].to_vec(), closed[1]);
        assert_eq!(after_power_loss(&journal, &files), expected, "{damage}");
    }

    // Bytes that no line names were not lost.
    let mut longer = files.clone();
    longer.get_mut(&second).unwrap().extend_from_slice(&[0; 7]);
    assert!(longer[&second].len() > len);
    assert_eq!(after_power_loss(&journal, &longer), (closed.to_vec(), open));

    // Without its init section a segment cannot be played, nor anything behind it.
    let (journal, window, mut files) = recorded_with_files(&[3.0, 7.0, 3.0], false);
    let listed: Vec<&Segment> = window.segments().collect();
    let init = listed[listed.len() - 2].init;
    let playable = listed.iter().take_while(|segment| segment.init != init);
    let kept: Vec<u64> = playable.map(|segment| segment.msn).collect();
    files.insert(MediaName::Init(init), vec![0; 900]);
    assert_eq!(
        after_power_loss(&journal, &files),
        (kept.clone(), listed[kept.len()].msn)
    );
}

/// A segment whose end is not in the journal may have been longer under its address.
#[test]
fn after_a_power_loss_a_torn_journal_lists_no_segment_that_may_have_been_longer() {
    let (journal, window, files) = recorded_with_files(&[7.0], false);
    for cut in (0..journal.len()).step_by(97) {
        let Ok(mut recovered) = replay(&journal[..cut]) else {
            continue;
        };
        recovered.after_power_loss(16, "another", |name| files.get(&name).cloned());
        for segment in recovered.window.segments() {
            let before = window.segment(segment.msn).unwrap();
            assert_eq!(segment.len, before.len, "{} at {cut}", segment.msn);
        }
    }
}

/// An update of the service comes with a restart, so journals of the version before are read.
#[test]
fn a_journal_without_checksums_is_read() {
    let (journal, window, files) = recorded_with_files(&[7.0], false);
    let mut older = Vec::new();
    for line in String::from_utf8(journal).unwrap().lines() {
        let mut value: serde_json::Value = serde_json::from_str(&line[9..]).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.remove("c");
        fields.remove("crc32");
        encode(&serde_json::from_value(value).unwrap(), &mut older);
    }
    let kept = window.segments().count() - 1;
    assert_eq!(after_power_loss(&older, &files).0.len(), kept);
}
