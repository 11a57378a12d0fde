//! Delivery keys, presets, and delivery of images with a substitute for the workers.

use actix_web::{http::header, test::TestRequest};
use kameo::actor::ActorRef;
use serde_json::{Value, json};
use sluice_actors::{
    cdn::Images,
    cluster::Peers,
    tree::{self, Root},
};
use sluice_store::{
    accounts,
    api_keys::Scope,
    blobs,
    files::{self, NewFile, Role},
    now_ms,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Answer, ComponentStatuses, MediaHandles, Site, Subsystem as _, eventually, handles, request,
};
use crate::{config::Config, fixtures::Painter};

/// A site with a photograph and a delivery key.
struct Gallery {
    site: Site,
    root: ActorRef<Root>,
    key: String,
    file_id: Uuid,
}

impl Gallery {
    async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    async fn open_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::open_on(accounts::UNLIMITED, adjust).await
    }

    async fn open_on(plan: &'static str, adjust: impl FnOnce(&mut Config)) -> Self {
        let site = Site::open_over(adjust, |config, store| MediaHandles {
            images: Images::new(
                config.cdn.clone(),
                store.clone(),
                Painter::default(),
                config.delivery_caps(),
                config.live.still_every,
                Peers::new(store),
            ),
            ..handles(config, store)
        })
        .await;
        let account_id = site.first.live_input.account_id;
        let planned = site.app.platform.store.write(move |tx| {
            Box::pin(async move { accounts::set_plan(tx, account_id, plan, now_ms()).await })
        });
        planned.await.unwrap();
        let root = Root::start(tree::Args {
            components: site.app.delivery.images.components(),
            component_statuses: ComponentStatuses::default(),
            lost: CancellationToken::new(),
        });
        let made = site
            .call(
                "POST",
                "/api/delivery-keys",
                Some(json!({"name": "shop", "alias": "shop"})),
            )
            .await;
        assert_eq!(made.status, 201, "{:?}", made.json());
        let key = made.json()["token"].as_str().unwrap().to_owned();
        let file_id = add_file(&site, "image/jpeg").await;
        let gallery = Self {
            site,
            root,
            key,
            file_id,
        };
        gallery.wait().await;
        gallery
    }

    /// Until the actors run.
    async fn wait(&self) {
        let path = format!("/cdn/v1/{}/{}?w=9999", self.key, self.file_id);
        for _ in 0..1000 {
            if self.get(&path).await.status == 400 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("delivery does not start");
    }

    fn path(&self, query: &str) -> String {
        format!("/cdn/v1/{}/{}{query}", self.key, self.file_id)
    }

    async fn get(&self, path: &str) -> Answer {
        self.site.send(request("GET", path)).await
    }

    async fn fetch(&self, query: &str, headers: &[(header::HeaderName, &str)]) -> Answer {
        let mut asked = request("GET", &self.path(query));
        for (name, value) in headers {
            asked = asked.insert_header((name.clone(), *value));
        }
        self.site.send(asked).await
    }
}

impl Drop for Gallery {
    fn drop(&mut self) {
        self.root.kill();
    }
}

async fn add_file(site: &Site, mime_type: &str) -> Uuid {
    let mut spool = site.app.platform.store.blobs().spool().await.unwrap();
    spool.write("pixels".into()).await.unwrap();
    let sealed = spool.seal().await.unwrap();
    let new = NewFile {
        folder_id: None,
        filename: "photo.jpg".into(),
        mime_type: mime_type.into(),
        size_bytes: 6,
        blob: sealed.blob().hash,
        role: Role::Uploaded,
        width: None,
        height: None,
        duration_ms: None,
        generation: 0,
    };
    let account_id = site.first.live_input.account_id;
    let stored = site.app.platform.store.write(move |tx| {
        Box::pin(async move {
            blobs::record(tx, &sealed, now_ms()).await?;
            files::create(tx, account_id, new, now_ms()).await
        })
    });
    stored.await.unwrap().id
}

#[actix_web::test]
async fn a_delivery_carries_the_headers_of_the_interface() {
    let gallery = Gallery::open().await;
    let miss = gallery.fetch("?w=100", &[]).await;
    assert_eq!(miss.status, 200);
    let tag = format!("asset:{}", gallery.file_id);
    let expected = [
        ("cache-control", "public, max-age=31536000, immutable"),
        ("content-type", "image/jpeg"),
        ("content-disposition", "inline"),
        ("x-content-type-options", "nosniff"),
        ("access-control-allow-origin", "*"),
        ("accept-ranges", "bytes"),
        ("vary", "Accept"),
        ("cache-tag", &tag),
        ("x-cache", "miss"),
        ("x-service-cdn-limit-month", "unlimited"),
        ("x-service-cdn-used-month", "1"),
        ("x-service-cdn-remaining-month", "unlimited"),
    ];
    for (name, value) in expected {
        assert_eq!(miss.header(name), value, "{name}");
    }
    let reset: i64 = miss.header("x-service-cdn-reset-month").parse().unwrap();
    assert!(reset > now_ms() / 1000);
    assert!(miss.header("etag").starts_with('"') && miss.header("last-modified").ends_with("GMT"));

    // Order, defaults and unknown parameters make no other variant; an alias is the key.
    let alias = format!("/cdn/v1/shop/{}?utm=1&q=80&w=100&v=7", gallery.file_id);
    let hit = gallery.get(&alias).await;
    assert_eq!((hit.status, hit.header("x-cache")), (200, "hit"));
    assert_eq!(
        (&hit.body, hit.header("etag")),
        (&miss.body, miss.header("etag"))
    );
    assert_eq!(hit.header("x-service-cdn-used-month"), "2");

    let head = gallery
        .site
        .send(request("HEAD", &gallery.path("?w=100")))
        .await;
    assert_eq!(
        (head.status, head.header("etag")),
        (200, miss.header("etag"))
    );
    let webp = gallery
        .fetch("?w=100", &[(header::ACCEPT, "image/webp,*/*")])
        .await;
    assert_eq!(
        (webp.header("content-type"), webp.header("x-cache")),
        ("image/webp", "miss")
    );
    let png = gallery.fetch("?w=100&format=png", &[]).await;
    assert_eq!(
        (png.header("content-type"), png.header("vary")),
        ("image/png", "")
    );
}

#[actix_web::test]
async fn conditions_and_ranges_are_honoured() {
    let gallery = Gallery::open().await;
    let whole = gallery.fetch("?w=100", &[]).await;
    let (etag, total) = (whole.header("etag").to_owned(), whole.body.len());
    let unchanged = gallery
        .fetch("?w=100", &[(header::IF_NONE_MATCH, &etag)])
        .await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    for name in [
        "etag",
        "cache-control",
        "vary",
        "cache-tag",
        "x-service-cdn-used-month",
    ] {
        assert_ne!(unchanged.header(name), "", "{name}");
    }
    let part = gallery
        .fetch("?w=100", &[(header::RANGE, "bytes=2-5")])
        .await;
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[2..6]));
    assert_eq!(part.header("content-range"), format!("bytes 2-5/{total}"));
    assert_eq!(part.header("x-service-cdn-used-month"), "3");
    let other = [
        (header::RANGE, "bytes=2-5"),
        (header::IF_RANGE, "\"other\""),
    ];
    assert_eq!(gallery.fetch("?w=100", &other).await.status, 200);
    let beyond = gallery
        .fetch("?w=100", &[(header::RANGE, "bytes=100000-")])
        .await;
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.header("access-control-allow-origin"), "*");
    // Nothing was delivered: nothing is counted.
    assert_eq!(beyond.header("x-service-cdn-used-month"), "4");
    let last = gallery.fetch("?w=100", &[]).await;
    assert_eq!(last.header("x-service-cdn-used-month"), "5");
}

#[actix_web::test]
async fn a_bad_key_a_foreign_and_a_missing_file_are_answered_alike() {
    let gallery = Gallery::open().await;
    let stranger = gallery.site.stranger().await;
    let made = gallery
        .site
        .call_as(&stranger, "POST", "/api/delivery-keys", Some(json!({})))
        .await;
    let foreign = made.json()["token"].as_str().unwrap().to_owned();
    // Published, so that a cache could give it away.
    gallery.fetch("?w=100", &[]).await;
    let (file, api_key) = (gallery.file_id, gallery.site.first.api_key.expose());
    let paths = [
        (
            format!("/cdn/v1/svc_pub_{}/{file}?w=100", "A".repeat(32)),
            false,
        ),
        (format!("/cdn/v1/unknown/{file}?w=100"), false),
        (format!("/cdn/v1/{api_key}/{file}?w=100"), false),
        (format!("/cdn/v1/{foreign}/{file}?w=100"), true),
        (
            format!("/cdn/v1/{}/{}?w=100", gallery.key, Uuid::now_v7()),
            true,
        ),
        (format!("/cdn/v1/{}/photo.jpg", gallery.key), true),
        (format!("/cdn/v1/{}/{file}/p/none", gallery.key), true),
    ];
    for (path, knows_key) in paths {
        let answer = gallery.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(
            answer.json(),
            json!({"error": "image not found", "code": "not_found"})
        );
        assert_eq!(answer.header("cache-control"), "no-store");
        let quota = answer.header("x-service-cdn-used-month");
        assert_eq!(!quota.is_empty(), knows_key, "{path}");
    }
}

#[actix_web::test]
async fn what_cannot_be_delivered_is_said_and_not_counted() {
    let gallery = Gallery::open().await;
    let archive = add_file(&gallery.site, "application/zip").await;
    let cases = [
        (gallery.path("?w=0"), 400, "w must be"),
        (gallery.path("?fit=funny"), 400, "fit must be"),
        (gallery.path("?q=1"), 415, "does not decode"),
        (format!("/cdn/v1/{}/{archive}?w=5", gallery.key), 415, ""),
    ];
    for (path, status, text) in cases {
        let answer = gallery.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.error().contains(text), "{}", answer.error());
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("x-service-cdn-used-month"), "0");
    }
    let post = gallery.site.send(request("POST", &gallery.path(""))).await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
}

#[actix_web::test]
async fn a_cap_is_kept_and_says_where_more_can_be_had() {
    let gallery = Gallery::open_on("free", |config| {
        config.plans.get_mut("free").unwrap().deliveries_per_month = 3;
    })
    .await;
    for used in ["1", "2", "3"] {
        let answer = gallery.fetch("?w=100", &[]).await;
        assert_eq!(
            (answer.status, answer.header("x-service-cdn-used-month")),
            (200, used)
        );
    }
    let rejected = gallery.fetch("?w=100", &[]).await;
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.header("x-service-cdn-limit-month"), "3");
    assert_eq!(rejected.header("x-service-cdn-remaining-month"), "0");
    assert_eq!(rejected.header("cache-control"), "no-store");
    assert!(rejected.header("retry-after").parse::<u64>().unwrap() > 0);
    assert!(rejected.json()["upgradeUrl"].is_string());
}

#[actix_web::test]
async fn new_variants_are_bounded_and_published_ones_are_not() {
    let gallery = Gallery::open_with(|config| config.cdn.new_variants_per_minute = 1).await;
    assert_eq!(gallery.fetch("?w=1", &[]).await.status, 200);
    let rejected = gallery.fetch("?w=2", &[]).await;
    assert_eq!(rejected.status, 429);
    assert!(rejected.header("retry-after").parse::<u64>().unwrap() <= 60);
    assert_eq!(gallery.fetch("?w=1", &[]).await.status, 200);
}

#[actix_web::test]
async fn presets_shape_deliveries_and_can_be_all_that_a_key_delivers() {
    let gallery = Gallery::open().await;
    let site = &gallery.site;
    let made = site
        .call(
            "POST",
            "/api/cdn-presets",
            Some(json!({"name": "hero", "params": {"w": 400, "q": 80, "format": "WebP"}})),
        )
        .await;
    assert_eq!(made.status, 201, "{:?}", made.json());
    let preset = &made.json()["preset"];
    assert_eq!(preset["params"], json!({"w": 400, "format": "webp"}));
    let id = preset["id"].as_str().unwrap().to_owned();
    for (body, status) in [
        (json!({"name": "hero", "params": {}}), 409),
        (json!({"name": "a/b", "params": {}}), 400),
        (json!({"name": "x"}), 400),
        (json!({"name": "x", "params": {"w": 0}}), 400),
        (json!({"name": "x", "params": [1]}), 400),
    ] {
        let answer = site
            .call("POST", "/api/cdn-presets", Some(body.clone()))
            .await;
        assert_eq!(answer.status, status, "{body}");
    }
    let by_preset = gallery.fetch("/p/hero?w=1", &[]).await;
    assert_eq!(by_preset.status, 200);
    assert_eq!(by_preset.header("cache-control"), "public, max-age=300");
    assert_eq!(by_preset.header("content-type"), "image/webp");
    let same = gallery.fetch("?w=400&format=webp", &[]).await;
    assert_eq!(
        (same.header("x-cache"), &same.body),
        ("hit", &by_preset.body)
    );

    let path = format!("/api/cdn-presets/{id}");
    let patch = Some(json!({"name": "card"}));
    assert_eq!(
        site.call("PATCH", &path, patch).await.json()["preset"]["name"],
        "card"
    );
    assert_eq!(gallery.fetch("/p/hero", &[]).await.status, 404);
    assert_eq!(gallery.fetch("/p/card", &[]).await.status, 200);

    let only = site
        .call(
            "POST",
            "/api/delivery-keys",
            Some(json!({"presets_only": true})),
        )
        .await;
    let token = only.json()["token"].as_str().unwrap().to_owned();
    let under = |rest: &str| format!("/cdn/v1/{token}/{}{rest}", gallery.file_id);
    assert_eq!(gallery.get(&under("/p/card")).await.status, 200);
    assert_eq!(gallery.get(&under("?w=400")).await.status, 403);

    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(gallery.fetch("/p/card", &[]).await.status, 404);
    assert_eq!(site.call("GET", &path, None).await.status, 404);
    assert_eq!(
        site.call("GET", "/api/cdn-presets", None).await.json(),
        json!({"presets": []})
    );
}

#[actix_web::test]
async fn a_purge_counts_what_is_ones_own() {
    let gallery = Gallery::open().await;
    gallery.fetch("?w=100", &[]).await;
    let purge = async |body: Value| {
        gallery
            .site
            .call("POST", "/api/cdn-purge", Some(body))
            .await
    };
    let foreign = gallery.site.stranger().await;
    let url = format!("https://media.test{}", gallery.path("?w=100"));
    let tag = format!("asset:{}", gallery.file_id);
    let body = json!({"urls": [url], "tags": [tag, format!("asset:{}", Uuid::now_v7())]});
    let not_his = gallery
        .site
        .call_as(&foreign, "POST", "/api/cdn-purge", Some(body.clone()))
        .await;
    assert_eq!(
        not_his.json(),
        json!({"ok": true, "purged": 0, "purgedTags": 0})
    );
    assert_eq!(gallery.fetch("?w=100", &[]).await.header("x-cache"), "hit");
    assert_eq!(
        purge(body).await.json(),
        json!({"ok": true, "purged": 1, "purgedTags": 1})
    );
    assert_eq!(gallery.fetch("?w=100", &[]).await.header("x-cache"), "miss");
    for wrong in [
        json!({}),
        json!({"urls": ["/healthz"]}),
        json!({"tags": ["asset:x"]}),
        json!({"tags": vec!["asset:x"; 1001]}),
    ] {
        assert_eq!(purge(wrong).await.status, 400);
    }
}

#[actix_web::test]
async fn deleting_and_refocusing_a_file_purge_its_variants() {
    let gallery = Gallery::open().await;
    let path = format!("/api/files/{}", gallery.file_id);
    let query = "?w=100&h=100";
    let before = gallery.fetch(query, &[]).await;
    let patch = Some(json!({"focal_point": {"x": 0.1, "y": 0.9}}));
    let patched = gallery.site.call("PATCH", &path, patch).await;
    assert_eq!(patched.status, 200, "{:?}", patched.json());
    let after = gallery.fetch(query, &[]).await;
    assert_eq!(after.header("x-cache"), "miss");
    assert_ne!(before.body, after.body);
    assert_eq!(gallery.site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(gallery.fetch(query, &[]).await.status, 404);
}

#[actix_web::test]
async fn keys_are_listed_with_their_tokens_and_revoked_at_once() {
    let gallery = Gallery::open().await;
    let site = &gallery.site;
    let listed = site.call("GET", "/api/delivery-keys", None).await;
    let key = &listed.json()["keys"][0];
    assert_eq!(key["delivery_alias"], "shop");
    assert_eq!(key["key_prefix"].as_str().unwrap(), &gallery.key[..12]);
    assert_eq!(key["token"], gallery.key.as_str());
    let id = key["id"].as_str().unwrap();
    let alias = async |alias: &str| {
        let path = format!("/api/delivery-keys/alias?alias={alias}");
        let answer = site.call("GET", &path, None).await;
        (answer.status, answer.json()["available"].clone())
    };
    assert_eq!(alias("shop").await, (200, json!(false)));
    assert_eq!(alias("other").await, (200, json!(true)));
    assert_eq!(alias("Shop").await.0, 400);
    for (body, status) in [
        (json!({"alias": "shop"}), 409),
        (json!({"alias": "x"}), 400),
        (json!({"name": ""}), 400),
    ] {
        let answer = site.call("POST", "/api/delivery-keys", Some(body)).await;
        assert_eq!(answer.status, status);
    }
    // A delivery key opens nothing of the API.
    let asked = TestRequest::get()
        .uri("/api/delivery-keys")
        .insert_header(("x-api-key", gallery.key.as_str()));
    assert_eq!(site.send(asked).await.status, 401);

    let path = format!("/api/delivery-keys/{id}");
    let stranger = site.stranger().await;
    assert_eq!(
        site.call_as(&stranger, "DELETE", &path, None).await.status,
        404
    );
    assert_eq!(gallery.fetch("?w=100", &[]).await.status, 200);
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(gallery.fetch("?w=100", &[]).await.status, 404);
    assert_eq!(alias("shop").await, (200, json!(true)));
}

#[actix_web::test]
async fn a_key_is_changed_and_delivery_knows_it_at_once() {
    let gallery = Gallery::open().await;
    let site = &gallery.site;
    let listed = site.call("GET", "/api/delivery-keys", None).await.json();
    let path = format!(
        "/api/delivery-keys/{}",
        listed["keys"][0]["id"].as_str().unwrap()
    );
    let change = async |body: Value| site.call("PATCH", &path, Some(body)).await;
    let by_alias = async |alias: &str| {
        let address = format!("/cdn/v1/{alias}/{}?w=100", gallery.file_id);
        gallery.get(&address).await.status
    };
    assert_eq!(by_alias("shop").await, 200);

    let changed = change(json!({"name": " Store ", "alias": "store"})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let key = &changed.json()["key"];
    assert_eq!(
        (&key["name"], &key["delivery_alias"]),
        (&json!("Store"), &json!("store"))
    );
    assert_eq!(
        (&key["token"], &key["presets_only"]),
        (&json!(gallery.key), &json!(false))
    );
    assert_eq!(
        (by_alias("shop").await, by_alias("store").await),
        (404, 200)
    );

    // A record may be sent back whole.
    assert_eq!(change(key.clone()).await.json()["key"], *key);
    assert_eq!(change(json!({})).await.json()["key"], *key);
    let limited = change(json!({"presetsOnly": true})).await.json();
    assert_eq!(limited["key"]["presets_only"], true);
    assert_eq!(gallery.fetch("?w=100", &[]).await.status, 403);
    change(json!({"presets_only": false, "alias": null})).await;
    assert_eq!(by_alias("store").await, 404);
    assert_eq!(gallery.fetch("?w=100", &[]).await.status, 200);

    let taken = json!({"name": "other", "alias": "taken"});
    assert_eq!(
        site.call("POST", "/api/delivery-keys", Some(taken))
            .await
            .status,
        201
    );
    for (body, status, error) in [
        (json!({"alias": "taken"}), 409, "taken"),
        (json!({"alias": "x"}), 400, "alias"),
        (json!({"alias": "svc_pub_x"}), 400, "svc_"),
        (json!({"name": ""}), 400, "name"),
        (json!({"presetsOnly": 1}), 400, "presetsOnly"),
    ] {
        let answer = change(body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.error().contains(error), "{}", answer.error());
    }
    let body = Some(json!({"name": "mine"}));
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    assert_eq!(
        site.call_as(&reader, "PATCH", &path, body.clone())
            .await
            .status,
        403
    );
    assert_eq!(
        site.call_as(&stranger, "PATCH", &path, body.clone())
            .await
            .status,
        404
    );
    site.call("DELETE", &path, None).await;
    assert_eq!(site.call("PATCH", &path, body).await.status, 404);
}

#[actix_web::test]
async fn statistics_show_hits_and_misses_by_day() {
    let gallery = Gallery::open().await;
    let size = gallery.fetch("?w=100", &[]).await.body.len();
    gallery.fetch("?w=100", &[]).await;
    let stats = async || {
        let path = "/api/cdn/stats?days=2";
        gallery.site.call("GET", path, None).await.json()
    };
    let is_counted = async || stats().await["hits"] == 1;
    eventually("the hit is not counted", is_counted).await;
    let stats = stats().await;
    assert_eq!(stats["days"][0]["misses"], 1, "{stats}");
    assert_eq!(stats["bytes"], 2 * size);
    let keys = gallery.site.call("GET", "/api/delivery-keys", None).await;
    let id = keys.json()["keys"][0]["id"].clone();
    let by_key = async || {
        let path = format!("/api/cdn/stats?days=2&key={}", id.as_str().unwrap());
        gallery.site.call("GET", &path, None).await.json()
    };
    eventually("the key is not counted", async || {
        by_key().await["hits"] == 1
    })
    .await;
    let of_key = by_key().await;
    let key = json!({"id": id, "name": "shop", "isRevoked": false, "hits": 1, "misses": 1, "bytes": 2 * size});
    assert_eq!(of_key["keys"], json!([key]));
    assert_eq!(
        (&of_key["days"], &of_key["bytes"]),
        (&stats["days"], &json!(2 * size))
    );

    let history = async |days| {
        let path = format!("/api/usage/history?days={days}");
        gallery.site.call("GET", &path, None).await
    };
    let month = history(30).await.json();
    assert_eq!(
        (&month["deliveries"]["total"], &month["deliveries"]["bytes"]),
        (&json!(2), &json!(2 * size))
    );
    assert_eq!(month["deliveries"]["keys"], json!([key]));
    let days = month["deliveries"]["days"].as_array().unwrap();
    assert_eq!((days.len(), &days[29]["date"]), (30, &month["until"]));
    let today = &days[29]["keys"][id.as_str().unwrap()];
    assert_eq!(*today, json!({"total": 2, "bytes": 2 * size}));
    assert_eq!(
        (&days[0]["total"], &days[0]["date"]),
        (&json!(0), &month["since"])
    );
    assert_eq!(month["operations"]["days"].as_array().unwrap().len(), 30);
    for days in [0, 401] {
        assert_eq!(history(days).await.status, 400, "{days}");
    }
    let stranger = gallery.site.stranger().await;
    for path in ["/api/cdn/stats", "/api/usage/history"] {
        let foreign = gallery.site.call_as(&stranger, "GET", path, None).await;
        assert!(
            !String::from_utf8_lossy(&foreign.body).contains("shop"),
            "{path}"
        );
    }
    assert_eq!(
        gallery
            .site
            .call("GET", "/api/cdn/stats?days=0", None)
            .await
            .status,
        400
    );
}

#[actix_web::test]
async fn the_description_names_every_parameter() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let operation = &document["paths"]["/cdn/v1/{deliveryKey}/{fileId}"]["get"];
    let named: Vec<&str> = operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    for parameter in sluice_media::variant::parameters() {
        assert!(named.contains(&parameter.name), "{}", parameter.name);
    }
}
