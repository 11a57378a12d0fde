use super::*;

fn clip(width: u32, height: u32, rate: (u32, u32)) -> MediaFacts {
    MediaFacts {
        duration_ms: Some(60_000),
        bitrate: Some(30_000_000),
        video: vec![VideoTrack {
            codec: "h264".into(),
            width,
            height,
            pixel_aspect: (1, 1),
            frame_rate: rate,
            ..VideoTrack::default()
        }],
        audio: vec![AudioTrack {
            codec: "aac".into(),
            profile: Some("lc".into()),
            channels: 2,
            sample_rate: 48_000,
            ..AudioTrack::default()
        }],
        ..MediaFacts::default()
    }
}

fn sizes(facts: &MediaFacts, profile: &Profile) -> Vec<(u32, u32)> {
    let plan = plan(facts, profile, 6).unwrap();
    plan.ladder
        .video
        .iter()
        .map(|rung| (rung.width, rung.height))
        .collect()
}

fn custom(heights: &[u32]) -> Profile {
    let rung = |&height| Rung {
        height,
        bitrate: None,
    };
    Profile::Custom(heights.iter().map(rung).collect())
}

#[test]
fn renditions_never_exceed_the_source() {
    type Case<'a> = (u32, u32, Profile, &'a [(u32, u32)]);
    let cases: &[Case<'_>] = &[
        (1, 1, Profile::Hd, &[(16, 16)]),
        (4_000, 10, Profile::Basic, &[(4_000, 16)]),
        (320, 180, Profile::Standard, &[(320, 180)]),
        (321, 181, Profile::Basic, &[(320, 180)]),
        (359, 640, Profile::Basic, &[(358, 640)]),
        (640, 360, Profile::Hd, &[(640, 360)]),
        (720, 576, Profile::Basic, &[(450, 360), (600, 480)]),
        (
            1_920,
            1_080,
            Profile::Standard,
            &[(640, 360), (854, 480), (1_280, 720)],
        ),
        (
            1_080,
            1_920,
            Profile::Hd,
            &[(360, 640), (480, 854), (720, 1_280), (1_080, 1_920)],
        ),
        (
            1_920,
            800,
            Profile::Hd,
            &[(864, 360), (1_152, 480), (1_728, 720)],
        ),
        (
            2_560,
            1_440,
            Profile::SourceMax,
            &[
                (640, 360),
                (854, 480),
                (1_280, 720),
                (1_920, 1_080),
                (2_560, 1_440),
            ],
        ),
        (
            1_024,
            768,
            Profile::SourceMax,
            &[(480, 360), (640, 480), (1_024, 768)],
        ),
        (300, 200, Profile::SourceMax, &[(300, 200)]),
        (
            1_920,
            1_080,
            custom(&[1_080, 240, 240, 241, 4_320]),
            &[(426, 240), (1_920, 1_080)],
        ),
        (1_920, 1_080, custom(&[2_160, 1_440]), &[(1_920, 1_080)]),
    ];
    for (width, height, profile, expected) in cases {
        let found = sizes(&clip(*width, *height, (30, 1)), profile);
        assert_eq!(found, *expected, "{width}×{height} {}", profile.name());
    }
}

#[test]
fn sizes_are_of_the_upright_frame_in_square_pixels() {
    let mut turned = clip(1_920, 1_080, (30, 1));
    turned.video[0].rotation = 90;
    assert_eq!(sizes(&turned, &custom(&[360])), [(360, 640)]);

    let mut anamorphic = clip(720, 576, (25, 1));
    anamorphic.video[0].pixel_aspect = (64, 45);
    assert_eq!(sizes(&anamorphic, &custom(&[576])), [(1_024, 576)]);
}

#[test]
fn bits_follow_pixels_and_rate() {
    let cases = [
        (1_920, 1_080, (30, 1), 4_700_000..=5_000_000),
        (1_280, 720, (30, 1), 2_800_000..=2_800_000),
        (854, 480, (30_000, 1_001), 1_400_000..=1_400_000),
        (640, 360, (30, 1), 800_000..=800_000),
        (360, 640, (30, 1), 800_000..=800_000),
        (1_280, 720, (60, 1), 4_000_000..=4_600_000),
        (1_280, 720, (24, 1), 2_300_000..=2_700_000),
        (16, 16, (30, 1), 50_000..=50_000),
        (7_680, 4_320, (30, 1), 25_000_000..=60_000_000),
    ];
    for (width, height, rate, expected) in cases {
        let found = bitrate(width, height, rate);
        assert!(
            expected.contains(&found),
            "{width}×{height} {rate:?}: {found}"
        );
    }
    let plan = plan(&clip(1_920, 1_080, (30, 1)), &Profile::Standard, 6).unwrap();
    for rung in &plan.ladder.video {
        assert_eq!(rung.max_bitrate, rung.bitrate / 2 * 3);
    }
}

#[test]
fn names_are_unique_and_audio_is_last() {
    let plan = plan(&clip(1_920, 1_080, (30, 1)), &Profile::Standard, 99).unwrap();
    let names: Vec<_> = plan
        .renditions
        .iter()
        .map(|rendition| rendition.name.as_str())
        .collect();
    assert_eq!(names, ["360p", "480p", "720p", "audio"]);
    assert!(names.iter().all(|name| names::is_rendition(name)));
    assert_eq!(plan.ladder.segment_duration_s, 12);
}

#[test]
fn what_is_not_there_is_not_made() {
    let mut silent = clip(640, 360, (30, 1));
    silent.audio.clear();
    assert_eq!(
        plan(&silent, &Profile::Basic, 6).unwrap().ladder.audio,
        None
    );

    let mut heard = clip(640, 360, (30, 1));
    heard.video[0].is_cover = true;
    let heard = plan(&heard, &Profile::Basic, 6).unwrap();
    assert!(heard.ladder.video.is_empty() && heard.ladder.audio.is_some());

    let nothing = plan(&MediaFacts::default(), &Profile::Basic, 6).unwrap_err();
    assert_eq!(nothing.code, FailureCode::UnsupportedType);
}

#[test]
fn a_source_that_fits_is_copied() {
    let fitting = || {
        let mut facts = clip(640, 360, (30, 1));
        facts.bitrate = Some(900_000);
        facts
    };
    type Change = fn(&mut MediaFacts);
    let cases: &[(&str, Change, bool)] = &[
        ("as it is", |_| {}, true),
        (
            "bits of the track",
            |facts| facts.video[0].bitrate = Some(1_200_000),
            true,
        ),
        (
            "too many bits",
            |facts| facts.video[0].bitrate = Some(1_200_001),
            false,
        ),
        ("unknown bits", |facts| facts.bitrate = None, false),
        ("HEVC", |facts| facts.video[0].codec = "hevc".into(), false),
        (
            "10 bits",
            |facts| facts.video[0].bits_per_sample = Some(10),
            false,
        ),
        (
            "4:4:4",
            |facts| facts.video[0].chroma = Some("4:4:4".into()),
            false,
        ),
        (
            "interlaced",
            |facts| facts.video[0].interlaced = true,
            false,
        ),
        ("turned", |facts| facts.video[0].rotation = 180, false),
        (
            "anamorphic",
            |facts| facts.video[0].pixel_aspect = (4, 3),
            false,
        ),
        ("odd", |facts| facts.video[0].width = 641, false),
        ("fast", |facts| facts.video[0].frame_rate = (120, 1), false),
        ("variable", |facts| facts.video[0].frame_rate = (0, 1), true),
    ];
    for (what, change, expected) in cases {
        let mut facts = fitting();
        change(&mut facts);
        let plan = plan(&facts, &Profile::Standard, 6).unwrap();
        assert_eq!(plan.ladder.video[0].copy, *expected, "{what}");
    }
    let several = plan(&clip(1_280, 720, (30, 1)), &Profile::Standard, 6).unwrap();
    assert!(several.ladder.video.iter().all(|rung| !rung.copy));
}

#[test]
fn audio_is_copied_when_every_player_takes_it() {
    type Change = fn(&mut AudioTrack);
    let cases: &[(&str, Change, bool)] = &[
        ("as it is", |_| {}, true),
        ("44.1 kHz", |track| track.sample_rate = 44_100, true),
        ("96 kHz", |track| track.sample_rate = 96_000, false),
        ("5.1", |track| track.channels = 6, false),
        (
            "HE-AAC",
            |track| track.profile = Some("he-aac-v1".into()),
            false,
        ),
        ("unknown profile", |track| track.profile = None, false),
        ("MP3", |track| track.codec = "mp3".into(), false),
        ("rich", |track| track.bitrate = Some(320_000), false),
    ];
    for (what, change, expected) in cases {
        let mut facts = clip(640, 360, (30, 1));
        change(&mut facts.audio[0]);
        let plan = plan(&facts, &Profile::Standard, 6).unwrap();
        assert_eq!(plan.ladder.audio.unwrap().copy, *expected, "{what}");
    }
}

#[test]
fn rates_are_made_usual() {
    let cases = [
        ((0, 1), (30, 1)),
        ((30, 0), (30, 1)),
        ((u32::MAX, 1), (30, 1)),
        ((1, u32::MAX), (30, 1)),
        ((30_000, 1_001), (30_000, 1_001)),
        ((60, 1), (60, 1)),
        ((120, 1), (120, 2)),
        ((240, 1), (240, 4)),
        ((1, 1), (5, 1)),
        ((2, 1), (6, 1)),
        ((1, 10), (50, 10)),
    ];
    for (own, expected) in cases {
        let facts = clip(640, 360, own);
        assert_eq!(rate(&facts.video[0]), expected, "{own:?}");
    }
}

#[test]
fn segments_are_whole_groups_and_never_too_long() {
    assert_eq!(
        groups((30_000, 1_001), 6),
        Groups {
            video_frames: 60,
            per_segment: 3
        }
    );
    for rate in [
        (5, 1),
        (6, 1),
        (15, 1),
        (24_000, 1_001),
        (25, 1),
        (50, 1),
        (60, 1),
        (2_997, 100),
    ] {
        for seconds in SEGMENT_DURATIONS {
            let groups = groups(rate, seconds);
            let video_frames = f64::from(groups.video_frames * groups.per_segment);
            let lasts = video_frames * f64::from(rate.1) / f64::from(rate.0);
            assert!(
                lasts.round() as u32 <= seconds,
                "{rate:?} {seconds}: {lasts}"
            );
            assert!(
                lasts > f64::from(seconds) * 0.7,
                "{rate:?} {seconds}: {lasts}"
            );
        }
    }
}

#[test]
fn profiles_are_read_with_their_fields() {
    let rung = |height, bitrate| Rung { height, bitrate };
    for name in ["basic", "standard", "hd", "source_max"] {
        assert_eq!(Profile::parse(name, &[], 8).unwrap().name(), name);
    }
    let refused: &[(&str, Vec<Rung>, &str)] = &[
        ("", vec![], "profile"),
        ("HD", vec![], "profile"),
        ("hd", vec![rung(720, None)], "renditions"),
        ("custom", vec![], "renditions"),
        ("custom", vec![rung(720, None); 9], "renditions"),
        ("custom", vec![rung(0, None)], "renditions"),
        ("custom", vec![rung(u32::MAX, None)], "renditions"),
        ("custom", vec![rung(720, Some(0))], "renditions"),
        ("custom", vec![rung(720, Some(u32::MAX))], "renditions"),
    ];
    for (name, rungs, field) in refused {
        assert_eq!(
            Profile::parse(name, rungs, 8).unwrap_err().field,
            *field,
            "{name} {rungs:?}"
        );
    }
    assert!(Profile::parse("custom", &[rung(720, Some(2_000_000))], 8).is_ok());
}

#[test]
fn a_ladder_of_1080p_reserves_about_what_was_measured() {
    let facts = clip(1_920, 1_080, (30, 1));
    let plan = plan(&facts, &Profile::Standard, 6).unwrap();
    let mib = memory_bytes(&facts, &plan.ladder) >> 20;
    assert!((350..=700).contains(&mib), "{mib} MiB");
}
