//! `/api/users`: list, change (`role`, `operator`) and remove the users of the account; `reset-link`.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_store::users::{Role, User};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{extract::Body, session::NO_STORE};
use crate::application::{
    answer::{Success, Timestamp},
    audit::Author,
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
    field,
    members::{self, UserChange, welcome_url},
    reached::Reached,
};

/// Roles of users, as they are given.
pub(super) const ROLES: &[&str] = &["viewer", "member", "admin"];

/// A user of the account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserRecord {
    id: Uuid,
    name: String,
    /// `viewer`, `member` or `admin`.
    role: &'static str,
    /// True for one who may see the whole installation.
    operator: bool,
    created_at: Timestamp,
    /// Last use of a session, exact to five minutes; null before the first.
    last_seen_at: Option<Timestamp>,
    /// True for the user who asks.
    you: bool,
}

#[derive(Serialize, ToSchema)]
pub struct UserList {
    users: Vec<UserRecord>,
}

#[derive(Serialize, ToSchema)]
pub struct UserAnswer {
    user: UserRecord,
}

/// Change of a user; what is missing stays.
#[derive(Deserialize, ToSchema)]
pub struct UserChangeRequest {
    /// `viewer`, `member` or `admin`.
    role: Option<String>,
    /// Only a signed-in operator may give this, or change a user who is one.
    operator: Option<bool>,
}

/// A link that works once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkAnswer {
    /// Shown now and never again.
    url: String,
    expires_at: Timestamp,
}

impl UserRecord {
    fn of(user: User, caller: &Caller<Admin>) -> Self {
        let own = caller.signed_in().map(|signed_in| signed_in.user.id);
        Self {
            id: user.id,
            name: user.username,
            role: user.role.as_str(),
            operator: user.is_operator,
            created_at: Timestamp(user.created_at),
            last_seen_at: user.last_seen_at.map(Timestamp),
            you: own == Some(user.id),
        }
    }
}

/// List the users of the account
#[utoipa::path(get, path = "/api/users", tag = "users", responses(
    (status = 200, description = "By name", body = UserList),
))]
pub async fn list(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
) -> Result<HttpResponse, ApiError> {
    let users = members::list(&context, &caller).await?.into_iter();
    let users = users.map(|user| UserRecord::of(user, &caller));
    Ok(HttpResponse::Ok().json(UserList {
        users: users.collect(),
    }))
}

/// Change a user
///
/// The user's sessions have the new role from their next request on. The last admin of an account stays admin, and the last
/// operator stays operator. The audit log has an entry of it.
#[utoipa::path(patch, path = "/api/users/{id}", tag = "users", request_body = UserChangeRequest,
    params(("id" = Uuid, Path, description = "The user's id")),
    responses(
        (status = 200, description = "The user", body = UserAnswer),
        (status = 409, description = "The last admin or operator", body = crate::application::error::ErrorBody)))]
pub async fn change(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(asked): Body<UserChangeRequest>,
) -> Result<HttpResponse, ApiError> {
    let change = UserChange {
        role: field::choice("role", asked.role.as_deref(), ROLES, Role::parse)?,
        is_operator: asked.operator,
    };
    let author = Author::of(&caller, &reached);
    let user = members::change(&context, &caller, author, *id, change).await?;
    Ok(HttpResponse::Ok().json(UserAnswer {
        user: UserRecord::of(user, &caller),
    }))
}

/// Remove a user
///
/// Once this is answered, none of the user's sessions is accepted. API keys that they made stay. The last admin of an account and the
/// last operator cannot be removed. The audit log has an entry of it.
#[utoipa::path(delete, path = "/api/users/{id}", tag = "users",
    params(("id" = Uuid, Path, description = "The user's id")),
    responses(
        (status = 200, description = "Removed", body = Success),
        (status = 409, description = "The last admin or operator", body = crate::application::error::ErrorBody)))]
pub async fn remove(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let author = Author::of(&caller, &reached);
    members::remove(&context, &caller, author, *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// Make a link for a new password
///
/// With it the user chooses a password, once and within 24 hours; their sessions end then. A new link replaces an earlier one. The
/// audit log has an entry of it.
#[utoipa::path(post, path = "/api/users/{id}/reset-link", tag = "users",
    params(("id" = Uuid, Path, description = "The user's id")),
    responses((status = 201, description = "The link, shown once", body = LinkAnswer)))]
pub async fn reset_link(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let author = Author::of(&caller, &reached);
    let link = members::reset_link(&context, &caller, author, *id).await?;
    Ok(HttpResponse::Created()
        .insert_header(NO_STORE)
        .json(LinkAnswer {
            url: welcome_url(&reached.address.origin(), &link.code),
            expires_at: Timestamp(link.expires_at),
        }))
}
