//! Bodies of answers under a share link, which end short when the link is revoked or expires. No client takes such an answer for
//! complete; bytes that the connection already has may still arrive.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::{
    HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    web::Bytes,
};

/// Returns the answer with a body that ends when `withdrawn` resolves.
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

/// Error that ends a connection short. Only actix-http would log this error, and `log.filter` leaves its lines out.
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

    use std::sync::Arc;

    use sluice_store::now_ms;

    use super::*;
    use crate::application::share::open_requests::{OpenRequests, withdrawn};

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
