//! Attacks of strangers and users: documents that would run in the service's name, names that mislead, requests that
//! lie.

use serde_json::json;

use super::Shared;
use crate::support::{Failure, http::exchange, json::list, server::Form};

/// Each would run in a browser that took it for a page.
const DOCUMENTS: [(&str, &[u8]); 6] = [
    ("page.html", b"<!doctype html><script>parent.x=1</script>"),
    (
        "drawing.svg",
        b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>x=1</script></svg>",
    ),
    (
        "page.xhtml",
        b"<html xmlns=\"http://www.w3.org/1999/xhtml\"><script>x=1</script></html>",
    ),
    (
        "style.xsl",
        b"<?xml version=\"1.0\"?><?xml-stylesheet href=\"x\"?>",
    ),
    ("code.js", b"x=1"),
    ("image.png", b"<!doctype html><script>x=1</script>"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_stored_never_runs_in_the_services_name() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    for (name, bytes) in DOCUMENTS {
        let file = shared.put(name, bytes).await?;
        for rest in ["", "?inline=1"] {
            let path = shared.path(&format!("/files/{file}{rest}"));
            let answer = shared.api.fetch(&path).await?.expect(200)?;
            assert_eq!(
                answer.header("content-security-policy"),
                "sandbox",
                "{name}"
            );
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{name}");
            let is_image = answer.header("content-type") == "image/png";
            let disposition = answer.header("content-disposition");
            assert!(
                is_image || disposition.starts_with("attachment;"),
                "{name}: {disposition}"
            );
        }
        let page = shared.list("").await?;
        assert!(page["files"][0]["streamUrl"].is_null());
    }
    // The preview of a drawing has pixels only.
    let page = shared.list("").await?;
    let files = list(&page["files"])?;
    let drawing = files.iter().find(|file| file["filename"] == "drawing.svg");
    let url = drawing.and_then(|file| file["previewUrl"].as_str());
    let preview = shared.api.fetch(url.ok_or("no preview")?).await?;
    if preview.status == 200 {
        let kind = preview.header("content-type");
        assert!(
            ["image/png", "image/webp", "image/jpeg"].contains(&kind),
            "{kind}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_shown_as_they_are_stored() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let long = format!("{}.jpg", "長".repeat(83));
    let names = [
        "CON.txt",
        "a.txt",
        "A.txt",
        "é.txt",
        "<b>&\"'.txt",
        "100%.txt",
        "שלום.txt",
        &long,
        ".hidden",
    ];
    for name in names {
        let form =
            Form::new()
                .field("folderId", &shared.folder)
                .file("file", name, name.as_bytes());
        shared
            .api
            .post_form("/api/files", form)
            .await?
            .expect(201)?;
    }
    let page = shared.list("").await?;
    let mut listed = Vec::new();
    for file in list(&page["files"])? {
        let name = file["filename"].as_str().ok_or("no name")?.to_owned();
        let url = file["downloadUrl"].as_str().ok_or("no address")?;
        let answer = shared.api.fetch(url).await?.expect(200)?;
        assert!(answer.bytes == name.as_bytes(), "{name}");
        listed.push(name);
    }
    listed.reverse();
    assert_eq!(listed, names);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_are_refused_and_harm_no_one() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let file = shared.put("a.bin", &[7; 1_000]).await?;
    let address = shared.server.addresses().http;
    let file_path = shared.path(&format!("/files/{file}"));
    let list_path = shared.path("");
    for (line, headers, expected) in [
        (format!("POST {list_path}"), "Content-Length: 0", 405),
        (format!("DELETE {file_path}"), "Content-Length: 0", 405),
        (format!("GET {}", shared.path("/unlock")), "", 405),
        (
            format!("POST {}", shared.path("/unlock")),
            "Content-Length: 0",
            400,
        ),
        (
            format!("POST {}", shared.path("/unlock")),
            "Content-Length: 9999999999",
            413,
        ),
        (format!("GET {file_path}?inline=maybe"), "", 400),
        (format!("GET {list_path}?cursor=%FF%FF"), "", 400),
        (
            format!(
                "GET {list_path}?cursor=d7fffffffffffffff-{}",
                "f".repeat(32)
            ),
            "",
            200,
        ),
        (
            format!(
                "GET {list_path}?cursor=f-8000000000000000-{}",
                "0".repeat(32)
            ),
            "",
            400,
        ),
        (
            format!("GET {file_path}"),
            "Range: bytes=0-18446744073709551615",
            206,
        ),
        (
            format!("GET {file_path}"),
            "Range: bytes=18446744073709551615-",
            416,
        ),
        (
            format!("GET {file_path}"),
            "Range: bytes=-18446744073709551615",
            206,
        ),
        (format!("GET {file_path}"), "Range: bytes=5-2", 200),
        (
            format!("GET {file_path}"),
            "Range: bytes=0-1,0-1,0-1,0-1",
            200,
        ),
        (
            format!("GET {list_path}"),
            "Cookie: sluice_share=7fffffffffffffff.AAAA",
            200,
        ),
    ] {
        let request =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n\r\n");
        let request = request.replace("\r\n\r\n\r\n", "\r\n\r\n");
        let (status, answer) = exchange(address, request).await?;
        assert_eq!(status, expected, "{line} {headers}: {answer}");
    }
    shared.list("").await?;
    Ok(())
}
