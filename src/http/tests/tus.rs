//! Resumable uploads (tus), in process.

use actix_web::http::header::{HeaderName, HeaderValue};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use sluice_store::{StoreSettings, api_keys::Scope, now_ms};

use super::{Answer, Site, request};

const ALL: &str = "/api/uploads/tus";
const ORIGIN: &str = "https://app.example.org";

type Headers<'a> = &'a [(&'a str, &'a str)];

impl Site {
    /// With the version and the first API key, unless the headers say otherwise; an empty value leaves a header away.
    async fn tus(&self, method: &str, path: &str, headers: Headers<'_>, body: &[u8]) -> Answer {
        let bearer = format!("Bearer {}", self.first.api_key.expose());
        let mut request = request(method, path)
            .insert_header(("authorization", bearer))
            .insert_header(("tus-resumable", "1.0.0"));
        if !body.is_empty() {
            request = request
                .insert_header(("content-type", "application/offset+octet-stream"))
                .set_payload(body.to_vec());
            if headers.iter().all(|(name, _)| *name != "content-length") {
                request = request.insert_header(("content-length", body.len()));
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request = request.insert_header((name, HeaderValue::from_str(value).unwrap()));
        }
        self.send(request).await
    }

    /// The path of a new upload.
    async fn begun(&self, headers: Headers<'_>) -> String {
        let made = self.tus("POST", ALL, headers, b"").await;
        assert_eq!(made.status, 201, "{made:?}");
        assert!(!made.header("upload-expires").is_empty());
        path_of(&made)
    }

    async fn patched(&self, path: &str, offset: u64, bytes: &[u8]) -> Answer {
        let offset = offset.to_string();
        let typed = ("content-type", "application/offset+octet-stream");
        self.tus("PATCH", path, &[("upload-offset", &offset), typed], bytes)
            .await
    }

    async fn offset(&self, path: &str) -> String {
        let head = self.tus("HEAD", path, &[], b"").await;
        assert_eq!(head.status, 200, "{head:?}");
        head.header("upload-offset").to_owned()
    }

    async fn bytes_of(&self, file_id: &str) -> Vec<u8> {
        let answer = self
            .call("GET", &format!("/api/files/{file_id}"), None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Counts the bytes of unfinished uploads on the disk.
    fn partial_bytes(&self) -> u64 {
        let partial = self.app.platform.config.store.data_dir.join("partial");
        let entries = std::fs::read_dir(partial).unwrap();
        entries
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum()
    }

    /// The path to put the bytes of a direct upload to.
    async fn direct_upload(&self, size: usize) -> String {
        let wanted = json!({"filename": "direct", "sizeBytes": size});
        let made = self.call("POST", "/api/uploads", Some(wanted)).await;
        assert_eq!(made.status, 200, "{made:?}");
        let made = made.json();
        let signed = made["upload"]["signedUrl"].as_str().unwrap();
        let path = signed.strip_prefix("http://media.test:8080");
        path.unwrap_or_else(|| panic!("{signed}")).to_owned()
    }

    async fn file_count(&self) -> Value {
        let listed = self.call("GET", "/api/files", None).await.json();
        listed["pagination"]["total"].clone()
    }
}

fn path_of(made: &Answer) -> String {
    let location = made.header("location");
    let path = location.strip_prefix("http://media.test:8080");
    path.unwrap_or_else(|| panic!("{location}")).to_owned()
}

fn metadata(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key} {}", STANDARD.encode(value)))
        .collect();
    pairs.join(",")
}

#[actix_web::test]
async fn what_is_spoken_is_reported_without_a_credential() {
    let site = Site::open_with(|config| config.http.cors_origins = vec![ORIGIN.to_owned()]).await;
    for path in [ALL, "/api/uploads/tus/0190163d-8694-739b-aea5-966c26f8ad90"] {
        let plain = site.send(request("OPTIONS", path)).await;
        assert_eq!(plain.status, 204, "{plain:?}");
        assert_eq!(plain.header("tus-version"), "1.0.0");
        assert_eq!(plain.header("tus-max-size"), "100000000000");
        assert_eq!(plain.header("tus-checksum-algorithm"), "sha1,sha256,crc32");
        assert!(
            plain
                .header("tus-extension")
                .contains("creation-with-upload")
        );
        assert_eq!(plain.header("access-control-allow-methods"), "");

        let page = request("OPTIONS", path).insert_header(("origin", ORIGIN));
        let page = site.send(page).await;
        assert_eq!(page.header("access-control-allow-origin"), ORIGIN);
        assert!(
            page.header("access-control-allow-headers")
                .contains("upload-offset")
        );
    }
    // A rejection must be readable for the page, too.
    let rejected = request("POST", ALL)
        .insert_header(("origin", ORIGIN))
        .insert_header(("tus-resumable", "1.0.0"));
    let rejected = site.send(rejected).await;
    assert_eq!(
        (rejected.status, rejected.header("tus-resumable")),
        (401, "1.0.0")
    );
    assert_eq!(rejected.header("access-control-allow-origin"), ORIGIN);
    assert!(
        rejected
            .header("access-control-expose-headers")
            .contains("service-file-id")
    );
}

#[actix_web::test]
async fn bytes_in_pieces_become_a_file_like_any_other() {
    let site = Site::open().await;
    let folder = site
        .call("POST", "/api/folders", Some(json!({"name": "Train"})))
        .await
        .json();
    let folder_id = folder["folder"]["id"].as_str().unwrap();
    let named = metadata(&[
        ("filename", "Zug ü.txt"),
        ("folderId", folder_id),
        ("is_secret", ""),
    ]);
    let path = site
        .begun(&[("upload-length", "11"), ("upload-metadata", &named)])
        .await;
    assert_eq!(site.offset(&path).await, "0");

    let first = site.patched(&path, 0, b"hello ").await;
    assert_eq!((first.status, first.header("upload-offset")), (204, "6"));
    assert_eq!(first.header("service-file-id"), "");
    let head = site.tus("HEAD", &path, &[], b"").await;
    let headers = [
        "upload-offset",
        "upload-length",
        "upload-metadata",
        "cache-control",
    ]
    .map(|name| head.header(name));
    assert_eq!(headers, ["6", "11", &named, "no-store"]);
    let shown = site.call("GET", &path, None).await.json()["upload"].clone();
    assert_eq!(
        (&shown["status"], &shown["offsetBytes"], &shown["fileId"]),
        (&json!("receiving"), &json!(6), &Value::Null)
    );

    let last = site.patched(&path, 6, b"world").await;
    assert_eq!((last.status, last.header("upload-offset")), (204, "11"));
    let file_id = last.header("service-file-id");
    assert_eq!(site.bytes_of(file_id).await, b"hello world");
    let record = request("GET", &format!("/api/files/{file_id}"))
        .insert_header((
            "authorization",
            format!("Bearer {}", site.first.api_key.expose()),
        ))
        .insert_header(("accept", "application/json"));
    let record = site.send(record).await.json()["file"].clone();
    for (field, expected) in [
        ("filename", json!("Zug ü.txt")),
        ("folder_id", json!(folder_id)),
        ("mime_type", json!("text/plain")),
        ("role", json!("uploaded")),
    ] {
        assert_eq!(record[field], expected, "{field}");
    }
    let events = site.call("GET", "/api/events", None).await.json();
    let uploaded = events["events"].as_array().unwrap().iter();
    let uploaded = uploaded.filter(|event| event["type"] == "file.uploaded");
    assert_eq!(uploaded.count(), 1, "{events}");

    // The last answer was lost: asking again finds the file.
    for again in [
        site.tus("HEAD", &path, &[], b"").await,
        site.patched(&path, 11, b"").await,
    ] {
        assert_eq!(
            (
                again.header("upload-offset"),
                again.header("service-file-id")
            ),
            ("11", file_id)
        );
    }
    let shown = site.call("GET", &path, None).await.json()["upload"].clone();
    assert_eq!(
        (&shown["status"], &shown["fileId"]),
        (&json!("completed"), &json!(file_id))
    );
    assert_eq!(site.patched(&path, 11, b"!").await.status, 413);
    assert_eq!(site.tus("DELETE", &path, &[], b"").await.status, 204);
    assert_eq!(site.tus("HEAD", &path, &[], b"").await.status, 404);
    assert_eq!(site.bytes_of(file_id).await, b"hello world");
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn a_creation_may_bring_all_or_some_or_nothing() {
    let site = Site::open().await;
    let whole = site
        .tus("POST", ALL, &[("upload-length", "5")], b"whole")
        .await;
    assert_eq!((whole.status, whole.header("upload-offset")), (201, "5"));
    assert_eq!(
        site.bytes_of(whole.header("service-file-id")).await,
        b"whole"
    );

    let some = site
        .tus("POST", ALL, &[("upload-length", "5")], b"so")
        .await;
    assert_eq!((some.status, some.header("upload-offset")), (201, "2"));
    let rest = site.patched(&path_of(&some), 2, b"me!").await;
    assert_eq!(
        site.bytes_of(rest.header("service-file-id")).await,
        b"some!"
    );

    let empty = site.tus("POST", ALL, &[("upload-length", "0")], b"").await;
    assert_eq!(empty.status, 201, "{empty:?}");
    assert_eq!(site.bytes_of(empty.header("service-file-id")).await, b"");

    // Rejected, and nothing of it is left.
    let too_much = site
        .tus("POST", ALL, &[("upload-length", "5")], b"too much")
        .await;
    assert_eq!(too_much.status, 413);
    let wrong = [
        ("upload-length", "5"),
        ("upload-checksum", "crc32 AAAAAA=="),
    ];
    assert_eq!(site.tus("POST", ALL, &wrong, b"wrong").await.status, 460);
    assert_eq!(site.file_count().await, 3);
    let partial = site.app.platform.config.store.data_dir.join("partial");
    assert_eq!(std::fs::read_dir(partial).unwrap().count(), 0);
}

#[actix_web::test]
async fn a_length_may_be_given_later() {
    let site = Site::open().await;
    let path = site.begun(&[("upload-defer-length", "1")]).await;
    site.patched(&path, 0, b"stream").await;
    let head = site.tus("HEAD", &path, &[], b"").await;
    assert_eq!(
        (
            head.header("upload-defer-length"),
            head.header("upload-length")
        ),
        ("1", "")
    );
    let with_length = |length| {
        [
            ("upload-offset", "6"),
            ("upload-length", length),
            ("content-type", "application/offset+octet-stream"),
        ]
    };
    assert_eq!(
        site.tus("PATCH", &path, &with_length("3"), b"")
            .await
            .status,
        409
    );
    assert_eq!(
        site.tus("PATCH", &path, &with_length("999999999999999"), b"")
            .await
            .status,
        413
    );
    let ended = site.tus("PATCH", &path, &with_length("6"), b"").await;
    assert_eq!(
        site.bytes_of(ended.header("service-file-id")).await,
        b"stream"
    );

    let path = site.begun(&[("upload-defer-length", "1")]).await;
    let lengths = [("upload-offset", "0"), ("upload-length", "3")];
    let ended = site.tus("PATCH", &path, &lengths, b"one").await;
    assert_eq!(site.bytes_of(ended.header("service-file-id")).await, b"one");
}

#[actix_web::test]
async fn bytes_without_their_checksum_do_not_count() {
    let site = Site::open().await;
    let path = site.begun(&[("upload-length", "8")]).await;
    assert_eq!(site.patched(&path, 0, b"kept").await.status, 204);
    let right = format!("sha1 {}", STANDARD.encode(Sha1::digest(b"sums")));
    for (checksum, bytes, status) in [
        (right.as_str(), b"sumz", 460),
        ("sha256 AAAA", b"sums", 400),
        ("md5 1B2M2Y8AsgTpgAmy7PhCfg==", b"sums", 400),
    ] {
        let headers = [("upload-offset", "4"), ("upload-checksum", checksum)];
        let answer = site.tus("PATCH", &path, &headers, bytes).await;
        assert_eq!(answer.status, status, "{checksum}: {answer:?}");
        assert_eq!(site.partial_bytes(), 4, "{checksum}");
        assert_eq!(site.offset(&path).await, "4", "{checksum}");
    }
    let headers = [("upload-offset", "4"), ("upload-checksum", right.as_str())];
    let ended = site.tus("PATCH", &path, &headers, b"sums").await;
    assert_eq!(
        site.bytes_of(ended.header("service-file-id")).await,
        b"keptsums"
    );
}

#[actix_web::test]
async fn what_lies_or_is_odd_is_rejected_and_changes_nothing() {
    let site = Site::open().await;
    let path = site.begun(&[("upload-length", "10")]).await;
    site.patched(&path, 0, b"four").await;
    let typed = ("content-type", "application/offset+octet-stream");
    let cases: [(&str, &str, Headers, u16); 22] = [
        ("PATCH", &path, &[("upload-offset", "3")], 409),
        ("PATCH", &path, &[("upload-offset", "5")], 409),
        (
            "PATCH",
            &path,
            &[("upload-offset", "18446744073709551615")],
            409,
        ),
        ("PATCH", &path, &[("upload-offset", "-1")], 400),
        ("PATCH", &path, &[typed], 400),
        (
            "PATCH",
            &path,
            &[("upload-offset", "4"), ("content-type", "text/plain")],
            415,
        ),
        (
            "PATCH",
            &path,
            &[("upload-offset", "4"), ("tus-resumable", "0.2.2")],
            412,
        ),
        (
            "PATCH",
            &path,
            &[("upload-offset", "4"), ("upload-length", "11")],
            409,
        ),
        (
            "PATCH",
            &path,
            &[("upload-offset", "4"), ("content-length", "7")],
            413,
        ),
        ("HEAD", &path, &[("tus-resumable", "1.0.1")], 412),
        ("POST", &path, &[], 405),
        ("POST", &path, &[("x-http-method-override", "PUT")], 405),
        (
            "PATCH",
            &path,
            &[("x-http-method-override", "OPTIONS")],
            405,
        ),
        (
            "POST",
            ALL,
            &[("upload-length", "1"), ("x-http-method-override", "HEAD")],
            405,
        ),
        ("HEAD", "/api/uploads/tus/no-id", &[], 404),
        (
            "PATCH",
            "/api/uploads/tus/0190163d",
            &[("upload-offset", "0")],
            404,
        ),
        (
            "POST",
            ALL,
            &[("upload-length", "1"), ("tus-resumable", "2.0.0")],
            412,
        ),
        ("POST", ALL, &[("upload-length", "100000000001")], 413),
        ("POST", ALL, &[("upload-length", "x")], 400),
        (
            "POST",
            ALL,
            &[("upload-length", "1"), ("upload-metadata", "a *")],
            400,
        ),
        (
            "POST",
            ALL,
            &[
                ("upload-length", "1"),
                (
                    "upload-metadata",
                    "folderId MDE5MDE2M2QtODY5NC03MzliLWFlYTUtOTY2YzI2ZjhhZDkw",
                ),
            ],
            404,
        ),
        (
            "DELETE",
            "/api/uploads/tus/0190163d-8694-739b-aea5-966c26f8ad90",
            &[],
            404,
        ),
    ];
    for (method, path, headers, status) in cases {
        let body: &[u8] = if method == "PATCH" { b"more" } else { b"" };
        let answer = site.tus(method, path, headers, body).await;
        assert_eq!(answer.status, status, "{method} {headers:?}: {answer:?}");
        assert_eq!(answer.header("tus-resumable"), "1.0.0", "{headers:?}");
        let expected = if status == 412 { "1.0.0" } else { "" };
        assert_eq!(answer.header("tus-version"), expected);
    }
    assert_eq!(site.offset(&path).await, "4");
    let reader = site.key(Scope::Read).await;
    for (key, status) in [
        (site.stranger().await, 404),
        (reader, 403),
        ("svc_no".to_owned(), 401),
    ] {
        let bearer = format!("Bearer {key}");
        for method in ["HEAD", "PATCH", "DELETE"] {
            let headers = [("authorization", bearer.as_str()), ("upload-offset", "4")];
            let answer = site.tus(method, &path, &headers, b"more").await;
            assert_eq!(answer.status, status, "{method}: {answer:?}");
        }
    }
    assert_eq!(site.offset(&path).await, "4");
}

#[actix_web::test]
async fn the_method_that_is_named_counts() {
    let site = Site::open().await;
    let path = site.begun(&[("upload-length", "4")]).await;
    let patch = [("x-http-method-override", "PATCH"), ("upload-offset", "0")];
    assert_eq!(site.tus("POST", &path, &patch, b"ab").await.status, 204);
    for method in ["POST", "PATCH", "DELETE", "GET"] {
        let head = site
            .tus(method, &path, &[("x-http-method-override", "HEAD")], b"")
            .await;
        assert_eq!(
            (head.status, head.header("upload-offset")),
            (200, "2"),
            "{method}"
        );
    }
    let delete = [("x-http-method-override", "DELETE")];
    assert_eq!(site.tus("POST", &path, &delete, b"").await.status, 204);
    assert_eq!(site.tus("HEAD", &path, &[], b"").await.status, 404);
}

#[actix_web::test]
async fn the_storage_of_the_plan_counts_at_the_beginning_and_at_the_end() {
    let site = Site::open_with(|config| {
        config.plans.get_mut("unlimited").unwrap().storage = bytesize::ByteSize(10);
        config.uploads.max_unfinished = 2;
    })
    .await;
    let rejected = site.tus("POST", ALL, &[("upload-length", "11")], b"").await;
    assert_eq!(
        (rejected.status, &rejected.json()["code"]),
        (413, &json!("storage_used_up"))
    );
    let (first, second) = (
        site.begun(&[("upload-length", "8")]).await,
        site.begun(&[("upload-length", "8")]).await,
    );
    let third = site.tus("POST", ALL, &[("upload-length", "1")], b"").await;
    assert_eq!(third.status, 409, "{third:?}");
    assert_eq!(site.patched(&first, 0, b"12345678").await.status, 204);
    let rejected = site.patched(&second, 0, b"12345678").await;
    assert_eq!(
        (rejected.status, &rejected.json()["code"]),
        (413, &json!("storage_used_up"))
    );
    assert_eq!(site.offset(&second).await, "0");
    assert_eq!(site.file_count().await, 1);
    // What fits is taken, also without a length of the body.
    assert_eq!(site.patched(&second, 0, b"1").await.status, 204);
    let typed = ("content-type", "application/offset+octet-stream");
    let unknown = [("upload-offset", "1"), ("content-length", ""), typed];
    let rejected = site.tus("PATCH", &second, &unknown, b"2345678").await;
    assert_eq!(
        (rejected.status, &rejected.json()["code"]),
        (413, &json!("storage_used_up"))
    );
    assert_eq!(site.partial_bytes(), 1);
    assert_eq!(site.patched(&second, 1, b"2").await.status, 204);
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn direct_uploads_and_resumable_ones_count_for_each_other() {
    let site = Site::open_with(|config| {
        config.plans.get_mut("unlimited").unwrap().storage = bytesize::ByteSize(10);
    })
    .await;
    let (first, second) = (site.direct_upload(6).await, site.direct_upload(6).await);
    let put = |path: &str| site.send(request("PUT", path).set_payload(vec![b'd'; 6]));
    let resumable = site.begun(&[("upload-length", "6")]).await;
    assert_eq!(put(&first).await.status, 200);
    // A repeat takes the place of the first.
    assert_eq!(put(&first).await.status, 200);
    let used_up = (413, json!("storage_used_up"));
    for rejected in [
        put(&second).await,
        site.patched(&resumable, 0, b"123456").await,
        site.tus("POST", ALL, &[("upload-length", "5")], b"").await,
    ] {
        assert_eq!((rejected.status, rejected.json()["code"].clone()), used_up);
    }
    assert_eq!(site.patched(&resumable, 0, b"1234").await.status, 204);
    let wanted = json!({"filename": "c", "sizeBytes": 1});
    let rejected = site.call("POST", "/api/uploads", Some(wanted)).await;
    assert_eq!((rejected.status, rejected.json()["code"].clone()), used_up);
}

#[actix_web::test]
async fn expired_and_lost_uploads_are_gone() {
    let site = Site::open().await;
    let path = site.begun(&[("upload-length", "8")]).await;
    site.patched(&path, 0, b"four").await;
    let partial = site.app.platform.config.store.data_dir.join("partial");
    for entry in std::fs::read_dir(&partial).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let lost = site.tus("HEAD", &path, &[], b"").await;
    assert_eq!(lost.status, 410, "{lost:?}");
    assert_eq!(site.tus("HEAD", &path, &[], b"").await.status, 404);

    let site = Site::open_with(|config| {
        config.uploads.keep_unfinished = std::time::Duration::from_millis(1);
    })
    .await;
    let path = site.begun(&[("upload-length", "8")]).await;
    let began = now_ms();
    super::eventually("it does not expire", async || now_ms() > began + 1).await;
    for method in ["HEAD", "GET", "DELETE"] {
        let answer = site.tus(method, &path, &[], b"").await;
        assert_eq!(answer.status, 410, "{method}: {answer:?}");
    }
    let late = site.patched(&path, 0, b"four").await;
    assert_eq!((late.status, &late.json()["code"]), (410, &json!("gone")));
}

/// Ends at once where the rows are on SQLite.
#[actix_web::test]
async fn an_upload_in_the_data_folder_of_another_node_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    if !StoreSettings::without_reserve(folder.path()).is_on_postgres() {
        return;
    }
    let site = Site::open_with(|config| config.cluster.listen = "127.0.0.1:1".into()).await;
    let path = site.begun(&[("upload-length", "8")]).await;
    site.patched(&path, 0, b"four").await;
    let partial = site.app.platform.config.store.data_dir.join("partial");
    let id = path.rsplit('/').next().unwrap();
    std::fs::rename(partial.join(id), folder.path().join(id)).unwrap();
    for answer in [
        site.tus("HEAD", &path, &[], b"").await,
        site.patched(&path, 4, b"more").await,
    ] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.header("retry-after"), "1");
    }
    // The next request reaches the node that has it.
    std::fs::rename(folder.path().join(id), partial.join(id)).unwrap();
    assert_eq!(site.offset(&path).await, "4");
    let stored = site.patched(&path, 4, b"more").await;
    assert_eq!(stored.status, 204, "{stored:?}");
}

#[actix_web::test]
async fn an_upload_whose_objects_are_missing_is_gone() {
    let objects = tempfile::tempdir().unwrap();
    let url = format!("file://{}", objects.path().display());
    let site = Site::open_with(|config| config.store.objects_url = url).await;
    let path = site.begun(&[("upload-length", "8")]).await;
    site.patched(&path, 0, b"four").await;
    // As after a restore of rows that are older than the objects.
    std::fs::remove_dir_all(objects.path().join("b")).unwrap();
    let id = path.rsplit('/').next().unwrap().parse().unwrap();
    site.app
        .platform
        .store
        .blobs()
        .remove_partial(id)
        .await
        .unwrap();
    let lost = site.patched(&path, 4, b"more").await;
    assert_eq!((lost.status, &lost.json()["code"]), (410, &json!("gone")));
    assert_eq!(site.tus("HEAD", &path, &[], b"").await.status, 404);
}
