//! Captions of video streams: added, named, replaced, removed, played.

use serde_json::{Value, json};

use super::{Answer, PATH, Pairs, Site, path_of, playback_id};

const VTT: &str = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n";
const SRT: &str = "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>Hallo</i>\r\n";
const HELLO: &str = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nHello\n";
const HALLO: &str = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n<i>Hallo</i>\n";

impl Site {
    async fn send_captions(&self, stream: &Value, text: &str, fields: Pairs<'_>) -> Answer {
        let mut body = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.vtt\"\r\n\r\n{text}\r\n"
        );
        for (name, value) in fields {
            body += &format!(
                "--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        body += "--edge--\r\n";
        let path = format!("{}/captions", path_of(stream));
        let key = self.first.api_key.expose().to_owned();
        self.send_form(&key, &path, body.into_bytes()).await
    }

    async fn used_bytes(&self) -> i64 {
        let usage = self.call("GET", "/api/usage", None).await.json();
        usage["storage"]["usedBytes"].as_i64().unwrap()
    }
}

#[actix_web::test]
async fn captions_come_with_the_stream_and_after_it() {
    let site = Site::open().await;
    let (vtt, srt) = (
        site.stored("en.vtt", VTT.as_bytes()).await,
        site.stored("de.srt", SRT.as_bytes()).await,
    );
    let stream = site
        .stream(json!({"captions": [{"language": "EN", "fileId": vtt["id"], "isDefault": true}]}))
        .await;
    let base = format!("http://media.test:8080/video/v1/{}", playback_id(&stream));
    let english = json!({"language": "en", "label": "en", "isDefault": true, "url": format!("{base}/captions/en.vtt")});
    assert_eq!(stream["captions"], json!([english]));
    let path = format!("{}/captions", path_of(&stream));
    let body = json!({"language": "de-at", "label": "Deutsch", "file_id": srt["id"]});
    let added = site.call("POST", &path, Some(body)).await;
    let german = json!({"language": "de-AT", "label": "Deutsch", "isDefault": false, "url": format!("{base}/captions/de-AT.vtt")});
    assert_eq!(
        (added.status, added.json()),
        (201, json!({"caption": german}))
    );
    assert_eq!(
        site.shown(&stream).await["captions"],
        json!([english, german])
    );

    let lease = site.make(3).await;
    site.finish(&lease).await;
    let id = playback_id(&stream);
    for (name, expected) in [("en", HELLO), ("de-AT", HALLO)] {
        let text = site
            .play("GET", &format!("{id}/captions/{name}.vtt"), &[])
            .await;
        assert_eq!(String::from_utf8_lossy(&text.body), expected);
        assert_eq!(text.header("content-type"), "text/vtt; charset=utf-8");
        assert_eq!(text.header("cache-control"), "public, max-age=60");
        let list = site
            .play("GET", &format!("{id}/captions/{name}.m3u8"), &[])
            .await;
        let list = String::from_utf8(list.body).unwrap();
        assert!(
            list.contains(&format!("#EXTINF:18.00000,\n{name}.vtt\n#EXT-X-ENDLIST")),
            "{list}"
        );
    }
    let master = site.play("GET", &format!("{id}/master.m3u8"), &[]).await;
    let master = String::from_utf8(master.body).unwrap();
    for part in [
        "TYPE=SUBTITLES,GROUP-ID=\"captions\",NAME=\"en\",DEFAULT=YES",
        "LANGUAGE=\"de-AT\",URI=\"captions/de-AT.m3u8\"",
        "SUBTITLES=\"captions\"",
    ] {
        assert!(master.contains(part), "{part} in {master}");
    }
}

#[actix_web::test]
async fn there_is_one_for_each_language() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let before = site.used_bytes().await;
    for (text, label) in [(VTT, "first"), (SRT, "second")] {
        let fields = [("language", "en"), ("label", label), ("is_default", "true")];
        let added = site.send_captions(&stream, text, &fields).await;
        assert_eq!(added.status, 201, "{added:?}");
    }
    let shown = site.shown(&stream).await;
    assert_eq!(shown["captions"].as_array().unwrap().len(), 1);
    assert_eq!(shown["captions"][0]["label"], "second");
    assert_eq!(site.used_bytes().await, before + HALLO.len() as i64);
    let path = format!("{}/captions/EN", path_of(&stream));
    let removed = site.call("DELETE", &path, None).await;
    assert_eq!(
        (removed.status, removed.json()),
        (200, json!({"success": true}))
    );
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);
    assert_eq!(site.shown(&stream).await["captions"], json!([]));
    assert_eq!(site.used_bytes().await, before);
}

#[actix_web::test]
async fn captions_come_as_text_in_json() {
    let site = Site::open_with(|config| {
        config.vod.max_caption = bytesize::ByteSize::b(200);
    })
    .await;
    let stream = site
        .stream(json!({"captions": [{"language": "de", "content": SRT}]}))
        .await;
    assert_eq!(stream["captions"][0]["language"], "de");
    let path = format!("{}/captions", path_of(&stream));
    let add = async |body: Value| site.call("POST", &path, Some(body)).await;
    let added = add(json!({"language": "en", "content": VTT})).await;
    assert_eq!(added.status, 201, "{added:?}");
    for (body, status, words) in [
        (
            json!({"language": "en"}),
            400,
            "content, fileId or url must be given",
        ),
        (
            json!({"language": "en", "content": VTT, "url": "http://a/b"}),
            400,
            "only one of them",
        ),
        (
            json!({"language": "en", "content": "<html>"}),
            400,
            "captions, line 1",
        ),
        (
            json!({"language": "en", "content": VTT.repeat(20)}),
            413,
            "vod.max_caption",
        ),
    ] {
        let rejected = add(body).await;
        let text = rejected.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(rejected.status, status, "{text}");
        assert!(text.contains(words), "{text}");
    }
    let lease = site.make(3).await;
    site.finish(&lease).await;
    let id = playback_id(&stream);
    for (name, expected) in [("en", HELLO), ("de", HALLO)] {
        let text = site
            .play("GET", &format!("{id}/captions/{name}.vtt"), &[])
            .await;
        assert_eq!(String::from_utf8(text.body).unwrap(), expected);
    }
}

#[actix_web::test]
async fn what_is_no_captions_is_rejected_in_plain_words() {
    let site = Site::open_with(|config| {
        config.vod.max_caption = bytesize::ByteSize::b(200);
        config.vod.max_captions = 1;
    })
    .await;
    let stream = site.stream(json!({})).await;
    let english: Pairs<'_> = &[("language", "en")];
    let long = VTT.repeat(10);
    let cases: [(&str, Pairs<'_>, u16, &str); 6] = [
        (
            "WEBVTT\n\n00:02.000 --> 00:01.000\nx\n",
            english,
            400,
            "captions, line 3: a cue must end after its start",
        ),
        (
            "<html>",
            english,
            400,
            "captions, line 1: expected WebVTT, or a block of SubRip",
        ),
        (VTT, &[], 400, "language must be a language tag"),
        (
            VTT,
            &[("language", "../en")],
            400,
            "language must be a language tag",
        ),
        (
            VTT,
            &[("language", "en"), ("isDefault", "yes")],
            400,
            "isDefault must be true or false",
        ),
        (&long, english, 413, "vod.max_caption"),
    ];
    for (text, fields, status, expected) in cases {
        let answer = site.send_captions(&stream, text, fields).await;
        assert_eq!(answer.status, status, "{expected}: {answer:?}");
        assert!(answer.error().contains(expected), "{}", answer.error());
    }
    let path = format!("{}/captions", path_of(&stream));
    for (body, status) in [
        (json!({"language": "en"}), 400),
        (
            json!({"language": "en", "fileId": uuid::Uuid::now_v7()}),
            404,
        ),
        (
            json!({"language": "en", "url": "http://127.0.0.1/a.vtt"}),
            400,
        ),
    ] {
        let answer = site.call("POST", &path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
    assert_eq!(site.send_captions(&stream, VTT, english).await.status, 201);
    let more = site
        .send_captions(&stream, VTT, &[("language", "de")])
        .await;
    assert_eq!(more.status, 409, "{more:?}");
    assert_eq!(
        site.send_captions(&stream, SRT, english).await.status,
        201,
        "in its place"
    );

    let bad = site.stored("bad.vtt", b"WEBVTT\n\nx\n").await;
    let clip = site.stored("clip.mp4", super::MP4).await;
    let body =
        json!({"sourceFileId": clip["id"], "captions": [{"language": "en", "fileId": bad["id"]}]});
    let answer = site.call("POST", PATH, Some(body)).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.error().starts_with("captions[0], line 3"),
        "{}",
        answer.error()
    );
    let rejected = json!({"language": "en", "url": "http://127.0.0.1/a.vtt"});
    let body = json!({"sourceFileId": clip["id"], "captions": [rejected]});
    let answer = site.call("POST", PATH, Some(body)).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.error().starts_with("captions[0].url: "),
        "{}",
        answer.error()
    );
    let list = site.call("GET", PATH, None).await.json();
    assert_eq!(
        list["streams"].as_array().unwrap().len(),
        1,
        "nothing was made"
    );
    site.nothing_temporary_is_left().await;
}
