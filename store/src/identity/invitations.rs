//! Rows of invitations: one-time links with which a person becomes a user of an account; role, note, expiry, use.
//!
//! Only the hash of a code is stored. Of two uses of one code the first commits, and the other finds it used. Names of
//! users are kept as they were then.

use uuid::Uuid;

use crate::{
    Connection, Error, Secret, Tx,
    credentials::{self, PasswordHash},
    statement::{query, query_as, query_scalar},
    users::{self, NewUser, Role, User},
};

/// Shortest and longest time for which an invitation can be used, in hours: an hour to 30 days.
pub const LIFETIME_H: std::ops::RangeInclusive<u32> = 1..=720;
/// Lifetime of an invitation whose maker gives none, in hours.
pub const DEFAULT_LIFETIME_H: u32 = 72;
/// Invitations of one list.
const MOST_LISTED: u32 = 1_000;
/// Time for which used and expired invitations are still listed after their expiry.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Deletes invitations that expired more than a week before the time `$1`, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM invitations WHERE id IN (
     SELECT id FROM invitations WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

/// The time before which an invitation must have expired to be deleted.
pub(crate) fn deleted_before(now_ms: i64) -> i64 {
    now_ms - KEPT_MS
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Invitation {
    pub id: Uuid,
    pub account_id: Uuid,
    /// Role of the user to be.
    pub role: Role,
    /// For whom it is, in the words of its maker.
    pub note: Option<String>,
    code_hash: String,
    /// Name of the user or API key that made it, at that time.
    pub created_by: String,
    pub created_at: i64,
    pub expires_at: i64,
    pub used_at: Option<i64>,
    /// Name of the user that it made.
    pub used_by: Option<String>,
}

/// Invitation to be made.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    pub account_id: Uuid,
    pub role: Role,
    pub note: Option<String>,
    pub created_by: String,
    /// The same user, when it is one.
    pub created_by_user: Option<Uuid>,
    pub lifetime_ms: i64,
}

/// User to be made of an invitation.
#[derive(Clone, Debug)]
pub struct Invitee {
    pub username: String,
    pub password_hash: PasswordHash,
}

/// Makes an invitation and returns its code in plain, for the only time. `Error::Conflict` when `most` of the account can
/// be used already.
pub async fn create(
    tx: &mut Tx<'_>,
    new: NewInvitation,
    most: u32,
    now_ms: i64,
) -> Result<(Invitation, Secret), Error> {
    let open: i64 = query_scalar(
        "SELECT count(*) FROM invitations WHERE account_id = $1 AND used_at IS NULL AND expires_at > $2",
    )
    .bind(new.account_id)
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    if open >= i64::from(most) {
        return Err(Error::Conflict(format!(
            "{open} invitations of this account can be used, as many as account.max_invitations allows: revoke one first"
        )));
    }
    let code = credentials::welcome_code();
    let invitation = query_as(
        "INSERT INTO invitations (id, account_id, role, note, code_hash, created_by, created_by_user, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(new.role)
    .bind(new.note)
    .bind(hash(code.expose()))
    .bind(new.created_by)
    .bind(new.created_by_user)
    .bind(now_ms)
    .bind(now_ms + new.lifetime_ms)
    .fetch_one(tx)
    .await?;
    Ok((invitation, code))
}

/// The account's invitations, newest first: those that can be used, and used and expired ones for a week more.
pub async fn list(db: &mut impl Connection, account_id: Uuid) -> Result<Vec<Invitation>, Error> {
    Ok(query_as(
        "SELECT * FROM invitations WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2",
    )
    .bind(account_id)
    .bind(MOST_LISTED)
    .fetch_all(db)
    .await?)
}

/// Revokes an invitation that was not used and returns it; `Error::NotFound` when there is none.
pub async fn revoke(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<Invitation, Error> {
    query_as(
        "DELETE FROM invitations WHERE id = $1 AND account_id = $2 AND used_at IS NULL RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("invitation"))
}

/// The invitation of a code as a person typed it; `None` when the code is malformed, unknown, used or expired.
pub async fn of_code(
    db: &mut impl Connection,
    code: &Secret,
    now_ms: i64,
) -> Result<Option<Invitation>, Error> {
    let Some(code) = credentials::read_welcome_code(code.expose()) else {
        return Ok(None);
    };
    let hash = hash(&code);
    let found: Option<Invitation> = query_as(
        "SELECT * FROM invitations WHERE code_hash = $1 AND used_at IS NULL AND expires_at > $2",
    )
    .bind(&hash)
    .bind(now_ms)
    .fetch_optional(db)
    .await?;
    Ok(found.filter(|invitation| credentials::same(&invitation.code_hash, &hash)))
}

/// Makes the user of a code, and uses the code up. `None` as for [`of_code`]. `Error::Conflict`: the name is taken, or the account
/// has `most_users`; the code can still be used.
pub async fn redeem(
    tx: &mut Tx<'_>,
    code: &Secret,
    invitee: Invitee,
    most_users: u32,
    now_ms: i64,
) -> Result<Option<(Invitation, User)>, Error> {
    let Some(invitation) = of_code(tx, code, now_ms).await? else {
        return Ok(None);
    };
    users::check_count(tx, invitation.account_id, most_users).await?;
    let new = NewUser {
        account_id: invitation.account_id,
        username: invitee.username,
        role: invitation.role,
        is_operator: false,
        password_hash: invitee.password_hash,
    };
    let user = users::create(tx, new, now_ms).await?;
    query("UPDATE invitations SET used_at = $2, used_by = $3 WHERE id = $1")
        .bind(invitation.id)
        .bind(now_ms)
        .bind(&user.username)
        .execute(tx)
        .await?;
    Ok(Some((invitation, user)))
}

/// The hash is looked up and not the code, so that the time of a look-up reveals nothing about codes that exist.
fn hash(code: &str) -> String {
    credentials::hash(&format!("invitation:{code}"))
}
