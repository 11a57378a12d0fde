//! Access to a share link by its token and password: one answer for every link that is not available; headers under a link.
//!
//! Unknown, malformed, revoked, expired, without its folder or of a suspended account: all are one. The token is hashed
//! and looked up once, whatever it is, and the answer is [`ApiError::ShareUnavailable`], so that neither the answer nor
//! its time distinguishes them.

use std::{fmt, net::IpAddr, sync::Arc, time::Instant};

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use futures_util::future::LocalBoxFuture;
use sluice_store::{
    credentials, now_ms,
    shares::{self, Share},
};
use uuid::Uuid;

use super::{open_requests, password};
use crate::{
    application::{
        context::ShareContext, error::ApiError, reached::Reached,
        share::open_requests::RequestGuard,
    },
    http::context,
};

/// The path's parameter with the token.
const TOKEN: &str = "token";
/// Header that keeps search engines away.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// A reader who was admitted by a link. Holds the link's guard: keep it, or an answer [bound](Self::bound) by it, as long as
/// anything is sent.
#[derive(Clone)]
pub(crate) struct ShareAccess {
    pub(super) share: Share,
    /// Token as in addresses.
    token: String,
    pub(super) reached: Reached,
    /// True when no bytes are sent, and so nothing is counted.
    pub(super) is_head: bool,
    guard: Arc<RequestGuard>,
}

impl fmt::Debug for ShareAccess {
    /// Formats the access without its token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareAccess")
            .field("share", &self.share.id)
            .finish_non_exhaustive()
    }
}

/// A link whose password has not been shown.
#[derive(Debug)]
pub(in crate::http) struct LockedShare(pub(super) ShareAccess);

/// The share that a token opens.
#[derive(Debug)]
pub(in crate::http) enum Entered {
    Open(ShareAccess),
    Locked(LockedShare),
}

/// Looks up the request's token. [`ApiError::ShareUnavailable`] for every token that is not valid.
pub(in crate::http) async fn enter(request: &HttpRequest) -> Result<Entered, ApiError> {
    let share_context = context::of::<ShareContext>(request);
    let token = request.match_info().get(TOKEN).unwrap_or_default();
    let token_hash = credentials::hash(token);
    // Entered before the look-up: a revocation that commits in between finds the request here.
    let guard = share_context.shares.open_requests.enter(&token_hash);
    let mut db = share_context.store.read().await?;
    let found = shares::by_token_hash(&mut db, &token_hash).await?;
    let found = found.filter(|share| !share.has_expired(now_ms()));
    let reached = Reached::of(request);
    let missed = found.is_none().then_some(token_hash.as_str());
    let failed_tokens = &share_context.shares.failed_tokens;
    let is_over = failed_tokens.is_over(reached.client, missed, Instant::now());
    let is_suspended = |share: &Share| share_context.suspensions.contains(share.account_id);
    let share = found.filter(|share| !is_over && !is_suspended(share));
    let access = ShareAccess {
        share: share.ok_or(ApiError::ShareUnavailable)?,
        token: token.to_owned(),
        reached,
        is_head: request.method() == Method::HEAD,
        guard,
    };
    let is_open = match access.share.password_hash {
        None => true,
        Some(_) => password::was_shown(request, &mut db, access.share.id).await?,
    };
    Ok(match is_open {
        true => Entered::Open(access),
        false => Entered::Locked(LockedShare(access)),
    })
}

impl FromRequest for ShareAccess {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            match enter(&request).await? {
                Entered::Open(access) => Ok(access),
                Entered::Locked(_) => Err(ApiError::NoShare {
                    code: "password_required",
                    message: "this link needs its password: post it to …/unlock first",
                }),
            }
        })
    }
}

impl ShareAccess {
    pub(in crate::http) fn account_id(&self) -> Uuid {
        self.share.account_id
    }

    /// The shared folder.
    pub(in crate::http) fn folder_id(&self) -> Uuid {
        self.share.folder_id
    }

    pub(in crate::http) fn share(&self) -> &Share {
        &self.share
    }

    pub(in crate::http) fn client(&self) -> Option<IpAddr> {
        self.reached.client
    }

    /// The address of the reader's API with this after it, such as `/zip`; without anything, that of the listing.
    pub(in crate::http) fn url(&self, rest: &str) -> String {
        api_url(&self.reached.address.base, &self.token, rest)
    }

    /// The address of the page.
    pub(in crate::http) fn page_url(&self) -> String {
        page_url(&self.reached.address.base, &self.token)
    }

    /// Resolves when the link is revoked or expires, or its folder is deleted.
    pub(in crate::http) fn withdrawn(&self) -> impl Future<Output = ()> + 'static {
        crate::application::share::open_requests::withdrawn(
            self.guard.clone(),
            self.share.expires_at,
        )
    }

    /// Makes the answer under the link: it ends short when the link is withdrawn, and its address, which holds the
    /// token, goes nowhere else.
    pub(in crate::http) fn bound(&self, mut response: HttpResponse) -> HttpResponse {
        let headers = response.headers_mut();
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        );
        headers.insert(ROBOTS, HeaderValue::from_static("noindex, nofollow"));
        open_requests::bound(response, self.withdrawn())
    }

    /// Counts a view of the whole folder.
    pub(super) fn note_view(&self, context: &web::Data<ShareContext>) {
        if !self.is_head {
            context
                .shares
                .counts
                .note_view(&context.store, self.share.id);
        }
    }
}

/// Returns an address of the reader's API below `base`.
pub(super) fn api_url(base: &str, token: &str, rest: &str) -> String {
    format!("{base}/api/share/folder/{token}{rest}")
}

pub(super) fn page_url(base: &str, token: &str) -> String {
    format!("{base}/share/folder/{token}")
}
