//! Rows of accounts: name (1 to 120 characters), plan, suspension.

use uuid::Uuid;

use crate::{
    Connection, Cursor, Error, Listed, Page, Tx,
    statement::{query, query_as, query_scalar},
};

/// The plan of a self-hosted account: no monthly cap, no rate limit.
pub const UNLIMITED: &str = "unlimited";
/// Longest name, in characters.
const MAX_NAME: usize = 120;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Account {
    pub id: Uuid,
    pub name: String,
    /// Names a plan of the configuration.
    pub plan: String,
    /// `None` while it is in force.
    pub suspended_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
}

impl Account {
    pub fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }
}

/// Account with the numbers of what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Summary {
    #[sqlx(flatten)]
    pub account: Account,
    pub users: i64,
    /// API keys that are not revoked.
    pub keys: i64,
}

impl Listed for Summary {
    fn cursor(&self) -> Cursor {
        Cursor {
            created_at: self.account.created_at,
            id: self.account.id,
        }
    }
}

/// Makes an account under a name that no other has, in any case; `Error::Conflict` when one has it. Commands are given names.
pub async fn create_named(
    tx: &mut Tx<'_>,
    name: &str,
    plan: &str,
    now_ms: i64,
) -> Result<Account, Error> {
    let name = normalise_name(name)?;
    if !by_name(tx, name).await?.is_empty() {
        return Err(Error::Conflict(format!(
            "there is an account {name} already"
        )));
    }
    create_on(tx, name, plan, now_ms).await
}

/// Makes an account on the plan [`UNLIMITED`].
pub async fn create(tx: &mut Tx<'_>, name: &str, now_ms: i64) -> Result<Account, Error> {
    create_on(tx, name, UNLIMITED, now_ms).await
}

/// Makes an account on a plan.
pub async fn create_on(
    tx: &mut Tx<'_>,
    name: &str,
    plan: &str,
    now_ms: i64,
) -> Result<Account, Error> {
    let account = query_as("INSERT INTO accounts (id, name, plan, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) RETURNING *")
        .bind(Uuid::now_v7())
        .bind(name)
        .bind(plan)
        .bind(now_ms)
        .fetch_one(tx)
        .await?;
    Ok(account)
}

/// Returns an account's name as it is stored: without surrounding blanks. `Error::Invalid` unless it has 1 to 120
/// characters, none of them a control character.
pub fn normalise_name(name: &str) -> Result<&str, Error> {
    let name = name.trim();
    let is_usable =
        (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    // An id in place of a name would make it ambiguous which account is meant.
    if is_usable && Uuid::try_parse(name).is_err() {
        Ok(name)
    } else {
        Err(Error::Invalid(format!(
            "account name: expected 1 to {MAX_NAME} characters that are neither control characters nor an id"
        )))
    }
}

/// Returns an account; `Error::NotFound` when there is none.
pub async fn get(db: &mut impl Connection, id: Uuid) -> Result<Account, Error> {
    query_as("SELECT * FROM accounts WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("account"))
}

/// The accounts of this name, compared without case; names need not be unique.
pub async fn by_name(db: &mut impl Connection, name: &str) -> Result<Vec<Account>, Error> {
    Ok(
        query_as("SELECT * FROM accounts WHERE lower(name) = lower($1) ORDER BY created_at, id")
            .bind(name)
            .fetch_all(db)
            .await?,
    )
}

/// The oldest account, which the first start made; users and keys that name no other belong to it.
pub async fn first(db: &mut impl Connection) -> Result<Option<Account>, Error> {
    let account = query_as("SELECT * FROM accounts ORDER BY created_at, id LIMIT 1")
        .fetch_optional(db)
        .await?;
    Ok(account)
}

/// All accounts, oldest first.
pub async fn list(db: &mut impl Connection) -> Result<Vec<Summary>, Error> {
    Ok(query_as(
        "SELECT accounts.*,
             (SELECT count(*) FROM users WHERE account_id = accounts.id) AS users,
             (SELECT count(*) FROM api_keys WHERE account_id = accounts.id AND revoked_at IS NULL) AS keys
         FROM accounts ORDER BY created_at, id",
    )
    .fetch_all(db)
    .await?)
}

/// The ids of all accounts.
pub(crate) async fn ids(db: &mut impl Connection) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar("SELECT id FROM accounts")
        .fetch_all(db)
        .await?)
}

/// A page of all accounts, newest first.
pub async fn page(db: &mut impl Connection, page: Page) -> Result<Vec<Summary>, Error> {
    let query = query_as(
        "SELECT accounts.*,
             (SELECT count(*) FROM users WHERE account_id = accounts.id) AS users,
             (SELECT count(*) FROM api_keys WHERE account_id = accounts.id AND revoked_at IS NULL) AS keys
         FROM accounts WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3",
    );
    page.read(query, db).await
}

/// Returns an account with the numbers of what belongs to it.
pub async fn summary(db: &mut impl Connection, id: Uuid) -> Result<Summary, Error> {
    query_as(
        "SELECT accounts.*,
             (SELECT count(*) FROM users WHERE account_id = accounts.id) AS users,
             (SELECT count(*) FROM api_keys WHERE account_id = accounts.id AND revoked_at IS NULL) AS keys
         FROM accounts WHERE id = $1",
    )
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("account"))
}

/// The ids of all suspended accounts.
pub async fn suspended(db: &mut impl Connection) -> Result<Vec<Uuid>, Error> {
    Ok(
        query_scalar("SELECT id FROM accounts WHERE suspended_at IS NOT NULL")
            .fetch_all(db)
            .await?,
    )
}

/// Puts the account on another plan.
pub async fn set_plan(tx: &mut Tx<'_>, id: Uuid, plan: &str, now_ms: i64) -> Result<(), Error> {
    let changed = query("UPDATE accounts SET plan = $2, updated_at = $3 WHERE id = $1")
        .bind(id)
        .bind(plan)
        .bind(now_ms)
        .execute(tx)
        .await?;
    match changed.rows_affected() {
        0 => Err(Error::NotFound("account")),
        _ => Ok(()),
    }
}

/// Suspends the account, or puts it in force again; one that is suspended already keeps its time.
pub async fn set_suspended(
    tx: &mut Tx<'_>,
    id: Uuid,
    is_suspended: bool,
    now_ms: i64,
) -> Result<Account, Error> {
    query_as(
        "UPDATE accounts SET suspended_at = iif($2, coalesce(suspended_at, $3), NULL), updated_at = $3
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(is_suspended)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("account"))
}

pub async fn count(db: &mut impl Connection) -> Result<i64, Error> {
    Ok(query_scalar("SELECT count(*) FROM accounts")
        .fetch_one(db)
        .await?)
}
