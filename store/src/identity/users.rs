//! Rows of dashboard users: username, role (`viewer`, `member`, `admin`), operator, password. A username is unique in
//! the installation and kept in lower case.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    api_keys::Scope,
    credentials::PasswordHash,
    sessions,
    statement::{query, query_as, query_scalar},
    welcome_codes,
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
    /// True for a user who may see the whole installation, whatever the role.
    pub is_operator: bool,
    pub password_hash: PasswordHash,
    pub created_at: i64,
    pub updated_at: i64,
    /// Last use of a session, exact to five minutes.
    pub last_seen_at: Option<i64>,
}

/// User to be made. The hash is made by [`crate::credentials::hash_password`], off the async threads.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub account_id: Uuid,
    pub username: String,
    pub role: Role,
    /// True for a user who may see the whole installation, whatever the role.
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
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| Error::Conflict(format!("there is a user {username} already")))
}

pub async fn get(db: &mut impl Connection, id: Uuid) -> Result<User, Error> {
    query_as("SELECT * FROM users WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
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
        .fetch_optional(db)
        .await?;
    Ok(user)
}

/// All users, by name.
pub async fn list(db: &mut impl Connection) -> Result<Vec<User>, Error> {
    Ok(query_as("SELECT * FROM users ORDER BY username")
        .fetch_all(db)
        .await?)
}

/// The users of an account by name, at most `most`.
pub async fn list_of_account(
    db: &mut impl Connection,
    account_id: Uuid,
    most: u32,
) -> Result<Vec<User>, Error> {
    Ok(
        query_as("SELECT * FROM users WHERE account_id = $1 ORDER BY username LIMIT $2")
            .bind(account_id)
            .bind(most)
            .fetch_all(db)
            .await?,
    )
}

/// A user of an account; `Error::NotFound` for one of another.
pub async fn of_account(
    db: &mut impl Connection,
    account_id: Uuid,
    id: Uuid,
) -> Result<User, Error> {
    let user = get(db, id).await?;
    match user.account_id == account_id {
        true => Ok(user),
        false => Err(Error::NotFound("user")),
    }
}

/// `Error::Conflict` when an account has `most` users.
pub async fn check_count(
    db: &mut impl Connection,
    account_id: Uuid,
    most: u32,
) -> Result<(), Error> {
    let count: i64 = query_scalar("SELECT count(*) FROM users WHERE account_id = $1")
        .bind(account_id)
        .fetch_one(db)
        .await?;
    match count < i64::from(most) {
        true => Ok(()),
        false => Err(Error::Conflict(format!(
            "this account has {count} users, as many as account.max_users allows: remove one first"
        ))),
    }
}

/// `Error::Conflict` when an account would be without an admin, or the installation without an operator, once `user` is no
/// longer one: with `role` and `is_operator` (`None`: removed).
pub async fn check_last(
    db: &mut impl Connection,
    user: &User,
    kept: Option<(Role, bool)>,
) -> Result<(), Error> {
    let stays_admin = matches!(kept, Some((Role::Admin, _)));
    if user.role == Role::Admin && !stays_admin {
        let others: i64 = query_scalar(
            "SELECT count(*) FROM users WHERE account_id = $1 AND role = $2 AND id <> $3",
        )
        .bind(user.account_id)
        .bind(Role::Admin)
        .bind(user.id)
        .fetch_one(db)
        .await?;
        if others == 0 {
            return Err(Error::Conflict(format!(
                "{} is the last admin of this account: make another user admin first",
                user.username
            )));
        }
    }
    let stays_operator = matches!(kept, Some((_, true)));
    if user.is_operator && !stays_operator {
        let others: i64 = query_scalar(
            "SELECT count(*) FROM users u JOIN accounts a ON a.id = u.account_id
                 WHERE u.is_operator = 1 AND u.id <> $1 AND a.suspended_at IS NULL",
        )
        .bind(user.id)
        .fetch_one(db)
        .await?;
        if others == 0 {
            return Err(Error::Conflict(format!(
                "{} is the last operator of this service: make another user operator first",
                user.username
            )));
        }
    }
    Ok(())
}

/// Notes a use of a session, see [`sessions::touch`].
pub(crate) async fn saw(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<(), Error> {
    query("UPDATE users SET last_seen_at = $2 WHERE id = $1 AND coalesce(last_seen_at, 0) < $2")
        .bind(id)
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(())
}

/// Sets the role, and the operator's flag when one is given; sessions follow with their next request. A welcome or reset link of a user
/// who becomes operator is no longer valid: an admin of the account may have it. Nor are the invitations of a user who is no admin.
pub async fn set_role(
    tx: &mut Tx<'_>,
    id: Uuid,
    role: Role,
    is_operator: Option<bool>,
    now_ms: i64,
) -> Result<User, Error> {
    let was_operator = get(tx, id).await?.is_operator;
    if is_operator == Some(true) && !was_operator {
        welcome_codes::delete_of_user(tx, id).await?;
    }
    if role != Role::Admin {
        query("DELETE FROM invitations WHERE created_by_user = $1 AND used_at IS NULL")
            .bind(id)
            .execute(tx)
            .await?;
    }
    query_as(
        "UPDATE users SET role = $2, is_operator = coalesce($3, is_operator), updated_at = $4
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(role)
    .bind(is_operator)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("user"))
}

/// Returns whether this is still the user's password hash: false too for a user who was removed.
pub async fn has_password(
    db: &mut impl Connection,
    id: Uuid,
    password_hash: &PasswordHash,
) -> Result<bool, Error> {
    let found: Option<PasswordHash> = query_scalar("SELECT password_hash FROM users WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?;
    Ok(found.as_ref() == Some(password_hash))
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
        .execute(tx)
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
        .execute(tx)
        .await?;
    match changed.rows_affected() {
        0 => Err(Error::NotFound("user")),
        _ => Ok(()),
    }
}
