//! `/api/invitations`: list, make (`role`, `note`, `expiresInHours`) and revoke invitations to the account; `look` and `redeem` for
//! their holders.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_store::{
    Secret,
    invitations::{DEFAULT_LIFETIME_H, Invitation, LIFETIME_H},
    users::Role,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    extract::{Body, OwnOrigin},
    session::{NO_STORE, SessionAnswer, client, signed_in},
    users::ROLES,
};
use crate::application::{
    answer::{Success, Timestamp},
    audit::Author,
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
    field,
    members::{
        invitations::{self, InvitationRequest, MAX_NOTE},
        join_url,
    },
    reached::Reached,
};

/// An invitation to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewInvitation {
    /// `viewer`, `member` (without one) or `admin`.
    role: Option<String>,
    /// For whom it is: at most 200 characters.
    note: Option<String>,
    /// 1 to 720, 72 without one.
    expires_in_hours: Option<i64>,
}

/// An invitation to the account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationRecord {
    id: Uuid,
    /// Role of the user to be: `viewer`, `member` or `admin`.
    role: &'static str,
    note: Option<String>,
    created_at: Timestamp,
    expires_at: Timestamp,
    /// Name of the user or API key that made it.
    created_by: String,
    used_at: Option<Timestamp>,
    /// Name of the user who joined by it.
    used_by: Option<String>,
    /// The link, in the answer to `POST` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct InvitationList {
    invitations: Vec<InvitationRecord>,
}

#[derive(Serialize, ToSchema)]
pub struct InvitationAnswer {
    invitation: InvitationRecord,
}

/// The code of an invitation.
#[derive(Deserialize, ToSchema)]
pub struct InvitationCode {
    /// The part after `#` in the link; dashes, blanks and case do not matter.
    code: String,
}

/// Account and role that an invitation offers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationOffer {
    /// Role of the user to be.
    role: &'static str,
    account_name: String,
    expires_at: Timestamp,
}

/// The user to be.
#[derive(Deserialize, ToSchema)]
pub struct Redemption {
    /// The part after `#` in the link; dashes, blanks and case do not matter.
    code: String,
    /// 1 to 64 letters, digits or `. _ @ + -`; in any case, kept in lower case.
    name: String,
    /// At least 8 characters, at most 1024 bytes.
    password: String,
}

impl InvitationRecord {
    fn of(invitation: Invitation, url: Option<String>) -> Self {
        Self {
            id: invitation.id,
            role: invitation.role.as_str(),
            note: invitation.note,
            created_at: Timestamp(invitation.created_at),
            expires_at: Timestamp(invitation.expires_at),
            created_by: invitation.created_by,
            used_at: invitation.used_at.map(Timestamp),
            used_by: invitation.used_by,
            url,
        }
    }
}

/// List invitations
#[utoipa::path(get, path = "/api/invitations", tag = "users", responses(
    (status = 200, description = "Newest first; used and expired ones until a week after their expiry", body = InvitationList),
))]
pub async fn list_invitations(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
) -> Result<HttpResponse, ApiError> {
    let rows = invitations::list(&context, &caller).await?.into_iter();
    let rows = rows.map(|row| InvitationRecord::of(row, None));
    Ok(HttpResponse::Ok().json(InvitationList {
        invitations: rows.collect(),
    }))
}

/// Make an invitation
///
/// A link with which one person becomes a user of the account, once. Hand it over yourself: the service sends no mail. An account
/// has at most `account.max_invitations` that can be used. The audit log has an entry of it.
#[utoipa::path(post, path = "/api/invitations", tag = "users", request_body = NewInvitation, responses(
    (status = 201, description = "The invitation, its `url` shown once", body = InvitationAnswer),
    (status = 409, description = "There are `account.max_invitations`", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    reached: Reached,
    Body(new): Body<NewInvitation>,
) -> Result<HttpResponse, ApiError> {
    let role = field::choice("role", new.role.as_deref(), ROLES, Role::parse)?;
    let note = new.note.filter(|note| !note.trim().is_empty());
    let asked = InvitationRequest {
        role: role.unwrap_or(Role::Member),
        note: field::words("note", note, MAX_NOTE)?,
        lifetime_h: field::within("expiresInHours", new.expires_in_hours, LIFETIME_H)?
            .unwrap_or(DEFAULT_LIFETIME_H),
    };
    let author = Author::of(&caller, &reached);
    let (made, code) = invitations::create(&context, &caller, author, asked).await?;
    let url = join_url(&reached.address.origin(), &code);
    Ok(HttpResponse::Created()
        .insert_header(NO_STORE)
        .json(InvitationAnswer {
            invitation: InvitationRecord::of(made, Some(url)),
        }))
}

/// Revoke an invitation
///
/// Its link is no longer accepted once this is answered. A used one cannot be revoked: remove the user. The audit log has an entry
/// of it.
#[utoipa::path(delete, path = "/api/invitations/{id}", tag = "users",
    params(("id" = Uuid, Path, description = "The invitation's id")),
    responses((status = 200, description = "Revoked", body = Success)))]
pub async fn revoke(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let author = Author::of(&caller, &reached);
    invitations::revoke(&context, &caller, author, *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// Look at an invitation
///
/// Shows the account and the role that the link offers, without using it. The code is in the body, so that no log of addresses
/// holds it. Codes that are not valid count as wrong passwords do.
#[utoipa::path(post, path = "/api/invitations/look", tag = "users", request_body = InvitationCode, security(()), responses(
    (status = 200, description = "It can be used", body = InvitationOffer),
    (status = 403, description = "The account is suspended, or a page of another origin asks", body = crate::application::error::ErrorBody),
    (status = 410, description = "The code is unknown, used, revoked or expired (`gone`)", body = crate::application::error::ErrorBody),
))]
pub async fn look(
    context: web::Data<AccountContext>,
    reached: Reached,
    request: HttpRequest,
    _: OwnOrigin,
    Body(InvitationCode { code }): Body<InvitationCode>,
) -> Result<HttpResponse, ApiError> {
    let client = client(&reached, &request);
    let offer = invitations::look(&context, &client, Secret::new(code)).await?;
    Ok(HttpResponse::Ok()
        .insert_header(NO_STORE)
        .json(InvitationOffer {
            role: offer.role.as_str(),
            account_name: offer.account_name,
            expires_at: Timestamp(offer.expires_at),
        }))
}

/// Join by an invitation
///
/// Makes the user and signs them in as `POST /api/session` does. An invitation can be used once; a name that is taken (409) leaves it
/// as it is.
#[utoipa::path(post, path = "/api/invitations/redeem", tag = "users", request_body = Redemption, security(()), responses(
    (status = 201, description = "Signed in", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The session"))),
    (status = 403, description = "The account is suspended, or a page of another origin asks", body = crate::application::error::ErrorBody),
    (status = 409, description = "The name is taken, or the account has `account.max_users`", body = crate::application::error::ErrorBody),
    (status = 410, description = "The code is unknown, used, revoked or expired (`gone`)", body = crate::application::error::ErrorBody),
))]
pub async fn redeem(
    context: web::Data<AccountContext>,
    reached: Reached,
    request: HttpRequest,
    _: OwnOrigin,
    Body(given): Body<Redemption>,
) -> Result<HttpResponse, ApiError> {
    let client = client(&reached, &request);
    let (code, password) = (Secret::new(given.code), Secret::new(given.password));
    let opened = invitations::redeem(&context, &client, code, &given.name, password).await?;
    Ok(signed_in(&context, &reached, &opened))
}
