//! Leave to send under a link, and its end: whatever runs when a link is revoked or expires ends within a second.
//!
//! A request enters by the hash of the token that it shows, *before* the link is looked up. So a revocation that commits after
//! the look finds the request here, and one that commits before it is seen by the look. A withdrawn answer ends short of its
//! length, so that no client takes it for whole; bytes that the connection already has may still arrive.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    web::Bytes,
};
use sluice_store::now_ms;
use tokio_util::sync::CancellationToken;

/// Who is inside, by the hash of their token. Bounded by the connections there may be.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    inside: Mutex<HashMap<String, Weak<RequestGuard>>>,
}

/// Leave to send under one link; requests under way share it.
#[derive(Debug)]
pub(super) struct RequestGuard {
    open_requests: Arc<OpenRequests>,
    token_hash: String,
    withdrawn: CancellationToken,
}

impl OpenRequests {
    pub(super) fn enter(self: &Arc<Self>, token_hash: &str) -> Arc<RequestGuard> {
        let mut inside = self.locked();
        if let Some(guard) = inside.get(token_hash).and_then(Weak::upgrade) {
            return guard;
        }
        let guard = Arc::new(RequestGuard {
            open_requests: self.clone(),
            token_hash: token_hash.to_owned(),
            withdrawn: CancellationToken::new(),
        });
        inside.insert(token_hash.to_owned(), Arc::downgrade(&guard));
        guard
    }

    /// The link is worthless, and that is committed.
    pub(super) fn withdraw(&self, token_hash: &str) {
        // Let go of outside of the lock: the last one locks it, too.
        let guard = self.locked().remove(token_hash).and_then(|it| it.upgrade());
        if let Some(guard) = guard {
            guard.withdrawn.cancel();
        }
    }

    /// The hashes of the tokens inside.
    pub(super) fn entered(&self) -> Vec<String> {
        self.locked().keys().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Weak<RequestGuard>>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut inside = self.open_requests.locked();
        // Another one may have entered meanwhile.
        if inside
            .get(&self.token_hash)
            .is_some_and(|it| it.strong_count() == 0)
        {
            inside.remove(&self.token_hash);
        }
    }
}

/// Resolves when the link is revoked, its folder is gone, or at `expires_at` (milliseconds since 1970).
pub(super) async fn withdrawn(guard: Arc<RequestGuard>, expires_at: Option<i64>) {
    let expired = async {
        match expires_at {
            Some(at) => {
                // A timer of no length is not over at its first look.
                if let Ok(left_ms @ 1..) = u64::try_from(at - now_ms()) {
                    tokio::time::sleep(Duration::from_millis(left_ms)).await;
                }
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = guard.withdrawn.cancelled() => {}
        () = expired => {}
    }
}

/// The answer with a body that ends when `withdrawn` resolves.
pub(super) fn bound(
    response: HttpResponse,
    withdrawn: impl Future<Output = ()> + 'static,
) -> HttpResponse {
    response.map_body(|_, body| {
        BoxBody::new(Bound {
            body,
            withdrawn: Box::pin(withdrawn),
        })
    })
}

/// A body under a guard.
struct Bound {
    body: BoxBody,
    withdrawn: Pin<Box<dyn Future<Output = ()>>>,
}

/// Ends a connection short. Only actix-http would log it, whose lines `log.filter` leaves out.
#[derive(Debug, thiserror::Error)]
#[error("the link was revoked or has expired")]
struct Withdrawn;

impl MessageBody for Bound {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.withdrawn.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Withdrawn.into())));
        }
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_entered_is_withdrawn_and_what_enters_later_is_not() {
        let open_requests = Arc::new(OpenRequests::default());
        let (one, same, other) = (
            open_requests.enter("a"),
            open_requests.enter("a"),
            open_requests.enter("b"),
        );
        open_requests.withdraw("a");
        withdrawn(one, None).await;
        withdrawn(same, None).await;
        assert!(withdrawn(other.clone(), None).now_or_never().is_none());
        let later = open_requests.enter("a");
        assert!(withdrawn(later.clone(), None).now_or_never().is_none());
        drop((other, later));
        assert_eq!(open_requests.entered(), [""; 0], "nothing is kept");
    }

    #[tokio::test]
    async fn a_link_is_withdrawn_at_its_end() {
        let open_requests = Arc::new(OpenRequests::default());
        for (expires_at, is_over) in [(now_ms() - 1, true), (now_ms() + 60_000, false)] {
            let ended = withdrawn(open_requests.enter("a"), Some(expires_at)).now_or_never();
            assert_eq!(ended.is_some(), is_over);
        }
        withdrawn(open_requests.enter("a"), Some(now_ms() + 20)).await;
    }

    #[tokio::test]
    async fn a_withdrawn_body_ends_in_an_error() {
        let (open_requests, chunk) = (Arc::new(OpenRequests::default()), Bytes::from_static(b"x"));
        let endless =
            futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
        let response = HttpResponse::Ok().streaming(endless);
        let guard = open_requests.enter("a");
        let mut body = bound(response, withdrawn(guard, None)).into_body();
        let mut next = async || std::future::poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
        assert!(next().await.is_some_and(|chunk| chunk.is_ok()));
        open_requests.withdraw("a");
        assert!(next().await.is_some_and(|chunk| chunk.is_err()));
    }
}
