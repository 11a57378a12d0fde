//! Tools on video: trims, frames and watermarks, proved by the numbers that are drawn in the frames.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::patient;
use crate::{
    support::{
        Failure,
        clips::{Probed, check_copied, clip, decodes, on_disk, packets, read_by_ffmpeg},
        definition::{chain, node, rule},
        images::{available, look},
        json::{number, text},
        media::{
            Clip, Recipe, check_contiguous, check_contiguous_to_a_cut, read_numbers,
            read_numbers_of,
        },
        server::{Api, Form},
    },
    workflows::{create, download, output, run_to},
};

const SECONDS: u32 = 10;
/// Rate of the numbered clips.
const FRAMES_PER_SECOND: u32 = 30;
/// From key frame to key frame.
const GROUP: u32 = 2 * FRAMES_PER_SECOND;

fn numbered() -> Result<(Clip, Vec<u8>), Failure> {
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let bytes = std::fs::read(&clip.mp4)?;
    Ok((clip, bytes))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accurate_cut_has_exactly_the_frames_asked_for() -> Result<(), Failure> {
    let (_, bytes) = numbered()?;
    let server = patient().await?;
    let api = server.api();
    for (start, duration, format, first, count) in [
        // Between key frames, on one, before the first frame's end, beyond the last one.
        ("2.5", "3", "", 75, 90),
        ("4", "0.5", "webm", 120, 15),
        ("0", "0.1", "mov", 0, 3),
        ("9", "60", "mkv", 270, 30),
    ] {
        let what = format!("{duration} s from {start} s as {format:?}");
        let fields = [("start", start), ("duration", duration), ("format", format)];
        let (record, cut) = api.tool("trim", "clip.mp4", &bytes, &fields).await?;
        let numbers = read_numbers(&cut)?;
        check_contiguous(&numbers, first).map_err(|reason| format!("{what}: {reason}"))?;
        assert_eq!(numbers.len(), count, "{what}");
        let lasts_s = count as f64 / f64::from(FRAMES_PER_SECOND);
        let reported_s = record["duration"].as_f64().unwrap_or_default();
        assert!((reported_s - lasts_s).abs() < 0.1, "{what}: {record}");
    }
    let fields = [("start", "10.5")];
    let form = Form::new().file("file", "clip.mp4", &bytes).fields(&fields);
    let refused = api.post_form("/api/media/trim", form).await?.expect(422)?;
    assert!(refused.json()?["error"].is_string());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_cut_copies_from_the_key_frame_before() -> Result<(), Failure> {
    let (clip, bytes) = numbered()?;
    let server = patient().await?;
    let fields = [("start", "5.5"), ("duration", "2"), ("mode", "fast")];
    let (_, cut) = server
        .api()
        .tool("trim", "clip.mp4", &bytes, &fields)
        .await?;
    let numbers = read_numbers(&cut)?;
    let first = 5 * FRAMES_PER_SECOND / GROUP * GROUP;
    check_contiguous_to_a_cut(&numbers, first)?;
    let last = first + u32::try_from(numbers.len())?;
    let end = 15 * FRAMES_PER_SECOND / 2;
    assert!(
        (end..=end + 4).contains(&last),
        "to {last} instead of {end}"
    );
    let cut = on_disk(&cut, "mp4")?;
    let (before, after) = (
        packets(&clip.mp4, "v").await?,
        packets(cut.path(), "v").await?,
    );
    let copied = after.iter().filter(|packet| before.contains(packet));
    // The first one may carry its parameter sets.
    assert!(copied.count() + 1 >= after.len(), "not copied");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_are_those_of_their_time() -> Result<(), Failure> {
    if !available("frames_are_those_of_their_time")? {
        return Ok(());
    }
    let (_, bytes) = numbered()?;
    let server = patient().await?;
    let api = server.api();
    for (timestamp, video_frame) in [
        ("", 30),
        ("0", 0),
        ("4.5", 135),
        ("9.99", 299),
        ("3600", 299),
    ] {
        let fields = [
            ("timestamp", timestamp),
            ("width", "160"),
            ("height", "96"),
            ("format", "png"),
        ];
        for tool in ["thumbnail", "poster-frame"] {
            let (_, still) = api.tool(tool, "clip.mp4", &bytes, &fields).await?;
            assert_eq!(
                read_numbers(&still)?,
                [video_frame],
                "{tool} at {timestamp:?}"
            );
        }
    }
    let fields = [
        ("start", "2"),
        ("duration", "1"),
        ("fps", "10"),
        ("width", "160"),
    ];
    let (_, gif) = api.tool("gif", "clip.mp4", &bytes, &fields).await?;
    let moving = look(&gif).await?;
    assert_eq!((moving.size(), moving.frames), ((160, 96), 10));
    assert_eq!(moving.delays.iter().sum::<u32>(), 1000);
    let shown = read_numbers_of(on_disk(&gif, "gif")?.path())?;
    let expected: Vec<u32> = (0..10).map(|index| 60 + 3 * index).collect();
    assert_eq!(shown, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storyboard_has_a_map_that_leads_to_its_frames() -> Result<(), Failure> {
    let (_, bytes) = numbered()?;
    let server = patient().await?;
    let api = server.api();
    let form = Form::new().file("file", "clip.mp4", &bytes).fields(&[
        ("frames", "10"),
        ("columns", "4"),
        ("width", "160"),
        ("format", "png"),
    ]);
    let answer = api.post_form("/api/media/storyboard", form).await?;
    let answer = answer.expect(200)?.json()?;
    let [storyboard, map] = &answer["files"].as_array().ok_or("no files")?[..] else {
        panic!("{answer}");
    };
    assert_eq!(
        (&storyboard["width"], &storyboard["height"]),
        (&json!(640), &json!(288))
    );
    let image = api
        .fetch(&text(&storyboard["downloadUrl"])?)
        .await?
        .expect(200)?;
    let image = on_disk(&image.bytes, "png")?;
    let vtt = api.fetch(&text(&map["downloadUrl"])?).await?.expect(200)?;
    assert!(vtt.header("content-type").starts_with("text/vtt"));
    let cues = cues(std::str::from_utf8(&vtt.bytes)?)?;
    assert_eq!(cues.len(), 10);
    let mut until_s = 0.0;
    for cue in &cues {
        assert_eq!(cue.name, text(&storyboard["filename"])?);
        assert!((cue.from_s - until_s).abs() < 0.002, "a gap: {cue:?}");
        until_s = cue.until_s;
        let video_frame = cropped(image.path(), &cue.place).await?;
        let at_s = f64::from(video_frame) / f64::from(FRAMES_PER_SECOND);
        assert!(
            (cue.from_s - 0.04..cue.until_s).contains(&at_s),
            "{video_frame}: {cue:?}"
        );
    }
    assert!((until_s - f64::from(SECONDS)).abs() < 0.1, "{until_s}");
    Ok(())
}

#[derive(Debug)]
struct Cue {
    from_s: f64,
    until_s: f64,
    name: String,
    /// Left, top, width, height.
    place: Vec<u32>,
}

/// WebVTT as players read thumbnails from it.
fn cues(text: &str) -> Result<Vec<Cue>, Failure> {
    let mut blocks = text.split("\n\n");
    assert_eq!(blocks.next(), Some("WEBVTT"));
    let mut cues = Vec::new();
    for block in blocks.filter(|block| !block.trim().is_empty()) {
        let mut lines = block.lines().skip_while(|line| !line.contains(" --> "));
        let times = lines.next().and_then(|line| line.split_once(" --> "));
        let place = lines.next().and_then(|line| line.split_once("#xywh="));
        let (Some((from, until)), Some((name, place))) = (times, place) else {
            return Err(format!("no cue: {block}").into());
        };
        let numbers: Result<Vec<u32>, _> = place.split(',').map(str::parse).collect();
        cues.push(Cue {
            from_s: seconds(from)?,
            until_s: seconds(until)?,
            name: name.to_owned(),
            place: numbers?,
        });
    }
    Ok(cues)
}

/// Parses `[hh:]mm:ss.ttt`.
fn seconds(time: &str) -> Result<f64, Failure> {
    let units = time.trim().split(':').map(str::parse::<f64>);
    let add = |sum: f64, unit: Result<f64, _>| unit.map(|unit| 60.0 * sum + unit);
    Ok(units.into_iter().try_fold(0.0, add)?)
}

/// The number in a part of a frame.
async fn cropped(image: &Path, place: &[u32]) -> Result<u32, Failure> {
    let [x, y, width, height] = place else {
        return Err(format!("{place:?} is no place").into());
    };
    let filter = format!("-vf crop={width}:{height}:{x}:{y} -c:v png -f image2pipe");
    let numbers = read_numbers(&read_by_ffmpeg(image, &filter).await?)?;
    Ok(*numbers.first().ok_or("nothing is cut out")?)
}

/// Place of the watermark in a frame of 320×180: bottom right, 40×20, 10 from the edges; and the pixels that may still
/// be touched, since codecs work in blocks.
const MARKED: [usize; 4] = [270, 150, 40, 20];
const NEAR: [usize; 4] = [256, 128, 64, 52];
const SIZE: (usize, usize) = (320, 180);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_on_a_video_is_in_its_corner_alone() -> Result<(), Failure> {
    let source = clip(
        "grey.mp4",
        "-f lavfi -i color=0x606060:size=320x180:rate=25:duration=1 AUDIO H264 -c:a aac",
    )?;
    let mark = clip(
        "mark.png",
        "-f lavfi -i color=white:size=80x40:rate=1 -frames:v 1",
    )?;
    let server = patient().await?;
    let fields = [
        ("position", "9"),
        ("margin", "10"),
        ("watermarkWidth", "40"),
        ("opacity", "1"),
    ];
    let form = Form::new()
        .file("file", "grey.mp4", &std::fs::read(&source)?)
        .file("watermarkFile", "mark.png", &std::fs::read(&mark)?)
        .fields(&fields);
    let (_, marked) = server.api().result_of("/api/media/watermark", form).await?;
    let marked = on_disk(&marked, "mp4")?;
    decodes(marked.path()).await?;
    let luma = "-map 0:v:0 -fps_mode passthrough -f rawvideo -pix_fmt gray";
    let (before, after) = (
        read_by_ffmpeg(&source, luma).await?,
        read_by_ffmpeg(marked.path(), luma).await?,
    );
    assert_eq!(before.len(), after.len(), "frames were lost");
    let area = SIZE.0 * SIZE.1;
    for (before, after) in before.chunks(area).zip(after.chunks(area)) {
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            let place = (index % SIZE.0, index / SIZE.0);
            let change = before.abs_diff(*after);
            let is_right = match () {
                () if is_within(place, MARKED) => change > 100,
                () if is_within(place, NEAR) => true,
                () => change <= 4,
            };
            assert!(is_right, "at {place:?}: {before} became {after}");
        }
    }
    // The audio is not touched.
    check_copied(&source, marked.path(), "a").await
}

fn is_within((x, y): (usize, usize), [left, top, width, height]: [usize; 4]) -> bool {
    (left..left + width).contains(&x) && (top..top + height).contains(&y)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_lets_long_clips_in_and_cuts_them() -> Result<(), Failure> {
    let (_, bytes) = numbered()?;
    let short = std::fs::read(clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?)?;
    let server = patient().await?;
    let api = server.api();
    let mut definition = chain(vec![
        node("cut", "trim", json!({"start": 1, "duration": 2})),
        node("convert", "convert", json!({"format": "webm"})),
        node("keep", "storage", json!({})),
    ]);
    definition["uploadGate"] = rule("duration", "gt", 5);
    let workflow = create(&api, "long clips", &definition).await?;
    let run = run_to(&api, &workflow, "short.mp4", &short, "completed").await?;
    assert_eq!(run["gate"], json!(false), "{run}");
    let run = run_to(&api, &workflow, "long.mp4", &bytes, "completed").await?;
    assert_eq!(run["gate"], json!(true), "{run}");
    let output = output(&run)?;
    assert_eq!(output["mimeType"], "video/webm", "{output}");
    let file = on_disk(&download(&api, &output).await?, "webm")?;
    let numbers = read_numbers_of(file.path())?;
    check_contiguous(&numbers, 30)?;
    assert_eq!(numbers.len(), 60);
    let found = Probed::of(file.path()).await?;
    assert_eq!(
        (found.codec("video"), found.codec("audio")),
        ("vp9", "opus")
    );
    check_stored(&api, &text(&output["storedFileId"])?).await
}

/// A stored clip says how large it is and how long it lasts.
async fn check_stored(api: &Api, id: &str) -> Result<(), Failure> {
    let (_, answer) = api.call(Method::GET, "/api/files?limit=10", None).await?;
    let files = answer["files"].as_array().ok_or("no files")?;
    let file = files.iter().find(|file| file["id"] == id);
    let file: &Value = file.ok_or_else(|| format!("{id} is not among {answer}"))?;
    assert_eq!(
        (number(&file["width"])?, number(&file["height"])?),
        (160, 96)
    );
    let lasts_s = file["duration"].as_f64().unwrap_or_default();
    assert!((lasts_s - 2.0).abs() < 0.1, "{file}");
    Ok(())
}
