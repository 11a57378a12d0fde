//! One row per rule: a change to a healthy stream, and the advice for it.

use super::*;

/// (a change to what is healthy, words of the one sentence that follows)
type Row<T> = (fn(&mut T), &'static [&'static str]);

/// Measurements of OBS with the settings we recommend.
fn healthy() -> Measured {
    Measured {
        video_codec: Some("h264"),
        video_profile: Some("High 4.0".to_owned()),
        width: Some(1920),
        height: Some(1080),
        declared_frame_rate: Some(30.0),
        frame_rate: Some(30.0),
        video_bitrate_bps: Some(6_000_000),
        audio_bitrate_bps: Some(160_000),
        key_frame_interval_s: Some(2.0),
        max_key_frame_interval_s: Some(2.0),
        b_frames: Some(true),
        reorder_delay_ms: Some(66),
        audio_codec: Some("aac"),
        sample_rate: Some(48_000),
        channels: Some(2),
        drift_ms: Some(-40),
        av_offset_ms: Some(30),
        last_media_age_ms: Some(12),
        ..Measured::default()
    }
}

fn low_latency() -> AdviceContext {
    AdviceContext {
        target_duration_s: 4,
        low_latency: true,
        ..AdviceContext::default()
    }
}

#[test]
fn a_healthy_stream_gets_none() {
    assert_eq!(advice(&healthy(), &low_latency()), Vec::<String>::new());
    let video_only = Measured {
        audio_codec: None,
        av_offset_ms: None,
        ..healthy()
    };
    assert_eq!(advice(&video_only, &low_latency()), Vec::<String>::new());
    let old_troubles = Measured {
        stalls: 3,
        last_stall_age_ms: Some(61_000),
        timestamp_jumps: 1,
        last_timestamp_jump_age_ms: Some(3_600_000),
        ..healthy()
    };
    assert_eq!(advice(&old_troubles, &low_latency()), Vec::<String>::new());
    assert_eq!(
        advice(&Measured::default(), &AdviceContext::default()),
        Vec::<String>::new()
    );
}

#[test]
fn each_measure_has_its_words() {
    let rows: [Row<Measured>; 21] = [
        (
            |m| m.key_frame_interval_s = Some(8.33),
            &["every 8.3 s", "Keyframe Interval to 2 s"],
        ),
        (
            |m| m.key_frame_interval_s = Some(2.6),
            &["Keyframe Interval"],
        ),
        (
            |m| m.key_frame_interval_s = Some(0.04),
            &["every 0.04 s", "Keyframe Interval", "better quality"],
        ),
        (
            |m| m.reorder_delay_ms = Some(166),
            &["166 ms", "Max B-frames to 0"],
        ),
        (
            |m| m.video_bitrate_bps = Some(31_000_000),
            &["31 Mbit/s", "Video Bitrate to 6000"],
        ),
        (
            |m| m.frame_rate = Some(21.4),
            &["21 of 30", "Common FPS Values"],
        ),
        (|m| m.frame_rate = Some(15.0), &[]), // a field rate was declared
        (|m| m.declared_frame_rate = Some(1000.0), &[]), // a clock, not a rate
        (
            |m| m.drift_ms = Some(-3_200),
            &["3.2 s behind", "Video Bitrate"],
        ),
        (|m| m.drift_ms = Some(30_000), &["30 s ahead", "-re"]),
        (
            |m| m.av_offset_ms = Some(1_500),
            &["1.5 s ahead of the video", "Sync Offset"],
        ),
        (
            |m| m.av_offset_ms = Some(-800),
            &["0.8 s behind the video", "Sync Offset"],
        ),
        (
            |m| (m.stalls, m.last_stall_age_ms) = (4, Some(9_000)),
            &["4 times", "Dynamically change bitrate"],
        ),
        (
            |m| (m.stalls, m.last_stall_age_ms) = (1, Some(0)),
            &["once"],
        ),
        (
            |m| (m.timestamp_jumps, m.last_timestamp_jump_age_ms) = (2, Some(0)),
            &["jumped twice"],
        ),
        (
            |m| m.last_media_age_ms = Some(12_400),
            &["12 s", "still streaming"],
        ),
        (|m| m.video_codec = Some("hevc"), &["HEVC", "Video Encoder"]),
        (
            |m| m.video_profile = Some("High 4:4:4 Predictive 4.0".to_owned()),
            &["Color Format to NV12"],
        ),
        (
            |m| m.video_profile = Some("High 10 4.0".to_owned()),
            &["Color Format to NV12"],
        ),
        (
            |m| {
                (m.width, m.height, m.video_bitrate_bps) =
                    (Some(3840), Some(2160), Some(30_000_000))
            },
            &[],
        ),
        (
            |m| (m.b_frames, m.reorder_delay_ms) = (Some(false), Some(0)),
            &[],
        ),
    ];
    for (index, (change, expected)) in rows.into_iter().enumerate() {
        let mut measured = healthy();
        change(&mut measured);
        let advice = advice(&measured, &low_latency());
        assert_eq!(
            advice.len(),
            usize::from(!expected.is_empty()),
            "row {index}: {advice:?}"
        );
        for words in expected {
            assert!(
                advice[0].contains(words),
                "row {index}: {words:?} in {advice:?}"
            );
        }
    }
}

#[test]
fn standard_latency_is_more_patient() {
    let standard = AdviceContext {
        low_latency: false,
        ..low_latency()
    };
    let measured = Measured {
        key_frame_interval_s: Some(4.0),
        reorder_delay_ms: Some(200),
        ..healthy()
    };
    assert_eq!(advice(&measured, &standard), Vec::<String>::new());
    let longer = Measured {
        key_frame_interval_s: Some(10.0),
        ..healthy()
    };
    assert!(advice(&longer, &standard)[0].contains("every 10 s"));
    let fitting = AdviceContext {
        target_duration_s: 6,
        ..standard
    };
    let six = Measured {
        key_frame_interval_s: Some(6.0),
        ..healthy()
    };
    assert_eq!(advice(&six, &fitting), Vec::<String>::new());
}

#[test]
fn what_surrounds_the_stream_has_its_words() {
    let rows: [Row<AdviceContext>; 7] = [
        (|c| c.damaged_units = 1, &["1 unit was", "Video Encoder"]),
        (
            |c| {
                (c.damaged_units, c.last_damage) =
                    (12, Some("audio codec Speex is not carried".to_owned()))
            },
            &["12 units were", "Speex", "Audio Encoder to AAC"],
        ),
        (
            |c| c.disk_error = Some("no space left on device".to_owned()),
            &["no space left", "free"],
        ),
        (
            |c| c.database_error = Some("database is locked".to_owned()),
            &["database is locked"],
        ),
        (
            |c| c.conflicts = 3,
            &["Another encoder uses", "rotate the key"],
        ),
        (
            |c| (c.conflicts, c.conflict_addresses) = (3, vec!["203.0.113.7".to_owned()]),
            &["Another encoder (203.0.113.7) uses"],
        ),
        (
            |c| {
                (c.conflicts, c.conflict_addresses) =
                    (3, vec!["203.0.113.7".to_owned(), "::1".to_owned()])
            },
            &["Other encoders (203.0.113.7, ::1) use"],
        ),
    ];
    for (index, (change, expected)) in rows.into_iter().enumerate() {
        let mut context = low_latency();
        change(&mut context);
        let advice = advice(&healthy(), &context);
        assert_eq!(advice.len(), 1, "row {index}: {advice:?}");
        for words in expected {
            assert!(
                advice[0].contains(words),
                "row {index}: {words:?} in {advice:?}"
            );
        }
    }
}

#[test]
fn a_lossy_line_names_the_latency_to_set() {
    let with = |line: LinkStatistics| {
        let context = AdviceContext {
            line: Some(line),
            ..AdviceContext::default()
        };
        advice(&Measured::default(), &context)
    };
    let good = LinkStatistics {
        retransmitted: 50,
        received: 1_000,
        rtt_ms: 40.0,
        latency_ms: 400,
        ..LinkStatistics::default()
    };
    assert_eq!(with(good), Vec::<String>::new());
    for (line, words) in [
        (
            LinkStatistics { lost: 3, ..good },
            ["3 packets were lost", "latency=800000"],
        ),
        (
            LinkStatistics {
                rtt_ms: 130.0,
                ..good
            },
            ["round trip of 130 ms", "latency=550000"],
        ),
        (
            LinkStatistics {
                retransmitted: 200,
                ..good
            },
            ["20 % of the packets", "Video Bitrate"],
        ),
        (
            LinkStatistics {
                discarded: 7,
                ..good
            },
            ["7 packets arrived", "other work"],
        ),
    ] {
        let said = with(line);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(words.iter().all(|word| said[0].contains(word)), "{said:?}");
    }
}
