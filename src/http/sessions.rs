//! `/api/sessions`: list and end the browser sessions of the user.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::sessions::SignInSession;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{extract::SessionCaller, session::signed_out};
use crate::application::{
    answer::{Success, Timestamp},
    context::AccountContext,
    error::ApiError,
    reached::Reached,
    sessions,
};

/// A session of the user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Names the session; it is not the cookie.
    id: Uuid,
    /// True for the session by which the request came.
    current: bool,
    created_at: Timestamp,
    /// Exact to five minutes.
    last_used_at: Timestamp,
    expires_at: Timestamp,
    /// Network of the client at the sign-in: an IPv4 address or an IPv6 /64.
    network: Option<String>,
    /// `User-Agent` at the sign-in, at most 200 characters.
    user_agent: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SessionList {
    sessions: Vec<SessionRecord>,
}

impl SessionRecord {
    fn of(session: SignInSession, current: Uuid) -> Self {
        Self {
            id: session.id,
            current: session.id == current,
            created_at: Timestamp(session.created_at),
            last_used_at: Timestamp(session.last_used_at),
            expires_at: Timestamp(session.expires_at),
            network: session.network,
            user_agent: session.user_agent,
        }
    }
}

/// List the user's sessions
#[utoipa::path(get, path = "/api/sessions", tag = "session", security(("session" = [])), responses(
    (status = 200, description = "The one that was used last first; at most `sign_in.max_sessions`", body = SessionList),
))]
pub async fn list(
    context: web::Data<AccountContext>,
    caller: SessionCaller,
) -> Result<HttpResponse, ApiError> {
    let signed_in = caller.signed_in();
    let current = signed_in.session.id;
    let sessions = sessions::list(&context, signed_in.user.id)
        .await?
        .into_iter();
    let sessions = sessions.map(|session| SessionRecord::of(session, current));
    Ok(HttpResponse::Ok().json(SessionList {
        sessions: sessions.collect(),
    }))
}

/// End a session
///
/// Its cookie is no longer accepted once this is answered. The session of the request itself may be ended too.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "session", security(("session" = [])),
    params(("id" = Uuid, Path, description = "The session's id")),
    responses((status = 200, description = "Ended", body = Success)))]
pub async fn revoke(
    context: web::Data<AccountContext>,
    reached: Reached,
    caller: SessionCaller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let signed_in = caller.signed_in();
    let id = id.into_inner();
    sessions::end(&context, signed_in.user.id, id).await?;
    Ok(match id == signed_in.session.id {
        true => signed_out(&context, &reached),
        false => HttpResponse::Ok().json(Success::default()),
    })
}
