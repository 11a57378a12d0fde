//! Every address of a signed input, with every kind of invalid permission. The addresses come from the service's own
//! description, so that a route that is added later must be tried, too.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::{
    jwt::{encode, hs256, hs512, unsigned},
    minting::Key,
    on_air, text, token_for,
};
use crate::{
    support::{
        Failure,
        http::client,
        server::{API_KEY, Api, Input, Server},
    },
    webrtc::offers::offer,
};

/// Prefix of the addresses that players of a live input fetch.
const BELOW: &str = "/live/v1/{playback_id}/";

struct Walk {
    client: Client,
    base: String,
    /// Addresses behind the permission, and whether a correct one is answered 200.
    addresses: Vec<(String, bool)>,
    broadcast: String,
}

/// A text that is no leave for the input, and the code of its rejection.
pub(super) struct Bad {
    pub what: &'static str,
    pub leave: String,
    pub code: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_of_a_signed_input_opens_without_its_token() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let recorded = json!({"requireSignedPlayback": true, "recordMode": "automatic"});
    let (input, mut encoder) = on_air(&api, recorded).await?;
    let token = text(
        &token_for(&api, &input, json!({"expiresIn": 600})).await?,
        "token",
    )?;
    let walk = Walk::of(&server, &token).await?;
    let delivery_key = api.delivery_key().await?;

    for (address, opens) in &walk.addresses {
        let answer = walk.get(&token, address).await?;
        if *opens {
            assert_eq!(answer.status(), 200, "{address}");
        }
        let cache = header(&answer, "cache-control");
        assert!(
            cache.starts_with("private, max-age=") || cache == "no-store",
            "{address}: {cache}"
        );
    }
    let video_frame = walk
        .video_frame(&delivery_key, &input.id, Some(&token))
        .await?;
    assert_eq!(
        (
            video_frame.status().as_u16(),
            header(&video_frame, "cache-control")
        ),
        (200, "no-store".to_owned())
    );

    let key = Key::make(&api).await?;
    let revoked = Key::make(&api).await?;
    revoked.revoke(&api).await?;
    for bad in bad_leaves(&input.playback_id, &token, &key, &revoked) {
        for (address, _) in &walk.addresses {
            walk.is_refused(&bad, address).await?;
        }
        let beside = (bad.leave != input.playback_id).then_some(bad.leave.as_str());
        let video_frame = walk.video_frame(&delivery_key, &input.id, beside).await?;
        check_rejection(video_frame, bad.code, &format!("frame=live, {}", bad.what)).await?;
    }
    walk.others_open_nothing(&api, &input, &delivery_key)
        .await?;
    walk.only_the_path_counts(&input, &token).await?;
    walk.domains(&api, &input).await?;
    encoder.kill().await
}

pub(super) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Each of these names the right stream.
pub(super) fn bad_leaves(playback_id: &str, token: &str, key: &Key, revoked: &Key) -> Vec<Bad> {
    let claims = json!({"sub": playback_id, "exp": now_s() + 600});
    let longer = json!({"sub": playback_id, "exp": now_s() + 9_000});
    let expired = json!({"sub": playback_id, "exp": now_s() - 1});
    let early = json!({"sub": playback_id, "exp": now_s() + 600, "nbf": now_s() + 500});
    let endless = json!({"sub": playback_id});
    let plain = json!({"alg": "HS256", "typ": "JWT"});
    let with_key = json!({"alg": "HS256", "typ": "JWT", "kid": key.id});
    let secret = key.secret.as_bytes();
    let (signed, signature) = token.rsplit_once('.').unwrap_or_default();
    let (header, _) = signed.split_once('.').unwrap_or_default();
    let bent: String = signature.chars().rev().collect();
    let none = |header: Value| format!("{}.", unsigned(&header, &claims));
    let wrong = [
        ("bent signature", format!("{signed}.{bent}")),
        ("no signature", format!("{signed}.")),
        ("half a token", signed.to_owned()),
        ("two signatures", format!("{token}.{signature}")),
        (
            "other claims",
            format!(
                "{header}.{}.{signature}",
                encode(longer.to_string().as_bytes())
            ),
        ),
        ("alg none", none(json!({"alg": "none"}))),
        ("alg None", none(json!({"alg": "None", "typ": "JWT"}))),
        (
            "alg none and a key",
            none(json!({"alg": "none", "kid": key.id})),
        ),
        (
            "alg none, signed",
            hs256(secret, &json!({"alg": "none", "kid": key.id}), &claims),
        ),
        (
            "HS512",
            hs512(secret, &json!({"alg": "HS512", "kid": key.id}), &claims),
        ),
        ("HS512 as HS256", hs512(secret, &with_key, &claims)),
        (
            "RS256",
            hs256(secret, &json!({"alg": "RS256", "kid": key.id}), &claims),
        ),
        ("no kid", hs256(secret, &plain, &claims)),
        (
            "unknown kid",
            hs256(
                secret,
                &json!({"alg": "HS256", "kid": "00000000-0000-7000-8000-000000000000"}),
                &claims,
            ),
        ),
        (
            "kid as a path",
            hs256(
                secret,
                &json!({"alg": "HS256", "kid": "../../etc/passwd"}),
                &claims,
            ),
        ),
        (
            "own key inside",
            hs256(
                b"k",
                &json!({"alg": "HS256", "kid": key.id, "jwk": {"kty": "oct", "k": "aw"}}),
                &claims,
            ),
        ),
        (
            "crit",
            hs256(
                secret,
                &json!({"alg": "HS256", "kid": key.id, "crit": ["exp"]}),
                &claims,
            ),
        ),
        (
            "revoked key",
            hs256(
                revoked.secret.as_bytes(),
                &json!({"alg": "HS256", "kid": revoked.id}),
                &claims,
            ),
        ),
        ("empty secret", hs256(b"", &with_key, &claims)),
        (
            "secret: the kid",
            hs256(key.id.as_bytes(), &with_key, &claims),
        ),
        (
            "secret: the playback id",
            hs256(playback_id.as_bytes(), &with_key, &claims),
        ),
        (
            "secret: the API key",
            hs256(API_KEY.as_bytes(), &with_key, &claims),
        ),
        ("not yet", hs256(secret, &with_key, &early)),
        ("without an end", hs256(secret, &with_key, &endless)),
        (
            "for another audience",
            hs256(
                secret,
                &with_key,
                &json!({"sub": playback_id, "exp": now_s() + 600, "aud": "x"}),
            ),
        ),
    ];
    let wrong = wrong.into_iter().map(|(what, leave)| Bad {
        what,
        leave,
        code: "playback_token_invalid",
    });
    let others = [
        Bad {
            what: "no token",
            leave: playback_id.to_owned(),
            code: "playback_token_required",
        },
        Bad {
            what: "expired",
            leave: hs256(secret, &with_key, &expired),
            code: "playback_token_expired",
        },
    ];
    wrong.chain(others).collect()
}

impl Walk {
    /// Finds every address, by the token.
    async fn of(server: &Server, token: &str) -> Result<Self, Failure> {
        let mut walk = Self {
            client: client(),
            base: server.base_url(),
            addresses: Vec::new(),
            broadcast: String::new(),
        };
        let state: Value = walk.get(token, "state").await?.json().await?;
        walk.broadcast = text(&state, "broadcast")?;
        let multivariant = walk.get(token, "index.m3u8").await?.text().await?;
        let media = multivariant
            .lines()
            .find(|line| line.starts_with("media.m3u8"))
            .ok_or("no media playlist")?
            .to_owned();
        let playlist = walk.get(token, &media).await?.text().await?;
        assert!(
            !playlist.contains("://") && !multivariant.contains("://"),
            "relative addresses carry the token on"
        );
        let quoted = |tag: &str| -> Result<String, Failure> {
            let line = playlist.lines().rfind(|line| line.starts_with(tag));
            let uri = line.and_then(|line| line.split("URI=\"").nth(1)?.split('"').next());
            Ok(uri
                .ok_or_else(|| format!("no {tag} in {playlist}"))?
                .to_owned())
        };
        let segment = playlist.lines().rfind(|line| line.ends_with(".m4s"));
        let segment = segment.ok_or("no segment")?.to_owned();
        let (init, part) = (quoted("#EXT-X-MAP")?, quoted("#EXT-X-PART:")?);
        let next: u64 = segment
            .trim_end_matches(".m4s")
            .rsplit('/')
            .next()
            .and_then(|number| number.parse().ok())
            .ok_or("no number")?;
        for path in walk.described().await? {
            let below = path.strip_prefix(BELOW).unwrap_or_default();
            let found = match below {
                "index.m3u8" | "state" | "poster.jpg" | "whep" => vec![(below.to_owned(), true)],
                "media.m3u8" => vec![
                    (media.clone(), true),
                    (below.to_owned(), true),
                    (
                        format!("{below}?_HLS_msn={}&_HLS_part=0&_HLS_skip=YES", next + 1),
                        true,
                    ),
                    (format!("{below}?_HLS_part=1"), false),
                    (format!("{below}?dvr=1"), true),
                ],
                "{broadcast}/{name}" => vec![
                    (init.clone(), true),
                    (segment.clone(), true),
                    (part.clone(), true),
                    (quoted("#EXT-X-PRELOAD-HINT")?, false),
                    (format!("{}/999999.m4s", walk.broadcast), false),
                    (format!("{}/../{}", walk.broadcast, segment), false),
                ],
                _ => return Err(format!("{path} is served, and this walk does not know it").into()),
            };
            walk.addresses.extend(found);
        }
        walk.addresses.push(("index.m3u8?dvr=1".to_owned(), true));
        walk.addresses
            .push(("state?wait=1&since=x".to_owned(), true));
        assert!(walk.addresses.len() >= 12, "{:?}", walk.addresses);
        Ok(walk)
    }

    /// Returns the addresses below a playback id in the API's description.
    async fn described(&self) -> Result<Vec<String>, Failure> {
        let url = format!("{}/openapi.json", self.base);
        let document: Value = self.client.get(url).send().await?.json().await?;
        let paths = document["paths"].as_object().ok_or("no paths")?;
        let below = paths.keys().filter(|path| path.starts_with("/live/v1/"));
        Ok(below.cloned().collect())
    }

    async fn get(&self, leave: &str, address: &str) -> Result<Response, Failure> {
        self.ask(Method::GET, leave, address).await
    }

    async fn ask(&self, method: Method, leave: &str, address: &str) -> Result<Response, Failure> {
        let url = format!("{}/live/v1/{leave}/{address}", self.base);
        Ok(self.client.request(method, url).send().await?)
    }

    async fn video_frame(
        &self,
        delivery_key: &str,
        input_id: &str,
        token: Option<&str>,
    ) -> Result<Response, Failure> {
        let beside = token.map_or_else(String::new, |token| format!("&token={token}"));
        let url = format!(
            "{}/cdn/v1/{delivery_key}/{input_id}?frame=live&w=64{beside}",
            self.base
        );
        Ok(self.client.get(url).send().await?)
    }

    async fn is_refused(&self, bad: &Bad, address: &str) -> Result<(), Failure> {
        let case = format!("{}, {address}", bad.what);
        check_rejection(self.get(&bad.leave, address).await?, bad.code, &case).await?;
        let head = self.ask(Method::HEAD, &bad.leave, address).await?;
        assert_eq!(head.status(), 403, "HEAD, {case}");
        let preflight = self.ask(Method::OPTIONS, &bad.leave, address).await?;
        assert_eq!(preflight.status(), 204, "OPTIONS, {case}");
        assert!(preflight.bytes().await?.is_empty());
        if address == "whep" {
            let url = format!("{}/live/v1/{}/whep", self.base, bad.leave);
            let posted = self.client.post(url).body(offer(1));
            let posted = posted.header("content-type", "application/sdp");
            check_rejection(posted.send().await?, bad.code, &format!("POST, {case}")).await?;
        }
        Ok(())
    }

    /// Tokens that hold, of an input that is not on air, and texts that are no leave at all.
    async fn others_open_nothing(
        &self,
        api: &Api,
        input: &Input,
        delivery_key: &str,
    ) -> Result<(), Failure> {
        let other = api.create(json!({"requireSignedPlayback": true})).await?;
        let others = text(&token_for(api, &other, json!({})).await?, "token")?;
        let stream_key = input.obs_stream_key.clone();
        let unknown = format!("pb_{}", "0".repeat(20));
        for leave in [
            others.as_str(),
            &unknown,
            &stream_key,
            API_KEY,
            delivery_key,
            "x",
        ] {
            for (address, _) in &self.addresses {
                let answer = self.get(leave, address).await?;
                let status = answer.status().as_u16();
                let body = answer.text().await?;
                let is_own = leave == others && (address.starts_with("state") || address == "whep");
                assert!(
                    matches!(status, 400 | 403 | 404) || is_own,
                    "{leave} {address}: {status}"
                );
                assert!(!body.contains(&self.broadcast), "{leave} {address}: {body}");
            }
        }
        let video_frame = self
            .video_frame(delivery_key, &input.id, Some(&others))
            .await?;
        check_rejection(
            video_frame,
            "playback_token_invalid",
            "frame=live, another input's token",
        )
        .await
    }

    /// A token beside the playback id is no permission, wherever it is.
    async fn only_the_path_counts(&self, input: &Input, token: &str) -> Result<(), Failure> {
        for (address, _) in &self.addresses {
            let join = if address.contains('?') { '&' } else { '?' };
            let url = format!("{}/live/v1/{}/{address}", self.base, input.playback_id);
            let beside = [
                self.client.get(format!("{url}{join}token={token}")),
                self.client.get(&url).bearer_auth(token),
                self.client.get(&url).bearer_auth(API_KEY),
                self.client
                    .get(&url)
                    .header("cookie", format!("token={token}")),
            ];
            for request in beside {
                check_rejection(request.send().await?, "playback_token_required", address).await?;
            }
        }
        Ok(())
    }

    /// A token can be limited to the pages of one site, and never allows more sites than the input does.
    async fn domains(&self, api: &Api, input: &Input) -> Result<(), Failure> {
        let narrow = token_for(api, input, json!({"allowedDomains": ["example.org"]})).await?;
        let narrow = text(&narrow, "token")?;
        let from = async |token: &str, origin: Option<&str>| {
            let mut statuses = Vec::new();
            for (address, opens) in &self.addresses {
                let url = format!("{}/live/v1/{token}/{address}", self.base);
                let mut request = self.client.get(url);
                if let Some(origin) = origin {
                    request = request.header("origin", origin);
                }
                let answer = request.send().await?;
                let named = header(&answer, "access-control-allow-origin");
                if *opens || answer.status() == 403 {
                    statuses.push((answer.status().as_u16(), named));
                }
            }
            statuses.dedup();
            Ok::<_, Failure>(statuses)
        };
        let (org, net) = ("https://example.org", "https://example.net");
        let shut = vec![(403, String::new())];
        assert_eq!(from(&narrow, Some(org)).await?, [(200, org.to_owned())]);
        assert_eq!(from(&narrow, Some(net)).await?, shut);
        assert_eq!(from(&narrow, None).await?, shut);
        api.patch(&input.id, json!({"allowedDomains": ["example.net"]}))
            .await?;
        let wide = text(&token_for(api, input, json!({})).await?, "token")?;
        assert_eq!(from(&wide, Some(net)).await?, [(200, net.to_owned())]);
        assert_eq!(from(&wide, Some(org)).await?, shut);
        assert_eq!(
            from(&narrow, Some(org)).await?,
            shut,
            "the input's list holds"
        );
        assert_eq!(from(&narrow, Some(net)).await?, shut);
        api.patch(&input.id, json!({"allowedDomains": []})).await?;
        Ok(())
    }
}

fn header(answer: &Response, name: &str) -> String {
    let value = answer.headers().get(name);
    let value = value.and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

pub(super) async fn check_rejection(
    answer: Response,
    code: &str,
    case: &str,
) -> Result<(), Failure> {
    assert_eq!(answer.status(), 403, "{case}");
    assert_eq!(header(&answer, "cache-control"), "no-store", "{case}");
    assert_eq!(
        header(&answer, "content-type"),
        "application/json",
        "{case}"
    );
    let body: Value = answer.json().await?;
    assert_eq!(body["code"], code, "{case}: {body}");
    Ok(())
}
