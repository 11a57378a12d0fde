//! Requests for video and audio.

use serde_json::{Value, json};

use super::{operation, read, task};
use crate::{
    av::{AudioWork, AvTask, Range, Transcode, VideoWork},
    format::Format,
    operation::{OperationInput, TextOutput},
    task::{Encode, FailureCode, Fit, Task},
};

fn av(tool: &str, fields: Value, source: Format) -> AvTask {
    match task(tool, fields, source) {
        Ok(Task::Av(work)) => *work,
        other => panic!("{tool}: no work on video or audio: {other:?}"),
    }
}

fn transcode(tool: &str, fields: Value, source: Format) -> Transcode {
    match av(tool, fields, source) {
        AvTask::Transcode(transcode) => transcode,
        other => panic!("{tool}: no transcode: {other:?}"),
    }
}

#[test]
fn bad_values_are_refused_by_field_value_and_range() {
    for (tool, fields, expected) in [
        (
            "trim",
            json!({"duration": 0.05}),
            "duration must be a number from 0.1 to 360000, got `0.05`",
        ),
        (
            "trim",
            json!({"start": -1}),
            "start must be a number from 0 to 360000, got `-1`",
        ),
        ("trim", json!({"start": "1:30"}), "got `1:30`"),
        ("trim", json!({"start": "nan"}), "got `nan`"),
        ("trim", json!({"duration": "inf"}), "got `inf`"),
        (
            "trim",
            json!({"mode": "slow"}),
            "mode must be one of accurate, fast, got `slow`",
        ),
        (
            "trim",
            json!({"format": "avi"}),
            "format must be one of mp4, mov, webm, mkv, mp3",
        ),
        (
            "gif",
            json!({"duration": 61}),
            "duration must be a number from 0.1 to 60",
        ),
        (
            "gif",
            json!({"fps": 0}),
            "fps must be a number from 1 to 50",
        ),
        (
            "gif",
            json!({"width": 5000}),
            "width must be a whole number from 16 to 2048",
        ),
        (
            "poster-frame",
            json!({"timestamp": -0.5}),
            "timestamp must be a number from 0",
        ),
        (
            "poster-frame",
            json!({"format": "gif"}),
            "format must be one of jpg, png, webp, avif",
        ),
        (
            "thumbnail",
            json!({"timestamp": "x"}),
            "timestamp must be a number",
        ),
        (
            "storyboard",
            json!({"frames": 0}),
            "frames must be a whole number from 1 to 400",
        ),
        (
            "storyboard",
            json!({"frames": 100, "columns": 50, "width": 640}),
            "width must be at most 327 with 50 columns",
        ),
        (
            "extract-audio",
            json!({"format": "mp4"}),
            "format must be one of mp3, m4a, wav, ogg, flac",
        ),
        (
            "audio",
            json!({"bitrateKbps": 500}),
            "bitrateKbps must be a whole number from 32 to 320",
        ),
        (
            "waveform",
            json!({"colour": "blue"}),
            "colour must be six hexadecimal digits such as 2563eb, got `blue`",
        ),
        (
            "waveform",
            json!({"color": "12345678"}),
            "colour must be text of at most 7",
        ),
        (
            "waveform",
            json!({"height": 5}),
            "height must be a whole number from 16 to 2048",
        ),
        (
            "concat-audio",
            json!({"gapMs": 60_001}),
            "gapMs must be a whole number from 0 to 60000",
        ),
        (
            "adjust",
            json!({"volume": 11}),
            "volume must be a number from 0 to 10",
        ),
        (
            "adjust",
            json!({"fadeIn": -1}),
            "fadeIn must be a number from 0 to 600",
        ),
        (
            "adjust",
            json!({"normalize": "loud"}),
            "normalize must be true or false",
        ),
        (
            "convert",
            json!({"format": "avi"}),
            "format must be one of jpg",
        ),
    ] {
        let error = read(tool, fields.clone()).expect_err("a bad field");
        assert!(
            error.message.contains(expected),
            "{tool} {fields}: {}",
            error.message
        );
    }
}

#[test]
fn each_tool_says_what_it_takes() {
    for (tool, fields, source, says) in [
        (
            "trim",
            json!({}),
            Format::Jpg,
            "trim takes a video or an audio file, and jpg is a raster image",
        ),
        (
            "gif",
            json!({}),
            Format::Mp3,
            "gif takes a video, and mp3 is an audio file",
        ),
        (
            "poster-frame",
            json!({}),
            Format::Png,
            "poster-frame takes a video",
        ),
        (
            "storyboard",
            json!({}),
            Format::Ogg,
            "storyboard takes a video",
        ),
        (
            "thumbnail",
            json!({}),
            Format::Mp3,
            "a document or a video, and mp3 is an audio file",
        ),
        (
            "waveform",
            json!({}),
            Format::Pdf,
            "waveform takes an audio file or a video",
        ),
        (
            "transform",
            json!({"flip": true}),
            Format::Mp4,
            "transform takes a raster image, a vector image or a document",
        ),
        (
            "watermark",
            json!({"text": "x"}),
            Format::Wav,
            "a vector image or a video, and wav is an audio file",
        ),
        (
            "resize",
            json!({"resizeWidth": 5}),
            Format::Flac,
            "and flac is an audio file",
        ),
        (
            "vectorize",
            json!({}),
            Format::Mov,
            "vectorize takes a raster image, and mov is a video",
        ),
        (
            "strip-metadata",
            json!({}),
            Format::Avi,
            "avi cannot be written: convert it instead",
        ),
        (
            "convert",
            json!({"format": "mp4"}),
            Format::Png,
            "mp4 is made of video or audio, and png is a raster image",
        ),
        (
            "convert",
            json!({"format": "png"}),
            Format::Mp3,
            "the tool waveform draws it",
        ),
        (
            "convert",
            json!({"format": "svg"}),
            Format::Mp4,
            "svg is made of an image",
        ),
        (
            "compress",
            json!({"targetBytes": 9}),
            Format::Mp4,
            "give quality instead",
        ),
        (
            "compress",
            json!({"lossless": true}),
            Format::Mp3,
            "leave it out",
        ),
        (
            "compress",
            json!({}),
            Format::Wav,
            "convert it to mp3, m4a or ogg",
        ),
        (
            "compress",
            json!({}),
            Format::Aiff,
            "wav keeps audio as it is",
        ),
    ] {
        let failure = operation(tool, fields)
            .task(&[OperationInput::new(source, "a")])
            .expect_err("a mismatch");
        assert!(
            matches!(
                failure.code,
                FailureCode::UnsupportedType | FailureCode::Impossible
            ),
            "{failure:?}"
        );
        assert!(
            failure.message.contains(says),
            "{tool}: {}",
            failure.message
        );
    }
}

#[test]
fn results_are_named_by_their_formats() {
    for (tool, fields, source, output) in [
        ("convert", json!({"format": "mkv"}), Format::Avi, "a.b.mkv"),
        ("convert", json!({"format": "ogg"}), Format::Mp4, "a.b.ogg"),
        (
            "convert",
            json!({"format": "webp"}),
            Format::Mp4,
            "a.b.webp",
        ),
        ("compress", json!({}), Format::Mkv, "a.b.mkv"),
        ("compress", json!({}), Format::Wmv, "a.b.mp4"),
        ("compress", json!({}), Format::Wma, "a.b.mp3"),
        ("compress", json!({}), Format::Aac, "a.b.m4a"),
        ("resize", json!({"resizeWidth": 5}), Format::Ts, "a.b.mp4"),
        ("audio", json!({}), Format::Wav, "a.b.mp3"),
        ("thumbnail", json!({}), Format::Mp4, "a.b.jpg"),
        (
            "poster-frame",
            json!({"format": "avif"}),
            Format::Flv,
            "a.b.avif",
        ),
        ("storyboard", json!({}), Format::Mp4, "a.b.jpg"),
        ("gif", json!({}), Format::Mpg, "a.b.gif"),
        ("trim", json!({}), Format::Webm, "a.b.webm"),
        ("trim", json!({}), Format::ThreeGp, "a.b.mp4"),
        ("trim", json!({}), Format::Aiff, "a.b.wav"),
        ("trim", json!({"format": "mp3"}), Format::Mp4, "a.b.mp3"),
        (
            "extract-audio",
            json!({"format": "m4a"}),
            Format::Mov,
            "a.b.m4a",
        ),
        ("watermark", json!({"text": "x"}), Format::Mov, "a.b.mov"),
        ("strip-metadata", json!({}), Format::Mp3, "a.b.mp3"),
        ("adjust", json!({"volume": 2}), Format::Ogg, "a.b.ogg"),
        ("waveform", json!({}), Format::Mp3, "a.b.png"),
        ("concat-audio", json!({}), Format::Flac, "a.b.flac"),
        ("concat-audio", json!({}), Format::Mp4, "a.b.mp3"),
        (
            "concat-audio",
            json!({"format": "ogg"}),
            Format::Mp3,
            "a.b.ogg",
        ),
    ] {
        let operation = operation(tool, fields);
        let source = OperationInput::new(source, "a.b.c");
        assert_eq!(operation.output(&source).0, output, "{tool}");
        let task = operation.task(std::slice::from_ref(&source));
        let Ok(Task::Av(work)) = task else {
            panic!("{tool}: {task:?}");
        };
        let target = match &*work {
            AvTask::Still(still) => still.render.output.format,
            AvTask::Sheet(sheet) => sheet.output.format,
            AvTask::Animation(animation) => animation.output.format,
            AvTask::Waveform(waveform) => waveform.output.format,
            AvTask::Transcode(transcode) => transcode.format,
            AvTask::Concat(concat) => concat.format,
            AvTask::Probe | AvTask::Ladder(_) | AvTask::Live => panic!("{tool} makes a file"),
        };
        assert_eq!(target.extension(), &output[4..], "{tool}");
        assert_eq!(
            operation.text_output(&source).is_some(),
            work.outputs() == 2,
            "{tool}"
        );
    }
}

#[test]
fn conversions_copy_unless_a_quality_is_asked_for() {
    let plain = transcode("convert", json!({"format": "mp4"}), Format::Mkv);
    assert_eq!(plain.video, Some(VideoWork::default()));
    assert_eq!(plain.audio, AudioWork::default());
    assert!(plain.keep_tags);

    let asked = json!({"format": "webm", "compression": 60, "resizePreset": "instagram"});
    let video = transcode("convert", asked, Format::Mp4)
        .video
        .expect("video");
    assert_eq!((video.quality, video.again), (60, true));
    let resize = video.resize.expect("a size");
    assert_eq!((resize.width, resize.fit), (Some(1080), Fit::Cover));

    for (fields, kbps, again) in [
        (json!({"format": "mp3"}), Some(192), false),
        (
            json!({"format": "mp3", "compression": 100}),
            Some(320),
            true,
        ),
        (json!({"format": "wav", "compression": 100}), None, false),
    ] {
        let audio = transcode("convert", fields, Format::Mp4);
        assert_eq!(audio.video, None);
        assert_eq!((audio.audio.bitrate_kbps, audio.audio.again), (kbps, again));
    }
    // A file of audio alone may go into a container of video: what it holds the worker finds out.
    assert!(
        transcode("convert", json!({"format": "mp4"}), Format::Mp3)
            .video
            .is_some()
    );
}

#[test]
fn a_whole_video_as_a_moving_image_has_bounds() {
    let animation = |fields| match av("convert", fields, Format::Mp4) {
        AvTask::Animation(animation) => animation,
        other => panic!("{other:?}"),
    };
    let plain = animation(json!({"format": "gif"}));
    assert_eq!(plain.range.duration_s, Some(30.0));
    assert_eq!(plain.resize.and_then(|resize| resize.width), Some(480));
    assert_eq!(plain.frames_per_second, 12.0);
    let sized = animation(json!({"format": "webp", "resizeHeight": 90, "compression": 50}));
    assert_eq!(
        sized.resize.map(|resize| (resize.width, resize.height)),
        Some((None, Some(90)))
    );
    assert_eq!(sized.output, Encode::new(Format::Webp, 50));

    let AvTask::Still(still) = av("convert", json!({"format": "png"}), Format::Mp4) else {
        panic!("one frame");
    };
    assert_eq!((still.at_s, still.render.source), (1.0, Format::Png));
}

#[test]
fn parts_are_cut_where_they_were_asked_for() {
    let trimmed = transcode(
        "trim",
        json!({"start": "3600.04", "duration": 29.9, "mode": "fast"}),
        Format::Mp4,
    );
    let range = Range {
        start_s: 3600.04,
        duration_s: Some(29.9),
        accurate: false,
    };
    assert_eq!(trimmed.range, Some(range));
    assert!(AvTask::Transcode(trimmed).is_short());
    let AvTask::Animation(gif) = av("gif", json!({"start": 2}), Format::Mp4) else {
        panic!("an animation");
    };
    assert_eq!((gif.range.start_s, gif.range.duration_s), (2.0, Some(4.0)));
    assert_eq!(gif.resize.map(|resize| resize.enlarge), Some(false));
}

#[test]
fn a_bit_rate_counts_where_audio_is_encoded() {
    for (fields, kbps, again) in [
        (json!({}), Some(192), false),
        (json!({"bitrateKbps": 192}), Some(192), true),
        (json!({"bitrateKbps": 100}), Some(96), true),
        (json!({"format": "flac", "bitrateKbps": 100}), None, false),
    ] {
        for tool in ["audio", "extract-audio"] {
            let audio = transcode(tool, fields.clone(), Format::Mov);
            assert_eq!(audio.video, None);
            assert_eq!(
                (audio.audio.bitrate_kbps, audio.audio.again),
                (kbps, again),
                "{fields}"
            );
        }
    }
}

#[test]
fn an_adjustment_of_what_the_file_does_not_have_is_refused() {
    for (fields, source, applicable) in [
        (
            json!({"brightness": 1.5}),
            Format::Mp3,
            Some("give volume, normalize"),
        ),
        (json!({"grayscale": true, "volume": 2}), Format::Mp3, None),
        (
            json!({"volume": 2}),
            Format::Png,
            Some("give brightness, saturation"),
        ),
        (
            json!({"normalize": true}),
            Format::Svg,
            Some("give brightness"),
        ),
        (json!({"fadeIn": 1, "invert": true}), Format::Png, None),
        (json!({"fadeIn": 1}), Format::Mp4, None),
        (json!({"hue": 90}), Format::Mp4, None),
        (json!({}), Format::Mp3, None),
    ] {
        let outcome = operation("adjust", fields.clone()).task(&[OperationInput::new(source, "a")]);
        match (outcome, applicable) {
            (Ok(_), None) => {}
            (Err(failure), Some(words)) => {
                assert_eq!(failure.code, FailureCode::Invalid, "{fields}");
                assert!(failure.message.contains(words), "{}", failure.message);
            }
            (outcome, _) => panic!("{fields} on {source:?}: {outcome:?}"),
        }
    }
}

#[test]
fn edits_change_what_they_name_and_copy_the_rest() {
    let audio = json!({"volume": 0.5, "normalize": true, "fadeIn": 1, "fadeOut": "2.5"});
    let adjusted = transcode("adjust", audio, Format::Mp4);
    let video = adjusted.video.expect("video");
    assert!(!video.again && video.adjust == Default::default());
    assert_eq!(
        (adjusted.audio.volume, adjusted.audio.normalize),
        (0.5, true)
    );
    assert_eq!(
        (adjusted.audio.fade_in_s, adjusted.audio.fade_out_s),
        (1.0, 2.5)
    );

    let light = transcode("adjust", json!({"brightness": 1.5}), Format::Mov);
    assert_eq!(light.video.map(|video| video.adjust.brightness), Some(1.5));
    assert_eq!(light.audio, AudioWork::default());

    let stripped = transcode("strip-metadata", json!({}), Format::Webm);
    assert_eq!(stripped.video, Some(VideoWork::default()));
    assert!(!stripped.keep_tags);

    let smaller = transcode(
        "compress",
        json!({"quality": 40, "stripMetadata": true}),
        Format::Mp3,
    );
    assert_eq!(
        (smaller.audio.bitrate_kbps, smaller.audio.again),
        (Some(80), true)
    );
    assert!(!smaller.keep_tags);
    let smaller = transcode("compress", json!({"quality": 40}), Format::Mp4);
    assert_eq!(
        smaller.video.map(|video| (video.quality, video.again)),
        Some((40, true))
    );
}

#[test]
fn a_mark_on_a_video_is_an_image() {
    let mark = operation(
        "watermark",
        json!({"watermarkFile": true, "watermarkWidth": 50}),
    );
    let movie = OperationInput::new(Format::Mp4, "a.mp4");
    let with = |format| mark.task(&[movie.clone(), OperationInput::new(format, "mark")]);
    let Ok(Task::Av(work)) = with(Format::Png) else {
        panic!("a watermark on a video");
    };
    let AvTask::Transcode(Transcode {
        video: Some(video), ..
    }) = *work
    else {
        panic!("a transcode");
    };
    let drawn = video.watermark.expect("a watermark");
    assert_eq!((drawn.image, drawn.width), (Some(Format::Png), Some(50)));
    for format in [Format::Mp4, Format::Pdf, Format::Mp3] {
        let failure = with(format).expect_err("no image");
        assert_eq!(failure.code, FailureCode::UnsupportedType);
        assert!(
            failure.message.contains("watermarkFile takes an image"),
            "{failure}"
        );
    }
}

#[test]
fn a_storyboard_has_a_map_that_names_its_image() {
    let storyboard = operation("storyboard", json!({"frames": 3, "columns": 9}));
    let source = OperationInput::new(Format::Mp4, "My film.mp4");
    let Ok(Task::Av(work)) = storyboard.task(std::slice::from_ref(&source)) else {
        panic!("a sheet");
    };
    let AvTask::Sheet(sheet) = *work else {
        panic!("a sheet");
    };
    assert_eq!(
        (sheet.columns, sheet.image_name.as_str()),
        (3, "My%20film.jpg")
    );
    let map = TextOutput {
        filename: "My film.vtt".to_owned(),
        mime: "text/vtt",
    };
    assert_eq!(storyboard.text_output(&source), Some(map));
}

#[test]
fn inspection_and_stored_operations_of_clips() {
    assert_eq!(av("inspect", json!({}), Format::Wma), AvTask::Probe);
    let earlier = json!({"tool": "thumbnail", "width": 5, "height": 5, "fit": "cover", "format": "jpg", "quality": 80});
    let read: super::Operation =
        serde_json::from_value(earlier).expect("a job of an earlier version");
    assert_eq!(
        read,
        operation("thumbnail", json!({"width": 5, "height": 5, "quality": 80}))
    );
    for (tool, fields) in [
        ("audio", json!({"bitrateKbps": 64})),
        ("poster-frame", json!({"timestamp": 0.04})),
        ("storyboard", json!({})),
        ("gif", json!({"fps": 12.5})),
        ("trim", json!({"start": 0.1})),
        ("extract-audio", json!({"format": "ogg"})),
        ("waveform", json!({"color": "#abc"})),
        ("concat-audio", json!({"gapMs": 5})),
        ("adjust", json!({"fadeOut": 0.1})),
    ] {
        let before = operation(tool, fields);
        assert_eq!(before.tool(), tool);
        let stored = serde_json::to_string(&before).expect("it serialises");
        assert_eq!(
            serde_json::from_str::<super::Operation>(&stored).expect("it comes back"),
            before
        );
    }
}
