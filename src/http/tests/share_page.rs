//! The page of a shared folder, in process.

use serde_json::{Value, json};
use sluice_store::{
    credentials, now_ms,
    shares::{self, NewShare},
};
use uuid::Uuid;

use super::{Answer, Site, request};

const HEADERS: [(&str, &str); 5] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-robots-tag", "noindex, nofollow"),
    ("x-content-type-options", "nosniff"),
];

impl Site {
    async fn folder_named(&self, name: &str, parent: Option<&Value>) -> Value {
        let body = json!({"name": name, "parentId": parent.map(|folder| &folder["id"])});
        let made = self.call("POST", "/api/folders", Some(body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["folder"].clone()
    }

    async fn stored_in(&self, folder: &Value, name: &str, bytes: &[u8]) -> Value {
        let file = self.stored(name, bytes).await;
        let path = format!("/api/files/{}", file["id"].as_str().unwrap());
        let moved = self.call("PATCH", &path, Some(json!({"folderId": folder["id"]})));
        let moved = moved.await;
        assert_eq!(moved.status, 200, "{moved:?}");
        moved.json()["file"].clone()
    }

    /// Shares a folder; the path of its page.
    async fn page_of(&self, folder: &Value, body: Value) -> String {
        let path = format!("/api/folders/{}/share", folder["id"].as_str().unwrap());
        let shared = self.call("POST", &path, Some(body)).await;
        assert_eq!(shared.status, 201, "{shared:?}");
        let share = shared.json()["share"].clone();
        format!("/share/folder/{}", share["token"].as_str().unwrap())
    }

    async fn open_page(&self, path: &str) -> Answer {
        self.send(request("GET", path)).await
    }
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// All of it but what names this one answer.
    fn without_its_own(&self) -> (u16, Vec<(String, String)>, String) {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()))
            .map(|(name, value)| (name.to_string(), format!("{value:?}")))
            .collect();
        headers.sort();
        (self.status, headers, self.text())
    }
}

#[actix_web::test]
async fn a_folder_is_a_page_and_its_names_are_text() {
    let site = Site::open().await;
    let folder = site.folder_named("Spring <b>& \"summer\"", None).await;
    let below = site.folder_named("<script>alert(1)", Some(&folder)).await;
    let foreign = site.folder_named("beside", None).await;
    site.stored_in(&folder, "<img src=x onerror=alert(1)>.txt", b"text")
        .await;
    site.stored_in(&below, "צילום.exe", b"MZ").await;
    let path = site.page_of(&folder, json!({})).await;

    let page = site.open_page(&path).await;
    let html = page.text();
    assert_eq!(page.status, 200, "{html}");
    for (name, value) in HEADERS {
        assert_eq!(page.header(name), value, "{name}");
    }
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    for expected in [
        "<h1><bdi>Spring &lt;b&gt;&amp; &quot;summer&quot;</bdi></h1>",
        "<bdi>&lt;script&gt;alert(1)</bdi>",
        "<bdi>&lt;img src=x onerror=alert(1)&gt;.txt</bdi>",
        "<span>2 files</span>",
        "<small>6 bytes, one ZIP file</small>",
        "Grid",
        "List",
    ] {
        assert!(html.contains(expected), "{expected} in {html}");
    }
    assert!(
        !html.contains("<script>") && !html.contains("<img src=x"),
        "{html}"
    );

    let id = below["id"].as_str().unwrap();
    let inside = site
        .open_page(&format!("{path}?folderId={id}&view=list"))
        .await
        .text();
    assert!(inside.contains("<bdi>צילום.exe</bdi>"), "{inside}");
    assert!(inside.contains("data-view=\"list\""), "{inside}");
    assert!(inside.contains("aria-label=\"Folders above\""), "{inside}");
    for (query, status) in [
        (format!("folderId={}", foreign["id"].as_str().unwrap()), 404),
        ("folderId=x".to_owned(), 404),
        ("cursor=x".to_owned(), 400),
        ("view=x&folderId=&cursor=".to_owned(), 200),
    ] {
        let page = site.open_page(&format!("{path}?{query}")).await;
        assert_eq!(page.status, status, "{query}");
        assert_eq!(page.header("content-type"), HEADERS[0].1, "{query}");
    }
    let head = site.send(request("HEAD", &path)).await;
    assert_eq!(
        (head.status, head.header("cache-control")),
        (200, "no-store")
    );
}

#[actix_web::test]
async fn a_link_for_looking_only_offers_nothing_to_take_away() {
    let site = Site::open().await;
    let folder = site.folder_named("Proofs", None).await;
    site.stored_in(&folder, "notes.txt", b"text").await;
    let path = site.page_of(&folder, json!({"allowDownload": false})).await;
    let html = site.open_page(&path).await.text();
    assert!(html.contains("notes.txt"), "{html}");
    for absent in ["Download all", "file-download", "href=\"../../api/"] {
        assert!(!html.contains(absent), "{absent} in {html}");
    }
}

#[actix_web::test]
async fn every_link_that_opens_nothing_has_one_page() {
    let site = Site::open().await;
    let (revoked, gone) = (
        site.folder_named("a", None).await,
        site.folder_named("b", None).await,
    );
    let revoked_page = site.page_of(&revoked, json!({})).await;
    let gone_page = site.page_of(&gone, json!({})).await;
    for (folder, rest) in [(&revoked, "/share"), (&gone, "")] {
        let path = format!("/api/folders/{}{rest}", folder["id"].as_str().unwrap());
        assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    }
    let account_id = site.first.live_input.account_id;
    let folder_id: Uuid = revoked["id"].as_str().unwrap().parse().unwrap();
    let expired = NewShare {
        id: Uuid::now_v7(),
        account_id,
        folder_id,
        token_hash: credentials::hash("expired"),
        password_hash: None,
        download_limit: None,
        allow_download: true,
        expires_at: Some(now_ms() - 1),
    };
    let made = site
        .app
        .platform
        .store
        .write(move |tx| Box::pin(async move { shares::create(tx, expired, now_ms()).await }));
    made.await.unwrap();

    let unknown = format!("/share/folder/{}", "A".repeat(43));
    let expected = site.open_page(&unknown).await;
    assert_eq!(expected.status, 404);
    assert!(expected.text().contains("This link is no longer available"));
    for (name, value) in HEADERS {
        assert_eq!(expected.header(name), value, "{name}");
    }
    let malformed = "/share/folder/%3Cscript%3E?folderId=x&cursor=y";
    for path in [
        &revoked_page,
        &gone_page,
        "/share/folder/expired",
        malformed,
        "/share/folder/%ff",
    ] {
        let page = site.open_page(path).await;
        assert_eq!(page.without_its_own(), expected.without_its_own(), "{path}");
        let posted = request("POST", path).set_payload("password=x");
        let posted = site.send(posted).await;
        assert_eq!(
            posted.without_its_own(),
            expected.without_its_own(),
            "POST {path}"
        );
    }
}

#[actix_web::test]
async fn a_password_opens_the_page() {
    let site = Site::open().await;
    let folder = site.folder_named("Hidden name", None).await;
    let path = site
        .page_of(&folder, json!({"password": "swordfish"}))
        .await;
    let post = |form: &'static str| {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        request("POST", &format!("{path}?view=list"))
            .insert_header(kind)
            .set_payload(form)
    };

    let form = site.open_page(&path).await;
    assert_eq!(form.status, 200);
    assert!(form.text().contains("type=\"password\"") && !form.text().contains("Hidden name"));
    for (body, status) in [
        ("password=sword", 403),
        ("password=", 403),
        ("", 400),
        ("other=1", 400),
    ] {
        let answer = site.send(post(body)).await;
        assert_eq!(answer.status, status, "{body}");
        assert_eq!(answer.header("set-cookie"), "", "{body}");
        assert!(!answer.text().contains("Hidden name"), "{body}");
    }
    let opened = site.send(post("password=swordfish")).await;
    assert_eq!(opened.status, 303);
    let token = path.rsplit('/').next().unwrap();
    assert_eq!(opened.header("location"), format!("{token}?view=list"));
    let cookies: Vec<_> = opened.headers.get_all("set-cookie").collect();
    let for_the_page = cookies
        .iter()
        .map(|cookie| cookie.to_str().unwrap())
        .find(|cookie| cookie.contains(&format!("Path={path};")))
        .expect("a cookie for the page");
    assert!(for_the_page.contains("HttpOnly") && for_the_page.contains("SameSite=Lax"));
    let cookie = for_the_page.split(';').next().unwrap().to_owned();
    let page = site
        .send(request("GET", &path).insert_header(("cookie", cookie.clone())))
        .await;
    assert!(page.text().contains("Hidden name"));
    let other = site
        .page_of(&folder, json!({"password": "swordfish"}))
        .await;
    let page = site
        .send(request("GET", &other).insert_header(("cookie", cookie)))
        .await;
    assert!(
        !page.text().contains("Hidden name"),
        "the cookie is good for one link"
    );
}

#[actix_web::test]
async fn a_password_cannot_be_guessed_for_long() {
    let site = Site::open().await;
    let folder = site.folder_named("Hidden name", None).await;
    let path = site
        .page_of(&folder, json!({"password": "swordfish"}))
        .await;
    let allowed = site.app.platform.config.shares.password_attempts;
    let guess = || site.send(request("POST", &path).set_payload("password=guess"));
    for _ in 0..allowed {
        assert_eq!(guess().await.status, 403);
    }
    let rejected = guess().await;
    assert_eq!(rejected.status, 429);
    assert!(!rejected.header("retry-after").is_empty());
    assert!(rejected.text().contains("too many wrong passwords"));
}
