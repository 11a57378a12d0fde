//! The page of the dashboard, and the assets of all pages in their codings.

use super::{Answer, Site, request};

/// The policy of every answer with the dashboard's page, word for word.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

#[actix_web::test]
async fn every_address_of_the_dashboard_answers_its_page_under_its_policy() {
    for (base_url, opener) in [("", ""), ("https://media.test", "same-origin")] {
        let site = Site::open_with(|config| config.http.base_url = base_url.to_owned()).await;
        for path in [
            "/app",
            "/app/",
            "/app/settings/usage",
            "/app/live/00000000-0000-0000-0000-000000000000?tab=health",
            "/app/%2e%2e/%3Cscript%3E",
        ] {
            let page = site.send(request("GET", path)).await;
            let headers = [
                ("content-type", "text/html; charset=utf-8"),
                ("content-security-policy", POLICY),
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("referrer-policy", "same-origin"),
                ("cross-origin-opener-policy", opener),
                ("cache-control", "no-cache"),
                ("vary", "accept-encoding"),
                ("set-cookie", ""),
            ];
            assert_eq!(page.status, 200, "{path}");
            for (name, value) in headers {
                assert_eq!(page.header(name), value, "{path}: {name}");
            }
            assert!(!page.body.is_empty());
            let known = request("GET", path)
                .insert_header(("if-none-match", page.header("etag").to_owned()));
            let known = site.send(known).await;
            assert_eq!((known.status, known.body.len()), (304, 0), "{path}");
            assert_eq!(known.header("content-security-policy"), POLICY);
        }
        let rejected = site.send(request("POST", "/app/live")).await;
        assert_eq!(
            (rejected.status, rejected.header("allow")),
            (405, "GET, HEAD")
        );
        assert_eq!(site.send(request("GET", "/application")).await.status, 404);
    }
}

#[actix_web::test]
async fn the_start_leads_to_the_dashboard() {
    let site = Site::open().await;
    let start = site.send(request("GET", "/")).await;
    assert_eq!((start.status, start.header("location")), (302, "/app"));
    assert_eq!(site.send(request("GET", "/plans")).await.status, 200);
}

/// The icon of the pages is built into every program with a front end.
async fn asset(site: &Site) -> Option<String> {
    let page = site.send(request("GET", "/docs")).await;
    let html = String::from_utf8(page.body).unwrap();
    let asset = html.split('"').find(|part| part.starts_with("/assets/"));
    asset.map(str::to_owned)
}

/// The element for other sites loads hls.js from here as a module, which browsers do with CORS.
#[actix_web::test]
async fn pages_of_other_sites_load_the_element_and_what_it_needs() {
    let site = Site::open().await;
    let Some(path) = asset(&site).await else {
        return;
    };
    for (path, cache) in [
        (path.as_str(), "immutable"),
        ("/embed/sluice-player.js", "max-age=300"),
    ] {
        let answer = site.send(request("GET", path)).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{path}");
        assert!(answer.header("cache-control").contains(cache), "{path}");
    }
    for missing in ["nothing.js", "sluice-player.js.br", "..%2Fplayer.html"] {
        let answer = site
            .send(request("GET", &format!("/embed/{missing}")))
            .await;
        assert_eq!(answer.status, 404, "{missing}");
    }
}

#[actix_web::test]
async fn the_publish_page_is_in_no_frame_of_other_sites() {
    let page = Site::open()
        .await
        .send(request("GET", "/live/publish/any-slug"))
        .await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(
        page.header("permissions-policy"),
        "",
        "it needs camera, microphone and screen"
    );
}

/// Files of a program without a front end have no other coding; then the plain one is answered.
#[actix_web::test]
async fn each_coding_of_an_asset_is_its_own_representation() {
    let site = Site::open().await;
    let Some(path) = asset(&site).await else {
        return;
    };
    let get = async |coding: &str| -> Answer {
        let request = request("GET", &path).insert_header(("accept-encoding", coding.to_owned()));
        site.send(request).await
    };
    let plain = get("identity").await;
    assert_eq!(plain.status, 200);
    for (coding, expected) in [("br", "br"), ("gzip", "gzip"), ("br;q=0, gzip;q=0", "")] {
        let answer = get(coding).await;
        let found = answer.header("content-encoding").to_owned();
        assert!(found.is_empty() || found == expected, "{coding}: {found}");
        assert_eq!(answer.header("vary"), "accept-encoding");
        assert_eq!(answer.header("content-type"), plain.header("content-type"));
        assert!(answer.header("cache-control").contains("immutable"));
        let is_same = answer.header("etag") == plain.header("etag");
        assert_eq!(is_same, found.is_empty(), "{coding}");
        let known = request("GET", &path)
            .insert_header(("accept-encoding", coding))
            .insert_header(("if-none-match", answer.header("etag").to_owned()));
        assert_eq!(site.send(known).await.status, 304, "{coding}");
        if !found.is_empty() {
            assert!(answer.body.len() < plain.body.len(), "{coding}");
            let other = request("GET", &path)
                .insert_header(("if-none-match", answer.header("etag").to_owned()));
            assert_eq!(site.send(other).await.status, 200, "another coding's tag");
        }
    }
    for suffix in [".br", ".gz"] {
        let file = site.send(request("GET", &format!("{path}{suffix}"))).await;
        assert_eq!(file.status, 404, "{suffix}");
    }
}
