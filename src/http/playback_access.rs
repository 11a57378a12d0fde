//! Admission of viewers: playback ids, playback tokens, `allowedDomains`, suspended accounts; `Cache-Control` by access. The one place
//! that decides. It decides for every address of a live input, of a video stream and of their images.
//!
//! The stream's owner, signed in to the dashboard, needs neither: see [`owner`].

mod owner;

use std::sync::Arc;

use actix_web::HttpRequest;
use sluice_actors::{
    live::{self, Policy},
    video,
};
use sluice_store::{credentials::is_playback_id, now_ms, video::Access};
use uuid::Uuid;

use super::site::{self, Cors};
use crate::{
    application::{
        context::PlaybackTokens,
        error::ApiError,
        playback_token::{Rejection, TokenKeys, VerifiedClaims, looks_like_token},
    },
    http::context,
};

/// Terms of access that an owner sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessTerms<'a> {
    pub playback_id: &'a str,
    pub account_id: Uuid,
    /// True when a token is needed.
    pub is_signed: bool,
    /// Hosts whose pages may play; empty: all.
    pub allowed_domains: &'a [String],
}

/// A resource that can be watched.
pub(super) trait Watched {
    fn terms(&self) -> AccessTerms<'_>;
}

/// A live input, with its terms as they are at this moment.
#[derive(Debug)]
pub(super) struct LiveStream {
    pub playback: Arc<live::Playback>,
    policy: Arc<Policy>,
}

impl LiveStream {
    pub fn now(playback: Arc<live::Playback>) -> Self {
        let policy = playback.policy();
        Self { playback, policy }
    }
}

impl Watched for LiveStream {
    fn terms(&self) -> AccessTerms<'_> {
        AccessTerms {
            playback_id: &self.playback.playback_id,
            account_id: self.playback.account_id,
            is_signed: self.policy.signed,
            allowed_domains: &self.policy.allowed_domains,
        }
    }
}

impl Watched for Arc<video::Playback> {
    fn terms(&self) -> AccessTerms<'_> {
        AccessTerms {
            playback_id: &self.stream.playback_id,
            account_id: self.stream.account_id,
            is_signed: self.stream.access == Access::Signed,
            allowed_domains: &self.stream.allowed_domains,
        }
    }
}

/// Admitted viewer.
#[derive(Debug)]
pub(super) struct Viewer<W> {
    pub watched: W,
    pub permission: Permission,
}

/// Reason for which a viewer is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// The stream is open to all.
    NotNeeded,
    Token {
        /// Unix time at which it expires.
        expires_s: i64,
        /// Seconds until then.
        left_s: i64,
    },
    /// The viewer owns the stream.
    Owner,
}

impl Permission {
    fn of(token: Option<&VerifiedClaims>) -> Self {
        token.map_or(Self::NotNeeded, |token| Self::Token {
            expires_s: token.grant.exp,
            left_s: (token.grant.exp - now_s()).max(0),
        })
    }

    /// Returns the longest time for which an answer may be kept, and by the viewer's own browser alone; `None` for what is open to all.
    fn kept_s(self) -> Option<i64> {
        match self {
            Self::NotNeeded => None,
            Self::Token { left_s, .. } => Some(left_s),
            Self::Owner => Some(owner::KEPT_S),
        }
    }
}

/// Time for which an answer may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheLifetime {
    /// For bytes that never change.
    Forever,
    Hour,
    /// An hour, and its bytes never change.
    Settled,
    Minute,
    Seconds(u32),
    /// For content that grows: revalidated at once.
    Moment,
    /// For content made for this viewer alone.
    Never,
}

impl<W> Viewer<W> {
    /// Returns the `Cache-Control`. Content that needs a token or its owner's session is cached by the viewer's own browser alone, and no
    /// longer than the token is valid.
    pub fn cache_control(&self, keeping: CacheLifetime) -> String {
        let (kept_s, more) = match keeping {
            CacheLifetime::Forever => (31_536_000, ", immutable"),
            CacheLifetime::Settled => (3_600, ", immutable"),
            CacheLifetime::Hour => (3_600, ""),
            CacheLifetime::Minute => (60, ""),
            CacheLifetime::Seconds(seconds) => (i64::from(seconds), ""),
            CacheLifetime::Moment => (1, ""),
            CacheLifetime::Never => return "no-store".to_owned(),
        };
        match self.permission.kept_s() {
            None => format!("public, max-age={kept_s}{more}"),
            Some(left_s) => format!("private, max-age={}{more}", kept_s.min(left_s)),
        }
    }
}

/// Decides on a request for an address with `playback_id` in it, a playback id or a token in its place; also returns the CORS
/// headers of the answer, whichever it is. `find` gives the resource with that playback id.
///
/// The stream's owner is admitted whatever its terms, from pages of the service itself; such an answer is for that browser alone.
///
/// 404 for an id that is unknown, 403 for a suspended account, for a token that does not hold, for none where one is needed, and
/// for a page that is not allowed.
pub(super) async fn admit<W: Watched>(
    request: &HttpRequest,
    playback_id: &str,
    find: impl AsyncFnOnce(&str) -> Result<W, ApiError>,
) -> (Cors, Result<Viewer<W>, ApiError>) {
    let found = async {
        let token = match is_playback_id(playback_id) {
            true => None,
            false if looks_like_token(playback_id) => {
                Some(read(context::of::<PlaybackTokens>(request), playback_id).await?)
            }
            false => return Err(ApiError::NotFound("playback")),
        };
        let playback_id = token.as_ref().map_or(playback_id, |token| &token.grant.sub);
        Ok((find(playback_id).await?, token))
    };
    let (watched, token) = match found.await {
        Ok(found) => found,
        Err(rejection) => return (Cors::Everyone, Err(rejection)),
    };
    match decide(request, &watched, token) {
        (cors, Ok(permission)) => (cors, Ok(viewer(watched, permission))),
        // Only a viewer who would be rejected is looked at more closely: all others must not wait for it.
        (cors, Err(ApiError::NoPlayback { code, message })) => {
            let account_id = watched.terms().account_id;
            match owner::is_owner(request, account_id).await {
                Ok(true) => (Cors::NoOrigin, Ok(viewer(watched, Permission::Owner))),
                Ok(false) => (cors, Err(ApiError::NoPlayback { code, message })),
                Err(error) => (cors, Err(error)),
            }
        }
        (cors, Err(rejection)) => (cors, Err(rejection)),
    }
}

/// Decides as [`admit`] for an address that names the resource in another way, with the token beside it.
pub(super) async fn admit_beside<W: Watched>(
    request: &HttpRequest,
    watched: W,
    token: Option<&str>,
) -> (Cors, Result<Viewer<W>, ApiError>) {
    let token = match token {
        None => Ok(None),
        Some(token) => read(context::of::<PlaybackTokens>(request), token)
            .await
            .map(Some),
    };
    match token {
        Ok(token) => {
            let (cors, admitted) = decide(request, &watched, token);
            (cors, admitted.map(|permission| viewer(watched, permission)))
        }
        Err(rejection) => (Cors::Everyone, Err(rejection)),
    }
}

fn viewer<W>(watched: W, permission: Permission) -> Viewer<W> {
    Viewer {
        watched,
        permission,
    }
}

fn decide<W: Watched>(
    request: &HttpRequest,
    watched: &W,
    token: Option<VerifiedClaims>,
) -> (Cors, Result<Permission, ApiError>) {
    let terms = watched.terms();
    let (cors, allowed) = check_site(request, &terms, token.as_ref());
    let is_suspended = context::of::<PlaybackTokens>(request)
        .suspensions
        .contains(terms.account_id);
    let admitted = allowed.and_then(|()| match &token {
        _ if is_suspended => Err(ApiError::AccountSuspended),
        Some(token) if !token.is_for(terms.playback_id, terms.account_id) => Err(wrong_token()),
        None if terms.is_signed => Err(ApiError::NoPlayback {
            code: "playback_token_required",
            message: "this stream needs a playback token in place of the playback id: ask its owner for one",
        }),
        token => Ok(Permission::of(token.as_ref())),
    });
    (cors, admitted)
}

/// Returns the permission of a token, if it is valid.
async fn read(tokens: &PlaybackTokens, token: &str) -> Result<VerifiedClaims, ApiError> {
    let read = TokenKeys::of(tokens).await?.read(token, now_s());
    read.map_err(|rejection| match rejection {
        Rejection::Wrong => wrong_token(),
        Rejection::Expired => ApiError::NoPlayback {
            code: "playback_token_expired",
            message: "the playback token has expired: ask for a new one",
        },
    })
}

fn wrong_token() -> ApiError {
    ApiError::NoPlayback {
        code: "playback_token_invalid",
        message: "this is no playback token for this stream: ask the stream's owner for one",
    }
}

/// The sites of the stream, and of the token where it names some.
fn check_site(
    request: &HttpRequest,
    terms: &AccessTerms<'_>,
    token: Option<&VerifiedClaims>,
) -> (Cors, Result<(), ApiError>) {
    let (cors, allowed) = site::check(request, terms.allowed_domains);
    let narrower = token.map_or(&[][..], |token| &token.grant.dom);
    if narrower.is_empty() || allowed.is_err() {
        return (cors, allowed);
    }
    site::check(request, narrower)
}

fn now_s() -> i64 {
    now_ms() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_token_is_kept_by_no_one_else_and_no_longer() {
        let cases = [
            (
                CacheLifetime::Forever,
                "public, max-age=31536000, immutable",
                "private, max-age=90, immutable",
            ),
            (
                CacheLifetime::Settled,
                "public, max-age=3600, immutable",
                "private, max-age=90, immutable",
            ),
            (
                CacheLifetime::Minute,
                "public, max-age=60",
                "private, max-age=60",
            ),
            (
                CacheLifetime::Seconds(5),
                "public, max-age=5",
                "private, max-age=5",
            ),
            (
                CacheLifetime::Moment,
                "public, max-age=1",
                "private, max-age=1",
            ),
            (CacheLifetime::Never, "no-store", "no-store"),
        ];
        for (keeping, open, with_token) in cases {
            let token = Permission::Token {
                expires_s: 1_790_000_090,
                left_s: 90,
            };
            let everyone = viewer((), Permission::NotNeeded);
            assert_eq!(everyone.cache_control(keeping), open);
            assert_eq!(viewer((), token).cache_control(keeping), with_token);
        }
    }
}
