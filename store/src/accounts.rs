//! Accounts: whose rows they are, and which plan's limits hold.

use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Connection, Error, Tx};

/// The plan of a self-hosted account: no monthly cap, no rate limit.
pub const UNLIMITED: &str = "unlimited";

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Account {
    pub id: Uuid,
    pub name: String,
    /// Names a plan of the configuration.
    pub plan: String,
    pub created_at: i64,
    pub updated_at: i64,
}

/// Makes an account on the plan [`UNLIMITED`].
pub async fn create(tx: &mut Tx<'_>, name: &str, now_ms: i64) -> Result<Account, Error> {
    let account = query_as("INSERT INTO accounts (id, name, plan, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) RETURNING *")
        .bind(Uuid::now_v7())
        .bind(name)
        .bind(UNLIMITED)
        .bind(now_ms)
        .fetch_one(tx.sqlite())
        .await?;
    Ok(account)
}

/// `Error::NotFound` when there is none.
pub async fn get(db: &mut impl Connection, id: Uuid) -> Result<Account, Error> {
    query_as("SELECT * FROM accounts WHERE id = $1")
        .bind(id)
        .fetch_optional(db.sqlite())
        .await?
        .ok_or(Error::NotFound("account"))
}

/// The oldest account, which the first start made; users added by command line belong to it.
pub async fn first(db: &mut impl Connection) -> Result<Option<Account>, Error> {
    let account = query_as("SELECT * FROM accounts ORDER BY created_at, id LIMIT 1")
        .fetch_optional(db.sqlite())
        .await?;
    Ok(account)
}

/// Puts the account on another plan.
pub async fn set_plan(tx: &mut Tx<'_>, id: Uuid, plan: &str, now_ms: i64) -> Result<(), Error> {
    let changed = query("UPDATE accounts SET plan = $2, updated_at = $3 WHERE id = $1")
        .bind(id)
        .bind(plan)
        .bind(now_ms)
        .execute(tx.sqlite())
        .await?;
    match changed.rows_affected() {
        0 => Err(Error::NotFound("account")),
        _ => Ok(()),
    }
}

pub async fn count(db: &mut impl Connection) -> Result<i64, Error> {
    Ok(query_scalar("SELECT count(*) FROM accounts")
        .fetch_one(db.sqlite())
        .await?)
}
