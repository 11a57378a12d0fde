//! Directories and caches after commits that no use case of this service has made, as those of other nodes come to it.

use std::time::{Duration, Instant};

use serde_json::json;
use sluice_store::{
    Store, credentials,
    delivery_keys::{self, DeliveryKeyPatch, NewDeliveryKey},
    folders::{self, NewFolder},
    live_inputs::{self, LiveInputPatch},
    now_ms,
    outputs::{self, NewOutput, OutputLimits},
    playback_keys, presets,
    sessions::{self, NewSession},
    shares::{self, NewShare},
    users, write_tx,
};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{SOON, Site, eventually};
use crate::application::{
    change_feed, playback_token::TokenKeys, share::open_requests::withdrawn, signing,
};

/// Longest time after which a commit of another node is known.
const BOUND: Duration = Duration::from_secs(2);

/// A site that follows the log, as a node does.
struct Node {
    site: Site,
    store: Store,
    account_id: Uuid,
    stop: CancellationToken,
    feed: JoinHandle<()>,
}

impl Node {
    async fn open() -> Self {
        let site = Site::open().await;
        let (app, stop) = (site.app.clone(), CancellationToken::new());
        let (store, stopped) = (app.platform.store.clone(), stop.clone());
        let follower = store.follow_everything();
        let feed = tokio::spawn(async move { change_feed::run(&app, follower, stopped).await });
        Self {
            account_id: site.first.live_input.account_id,
            site,
            store,
            stop,
            feed,
        }
    }

    async fn close(self) {
        self.stop.cancel();
        timeout(SOON, self.feed).await.unwrap().unwrap();
    }
}

#[actix_web::test]
async fn keys_and_presets_of_other_nodes_are_known() {
    let node = Node::open().await;
    let (store, account, images) = (&node.store, node.account_id, &node.site.app.delivery.images);
    let (key, token) = write_tx!(store, |tx| {
        delivery_keys::create(tx, account, NewDeliveryKey::default(), now_ms()).await
    })
    .unwrap();
    eventually("the key is known", async || {
        images.key(token.expose()).is_some()
    })
    .await;
    let patch = DeliveryKeyPatch {
        alias: Some(Some("photos".into())),
        ..DeliveryKeyPatch::default()
    };
    write_tx!(store, |tx| {
        delivery_keys::patch(tx, account, key.id, patch).await
    })
    .unwrap();
    eventually("its alias is known", async || {
        images.key("photos").is_some()
    })
    .await;
    write_tx!(store, |tx| {
        delivery_keys::revoke(tx, account, key.id, now_ms()).await
    })
    .unwrap();
    eventually("it is revoked", async || {
        images.key(token.expose()).is_none() && images.key("photos").is_none()
    })
    .await;

    let preset = write_tx!(store, |tx| {
        presets::create(tx, account, "hero", "w=400", now_ms()).await
    })
    .unwrap();
    eventually("the preset is known", async || {
        images.preset(account, "hero").is_some()
    })
    .await;
    write_tx!(store, |tx| {
        presets::patch(tx, account, preset.id, Some("thumb".into()), None, now_ms()).await
    })
    .unwrap();
    eventually("it has its other name alone", async || {
        images.preset(account, "hero").is_none() && images.preset(account, "thumb").is_some()
    })
    .await;
    write_tx!(store, |tx| presets::delete(tx, account, preset.id).await).unwrap();
    eventually("it is gone", async || {
        images.preset(account, "thumb").is_none()
    })
    .await;
    node.close().await;
}

#[actix_web::test]
async fn tokens_and_sessions_that_other_nodes_end_are_rejected() {
    let node = Node::open().await;
    let (store, account, tokens) = (&node.store, node.account_id, &node.site.app.playback_tokens);
    let key = write_tx!(store, |tx| {
        playback_keys::create(tx, account, "key", now_ms()).await
    })
    .unwrap();
    let keys = TokenKeys::of(tokens).await.unwrap();
    let header = json!({"alg": "HS256", "kid": key.id}).to_string();
    let claims = json!({"sub": "pb_0123456789abcdefghij", "exp": 60}).to_string();
    let signed = [header, claims].map(|part| signing::encode(part.as_bytes()));
    let token = keys.signed(key.id, &signed.join("."));
    eventually("the key is known", async || keys.read(&token, 1).is_ok()).await;
    write_tx!(store, |tx| {
        playback_keys::delete(tx, account, key.id).await
    })
    .unwrap();
    eventually("it is revoked", async || keys.read(&token, 1).is_err()).await;

    let (session, token) = write_tx!(store, |tx| {
        let user = users::by_username(tx, "admin").await?.expect("was made");
        let new = NewSession {
            user_id: user.id,
            lifetime_ms: 60_000,
            network: None,
            user_agent: None,
        };
        sessions::create(tx, new, now_ms()).await
    })
    .unwrap();
    let owner = async || {
        let sessions = &tokens.owner_sessions;
        sessions.account_of(store, token.expose()).await.unwrap()
    };
    assert_eq!(owner().await, Some(account));
    write_tx!(store, |tx| {
        sessions::delete(tx, &session.token_hash).await
    })
    .unwrap();
    let ended = Instant::now();
    eventually("it is rejected", async || owner().await.is_none()).await;
    assert!(ended.elapsed() < BOUND);
    node.close().await;
}

#[actix_web::test]
async fn inputs_outputs_and_links_of_other_nodes_are_followed() {
    let node = Node::open().await;
    let (store, account, live) = (&node.store, node.account_id, &node.site.live);
    let input_id = node.site.first.live_input.id;
    let patch = LiveInputPatch {
        enabled: Some(false),
        ..LiveInputPatch::default()
    };
    write_tx!(store, |tx| {
        live_inputs::patch(tx, account, input_id, patch, now_ms()).await
    })
    .unwrap();
    let disabled = format!("changed {input_id} enabled=false");
    eventually("the input is disabled", async || {
        live.changes().contains(&disabled)
    })
    .await;

    let count = async || -> u64 {
        let counts = node.site.app.live.restreams.counts();
        counts.iter().map(|(_, count)| count).sum()
    };
    let (new, limits) = (
        NewOutput {
            input_id,
            url: "rtmp://192.0.2.1/live/key".into(),
            enabled: false,
        },
        OutputLimits {
            of_input: 1,
            in_all: 1,
        },
    );
    write_tx!(store, |tx| outputs::create(tx, new, limits, now_ms()).await).unwrap();
    eventually("the output is known", async || count().await == 1).await;
    write_tx!(store, |tx| live_inputs::delete(tx, account, input_id).await).unwrap();
    let deleted = format!("deleted {input_id}");
    eventually("both are gone", async || {
        live.changes().contains(&deleted) && count().await == 0
    })
    .await;

    let token_hash = credentials::hash("token");
    let of_link = token_hash.clone();
    let folder_id = write_tx!(store, |tx| {
        let folder = NewFolder {
            name: "shared".into(),
            color: None,
            parent_id: None,
        };
        let folder = folders::create(tx, account, folder, now_ms()).await?;
        let link = NewShare {
            id: Uuid::now_v7(),
            account_id: account,
            folder_id: folder.id,
            token_hash: of_link,
            password_hash: None,
            download_limit: None,
            allow_download: true,
            expires_at: None,
        };
        shares::create(tx, link, now_ms()).await?;
        Ok(folder.id)
    })
    .unwrap();
    let open_requests = &node.site.app.shares.shares.open_requests;
    let guard = open_requests.enter(&token_hash);
    write_tx!(store, |tx| shares::delete(tx, account, folder_id).await).unwrap();
    timeout(BOUND, withdrawn(guard, None))
        .await
        .expect("requests under a link that is gone end");
    node.close().await;
}
