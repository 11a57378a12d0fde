//! The listener over real connections; with `SLUICE_TEST_POSTGRES` three nodes that render for each other.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use actix_web::dev::ServerHandle;
use futures_util::future::join_all;
use kameo::actor::ActorRef;
use serde_json::Value;
use sluice_actors::{
    cdn::{CdnSettings, Fetched, Problem, VariantJob},
    component::ComponentStatuses,
    outbound::Method,
    subsystem::Subsystem as _,
    tree::{self, Root},
};
use sluice_media::variant::{AcceptClass, VariantRequest, VariantSettings};
use sluice_store::{
    ClusterSettings, Store, StoreSettings, accounts, blobs,
    cluster::{Node, NodeState, Role},
    files::{self, NewFile},
    now_ms, write_tx,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::*;
use crate::fixtures::Painter;

const PATIENCE: Duration = Duration::from_secs(30);

/// Image delivery with a listener for other nodes.
struct Peer {
    store: Store,
    images: Images,
    peers: Peers,
    address: SocketAddr,
    listener: ServerHandle,
    root: ActorRef<Root>,
    _folder: TempDir,
}

impl Peer {
    async fn start(folder: TempDir, store: Store, painter: Painter) -> Self {
        let peers = Peers::new(&store);
        let images = Images::new(
            CdnSettings::default(),
            store.clone(),
            painter,
            BTreeMap::new(),
            Duration::from_secs(5),
            peers.clone(),
        );
        images.load().await.unwrap();
        let root = Root::start(tree::Args {
            components: images.components(),
            component_statuses: ComponentStatuses::default(),
            lost: CancellationToken::new(),
        });
        let socket = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = socket.local_addr().unwrap();
        let context = PeerContext::new(&peers, images.clone()).await.unwrap();
        let server = server(context, socket).unwrap();
        let listener = server.handle();
        actix_web::rt::spawn(server);
        store.cluster().set_address(&format!("http://{address}"));
        store.cluster().set_state(NodeState::Up);
        Self {
            store,
            images,
            peers,
            address,
            listener,
            root,
            _folder: folder,
        }
    }

    /// This process as a node that can be called, also when it is alone.
    fn node(&self) -> Node {
        Node {
            address: format!("http://{}", self.address),
            ..self.store.cluster().this()
        }
    }

    async fn call(&self, method: Method, path: &str, body: Bytes) -> PeerAnswer {
        let node = self.node();
        let answer = self.peers.call(&node, method, path, body, PATIENCE);
        answer.await.unwrap()
    }

    async fn fetch(&self, file_id: Uuid, query: &str) -> Result<Fetched, Problem> {
        let accept = AcceptClass::default();
        let request = VariantRequest::parse(query, &VariantSettings::default()).unwrap();
        let wanted = VariantJob {
            source: self.images.source(file_id).await.unwrap().unwrap(),
            cache_key: request.cache_key(accept).into(),
            request: Arc::new(request),
            accept,
        };
        self.images.fetch_own(wanted).await
    }

    fn has(&self, file_id: Uuid, query: &str) -> bool {
        let request = VariantRequest::parse(query, &VariantSettings::default()).unwrap();
        let key = request.cache_key(AcceptClass::default());
        self.images.lookup(file_id, &key).is_some()
    }

    async fn stop(self) {
        self.listener.stop(false).await;
        self.images.close().await;
        let _ = self.root.stop_gracefully().await;
        self.root.wait_for_shutdown().await;
        self.store.close().await;
    }
}

async fn alone() -> Peer {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings::without_reserve(folder.path());
    let store = Store::open(&settings).await.unwrap();
    Peer::start(folder, store, Painter::default()).await
}

#[actix_web::test]
async fn a_node_is_answered_and_no_one_else() {
    let peer = alone().await;
    let pong = peer.call(Method::GET, "/peer/ping", Bytes::new()).await;
    assert_eq!(pong.status, 200);
    let pong: Value = serde_json::from_slice(&pong.body).unwrap();
    assert_eq!(pong["node"], peer.node().id.to_string());
    assert_eq!(pong["protocol"], 1);
    let purge = format!(r#"{{"files":["{}"]}}"#, Uuid::now_v7());
    for (method, path, body, status) in [
        (Method::GET, "/peer/nothing", "", 404),
        (Method::POST, "/peer/ping", "", 404),
        (Method::GET, "/peer/cdn/x?y", "", 400),
        (Method::POST, "/peer/cdn-purge", "{}", 400),
        (Method::POST, "/peer/cdn-purge", purge.as_str(), 200),
    ] {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let answer = peer.call(method, path, body).await;
        assert_eq!(answer.status, status, "{path}");
    }

    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let url = format!("http://{}/peer/ping", peer.address);
    let answer = client.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert!(answer["error"].as_str().unwrap().contains("sluice-peer"));
    let large = client.post(&url).body(vec![0; MAX_BODY + 1]).send().await;
    assert_eq!(large.unwrap().status(), 413);
    peer.stop().await;
}

/// Makes a file in the first node, with its bytes in all of them: they have no objects in common here.
async fn add_file(nodes: &[Peer]) -> Uuid {
    let mut made = None;
    for node in nodes {
        let mut spool = node.store.blobs().spool().await.unwrap();
        spool.write("pixels".into()).await.unwrap();
        let sealed = spool.seal().await.unwrap();
        let new = NewFile {
            folder_id: None,
            filename: "photo.jpg".into(),
            mime_type: "image/jpeg".into(),
            size_bytes: 6,
            blob: sealed.blob().hash,
            role: files::Role::Uploaded,
            width: None,
            height: None,
            duration_ms: None,
            generation: 0,
        };
        let is_made = made.is_some();
        let file = write_tx!(node.store, |tx| {
            blobs::record(tx, &sealed, now_ms()).await?;
            if is_made {
                return Ok(None);
            }
            let account = accounts::create(tx, "Default", now_ms()).await?;
            files::create(tx, account.id, new, now_ms()).await.map(Some)
        });
        made = made.or(file.unwrap().map(|file| file.id));
    }
    made.unwrap()
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}

#[actix_web::test]
async fn equal_misses_of_three_nodes_are_one_render() {
    if std::env::var("SLUICE_TEST_POSTGRES").is_err() {
        return;
    }
    let painter = Painter::default();
    let first = tempfile::tempdir().unwrap();
    let schema = StoreSettings::without_reserve(first.path()).database_schema;
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings {
            database_schema: schema.clone(),
            ..StoreSettings::without_reserve(folder.path())
        };
        let cluster = ClusterSettings {
            listen: "127.0.0.1:0".into(),
            name: name.into(),
            ..ClusterSettings::default()
        };
        let store = Store::open_node(&settings, &cluster).await.unwrap();
        nodes.push(Peer::start(folder, store, painter.clone()).await);
    }
    eventually("all nodes know each other", || {
        nodes
            .iter()
            .all(|node| node.store.cluster().live_count(Role::Worker) == 3)
    })
    .await;
    let file_id = add_file(&nodes).await;
    for node in &nodes {
        let running = async {
            while let Err(Problem::Busy) = node.fetch(file_id, "w=1").await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, running).await.expect("its actors run");
    }
    let before = painter.tasks();

    let asking = (0..1_000).map(|number| nodes[number % 3].fetch(file_id, "w=100"));
    let fetched = join_all(asking).await;
    let etags: Vec<_> = fetched
        .into_iter()
        .map(|it| it.unwrap().entry.etag.clone())
        .collect();
    assert!(etags.iter().all(|etag| *etag == etags[0]));
    assert_eq!(painter.tasks(), before + 1);
    assert!(nodes.iter().all(|node| node.has(file_id, "w=100")));

    nodes[1].images.purge_file(file_id).await;
    assert!(!nodes.iter().any(|node| node.has(file_id, "w=100")));

    let owner = nodes[0]
        .store
        .cluster()
        .owner_of(Role::Worker, file_id.as_bytes());
    let unreachable = nodes
        .iter()
        .position(|node| node.store.owner() == owner.id)
        .unwrap();
    nodes[unreachable].listener.stop(false).await;
    let other = &nodes[(unreachable + 1) % 3];
    assert!(other.fetch(file_id, "w=200").await.unwrap().rendered);
    assert_eq!(painter.tasks(), before + 2);
    for node in nodes {
        node.stop().await;
    }
}
