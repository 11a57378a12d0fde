//! Names in any script, with quotes, line ends and path tricks: they come back readable and harmless.

use serde_json::json;

use crate::support::{
    Failure,
    server::{Form, Server},
};

/// Names as sent by a browser, and as stored.
const NAMES: &[(&str, &str)] = &[
    ("photo.jpg", "photo.jpg"),
    ("写真 と 動画.png", "写真 と 動画.png"),
    ("Ünïcödé ﬁne.txt", "Ünïcödé ﬁne.txt"),
    ("cafe\u{301}.txt", "café.txt"),
    ("👩\u{200D}🚀 🇺🇳.webp", "👩\u{200D}🚀 🇺🇳.webp"),
    ("فاتورة.pdf", "فاتورة.pdf"),
    ("say \"hi\".txt", "say \"hi\".txt"),
    ("it's; a=b, 100%.txt", "it's; a=b, 100%.txt"),
    ("two\r\nlines.txt", "twolines.txt"),
    (
        "x\r\nSet-Cookie: a=b\r\n\r\n<script>.html",
        "xSet-Cookie: a=b<script>.html",
    ),
    ("../../../../etc/passwd", "passwd"),
    ("..", "file"),
    ("/etc/shadow", "shadow"),
    ("invoice\u{202E}gpj.exe", "invoicegpj.exe"),
    ("\u{2066}hidden\u{2069}.txt", "hidden.txt"),
    (" .hidden ", ".hidden"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_come_back_readable_and_harmless() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    for (sent, stored) in NAMES {
        let file = api.upload(sent, b"any bytes").await?;
        assert_eq!(file["filename"], *stored, "{sent:?}");
        let url = file["download_url"].as_str().ok_or("no download_url")?;
        let answer = api.fetch(url).await?.expect(200)?;
        assert_eq!(&answer.bytes[..], b"any bytes");
        assert_eq!(extended_name(answer.header("content-disposition")), *stored);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("content-security-policy"), "sandbox");
        assert_eq!(answer.header("set-cookie"), "");
    }
    let long = format!("{}.jpeg", "長".repeat(300));
    let file = api.upload(&long, b"x").await?;
    let name = file["filename"].as_str().ok_or("no name")?;
    assert!(name.len() <= 255 && name.ends_with("長.jpeg"), "{name}");

    // No header may hold these (RFC 9110 §5.5).
    let form = Form::new().file("file", "con\u{7F}trol\u{1}.txt", b"x");
    let refused = api.post_form("/api/files", form).await?.expect(400)?;
    assert!(
        refused.json()?["error"]
            .as_str()
            .is_some_and(|error| error.contains("control"))
    );

    // The other ways in which clients write names.
    for (disposition, stored) in [
        ("filename*=UTF-8''%E5%86%99%E7%9C%9F.png", "写真.png"),
        (
            "filename=\"x.png\"; filename*=utf-8''na%C3%AFve.png",
            "naïve.png",
        ),
        ("filename=plain.png", "plain.png"),
        (
            "filename=\"with \\\"quotes\\\".png\"",
            "with \"quotes\".png",
        ),
    ] {
        let form = Form::new().part("files[0]", disposition, b"x");
        let answer = api.post_form("/api/files", form).await?.expect(201)?;
        assert_eq!(answer.json()?["file"]["filename"], stored, "{disposition}");
    }
    Ok(())
}

/// Returns the name under which a browser would save the file (RFC 6266: `filename*` wins).
fn extended_name(disposition: &str) -> String {
    let Some((_, extended)) = disposition.split_once("filename*=UTF-8''") else {
        return format!("no filename* in {disposition}");
    };
    let mut bytes = Vec::new();
    let mut rest = extended.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [
                    rest.next().unwrap_or_default(),
                    rest.next().unwrap_or_default(),
                ];
                let text = String::from_utf8_lossy(&digits).into_owned();
                bytes.push(u8::from_str_radix(&text, 16).unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A page or a drawing of a user is never a part of this site.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_act_is_a_download() -> Result<(), Failure> {
    const PAGE: &[u8] = b"<!doctype html><script>alert(document.domain)</script>";
    const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    const GIF: &[u8] =
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let server = Server::start().await?;
    let api = server.api();
    for (name, bytes, mime_type, shown) in [
        ("page.html", PAGE, "text/html", "attachment"),
        ("page.png", PAGE, "application/octet-stream", "attachment"),
        ("page.pdf", PAGE, "application/octet-stream", "attachment"),
        ("drawing.svg", SVG, "image/svg+xml", "attachment"),
        ("drawing.png", SVG, "image/svg+xml", "attachment"),
        ("dot.gif", GIF, "image/gif", "inline"),
        ("dot.html", GIF, "image/gif", "inline"),
        (
            "list.png",
            b"#EXTM3U\n#EXT-X-VERSION:3\n",
            "application/octet-stream",
            "attachment",
        ),
    ] {
        let file = api.upload(name, bytes).await?;
        assert_eq!(file["mime_type"], mime_type, "{name}");
        if mime_type == "image/gif" {
            assert_eq!((&file["width"], &file["height"]), (&json!(1), &json!(1)));
        }
        let url = file["download_url"].as_str().ok_or("no download_url")?;
        let answer = api.fetch(url).await?.expect(200)?;
        assert_eq!(answer.header("content-type"), mime_type, "{name}");
        let disposition = answer.header("content-disposition");
        assert!(
            disposition.starts_with(&format!("{shown};")),
            "{name}: {disposition}"
        );
    }
    Ok(())
}
