//! The checker must be able to fail: playlists by hand, good ones and each with one thing wrong.

use super::*;

/// Two closed segments of 2 s in four parts of 0.5 s, and an open one with two parts; TARGETDURATION 2.
const GOOD: &str = r#"#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.50300,CAN-SKIP-UNTIL=18.00000
#EXT-X-PART-INF:PART-TARGET=0.50100
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-MAP:URI="b/init0.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:00.000Z
#EXT-X-PART:DURATION=0.50000,URI="b/0.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.50000,URI="b/0.1.m4s"
#EXT-X-PART:DURATION=0.50000,URI="b/0.2.m4s"
#EXT-X-PART:DURATION=0.50000,URI="b/0.3.m4s"
#EXTINF:2.00000,
b/0.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:02.000Z
#EXT-X-PART:DURATION=0.50000,URI="b/1.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.50000,URI="b/1.1.m4s"
#EXT-X-PART:DURATION=0.30000,URI="b/1.2.m4s"
#EXTINF:1.30000,
b/1.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="b/init1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:05.000Z
#EXT-X-PART:DURATION=0.50000,URI="b/2.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.50000,URI="b/2.1.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="b/2.2.m4s"
"#;

const HINT: &str = "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b/2.2.m4s\"\n";

fn observe(texts: &[&str]) -> Result<Vec<Update>, String> {
    let mut checker = Checker::new();
    texts
        .iter()
        .map(|text| checker.observe(text, Instant::now()))
        .collect()
}

fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from:?} is not in the playlist");
    text.replacen(from, to, 1)
}

/// The broadcast ended where [`GOOD`] is.
fn ended() -> String {
    changed(GOOD, HINT, "#EXTINF:1.00000,\nb/2.m4s\n#EXT-X-ENDLIST\n")
}

/// A plain segment of 2 s without parts, and the date of the one after it.
fn plain(msn: u64) -> String {
    let second = 2 * msn;
    format!(
        "#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:{second:02}.000Z\n#EXTINF:2.00000,\nb/{msn}.m4s\n"
    )
}

/// Segments `from..to` of 2 s, with parts where they must be; `skipped` of them left out.
fn long(from: u64, to: u64, skipped: u64) -> String {
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n\
         #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=6.00000,CAN-SKIP-UNTIL=12.00000\n\
         #EXT-X-PART-INF:PART-TARGET=2.00000\n#EXT-X-MEDIA-SEQUENCE:{from}\n"
    );
    if skipped > 0 {
        text.push_str(&format!("#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped}\n"));
    } else {
        text.push_str("#EXT-X-MAP:URI=\"b/init0.mp4\"\n");
    }
    for msn in from + skipped..to {
        let segment = plain(msn);
        let part =
            format!("#EXT-X-PART:DURATION=2.00000,URI=\"b/{msn}.0.m4s\",INDEPENDENT=YES\n#EXTINF");
        let is_near_end = msn + 3 >= to;
        text.push_str(&if is_near_end {
            changed(&segment, "#EXTINF", &part)
        } else {
            segment
        });
    }
    text + &format!("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b/{to}.0.m4s\"\n")
}

#[test]
fn a_good_playlist_passes_and_tells_what_is_new() {
    let more = changed(
        GOOD,
        HINT,
        "#EXT-X-PART:DURATION=0.20000,URI=\"b/2.2.m4s\"\n#EXTINF:1.20000,\nb/2.m4s\n\
         #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b/3.0.m4s\"\n",
    );
    let updates = observe(&[GOOD, GOOD, &more]).unwrap();
    let new = |update: &Update| {
        let parts: Vec<_> = update
            .parts
            .iter()
            .map(|part| (part.msn, part.index))
            .collect();
        let segments: Vec<_> = update.segments.iter().map(|segment| segment.msn).collect();
        (parts, segments)
    };
    assert_eq!(updates[0].parts.len(), 9);
    assert_eq!(new(&updates[0]).1, [0, 1]);
    assert_eq!(new(&updates[1]), (vec![], vec![]));
    assert_eq!(new(&updates[2]), (vec![(2, 2)], vec![2]));
    assert_eq!(updates[2].parts[0].range, 1);
    assert_eq!(updates[2].parts[0].map, "b/init1.mp4");
    assert!(!updates[2].is_ended());
    assert!(observe(&[GOOD, &ended(), &ended()]).unwrap()[2].is_ended());
}

#[test]
fn a_playlist_without_parts_passes() {
    let text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n\
         #EXT-X-MAP:URI=\"b/init0.mp4\"\n";
    let one = format!("{text}{}", plain(0));
    let two = format!("{one}{}", plain(1));
    assert_eq!(observe(&[&one, &two]).unwrap()[1].segments.len(), 1);
}

#[test]
fn a_gap_may_lead_and_has_neither_map_nor_date() {
    let gap = "#EXT-X-GAP\n#EXT-X-PART:DURATION=2.00000,URI=\"b/0.0.m4s\",GAP=YES\n#EXTINF:2.00000,\nb/0.m4s\n";
    let led = |text: String| {
        let text = changed(&text, "SEQUENCE:1\n", "SEQUENCE:0\n");
        changed(&text, "#EXT-X-MAP", &format!("{gap}#EXT-X-MAP"))
    };
    let updates = observe(&[&led(long(1, 3, 0)), &led(long(1, 5, 0)), &long(2, 6, 0)]).unwrap();
    let new: Vec<_> = updates[0].parts.iter().map(|part| part.msn).collect();
    assert_eq!(new, [1, 2], "nothing can be fetched of a gap");
    assert_eq!(updates[0].segments.len(), 2);
    assert!(
        observe(&[&led(long(1, 3, 0)), &long(1, 3, 0)]).is_err(),
        "it leaves as segments leave"
    );
    for (from, to) in [
        ("#EXT-X-GAP\n", ""),
        (",GAP=YES", ""),
        ("#EXT-X-GAP", "#EXT-X-GAP\n#EXT-X-GAP"),
    ] {
        let text = changed(&led(long(1, 3, 0)), from, to);
        assert!(observe(&[&text]).is_err(), "{text}");
    }
}

#[test]
fn one_thing_wrong_in_a_playlist_is_found() {
    let damages = [
        // The text.
        ("#EXTM3U\n", ""),
        ("#EXTM3U\n", "\u{feff}#EXTM3U\n"),
        ("#EXT-X-PART-INF", "\n#EXT-X-PART-INF"),
        ("#EXT-X-PART-INF", "#EXT-X-UNKNOWN:1\n#EXT-X-PART-INF"),
        ("b/0.m4s\n", "b/0.m4s\r\n"),
        (HINT, HINT.trim_end()),
        // The head.
        ("#EXT-X-VERSION:9\n", ""),
        ("VERSION:9", "VERSION:5"),
        ("#EXT-X-TARGETDURATION:2\n", ""),
        ("DURATION:2\n", "DURATION:2.0\n"),
        ("DURATION:2\n", "DURATION:1\n"),
        ("#EXT-X-VERSION:9\n", "#EXT-X-VERSION:9\n#EXT-X-VERSION:9\n"),
        ("#EXT-X-MEDIA-SEQUENCE:0\n", ""),
        ("CAN-BLOCK-RELOAD=YES,", ""),
        ("PART-HOLD-BACK=1.50300", "PART-HOLD-BACK=1.50200"),
        ("PART-HOLD-BACK=1.50300,", ""),
        ("CAN-SKIP-UNTIL=18.00000", "CAN-SKIP-UNTIL=11.99999"),
        (",CAN-SKIP-UNTIL=18.00000", ""),
        ("#EXT-X-PART-INF:PART-TARGET=0.50100\n", ""),
        ("PART-TARGET=0.50100", "PART-TARGET=0.49900"),
        ("PART-TARGET=0.50100", "PART-TARGET=0.60000"),
        // Segments.
        ("#EXT-X-MAP:URI=\"b/init0.mp4\"\n", ""),
        ("b/init0.mp4", "c/init0.mp4"),
        ("#EXT-X-DISCONTINUITY\n", ""),
        (
            "#EXT-X-DISCONTINUITY\n",
            "#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY\n",
        ),
        ("#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:02.000Z\n", ""),
        ("T12:00:02.000Z", "T12:00:02.051Z"),
        ("T12:00:02.000Z", "T12:00:01.949Z"),
        ("T12:00:02.000Z", "T12:00:02Z"),
        ("T12:00:05.000Z", "T12:00:03.000Z"),
        ("#EXTINF:2.00000,\n", "#EXTINF:2.00200,\n"),
        ("#EXTINF:2.00000,\n", "#EXTINF:2.00000\n"),
        ("#EXTINF:2.00000,\n", ""),
        ("#EXTINF:2.00000,\nb/0.m4s\n", ""),
        ("b/0.m4s\n", ""),
        ("b/1.m4s\n", "b/2.m4s\n"),
        // Parts.
        ("0.50000,URI=\"b/0.1.m4s\"", "0.42500,URI=\"b/0.1.m4s\""),
        ("0.50000,URI=\"b/0.1.m4s\"", "0.50200,URI=\"b/0.1.m4s\""),
        ("0.50000,URI=\"b/2.0.m4s\"", "0.40000,URI=\"b/2.0.m4s\""),
        ("b/0.1.m4s", "b/0.2.m4s"),
        ("b/0.0.m4s\",INDEPENDENT=YES", "b/0.0.m4s\""),
        ("b/2.0.m4s\",INDEPENDENT=YES", "b/2.0.m4s\""),
        ("INDEPENDENT=YES", "INDEPENDENT=NO"),
        ("#EXT-X-PART:DURATION=0.50000,URI=\"b/1.1.m4s\"\n", ""),
        // The end.
        (HINT, ""),
        ("b/2.2.m4s", "b/2.3.m4s"),
        ("b/2.2.m4s", "b/3.0.m4s"),
        ("TYPE=PART", "TYPE=MAP"),
        (HINT, "#EXT-X-ENDLIST\n"),
    ];
    for (from, to) in damages {
        let text = changed(GOOD, from, to);
        assert!(
            observe(&[&text]).is_err(),
            "{from:?} as {to:?} was not found:\n{text}"
        );
    }
    let hint_after_end = ended() + HINT;
    assert!(observe(&[&hint_after_end]).is_err());
}

#[test]
fn one_thing_wrong_from_reload_to_reload_is_found() {
    let damages = [
        ("TARGETDURATION:2", "TARGETDURATION:3"),
        ("VERSION:9", "VERSION:10"),
        ("PART-TARGET=0.50100", "PART-TARGET=0.50050"),
        ("PART-HOLD-BACK=1.50300", "PART-HOLD-BACK=1.60000"),
        (
            "MEDIA-SEQUENCE:0\n",
            "MEDIA-SEQUENCE:0\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n",
        ),
        ("T12:00:02.000Z", "T12:00:02.001Z"),
        ("T12:00:05.000Z", "T12:00:05.001Z"),
        ("init1.mp4", "init2.mp4"),
        ("0.50000,URI=\"b/0.1.m4s\"", "0.50001,URI=\"b/0.1.m4s\""),
        ("#EXTINF:2.00000,", "#EXTINF:2.00001,"),
        ("b/1.1.m4s\"", "b/1.1.m4s\",INDEPENDENT=YES"),
    ];
    for (from, to) in damages {
        let text = changed(GOOD, from, to);
        assert!(
            observe(&[&text]).is_ok(),
            "{from:?} as {to:?} is good by itself"
        );
        assert!(
            observe(&[GOOD, &text]).is_err(),
            "{from:?} as {to:?} was not found"
        );
    }
    let shorter = changed(
        GOOD,
        "#EXT-X-PART:DURATION=0.50000,URI=\"b/2.1.m4s\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b/2.2.m4s\"",
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b/2.1.m4s\"",
    );
    assert!(observe(&[&shorter, GOOD]).is_ok());
    assert!(observe(&[GOOD, &shorter]).is_err(), "a part that goes away");
    assert!(
        observe(&[&ended(), GOOD]).is_err(),
        "an end that is taken back"
    );
    let other = GOOD.replace("b/", "c/");
    assert!(observe(&[&other]).is_ok());
    assert!(observe(&[GOOD, &other]).is_err(), "another broadcast");
}

#[test]
fn sequence_numbers_move_with_what_leaves() {
    assert!(observe(&[&long(0, 4, 0), &long(1, 5, 0)]).is_ok());
    assert!(observe(&[&long(1, 5, 0), &long(0, 5, 0)]).is_err(), "falls");
    assert!(
        observe(&[&long(0, 4, 0), &long(3, 5, 0)]).is_err(),
        "too little stays"
    );
    assert!(observe(&[&long(0, 4, 0), &long(5, 9, 0)]).is_err(), "a gap");
    let mut checker = Checker::new();
    checker.allow_gaps();
    checker.observe(&long(0, 4, 0), Instant::now()).unwrap();
    checker.observe(&long(5, 9, 0), Instant::now()).unwrap();

    // A discontinuity that leaves is counted; one that stays is not.
    let with = |from: u64, sequence: u64, tag: &str| {
        let text = changed(
            &long(from, from + 4, 0),
            &format!("#EXT-X-MEDIA-SEQUENCE:{from}\n"),
            &format!("#EXT-X-MEDIA-SEQUENCE:{from}\n#EXT-X-DISCONTINUITY-SEQUENCE:{sequence}\n"),
        );
        let date = format!("#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:{tag}.000Z");
        match text.contains(&date) {
            true => changed(&text, &date, &format!("#EXT-X-DISCONTINUITY\n{date}")),
            false => text,
        }
    };
    assert!(observe(&[&with(0, 7, "02"), &with(1, 7, "02"), &with(2, 8, "02")]).is_ok());
    assert!(observe(&[&with(0, 7, "02"), &with(1, 8, "02")]).is_err());
    assert!(observe(&[&with(0, 7, "02"), &with(2, 7, "02")]).is_err());
    assert!(observe(&[&with(0, 7, "02"), &with(2, 6, "02")]).is_err());
}

#[test]
fn deltas_expand_to_the_full_list() {
    let mut checker = Checker::new();
    checker.observe(&long(0, 10, 0), Instant::now()).unwrap();
    let expanded = checker.expand(&long(1, 11, 4)).unwrap();
    let full = MediaPlaylist::parse(&long(1, 11, 0)).unwrap();
    assert_eq!(expanded.segments, full.segments);
    let update = checker.observe(&long(1, 11, 4), Instant::now()).unwrap();
    assert!(update.was_delta);
    assert_eq!(update.segments.len(), 1);
    checker.observe(&long(1, 11, 0), Instant::now()).unwrap();

    assert!(
        observe(&[&long(0, 10, 4)]).is_err(),
        "skips what was never seen"
    );
    assert!(
        observe(&[&long(0, 10, 0), &long(1, 11, 5)]).is_err(),
        "skips beyond the boundary"
    );
    let nothing = changed(
        &long(0, 10, 0),
        "#EXT-X-MAP",
        "#EXT-X-SKIP:SKIPPED-SEGMENTS=0\n#EXT-X-MAP",
    );
    assert!(observe(&[&nothing]).is_err(), "skips nothing");
    let old = changed(&long(1, 11, 4), "VERSION:9", "VERSION:8");
    assert!(
        observe(&[&long(0, 10, 0), &old]).is_err(),
        "needs version 9"
    );
}

#[test]
fn parts_leave_old_segments_only() {
    let with_parts = |list: String| {
        (0..3).fold(list, |text, msn| {
            let part =
                format!("#EXT-X-PART:DURATION=2.00000,URI=\"b/{msn}.0.m4s\",INDEPENDENT=YES");
            changed(
                &text,
                &format!("#EXTINF:2.00000,\nb/{msn}.m4s"),
                &format!("{part}\n#EXTINF:2.00000,\nb/{msn}.m4s"),
            )
        })
    };
    assert!(observe(&[&with_parts(long(0, 6, 0)), &long(0, 6, 0)]).is_ok());
    let bare = changed(
        &long(0, 6, 0),
        "#EXT-X-PART:DURATION=2.00000,URI=\"b/4.0.m4s\",INDEPENDENT=YES\n",
        "",
    );
    assert!(
        observe(&[&bare]).is_err(),
        "a segment near the end without parts"
    );
}
