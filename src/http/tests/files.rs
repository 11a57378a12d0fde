//! Files, folders and direct uploads by their API, in process.

use actix_web::http::header::HeaderMap;
use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{Answer, Site, eventually, request};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

#[actix_web::test]
async fn files_are_searched_by_their_names() {
    let site = Site::open().await;
    for name in [
        "Über uns.png",
        "50%_off.png",
        "50 off.png",
        "Straße.png",
        "МОСКВА.png",
    ] {
        site.stored(name, PNG).await;
    }
    let found = async |query: &str| {
        let answer = site
            .call("GET", &format!("/api/files/search?{query}"), None)
            .await;
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        let list = answer.json();
        let names = list["files"].as_array().unwrap().iter();
        let names: Vec<String> = names
            .map(|file| file["filename"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(list["pagination"]["total"], names.len(), "{query}");
        names
    };
    for (query, expected) in [
        ("q=%C3%BCber", &["Über uns.png"][..]),
        ("q=U%CC%88BER", &["Über uns.png"]),
        ("q=%25_", &["50%_off.png"]),
        ("q=%25", &["50%_off.png"]),
        ("q=_", &["50%_off.png"]),
        ("q=STRA%C3%9FE", &["Straße.png"]),
        ("q=%D0%BC%D0%BE%D1%81%D0%BA", &["МОСКВА.png"]),
        ("q=off", &["50 off.png", "50%_off.png"]),
        ("q=off&mimePrefix=video/", &[]),
        ("q=nothing", &[]),
    ] {
        assert_eq!(found(query).await, expected, "{query}");
    }
    // In pages, as the list.
    let first = site
        .call("GET", "/api/files/search?q=.png&limit=2", None)
        .await
        .json();
    assert_eq!(first["pagination"]["hasMore"], true);
    let cursor = first["nextCursor"].as_str().unwrap();
    let path = format!("/api/files/search?q=.png&limit=2&cursor={cursor}");
    let second = site.call("GET", &path, None).await.json();
    assert_eq!(second["files"][0]["filename"], "50 off.png");
    for path in ["/api/files/search", "/api/files/search?q="] {
        let rejected = site.call("GET", path, None).await;
        assert_eq!(rejected.status, 400);
        assert!(
            rejected.json()["error"]
                .as_str()
                .unwrap()
                .starts_with("q is missing")
        );
    }
}

#[actix_web::test]
async fn a_slug_is_rejected_and_not_dropped() {
    let site = Site::open().await;
    let file = site.stored("a.png", PNG).await;
    let with = |slug: &str| {
        let slug = part("name=\"cdnSlug\"", slug.as_bytes());
        form(&[slug, part("name=\"file\"; filename=\"a.png\"", PNG)])
    };
    let rejected = site.post_form(with("my-image")).await;
    assert_eq!(rejected.status, 400, "{rejected:?}");
    let message = rejected.json()["error"].as_str().unwrap().to_owned();
    assert!(message.starts_with("cdnSlug is not supported"), "{message}");
    assert_eq!(site.post_form(with("")).await.status, 201);
    let path = format!("/api/files/{}", file["id"].as_str().unwrap());
    let upload = json!({"filename": "a.png", "sizeBytes": 3, "cdn_slug": "x"});
    for (method, path, body, status) in [
        ("PATCH", path.as_str(), json!({"cdnSlug": "x"}), 400),
        (
            "PATCH",
            &path,
            json!({"cdnSlug": null, "description": "x"}),
            200,
        ),
        ("POST", "/api/uploads", upload, 400),
    ] {
        let answer = site.call(method, path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
}

/// Builds a part of a form from its headers' tail and its bytes.
fn part(disposition: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("--edge\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat()[..], b"--edge--\r\n"].concat()
}

fn one_file(name: &str, bytes: &[u8]) -> Vec<u8> {
    form(&[part(&format!("name=\"file\"; filename=\"{name}\""), bytes)])
}

impl Site {
    async fn post_form(&self, body: Vec<u8>) -> Answer {
        self.post_as(
            self.first.api_key.expose(),
            "multipart/form-data; boundary=edge",
            body,
        )
        .await
    }

    async fn post_as(&self, key: &str, content_type: &str, body: Vec<u8>) -> Answer {
        let request = request("POST", "/api/files")
            .insert_header(("authorization", format!("Bearer {key}")))
            .insert_header(("content-type", content_type))
            .set_payload(body);
        self.send(request).await
    }

    pub(super) async fn stored(&self, name: &str, bytes: &[u8]) -> Value {
        let answer = self.post_form(one_file(name, bytes)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["file"].clone()
    }

    async fn get_with(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let bearer = format!("Bearer {}", self.first.api_key.expose());
        let mut request = request(method, path).insert_header(("authorization", bearer));
        for (name, value) in headers {
            request = request.insert_header((*name, *value));
        }
        self.send(request).await
    }

    fn temporary_files(&self) -> usize {
        let folder = self.app.platform.config.store.data_dir.join("tmp");
        std::fs::read_dir(folder).unwrap().count()
    }

    pub(super) async fn nothing_temporary_is_left(&self) {
        let are_gone = async || self.temporary_files() == 0;
        eventually("temporary files are left", are_gone).await;
    }
}

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

/// The path of an absolute address of this site.
fn path_of(address: &Value) -> String {
    let address = address.as_str().unwrap();
    address
        .strip_prefix("http://media.test:8080")
        .unwrap()
        .to_owned()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[actix_web::test]
async fn a_file_comes_back_as_it_was_sent() {
    let site = Site::open().await;
    let file = site.stored("photo.png", PNG).await;
    for (field, expected) in [
        ("filename", json!("photo.png")),
        ("mime_type", json!("image/png")),
        ("size_bytes", json!(PNG.len())),
        ("role", json!("uploaded")),
        ("folder_id", Value::Null),
        ("focal_point", Value::Null),
        ("tags", json!([])),
    ] {
        assert_eq!(file[field], expected, "{field}");
    }
    let path = format!("/api/files/{}", id(&file));
    let bytes = site.call("GET", &path, None).await;
    assert_eq!((bytes.status, &bytes.body[..]), (200, PNG));
    assert_eq!(bytes.header("content-type"), "image/png");
    assert_eq!(bytes.header("content-security-policy"), "sandbox");
    assert_eq!(bytes.header("x-content-type-options"), "nosniff");
    assert!(bytes.header("content-disposition").starts_with("inline;"));
    let shown = site
        .get_with(
            "GET",
            &path,
            &[("accept", "text/html, application/json;q=0.9")],
        )
        .await;
    assert_eq!(shown.json()["file"]["id"], file["id"]);
    assert_eq!(shown.header("vary"), "accept");

    let anonymous = site
        .send(request("GET", &path_of(&file["download_url"])))
        .await;
    assert_eq!((anonymous.status, &anonymous.body[..]), (200, PNG));
    let stranger = site.stranger().await;
    assert_eq!(
        site.call_as(&stranger, "GET", &path, None).await.status,
        404
    );
    let reader = site.key(Scope::Read).await;
    assert_eq!(
        site.call_as(&reader, "DELETE", &path, None).await.status,
        403
    );
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn ranges_and_conditions() {
    let site = Site::open().await;
    let file = site.stored("ten.bin", b"0123456789").await;
    let path = format!("/api/files/{}", id(&file));
    let whole = site.call("GET", &path, None).await;
    let (tag, date) = (
        whole.header("etag").to_owned(),
        whole.header("last-modified").to_owned(),
    );
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Headers, u16, &[u8], &str); 11] = [
        (&[("range", "bytes=2-4")], 206, b"234", "bytes 2-4/10"),
        (&[("range", "bytes=-3")], 206, b"789", "bytes 7-9/10"),
        (&[("range", "bytes=0-1,4-5")], 200, b"0123456789", ""),
        (
            &[("range", "bytes=5-"), ("if-range", &tag)],
            206,
            b"56789",
            "bytes 5-9/10",
        ),
        (
            &[("range", "bytes=5-"), ("if-range", &date)],
            206,
            b"56789",
            "bytes 5-9/10",
        ),
        (
            &[("range", "bytes=5-"), ("if-range", "\"other\"")],
            200,
            b"0123456789",
            "",
        ),
        (
            &[
                ("range", "bytes=5-"),
                ("if-range", "Sat, 01 Jan 2000 00:00:00 GMT"),
            ],
            200,
            b"0123456789",
            "",
        ),
        (&[("if-none-match", &tag)], 304, b"", ""),
        (
            &[("if-none-match", &tag), ("range", "bytes=0-1")],
            304,
            b"",
            "",
        ),
        (&[("if-modified-since", &date)], 304, b"", ""),
        (
            &[("if-none-match", "\"other\""), ("if-modified-since", &date)],
            200,
            b"0123456789",
            "",
        ),
    ];
    for (headers, status, body, range) in cases {
        let answer = site.get_with("GET", &path, headers).await;
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(answer.body, body, "{headers:?}");
        assert_eq!(answer.header("content-range"), range, "{headers:?}");
        assert_eq!(answer.header("etag"), tag, "{headers:?}");
    }
    let outside = site.get_with("GET", &path, &[("range", "bytes=10-")]).await;
    assert_eq!(
        (outside.status, outside.header("content-range")),
        (416, "bytes */10")
    );
    let empty = site.stored("empty.txt", b"").await;
    let answer = site
        .call("GET", &format!("/api/files/{}", id(&empty)), None)
        .await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert!(
        answer
            .header("content-disposition")
            .starts_with("attachment;")
    );
}

#[actix_web::test]
async fn names_come_back_safe_in_any_script() {
    let site = Site::open().await;
    let cases = [
        ("写真 1.png", "写真 1.png"),
        ("a%22b.png", "a\"b.png"),
        ("line%0D%0ASet-Cookie: x.png", "lineSet-Cookie: x.png"),
        ("../../../etc/passwd.png", "passwd.png"),
        ("C:/x/😀.png", "😀.png"),
        ("\u{202E}gnp.exe", "gnp.exe"),
        ("e\u{301}.png", "é.png"),
    ];
    for (sent, expected) in cases {
        let file = site.stored(sent, PNG).await;
        assert_eq!(file["filename"], expected);
        let bytes = site
            .call("GET", &format!("/api/files/{}", id(&file)), None)
            .await;
        let disposition = header(&bytes.headers, "content-disposition");
        let (_, extended) = disposition.split_once("filename*=UTF-8''").unwrap();
        let decoded: String =
            url::form_urlencoded::parse(format!("n={}", extended.replace('+', "%2B")).as_bytes())
                .map(|(_, name)| name.into_owned())
                .collect();
        assert_eq!(decoded, expected);
    }
    for name in ["page.html", "drawing.svg", "script.js", "unknown"] {
        let file = site
            .stored(name, b"<svg xmlns='http://www.w3.org/2000/svg'/>")
            .await;
        let bytes = site
            .call("GET", &format!("/api/files/{}", id(&file)), None)
            .await;
        assert!(
            bytes
                .header("content-disposition")
                .starts_with("attachment;"),
            "{name}"
        );
    }
}

#[actix_web::test]
async fn what_is_no_form_or_half_of_one_is_rejected_and_leaves_nothing() {
    let site = Site::open_with(|config| {
        config.uploads.max_file = bytesize::ByteSize::kb(300);
        config.uploads.max_fields = 2;
        config.uploads.max_text = bytesize::ByteSize::kib(1);
    })
    .await;
    let large = vec![7; 300_001];
    let cases: [(Vec<u8>, u16, &str); 11] = [
        (b"--edge--\r\n".to_vec(), 400, "file is missing"),
        (
            form(&[part("name=\"other\"; filename=\"x\"", b"x")]),
            400,
            "file is missing",
        ),
        (
            form(&[part("name=\"file\"", b"text")]),
            400,
            "file is missing",
        ),
        (
            form(&[part("name=\"file\"; filename=\"\"", b"")]),
            400,
            "file is missing",
        ),
        (
            part("name=\"file\"; filename=\"x\"", b"half of a form"),
            400,
            "ended before",
        ),
        (
            b"--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nhal"
                .to_vec(),
            400,
            "ended before",
        ),
        (
            form(&[part("filename=\"x\"", b"x")]),
            400,
            "form could not be read",
        ),
        (
            form(&[
                part("name=\"file\"; filename=\"x\"", b"x"),
                part("name=\"files\"; filename=\"y\"", b"y"),
            ]),
            400,
            "too many files: at most 1",
        ),
        (one_file("large.bin", &large), 413, "uploads.max_file"),
        (
            form(&[
                part("name=\"a\"", &large[..1025]),
                part("name=\"file\"; filename=\"x\"", b"x"),
            ]),
            413,
            "uploads.max_text",
        ),
        (
            form(&[
                part("name=\"folderId\"", b"nowhere"),
                part("name=\"file\"; filename=\"x\"", b"x"),
            ]),
            400,
            "folderId must be",
        ),
    ];
    for (body, status, error) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let answer = site.post_form(body).await;
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
        assert!(
            answer.error().contains(error),
            "{shown}: {}",
            answer.error()
        );
    }
    let key = site.first.api_key.expose();
    for content_type in [
        "application/json",
        "multipart/mixed; boundary=edge",
        "multipart/form-data",
    ] {
        let answer = site.post_as(key, content_type, one_file("x", b"x")).await;
        assert_eq!(answer.status, 400, "{content_type}: {answer:?}");
    }
    site.nothing_temporary_is_left().await;
    let list = site.call("GET", "/api/files", None).await.json();
    assert_eq!(list["pagination"]["total"], 0);
}

#[actix_web::test]
async fn lists_are_paged_by_cursor_and_offset() {
    let site = Site::open().await;
    for n in 0..5_u8 {
        site.stored(&format!("{n}.bin"), &[n]).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let files = list["files"].as_array().unwrap();
        files
            .iter()
            .map(|file| file["filename"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = site.call("GET", "/api/files?limit=2", None).await.json();
    assert_eq!(names(&first), ["4.bin", "3.bin"]);
    assert_eq!(
        first["pagination"],
        json!({"limit": 2, "offset": 0, "total": 5, "hasMore": true})
    );
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = site
        .call("GET", &format!("/api/files?limit=3&cursor={cursor}"), None)
        .await
        .json();
    assert_eq!(names(&second), ["2.bin", "1.bin", "0.bin"]);
    assert_eq!(
        (&second["nextCursor"], &second["pagination"]["hasMore"]),
        (&Value::Null, &json!(false))
    );
    let skipped = site.call("GET", "/api/files?offset=4", None).await.json();
    assert_eq!(names(&skipped), ["0.bin"]);
    assert_eq!(
        site.call("GET", "/api/files?limit=0", None).await.status,
        400
    );
}

#[actix_web::test]
async fn folders_hold_files_and_each_other() {
    let site = Site::open().await;
    let made = site
        .call(
            "POST",
            "/api/folders",
            Some(json!({"name": "Ferien", "color": "#fa0"})),
        )
        .await;
    assert_eq!(made.status, 201);
    let outer = id(&made.json()["folder"]);
    let inner = site
        .call(
            "POST",
            "/api/folders",
            Some(json!({"name": "Meer", "parent_id": outer})),
        )
        .await;
    let inner = id(&inner.json()["folder"]);
    let body = form(&[
        part("name=\"file\"; filename=\"x.png\"", PNG),
        part("name=\"folder_id\"", inner.as_bytes()),
    ]);
    let file = site.post_form(body).await.json()["file"].clone();
    assert_eq!(file["folder_id"], inner);
    let path = |id: &str| format!("/api/folders/{id}");

    let listed = site
        .call("GET", &format!("/api/folders?parentId={outer}"), None)
        .await
        .json();
    assert_eq!(listed["folders"][0]["name"], "Meer");
    let top = site
        .call("GET", "/api/folders?parentId=null", None)
        .await
        .json();
    assert_eq!(top["folders"].as_array().unwrap().len(), 1);
    let cycle = site
        .call("PATCH", &path(&outer), Some(json!({"parentId": inner})))
        .await;
    assert_eq!(cycle.status, 409, "{cycle:?}");
    for name in ["", "a/b", "a\u{0}b", &"x".repeat(256)] {
        let rejected = site
            .call("POST", "/api/folders", Some(json!({"name": name})))
            .await;
        assert_eq!(rejected.status, 400, "{name}");
    }
    let renamed = site
        .call(
            "PATCH",
            &path(&inner),
            Some(json!({"name": "See", "color": null})),
        )
        .await;
    assert_eq!(renamed.json()["folder"]["name"], "See");
    assert_eq!(site.call("DELETE", &path(&outer), None).await.status, 409);
    assert_eq!(
        site.call("DELETE", &format!("{}?recursive=x", path(&outer)), None)
            .await
            .status,
        400
    );
    let gone = site
        .call("DELETE", &format!("{}?recursive=true", path(&outer)), None)
        .await;
    assert_eq!(gone.json(), json!({"success": true}));
    assert_eq!(
        site.call("GET", &format!("/api/files/{}", id(&file)), None)
            .await
            .status,
        404
    );
    assert_eq!(site.call("GET", &path(&inner), None).await.status, 404);
}

#[actix_web::test]
async fn a_file_is_changed_and_deleted() {
    let site = Site::open().await;
    let file = site.stored("x.png", PNG).await;
    let path = format!("/api/files/{}", id(&file));
    let patch = json!({"filename": "y.png", "focal_point": {"x": 0.5, "y": 0.25}, "tags": ["sea"], "description": "d"});
    let changed = site.call("PATCH", &path, Some(patch)).await.json()["file"].clone();
    assert_eq!(changed["filename"], "y.png");
    assert_eq!(changed["focal_point"], json!({"x": 0.5, "y": 0.25}));
    for wrong in [
        json!({"filename": "a/b"}),
        json!({"focalPoint": {"x": 2, "y": 0}}),
        json!({"focalPoint": "0.5,0.5"}),
        json!({"tags": "sea"}),
        json!({"folderId": "x"}),
    ] {
        let rejected = site.call("PATCH", &path, Some(wrong.clone())).await;
        assert_eq!(rejected.status, 400, "{wrong}: {rejected:?}");
    }
    let unknown = json!({"folderId": "00000000-0000-0000-0000-000000000000"});
    assert_eq!(site.call("PATCH", &path, Some(unknown)).await.status, 404);

    let download = path_of(&changed["download_url"]);
    assert_eq!(
        site.call("DELETE", &path, None).await.json(),
        json!({"success": true})
    );
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);
    let gone = site.send(request("GET", &download)).await;
    assert_eq!(
        (gone.status, gone.error().as_str()),
        (404, "download not found")
    );
}

#[actix_web::test]
async fn download_addresses_expire_and_cannot_be_made_up() {
    let site = Site::open_with(|config| {
        config.uploads.link_lifetime = std::time::Duration::from_secs(1);
    })
    .await;
    let file = site.stored("x.png", PNG).await;
    let good = path_of(&file["download_url"]);
    assert_eq!(site.send(request("HEAD", &good)).await.status, 200);
    let mut bent = good.clone();
    let last = if bent.pop() == Some('A') { 'E' } else { 'A' };
    bent.push(last);
    for wrong in [
        &bent[..],
        &good[..good.len() - 1],
        "/api/downloads/x",
        "/api/downloads/%00",
    ] {
        let answer = site.send(request("GET", wrong)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (404, "download not found"),
            "{wrong}"
        );
    }
    let is_rejected = async || site.send(request("GET", &good)).await.status != 200;
    eventually("the address does not expire", is_rejected).await;
}

#[actix_web::test]
async fn a_direct_upload_becomes_one_file() {
    let site =
        Site::open_with(|config| config.http.cors_origins = vec!["https://app.example.org".into()])
            .await;
    let new = json!({"filename": "../x.png", "size_bytes": PNG.len(), "contentType": "text/html"});
    let made = site.call("POST", "/api/uploads", Some(new)).await;
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json();
    assert_eq!(made["upload"]["method"], "PUT");
    let signed = path_of(&made["upload"]["signedUrl"]);
    let complete = async || {
        let path = path_of(&made["complete"]["url"]);
        site.call("POST", &path, Some(made["complete"]["body"].clone()))
            .await
    };
    assert_eq!(complete().await.status, 409);

    let put = |path: &str, bytes: &[u8]| {
        request("PUT", path)
            .insert_header(("origin", "https://app.example.org"))
            .set_payload(bytes.to_vec())
    };
    let wrong_signature = signed.replace("signature=", "signature=AAAA");
    let later = signed.replace("expires=1", "expires=2");
    let rejections = [
        (wrong_signature.as_str(), PNG.to_vec(), 403),
        (later.as_str(), PNG.to_vec(), 403),
        (signed.split('?').next().unwrap(), PNG.to_vec(), 403),
        (&signed, PNG[1..].to_vec(), 400),
        (&signed, [PNG, b"x"].concat(), 413),
    ];
    for (path, bytes, status) in rejections {
        let answer = site.send(put(path, &bytes)).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "https://app.example.org"
        );
    }
    for _ in 0..2 {
        let answer = site.send(put(&signed, PNG)).await;
        assert_eq!(
            (answer.status, &answer.json()["upload"]["sizeBytes"]),
            (200, &json!(PNG.len()))
        );
    }
    let completed = complete().await.json();
    assert_eq!(completed["idempotent"], false);
    assert_eq!(completed["file"]["filename"], "x.png");
    assert_eq!(completed["file"]["mime_type"], "image/png");
    let repeated = complete().await.json();
    assert_eq!(
        (&repeated["idempotent"], &repeated["file"]["id"]),
        (&json!(true), &completed["file"]["id"])
    );
    assert_eq!(site.send(put(&signed, PNG)).await.status, 409);
    let list = site.call("GET", "/api/files", None).await.json();
    assert_eq!(list["pagination"]["total"], 1);
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn a_direct_upload_is_listed_until_it_is_cancelled_or_completed() {
    let site = Site::open().await;
    let make = async || {
        let new = json!({"filename": "x.png", "sizeBytes": PNG.len()});
        site.call("POST", "/api/uploads", Some(new)).await.json()
    };
    let put = async |made: &Value| {
        let signed = path_of(&made["upload"]["signedUrl"]);
        let put = request("PUT", &signed).set_payload(PNG.to_vec());
        site.send(put).await.status
    };
    let listed = async || {
        let list = site.call("GET", "/api/uploads?limit=9", None).await.json();
        let uploads = list["uploads"].as_array().unwrap().iter();
        uploads
            .map(|upload| (upload["status"].clone(), upload["offsetBytes"].clone()))
            .collect::<Vec<_>>()
    };
    let cancel = async |made: &Value| {
        let path = format!("/api/uploads/{}", made["upload"]["id"].as_str().unwrap());
        site.call("DELETE", &path, None).await.status
    };
    let (kept, cancelled) = (make().await, make().await);
    assert_eq!(put(&kept).await, 200);
    assert_eq!(
        listed().await,
        [
            (json!("receiving"), json!(0)),
            (json!("received"), json!(PNG.len()))
        ]
    );
    assert_eq!(cancel(&cancelled).await, 204);
    assert_eq!(cancel(&cancelled).await, 404);
    assert_eq!(put(&cancelled).await, 404);
    assert_eq!(listed().await.len(), 1);
    let body = kept["complete"]["body"].clone();
    let completed = site.call("POST", "/api/uploads/complete", Some(body)).await;
    assert_eq!(completed.status, 200);
    assert_eq!(cancel(&kept).await, 409);
    assert_eq!(listed().await, []);
}

#[actix_web::test]
async fn only_pages_of_the_settings_may_put() {
    let site = Site::open_with(|config| {
        config.http.cors_origins = vec!["https://app.example.org/".into()]
    })
    .await;
    let path = "/api/uploads/00000000-0000-0000-0000-000000000000/content";
    for (origin, allowed) in [
        ("https://app.example.org", "https://app.example.org"),
        ("https://app.example.org.evil.net", ""),
        ("null", ""),
    ] {
        let asked = request("OPTIONS", path)
            .insert_header(("origin", origin))
            .insert_header(("access-control-request-method", "PUT"));
        let answer = site.send(asked).await;
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(
            answer.header("access-control-allow-methods").is_empty(),
            allowed.is_empty()
        );
    }
    let other =
        request("OPTIONS", "/api/files").insert_header(("origin", "https://app.example.org"));
    assert_eq!(
        site.send(other).await.header("access-control-allow-origin"),
        ""
    );
}

#[actix_web::test]
async fn the_plan_bounds_what_is_stored() {
    let site = Site::open_with(|config| {
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.storage = bytesize::ByteSize(10);
    })
    .await;
    site.stored("six", b"123456").await;
    let rejected = site.post_form(one_file("five", b"12345")).await;
    assert_eq!(
        (rejected.status, &rejected.json()["code"]),
        (413, &json!("storage_used_up"))
    );
    assert_eq!(
        rejected.json()["upgradeUrl"],
        "http://media.test:8080/app/settings/usage"
    );
    let rejected = site
        .call(
            "POST",
            "/api/uploads",
            Some(json!({"filename": "x", "sizeBytes": 5})),
        )
        .await;
    assert_eq!(rejected.status, 413, "{rejected:?}");
    site.stored("four", b"1234").await;
}

#[actix_web::test]
async fn a_low_disk_is_507() {
    let site = Site::open_with(|config| config.store.min_free = "99%".into()).await;
    let answer = site.post_form(one_file("x", b"x")).await;
    assert_eq!(answer.status, 507, "{answer:?}");
    site.nothing_temporary_is_left().await;
}
