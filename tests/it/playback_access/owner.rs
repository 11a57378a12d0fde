//! Owners at their own streams: the session's cookie opens what is signed and limited to other sites, from pages of the
//! service and for its own account alone.

use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::{PATIENCE, on_air, text};
use crate::support::{
    Failure,
    command::sluice,
    eventually,
    http::client,
    server::{ADMIN_PASSWORD, Api, Server},
};

/// A password of another account's user.
const OTHER_PASSWORD: &str = "another battery staple";
/// Longer than a session that has ended is remembered, on a machine with other work.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// A signed-in browser.
struct Session {
    cookie: String,
    csrf_token: String,
}

impl Session {
    async fn open(server: &Server, username: &str, password: &str) -> Result<Self, Failure> {
        let url = format!("{}/api/session", server.base_url());
        let body = json!({"username": username, "password": password});
        let answer = client().post(url).json(&body).send().await?;
        assert_eq!(answer.status(), 201, "{username}");
        let cookie = header(&answer, "set-cookie");
        let signed_in: Value = answer.json().await?;
        Ok(Self {
            cookie: cookie.split(';').next().unwrap_or_default().to_owned(),
            csrf_token: text(&signed_in, "csrfToken")?,
        })
    }

    /// A request as a page of the service makes it.
    fn at_home(&self, url: &str) -> RequestBuilder {
        self.get(url).header("sec-fetch-site", "same-origin")
    }

    fn get(&self, url: &str) -> RequestBuilder {
        client().get(url).header("cookie", &self.cookie)
    }

    async fn end(&self, server: &Server) -> Result<(), Failure> {
        let url = format!("{}/api/session", server.base_url());
        let request = client().delete(url).header("cookie", &self.cookie);
        let answer = request.header("x-csrf-token", &self.csrf_token).send();
        assert_eq!(answer.await?.status(), 200);
        Ok(())
    }
}

fn header(answer: &Response, name: &str) -> String {
    let value = answer.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

/// Every kind of address of a stream that is on air.
async fn addresses(session: &Session, base: &str) -> Result<Vec<String>, Failure> {
    let fetch = async |name: &str| -> Result<String, Failure> {
        let answer = session.at_home(&format!("{base}/{name}")).send().await?;
        Ok(answer.error_for_status()?.text().await?)
    };
    let multivariant = fetch("index.m3u8").await?;
    let media = multivariant
        .lines()
        .find(|line| line.starts_with("media.m3u8"))
        .ok_or("no media playlist")?;
    let playlist = fetch(media).await?;
    let quoted = |tag: &str| {
        let line = playlist.lines().rfind(|line| line.starts_with(tag));
        line.and_then(|line| line.split("URI=\"").nth(1)?.split('"').next())
            .ok_or_else(|| format!("no {tag} in {playlist}"))
    };
    let segment = playlist.lines().rfind(|line| line.ends_with(".m4s"));
    let names = [
        "index.m3u8",
        media,
        "state",
        "poster.jpg",
        quoted("#EXT-X-MAP")?,
        quoted("#EXT-X-PART:")?,
        segment.ok_or("no segment")?,
    ];
    Ok(names.map(|name| format!("{base}/{name}")).into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_watches_whatever_the_terms_say() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let terms = json!({"requireSignedPlayback": true, "allowedDomains": ["elsewhere.example"]});
    let (input, mut encoder) = on_air(&api, terms).await?;
    let own = Session::open(&server, "admin", ADMIN_PASSWORD).await?;
    let base = format!("{}/live/v1/{}", server.base_url(), input.playback_id);
    let other = other_account(&server).await?;

    for url in addresses(&own, &base).await? {
        let seen = own.at_home(&url).send().await?;
        assert_eq!(seen.status(), 200, "{url}");
        let cache = header(&seen, "cache-control");
        assert!(
            cache.starts_with("private, max-age=") || cache == "no-store",
            "{url}: {cache}"
        );
        assert_eq!(header(&seen, "access-control-allow-origin"), "", "{url}");
        let page = format!("{}/app/live/1", server.base_url());
        let neighbour = "http://127.0.0.1:9/app";
        let site = "sec-fetch-site";
        let asked = [
            (
                "over plain HTTP, by Referer",
                200,
                own.get(&url).header("referer", &page),
            ),
            (
                "over plain HTTP, by Origin",
                200,
                own.get(&url).header("origin", server.base_url()),
            ),
            (
                "no cookie",
                403,
                client().get(&url).header(site, "same-origin"),
            ),
            ("no page", 403, own.get(&url)),
            ("typed", 403, own.get(&url).header(site, "none")),
            (
                "another site",
                403,
                own.get(&url).header(site, "cross-site"),
            ),
            ("another port", 403, own.get(&url).header(site, "same-site")),
            (
                "another port's Referer",
                403,
                own.get(&url).header("referer", neighbour),
            ),
            (
                "another origin",
                403,
                own.at_home(&url).header("origin", "https://evil.example"),
            ),
            (
                "a frame without origin",
                403,
                own.at_home(&url).header("origin", "null"),
            ),
            ("another account", 403, other.at_home(&url)),
            (
                "no session",
                403,
                client()
                    .get(&url)
                    .header("cookie", format!("sluice_session={}", "A".repeat(43)))
                    .header(site, "same-origin"),
            ),
        ];
        for (who, status, request) in asked {
            let answer = request.send().await?;
            assert_eq!(answer.status(), status, "{who}: {url}");
        }
    }

    own.end(&server).await?;
    eventually("an ended session is refused", FORGOTTEN, async || {
        let answer = own
            .at_home(&format!("{base}/index.m3u8"))
            .send()
            .await
            .ok()?;
        (answer.status() == 403).then_some(())
    })
    .await?;
    encoder.kill().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_stream_is_answered_alike_to_everyone() -> Result<(), Failure> {
    let server = Server::start().await?;
    let (input, mut encoder) = on_air(&server.api(), json!({})).await?;
    let own = Session::open(&server, "admin", ADMIN_PASSWORD).await?;
    let base = format!("{}/live/v1/{}", server.base_url(), input.playback_id);
    for url in addresses(&own, &base).await? {
        let mine = own.at_home(&url).send().await?;
        let theirs = client().get(&url).send().await?;
        for name in ["cache-control", "access-control-allow-origin", "vary"] {
            assert_eq!(header(&mine, name), header(&theirs, name), "{url}: {name}");
        }
    }
    encoder.kill().await
}

/// A session of another account's user.
async fn other_account(server: &Server) -> Result<Session, Failure> {
    let beside = |arguments: &[&str]| sluice(arguments).data_dir(server.data_dir());
    beside(&["accounts", "create", "Other"]).succeed().await?;
    let add = [
        "users",
        "add",
        "other",
        "--account",
        "Other",
        "--role",
        "admin",
        "--password-stdin",
    ];
    beside(&add).input(OTHER_PASSWORD).succeed().await?;
    Session::open(server, "other", OTHER_PASSWORD).await
}

/// The same for a stored video, which another function serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_watches_a_signed_recording() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let terms = json!({"requireSignedPlayback": true, "allowedDomains": ["elsewhere.example"],
        "recordMode": "automatic", "reconnectWindowSeconds": 0});
    let (input, mut encoder) = on_air(&api, terms).await?;
    encoder.stop().await?;
    let stream = super::recordings::recorded_stream(&api, &input).await?;
    let own = Session::open(&server, "admin", ADMIN_PASSWORD).await?;
    let base = format!(
        "{}/video/v1/{}",
        server.base_url(),
        text(&stream, "playbackId")?
    );
    let master = own.at_home(&format!("{base}/master.m3u8")).send().await?;
    assert_eq!(master.status(), 200);
    let master = master.text().await?;
    let media = master.lines().find(|line| line.ends_with("/media.m3u8"));
    let media = media.ok_or_else(|| format!("no rendition in {master}"))?;
    let init = media.replace("media.m3u8", "init.mp4");
    for name in ["master.m3u8", "poster.jpg", media, &init] {
        let url = format!("{base}/{name}");
        let seen = own.at_home(&url).send().await?;
        assert_eq!(seen.status(), 200, "{name}");
        let cache = header(&seen, "cache-control");
        assert!(cache.starts_with("private, max-age="), "{name}: {cache}");
        assert_eq!(header(&seen, "access-control-allow-origin"), "", "{name}");
        for stranger in [
            client().get(&url),
            own.get(&url).header("sec-fetch-site", "cross-site"),
        ] {
            assert_eq!(stranger.send().await?.status(), 403, "{name}");
        }
    }
    watched_by_id(&api, &input.id).await
}

/// The record names the stream as its owner's page needs it.
async fn watched_by_id(api: &Api, id: &str) -> Result<(), Failure> {
    let record = api.wait_status(id, "idle", PATIENCE).await?;
    let url = text(&record["playback"], "watchUrl")?;
    assert_eq!(client().get(url).send().await?.status(), 200);
    Ok(())
}
