//! Video and audio at the paths of operations: accepted requests, and those rejected before anything is charged.

use bytesize::ByteSize;
use serde_json::{Value, json};

use super::Site;

const MP4: &[u8] = b"\0\0\0\x18ftypisom\0\0\0\0isommp42";
const MP3: &[u8] = b"\xff\xfb\x90\x64\0\0\x02\x3c";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
/// A playlist that a player would follow to any address.
const PLAYLIST: &[u8] = b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n";

type File<'a> = (&'a str, &'a str, &'a [u8]);
type Fields<'a> = Vec<(&'a str, &'a str)>;
/// Path, files, fields, status, and what the error says.
type Rejected<'a> = (&'a str, Vec<File<'a>>, Fields<'a>, u16, &'a str);

/// A form with files under their fields and names, and text fields.
fn form(files: &[File<'_>], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut part = |head: String, content: &[u8]| {
        body.extend_from_slice(b"--edge\r\nContent-Disposition: form-data; ");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    };
    for (field, filename, bytes) in files {
        part(format!("name=\"{field}\"; filename=\"{filename}\""), bytes);
    }
    for (name, text) in fields {
        part(format!("name=\"{name}\""), text.as_bytes());
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

async fn open() -> Site {
    Site::open_with(|config| {
        let plan = config.plans.get_mut("unlimited").expect("the default plan");
        plan.image_upload = ByteSize::b(100);
        plan.video_upload = ByteSize::b(200);
        plan.files_per_batch = 150;
    })
    .await
}

#[actix_web::test]
async fn what_cannot_be_done_is_rejected_and_costs_nothing() {
    let site = open().await;
    let clip: File = ("file", "film.mp4", MP4);
    let song: File = ("file", "song.mp3", MP3);
    let image: File = ("file", "photo.png", PNG);
    let playlist: File = ("file", "film.mp4", PLAYLIST);
    let long = [MP4, &[0; 200]].concat();
    let large_image = [PNG, &[0; 100]].concat();
    let cases: Vec<Rejected> = vec![
        (
            "media/trim",
            vec![playlist],
            vec![],
            415,
            "of no type that is known",
        ),
        (
            "convert",
            vec![playlist],
            vec![("format", "mp4")],
            415,
            "of no type that is known",
        ),
        (
            "media/trim",
            vec![image],
            vec![],
            415,
            "trim takes a video or an audio file",
        ),
        ("media/gif", vec![song], vec![], 415, "gif takes a video"),
        (
            "media/storyboard",
            vec![song],
            vec![],
            415,
            "storyboard takes a video",
        ),
        (
            "media/transform",
            vec![clip],
            vec![("flip", "true")],
            415,
            "transform takes a raster image",
        ),
        (
            "convert",
            vec![image],
            vec![("format", "mp4")],
            415,
            "mp4 is made of video or audio",
        ),
        (
            "convert",
            vec![song],
            vec![("format", "jpg")],
            415,
            "waveform",
        ),
        (
            "convert",
            vec![clip],
            vec![("format", "avi")],
            400,
            "format must be one of jpg",
        ),
        (
            "compress",
            vec![clip],
            vec![("targetBytes", "1000")],
            422,
            "give quality instead",
        ),
        (
            "media/trim",
            vec![clip],
            vec![("duration", "0")],
            400,
            "duration must be a number from 0.1",
        ),
        (
            "media/trim",
            vec![clip],
            vec![("start", "-1")],
            400,
            "start must be a number from 0",
        ),
        (
            "media/waveform",
            vec![song],
            vec![("colour", "red")],
            400,
            "six hexadecimal digits",
        ),
        (
            "media/concat-audio",
            vec![song],
            vec![],
            400,
            "concat-audio takes 2 to 100 files, got 1",
        ),
        (
            "media/concat-audio",
            vec![song; 101],
            vec![],
            400,
            "got 101",
        ),
        (
            "media/concat-audio",
            vec![song, image],
            vec![],
            415,
            "png is a raster image",
        ),
        (
            "media/watermark",
            vec![clip, ("watermarkFile", "mark.mp4", MP4)],
            vec![],
            415,
            "watermarkFile takes an image",
        ),
        (
            "media/watermark",
            vec![clip],
            vec![],
            400,
            "needs text or watermarkFile",
        ),
        (
            "media/trim",
            vec![("file", "film.mp4", &long)],
            vec![],
            413,
            "200 bytes (video_upload of the plan)",
        ),
        (
            "convert",
            vec![("file", "photo.png", &large_image)],
            vec![("format", "webp")],
            413,
            "100 bytes (image_upload of the plan)",
        ),
        (
            "media/watermark",
            vec![clip, ("watermarkFile", "mark.png", &large_image)],
            vec![],
            413,
            "mark.png is larger than 100 bytes",
        ),
        ("media/teleport", vec![clip], vec![], 404, "storyboard"),
    ];
    let key = site.first.api_key.expose();
    for (path, files, fields, status, says) in cases {
        let body = form(&files, &fields);
        let answer = site.send_form(key, &format!("/api/{path}"), body).await;
        assert_eq!(answer.status, status, "{path} {says}: {answer:?}");
        assert!(answer.error().contains(says), "{path}: {}", answer.error());
    }
    assert_eq!(site.used().await, json!(0));
}

#[actix_web::test]
async fn clips_are_accepted_by_every_tool_that_takes_them() {
    let site = open().await;
    let key = site.first.api_key.expose();
    // Larger than an image may be.
    let clip = [MP4, &[0; 150]].concat();
    let clip: File = ("file", "film.mp4", &clip);
    let song: File = ("file", "song.mp3", MP3);
    let mark: File = ("watermarkFile", "mark.png", PNG);
    let mut used = 0;
    for (path, files, fields) in [
        ("media/inspect", vec![clip], vec![]),
        ("media/thumbnail", vec![clip], vec![]),
        ("media/poster-frame", vec![clip], vec![("timestamp", "2.5")]),
        ("media/storyboard", vec![clip], vec![("frames", "4")]),
        ("media/gif", vec![clip], vec![]),
        ("media/trim", vec![clip], vec![("mode", "fast")]),
        ("media/extract-audio", vec![clip], vec![("format", "m4a")]),
        ("media/audio", vec![song], vec![("format", "flac")]),
        ("media/watermark", vec![clip, mark], vec![]),
        ("media/adjust", vec![song], vec![("normalize", "true")]),
        ("media/waveform", vec![song], vec![]),
        ("media/strip-metadata", vec![song], vec![]),
        ("media/resize", vec![clip], vec![("resizeWidth", "64")]),
        ("media/convert", vec![clip], vec![("format", "mkv")]),
        ("media/compress", vec![clip], vec![]),
    ] {
        let body = form(&files, &[&fields[..], &[("async", "true")]].concat());
        let answer = site.send_form(key, &format!("/api/{path}"), body).await;
        assert_eq!(answer.status, 202, "{path}: {answer:?}");
        used += 1;
        assert_eq!(site.used().await, json!(used), "{path}");
    }
}

#[actix_web::test]
async fn joined_audio_files_are_one_result_in_the_order_of_their_numbers() {
    let site = open().await;
    let key = site.first.api_key.expose();
    let files: Vec<File> = vec![
        ("files[2]", "c.mp3", MP3),
        ("files[0]", "a.mp3", MP3),
        ("files[1]", "b.mp4", MP4),
    ];
    let body = form(&files, &[("async", "true"), ("gapMs", "250")]);
    let answer = site.send_form(key, "/api/media/concat-audio", body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json()["totalFiles"], json!(1));
    assert_eq!(site.used().await, json!(3));
    let job = format!(
        "/api/jobs/{}",
        answer.json()["jobId"].as_str().expect("an id")
    );
    let record: Value = site.call("GET", &job, None).await.json();
    assert_eq!(record["tool"], "concat-audio");
}
