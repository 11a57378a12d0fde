//! Misses in a cluster: the node on which a file is placed renders its variants for all nodes (`GET /peer/cdn/…`), so that equal
//! misses of all of them are one render. A node that has no answer from there renders by itself. Purges on the other nodes.
//!
//! The node that was asked by a client checks keys and limits and counts the delivery. It keeps the answer in memory; memory and
//! disk of the other one are the cache for all. Both compare the state of the file: where it differs, one of them has not seen a
//! change yet, and reads the row again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::Method;
use serde::{Deserialize, Serialize};
use sluice_media::{
    task::Failure,
    variant::{AcceptClass, VariantRequest, VariantSettings},
};
use sluice_store::cluster::{Node, Role};
use tracing::{debug, info};
use url::form_urlencoded;
use uuid::Uuid;

use super::{
    ImageServices,
    disk::file,
    render::{Problem, VariantJob},
    shard::Fetched,
    source::ImageSource,
};
use crate::cluster::PeerAnswer;

/// Path of variants on the listener for other nodes; the file's id and a query follow.
pub const PEER_VARIANTS: &str = "/peer/cdn/";
/// Path of purges on the listener for other nodes.
pub const PEER_PURGE: &str = "/peer/cdn-purge";
/// Files of one purge.
const MOST_PURGED: usize = 1_000;
/// Longest wait for the purge on other nodes, which learn of the change from the change log, too.
const PURGE_WITHIN: Duration = Duration::from_secs(2);

// Statuses of answers to `PEER_VARIANTS`.
const KEPT: u16 = 200;
const RENDERED: u16 = 201;
const BAD_REQUEST: u16 = 400;
const NOT_KEPT: u16 = 404;
const STALE: u16 = 409;
const FAILED: u16 = 422;
const UNAVAILABLE: u16 = 503;

/// Body of a purge.
#[derive(Debug, Serialize, Deserialize)]
struct Purge {
    files: Vec<Uuid>,
}

/// A variant that another node asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ForwardedVariant {
    pub(super) file_id: Uuid,
    /// State of the file as that node sees it, see [`ImageSource::stamp`].
    pub(super) stamp: String,
    pub(super) request: VariantRequest,
    pub(super) accept: AcceptClass,
    /// False when it is wanted only if it is kept.
    pub(super) may_render: bool,
}

impl ForwardedVariant {
    /// Writes path and query of the call.
    fn path(wanted: &VariantJob, settings: VariantSettings, may_render: bool) -> String {
        let flag = |value: bool| if value { "1" } else { "0" };
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("request", wanted.request.canonical())
            .append_pair("avifInAuto", flag(settings.avif_in_auto))
            .append_pair("webp", flag(wanted.accept.webp))
            .append_pair("avif", flag(wanted.accept.avif))
            .append_pair("render", flag(may_render))
            .append_pair("stamp", &wanted.source.stamp())
            .finish();
        format!("{PEER_VARIANTS}{}?{query}", wanted.source.id)
    }

    /// Reads what follows [`PEER_VARIANTS`]; `None` when it has another form.
    pub(super) fn parse(rest: &str) -> Option<Self> {
        let (file_id, query) = rest.split_once('?')?;
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find_map(|(found, value)| (found == name).then(|| value.into_owned()))
        };
        let flag = |name: &str| Some(value(name)? == "1");
        let settings = VariantSettings {
            avif_in_auto: flag("avifInAuto")?,
        };
        Some(Self {
            file_id: Uuid::try_parse(file_id).ok()?,
            stamp: value("stamp")?,
            request: VariantRequest::parse(&value("request")?, &settings).ok()?,
            accept: AcceptClass {
                webp: flag("webp")?,
                avif: flag("avif")?,
            },
            may_render: flag("render")?,
        })
    }

    /// Returns the job of this node for it.
    pub(super) fn job(self, source: Arc<ImageSource>) -> VariantJob {
        VariantJob {
            cache_key: self.request.cache_key(self.accept).into(),
            request: Arc::new(self.request),
            accept: self.accept,
            source,
        }
    }
}

/// Returns the node that renders the variants of a file for all, unless it is this one. Frames of live inputs stay here.
pub(super) fn elsewhere(services: &ImageServices, source: &ImageSource) -> Option<Node> {
    let cluster = services.peers.cluster();
    if cluster.is_solo() || source.is_live() {
        return None;
    }
    let owner = cluster.owner_of(Role::Worker, source.id.as_bytes());
    (owner.id != cluster.node_id()).then_some(owner)
}

/// Asks a node for a variant. `None`: it gave no answer that can be used, or it would have to render what it may not.
pub(super) async fn ask(
    services: &ImageServices,
    node: &Node,
    wanted: &VariantJob,
    may_render: bool,
) -> Option<Result<Fetched, Problem>> {
    let settings = services.settings.variants();
    let path = ForwardedVariant::path(wanted, settings, may_render);
    let patience = services.settings.render_wait;
    let call = services
        .peers
        .call(node, Method::GET, &path, Bytes::new(), patience);
    let answer = match call.await {
        Ok(answer) => answer,
        Err(error) => {
            debug!(%error, file = %wanted.source.id, "a variant is rendered here instead of there");
            return None;
        }
    };
    match answer.status {
        KEPT | RENDERED => {
            let read = file::parse(answer.body, &wanted.source, &wanted.cache_key);
            let entry = read
                .inspect_err(|reason| {
                    info!(
                        reason,
                        node = node.name,
                        "another node's variant is not used"
                    );
                })
                .ok()?;
            services.count(|counters| &counters.from_nodes);
            Some(Ok(Fetched {
                entry: Arc::new(entry),
                rendered: answer.status == RENDERED,
            }))
        }
        STALE => {
            services.sources.invalidate(wanted.source.id);
            services.memory.purge(wanted.source.id);
            Some(Err(Problem::Stale))
        }
        FAILED => {
            let failure: Failure = serde_json::from_slice(&answer.body).ok()?;
            Some(Err(Problem::Failed(failure)))
        }
        status => {
            debug!(status, node = node.name, "another node has no variant");
            None
        }
    }
}

/// Writes the answer to another node.
pub(super) fn answer(wanted: &VariantJob, outcome: Result<Fetched, Problem>) -> PeerAnswer {
    match outcome {
        Ok(fetched) => kept(wanted, &fetched),
        Err(Problem::Stale) => stale(),
        Err(Problem::Failed(failure)) => PeerAnswer {
            status: FAILED,
            body: serde_json::to_vec(&failure)
                .expect("a failure is plain data")
                .into(),
        },
        Err(problem) => text(UNAVAILABLE, &problem.to_string()),
    }
}

fn kept(wanted: &VariantJob, fetched: &Fetched) -> PeerAnswer {
    let body = file::compose(&wanted.source, &wanted.cache_key, &fetched.entry);
    PeerAnswer {
        status: if fetched.rendered { RENDERED } else { KEPT },
        body: body.into(),
    }
}

pub(super) fn not_kept() -> PeerAnswer {
    text(NOT_KEPT, "the variant is not kept here")
}

pub(super) fn stale() -> PeerAnswer {
    text(STALE, "the file has changed")
}

/// That the state of a file cannot be read does not say that it has changed: the other node renders by itself.
pub(super) fn unread() -> PeerAnswer {
    text(UNAVAILABLE, "the file's facts cannot be read now")
}

pub(super) fn malformed() -> PeerAnswer {
    text(BAD_REQUEST, "the request names no variant")
}

fn text(status: u16, text: &str) -> PeerAnswer {
    PeerAnswer {
        status,
        body: Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// Purges files on all other live nodes, and waits for them for [`PURGE_WITHIN`] at most.
pub(super) async fn purge_others(services: &ImageServices, file_ids: &[Uuid]) {
    if services.peers.cluster().is_solo() {
        return;
    }
    for some in file_ids.chunks(MOST_PURGED) {
        let purge = Purge {
            files: some.to_vec(),
        };
        let body = serde_json::to_vec(&purge).expect("ids are plain data");
        let calls = services
            .peers
            .call_all(PEER_PURGE, body.into(), PURGE_WITHIN);
        for (node, answer) in calls.await {
            match answer {
                Ok(answer) if answer.status == KEPT => {}
                Ok(PeerAnswer { status, .. }) => {
                    debug!(status, node = node.name, "a node purges files later");
                }
                Err(error) => debug!(%error, "a node purges files later"),
            }
        }
    }
}

/// Reads the body of a purge; `None` when it has another form.
pub(super) fn purged_files(body: &[u8]) -> Option<Vec<Uuid>> {
    let purge: Purge = serde_json::from_slice(body).ok()?;
    (purge.files.len() <= MOST_PURGED).then_some(purge.files)
}

/// The answer to a purge that was carried out.
pub(super) fn purged() -> PeerAnswer {
    text(KEPT, "purged")
}

#[cfg(test)]
mod tests {
    use sluice_store::now_ms;

    use super::*;
    use crate::cdn::source::{KnownLiveVariants, LiveFrame};

    #[test]
    fn a_forwarded_variant_is_the_one_that_was_wanted() {
        let frame = LiveFrame {
            video_frame: Bytes::new(),
            known_variants: Arc::new(KnownLiveVariants::default()),
        };
        let id = Uuid::now_v7();
        let source = Arc::new(ImageSource::of_frame(id, id, frame, now_ms()));
        for avif_in_auto in [false, true] {
            let settings = VariantSettings { avif_in_auto };
            for (query, webp, may_render) in [
                ("", false, true),
                ("w=100&h=50&fit=contain&bg=ff0000", true, false),
                ("format=png&page=3&t=2.5", true, true),
            ] {
                let request = VariantRequest::parse(query, &settings).unwrap();
                let accept = AcceptClass { webp, avif: true };
                let wanted = VariantJob {
                    cache_key: request.cache_key(accept).into(),
                    source: source.clone(),
                    request: Arc::new(request),
                    accept,
                };
                let path = ForwardedVariant::path(&wanted, settings, may_render);
                let rest = path.strip_prefix(PEER_VARIANTS).unwrap();
                let read = ForwardedVariant::parse(rest).unwrap();
                assert_eq!((read.file_id, read.may_render), (id, may_render));
                assert_eq!(read.stamp, source.stamp());
                let job = read.job(source.clone());
                assert_eq!(job.cache_key, wanted.cache_key, "{query}");
                assert_eq!(*job.request, *wanted.request, "{query}");
                for odd in [rest.replace("stamp", "x"), rest.replace('?', "&")] {
                    assert_eq!(ForwardedVariant::parse(&odd), None, "{odd}");
                }
            }
        }
    }

    #[test]
    fn a_purge_is_bounded() {
        let purge = |count: u128| {
            let files = (0..count).map(Uuid::from_u128).collect();
            serde_json::to_vec(&Purge { files }).unwrap()
        };
        assert_eq!(purged_files(&purge(1_000)).map(|it| it.len()), Some(1_000));
        assert_eq!(purged_files(&purge(1_001)), None);
        assert_eq!(purged_files(b"{}"), None);
    }
}
