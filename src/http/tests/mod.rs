//! Tests of the REST façade: a real store in a temporary folder, faked live inputs.

mod access;
mod audit;
mod catalogue;
mod change_feed;
mod clips;
mod dashboard;
mod delivery;
mod description;
mod events;
mod file_lists;
mod files;
mod forgery;
mod framework;
mod jobs;
mod live_inputs;
mod members;
mod outputs;
mod roles;
mod served;
mod session;
mod share_page;
mod source_url;
mod system;
mod tus;
mod video;
mod webhooks;
mod webrtc;
mod workflows;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use actix_web::{
    body::to_bytes,
    http::{Method, header::HeaderMap},
    test::{TestRequest, init_service},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use sluice_actors::{
    Error,
    component::ComponentStatuses,
    live::{
        Directory, Health, InputStatus, LivePort, Playback, Times, restream::OutputContext,
        webrtc::WebRtc,
    },
    metric::Metric,
    subsystem::Subsystem,
};
use sluice_store::{
    Bootstrap, FirstCredentials, Secret, Store, accounts, api_keys,
    api_keys::Scope,
    credentials::{csrf_token, hash_password},
    now_ms,
    sessions::{self, NewSession},
    users::{self, NewUser, Role, User},
    welcome_codes,
};
use uuid::Uuid;

use super::server::application;
use crate::{
    application::{
        context::{AppContext, LiveAccess, MediaHandles, Stage},
        system::state::Startup,
    },
    config::{Config, Origins},
    doctor::{Finding, Report},
    log::LogRing,
};

const PASSWORD: &str = "correct horse";
/// Origin of the service as [`request`] reaches it.
const ORIGIN: &str = "http://media.test:8080";

/// Between two looks at a condition that nothing announces.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Longest time for a condition on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// Looks until the condition holds; `what` says how it is as long as it does not.
async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Live inputs that do what the test says.
#[derive(Default)]
struct FakeLive {
    on_air: Mutex<Option<(InputStatus, Times)>>,
    changes: Mutex<Vec<String>>,
    panics: AtomicBool,
    busy: AtomicBool,
    /// Inputs that can be watched.
    watched: Mutex<Directory>,
}

impl FakeLive {
    fn tell(&self, what: String) -> BoxFuture<'static, Result<(), Error>> {
        let busy = self.busy.swap(false, Ordering::Relaxed);
        if !busy {
            self.changes.lock().push(what);
        }
        async move {
            if busy {
                Err(Error::Busy("live inputs"))
            } else {
                Ok(())
            }
        }
        .boxed()
    }

    fn changes(&self) -> Vec<String> {
        self.changes.lock().clone()
    }
}

impl Subsystem for FakeLive {
    fn name(&self) -> &'static str {
        "live inputs"
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        let metrics = vec![Metric::by_label(
            "live_inputs",
            "Live inputs",
            "status",
            [("live", 1_u64)],
        )];
        async move { Ok(metrics) }.boxed()
    }
}

impl LivePort for FakeLive {
    fn status(&self, _: Uuid) -> InputStatus {
        assert!(
            !self.panics.load(Ordering::Relaxed),
            "a test asked for this panic"
        );
        self.on_air
            .lock()
            .map_or(InputStatus::Idle, |(status, _)| status)
    }

    fn times(&self, _: Uuid) -> Times {
        self.on_air
            .lock()
            .map_or_else(Times::default, |(_, times)| times)
    }

    fn health(&self, _: Uuid) -> Option<Arc<Health>> {
        None
    }

    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>> {
        self.watched.lock().by_playback(playback_id)
    }

    fn viewers(&self, _: Uuid) -> u64 {
        0
    }

    fn playback_of(&self, _: Uuid) -> Option<Arc<Playback>> {
        None
    }

    fn playbacks(&self) -> Vec<Arc<Playback>> {
        self.watched.lock().playbacks()
    }

    fn on_air(&self) -> Vec<Arc<Playback>> {
        Vec::new()
    }

    fn end(&self, _: Uuid) -> BoxFuture<'static, Result<bool, Error>> {
        let is_on_air = self.on_air.lock().take().is_some();
        async move { Ok(is_on_air) }.boxed()
    }

    fn changed(
        &self,
        input: sluice_store::live_inputs::LiveInput,
    ) -> BoxFuture<'static, Result<(), Error>> {
        self.tell(format!("changed {} enabled={}", input.id, input.enabled))
    }

    fn deleted(&self, input_id: Uuid) -> BoxFuture<'static, Result<(), Error>> {
        self.tell(format!("deleted {input_id}"))
    }
}

/// A façade over a fresh database with its first credentials.
struct Site {
    app: AppContext,
    live: Arc<FakeLive>,
    webrtc: Arc<webrtc::FakeWebRtc>,
    first: FirstCredentials,
    _folder: tempfile::TempDir,
}

/// A signed-in browser.
struct Browser {
    /// The `Cookie` header.
    cookie: String,
    csrf_token: String,
}

impl Browser {
    /// A request of a page of the service's own.
    fn request(&self, method: &str, path: &str) -> TestRequest {
        self.bare(method, path)
            .insert_header(("origin", ORIGIN))
            .insert_header(("sec-fetch-site", "same-origin"))
            .insert_header(("x-csrf-token", self.csrf_token.clone()))
    }

    /// A request with nothing but the cookie.
    fn bare(&self, method: &str, path: &str) -> TestRequest {
        request(method, path).insert_header(("cookie", self.cookie.clone()))
    }
}

/// Handles whose workers do not start.
fn handles(config: &Config, store: &Store) -> MediaHandles {
    let outputs = OutputContext::default();
    MediaHandles::start(
        config,
        store,
        "/nonexistent".into(),
        outputs,
        WebRtc::default(),
    )
    .expect("no ca_file")
}

/// An answer of the façade.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

impl Site {
    async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    async fn open_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::open_over(adjust, handles).await
    }

    async fn open_over(
        adjust: impl FnOnce(&mut Config),
        media: impl FnOnce(&Config, &Store) -> MediaHandles,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = folder.path().join("data");
        config.store.min_free = "64 MB".into();
        adjust(&mut config);
        let store = Store::open_node(&config.store, &config.cluster)
            .await
            .unwrap();
        let fixed = Bootstrap {
            admin_password: Some(Secret::new(PASSWORD)),
            ..Bootstrap::default()
        };
        let first = sluice_store::bootstrap(&store, fixed, now_ms())
            .await
            .unwrap()
            .unwrap();
        let live = Arc::new(FakeLive::default());
        let webrtc = Arc::new(webrtc::FakeWebRtc::default());
        let media = media(&config, &store);
        for subsystem in media.subsystems() {
            subsystem.load().await.unwrap();
        }
        let app = AppContext::new(
            config,
            store,
            live.clone(),
            ComponentStatuses::default(),
            media,
            LiveAccess {
                rtmp_port: 1935,
                srt: None,
                webrtc: webrtc.clone(),
            },
            Startup {
                origins: Origins::default(),
                log: LogRing::default(),
                // The checks start workers from this program, which is the one of the tests.
                examine: |_| Report::new(vec![Finding::ok("disk", "much")]),
            },
        );
        app.service.set_stage(Stage::Ready);
        Self {
            app,
            live,
            webrtc,
            first,
            _folder: folder,
        }
    }

    async fn send(&self, request: TestRequest) -> Answer {
        let app = init_service(application(self.app.clone())).await;
        let (status, headers, body) =
            match actix_web::dev::Service::call(&app, request.to_request()).await {
                Ok(response) => {
                    let (status, headers) = (response.status(), response.headers().clone());
                    (
                        status,
                        headers,
                        to_bytes(response.into_body())
                            .await
                            .map_err(|_| ())
                            .unwrap(),
                    )
                }
                Err(error) => {
                    let response = error.error_response();
                    let (status, headers) = (response.status(), response.headers().clone());
                    (
                        status,
                        headers,
                        to_bytes(response.into_body()).await.unwrap(),
                    )
                }
            };
        Answer {
            status: status.as_u16(),
            headers,
            body: body.to_vec(),
        }
    }

    /// With the first API key, which has scope `admin`.
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_as(self.first.api_key.expose(), method, path, body)
            .await
    }

    async fn call_as(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let mut request =
            request(method, path).insert_header(("authorization", format!("Bearer {key}")));
        if let Some(body) = body {
            request = request.set_json(body);
        }
        self.send(request).await
    }

    async fn key(&self, scope: Scope) -> String {
        let account_id = self.first.live_input.account_id;
        let made = self
            .app
            .platform
            .store
            .write(move |tx| {
                Box::pin(
                    async move { api_keys::create(tx, account_id, "test", scope, now_ms()).await },
                )
            })
            .await;
        made.unwrap().1.expose().to_owned()
    }

    /// Another user of the first account, or of a new one. Their password is [`PASSWORD`].
    async fn user(&self, username: &str, role: Role, is_operator: bool, is_stranger: bool) -> User {
        let (own, username) = (self.first.live_input.account_id, username.to_owned());
        let password_hash = hash_password(&Secret::new(PASSWORD)).unwrap();
        let made = self.app.platform.store.write(move |tx| {
            Box::pin(async move {
                let account_id = match is_stranger {
                    true => accounts::create(tx, "Stranger", now_ms()).await?.id,
                    false => own,
                };
                let new = NewUser {
                    account_id,
                    username,
                    role,
                    is_operator,
                    password_hash,
                };
                users::create(tx, new, now_ms()).await
            })
        });
        made.await.unwrap()
    }

    /// A welcome code of the first user.
    async fn welcome_code(&self) -> Secret {
        let made = self.app.platform.store.write(|tx| {
            Box::pin(async move {
                let user = users::by_username(tx, "admin").await?.expect("was made");
                welcome_codes::create(tx, user.id, now_ms()).await
            })
        });
        made.await.unwrap()
    }

    /// A session as a sign-in opens it.
    async fn browser(&self, user_id: Uuid) -> Browser {
        let new = NewSession {
            user_id,
            lifetime_ms: 60_000,
            network: None,
            user_agent: None,
        };
        let made =
            self.app.platform.store.write(move |tx| {
                Box::pin(async move { sessions::create(tx, new, now_ms()).await })
            });
        let (_, token) = made.await.unwrap();
        Browser {
            cookie: format!("sluice_session={}", token.expose()),
            csrf_token: csrf_token(&token).expose().to_owned(),
        }
    }

    /// A key of another account.
    async fn stranger(&self) -> String {
        let made = self
            .app
            .platform
            .store
            .write(|tx| {
                Box::pin(async move {
                    let account = accounts::create(tx, "Stranger", now_ms()).await?;
                    api_keys::create(tx, account.id, "test", Scope::Admin, now_ms()).await
                })
            })
            .await;
        made.unwrap().1.expose().to_owned()
    }
}

fn request(method: &str, path: &str) -> TestRequest {
    TestRequest::with_uri(path)
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .insert_header(("host", "media.test:8080"))
        .peer_addr("203.0.113.9:4711".parse().unwrap())
}
