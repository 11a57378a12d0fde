//! Rows of dashboard users: username, role (`viewer`, `member`, `admin`), operator, password. A username is unique in
//! the installation and kept in lower case.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{
    Connection, Error, Tx, api_keys::Scope, credentials::PasswordHash, sessions, welcome_codes,
};

/// Longest username, in characters.
const MAX_USERNAME: usize = 64;

text_enum! {
    /// Role of a user in an account: the scope of their sessions.
    pub enum Role {
        Viewer = "viewer",
        Member = "member",
        Admin = "admin",
    }
}

impl Role {
    /// Access of the user's sessions to the account.
    pub fn scope(self) -> Scope {
        match self {
            Self::Viewer => Scope::Read,
            Self::Member => Scope::Write,
            Self::Admin => Scope::Admin,
        }
    }
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct User {
    pub id: Uuid,
    pub account_id: Uuid,
    pub username: String,
    pub role: Role,
    /// Whether the user may see the whole installation, whatever the role.
    pub is_operator: bool,
    pub password_hash: PasswordHash,
    pub created_at: i64,
    pub updated_at: i64,
}

/// User to be made. The hash is made by [`crate::credentials::hash_password`], off the async threads.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub account_id: Uuid,
    pub username: String,
    pub role: Role,
    /// Whether the user may see the whole installation, whatever the role.
    pub is_operator: bool,
    pub password_hash: PasswordHash,
}

/// The form under which a username is stored and compared: without surrounding blanks, in lower case.
/// `Error::Invalid` unless it is 1 to 64 of `a-z 0-9 . _ @ + -`.
pub fn normalise_username(username: &str) -> Result<String, Error> {
    let name = username.trim().to_ascii_lowercase();
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._@+-".contains(&b);
    if (1..=MAX_USERNAME).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(name)
    } else {
        Err(Error::Invalid(format!(
            "username: expected 1 to {MAX_USERNAME} letters, digits or . _ @ + -"
        )))
    }
}

/// Creates a user. `Error::Conflict` when the username is taken.
pub async fn create(tx: &mut Tx<'_>, new: NewUser, now_ms: i64) -> Result<User, Error> {
    let username = normalise_username(&new.username)?;
    query_as(
        "INSERT INTO users (id, account_id, username, role, is_operator, password_hash, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT (username) DO NOTHING RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(&username)
    .bind(new.role)
    .bind(new.is_operator)
    .bind(new.password_hash)
    .bind(now_ms)
    .fetch_optional(tx.sqlite())
    .await?
    .ok_or_else(|| Error::Conflict(format!("there is a user {username} already")))
}

pub async fn get(db: &mut impl Connection, id: Uuid) -> Result<User, Error> {
    query_as("SELECT * FROM users WHERE id = $1")
        .bind(id)
        .fetch_optional(db.sqlite())
        .await?
        .ok_or(Error::NotFound("user"))
}

/// Returns the user of a name; `None` for an unknown or malformed one: verify against
/// [`crate::credentials::verify_no_one`] then.
pub async fn by_username(db: &mut impl Connection, username: &str) -> Result<Option<User>, Error> {
    let Ok(username) = normalise_username(username) else {
        return Ok(None);
    };
    let user = query_as("SELECT * FROM users WHERE username = $1")
        .bind(username)
        .fetch_optional(db.sqlite())
        .await?;
    Ok(user)
}

/// All users, by name.
pub async fn list(db: &mut impl Connection) -> Result<Vec<User>, Error> {
    Ok(query_as("SELECT * FROM users ORDER BY username")
        .fetch_all(db.sqlite())
        .await?)
}

/// Sets the role, and the operator's flag when one is given; sessions follow with their next request.
pub async fn set_role(
    tx: &mut Tx<'_>,
    id: Uuid,
    role: Role,
    is_operator: Option<bool>,
    now_ms: i64,
) -> Result<User, Error> {
    query_as(
        "UPDATE users SET role = $2, is_operator = coalesce($3, is_operator), updated_at = $4
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(role)
    .bind(is_operator)
    .bind(now_ms)
    .fetch_optional(tx.sqlite())
    .await?
    .ok_or(Error::NotFound("user"))
}

/// Sets another password, and ends the user's sessions and welcome code, which may be a thief's.
pub async fn set_password(
    tx: &mut Tx<'_>,
    id: Uuid,
    password_hash: PasswordHash,
    now_ms: i64,
) -> Result<(), Error> {
    let changed = query("UPDATE users SET password_hash = $2, updated_at = $3 WHERE id = $1")
        .bind(id)
        .bind(password_hash)
        .bind(now_ms)
        .execute(tx.sqlite())
        .await?;
    if changed.rows_affected() == 0 {
        return Err(Error::NotFound("user"));
    }
    welcome_codes::delete_of_user(tx, id).await?;
    sessions::delete_of_user(tx, id).await
}

/// Removes the user with all sessions.
pub async fn delete(tx: &mut Tx<'_>, id: Uuid) -> Result<(), Error> {
    let changed = query("DELETE FROM users WHERE id = $1")
        .bind(id)
        .execute(tx.sqlite())
        .await?;
    match changed.rows_affected() {
        0 => Err(Error::NotFound("user")),
        _ => Ok(()),
    }
}
