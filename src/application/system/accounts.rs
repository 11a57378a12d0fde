//! Accounts for operators (`/api/system/accounts`): list, make one with its first user (`username`, welcome link), change of plan;
//! audit entries.

use serde::{Deserialize, Serialize};
use sluice_store::{
    Page, Secret, Tx, accounts,
    accounts::Summary,
    audit::{self, Target},
    credentials::{self, PasswordHash},
    now_ms,
    users::{self, NewUser, Role},
    welcome_codes, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    audit::Author,
    caller::{Caller, Read},
    context::ServiceContext,
    error::ApiError,
    members::welcome_url,
    page::next_cursor,
    reached::Reached,
};

/// An account to be made.
#[derive(Deserialize, ToSchema)]
pub struct NewAccount {
    /// 1 to 120 characters; no other account may have it.
    name: Option<String>,
    /// A plan of the settings; that of `account.plan` without one.
    plan: Option<String>,
    /// Name of a first user, an admin of the account, who chooses a password at `welcomeUrl`. Without one the account has no user.
    username: Option<String>,
}

/// A change of an account.
#[derive(Deserialize, ToSchema)]
pub struct AccountChange {
    /// A plan of the settings.
    plan: Option<String>,
}

/// An account with the numbers of what belongs to it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountRecord {
    id: Uuid,
    name: String,
    plan: String,
    /// False for a plan that is not in the settings (any more), which is without limits.
    plan_is_known: bool,
    suspended_at: Option<Timestamp>,
    created_at: Timestamp,
    users: i64,
    /// API keys that are not revoked.
    keys: i64,
    /// True for the account of the caller.
    own: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountList {
    accounts: Vec<AccountRecord>,
    /// The plans of the settings, the smallest first.
    plans: Vec<String>,
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountMade {
    account: AccountRecord,
    /// Link with which the first user chooses a password, once; shown now and never again. Null without `username`.
    welcome_url: Option<String>,
    /// End of the link.
    welcome_expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AccountAnswer {
    account: AccountRecord,
}

/// Returns a page of all accounts, newest first.
pub(crate) async fn list(
    context: &ServiceContext,
    caller: &Caller<Read>,
    page: Page,
) -> Result<AccountList, ApiError> {
    let rows = accounts::page(&mut context.store.read().await?, page).await?;
    let plans = context.config.plans_by_size();
    Ok(AccountList {
        next_cursor: next_cursor(&rows, page, sluice_store::Listed::cursor),
        accounts: rows
            .into_iter()
            .map(|row| record(context, caller, row))
            .collect(),
        plans: plans.into_iter().map(|(name, _)| name.clone()).collect(),
    })
}

/// Makes an account, with its first user when one is named.
pub(crate) async fn create(
    context: &ServiceContext,
    caller: &Caller<Read>,
    reached: &Reached,
    new: NewAccount,
) -> Result<AccountMade, ApiError> {
    let name = new.name.unwrap_or_default();
    let plan = match new.plan {
        Some(plan) => checked_plan(context, plan)?,
        None => context.config.account.plan.clone(),
    };
    let first = match new.username {
        Some(username) => Some(FirstUser::named(username).await?),
        None => None,
    };
    let author = Author::of(caller, reached);
    let (summary, code) = write_tx!(context.store, |tx| {
        let account = accounts::create_named(tx, &name, &plan, now_ms()).await?;
        let target = target(account.id, &account.name);
        audit::append(tx, author.entry("account.created", target), now_ms()).await?;
        let code = match first {
            Some(first) => Some(first.create(tx, account.id).await?),
            None => None,
        };
        Ok((accounts::summary(tx, account.id).await?, code))
    })?;
    Ok(AccountMade {
        account: record(context, caller, summary),
        welcome_expires_at: code
            .is_some()
            .then(|| Timestamp(now_ms() + welcome_codes::LIFETIME_MS)),
        welcome_url: code.map(|code| welcome_url(&reached.address.origin(), &code)),
    })
}

/// Puts an account on another plan; its limits hold from the next request.
pub(crate) async fn change(
    context: &ServiceContext,
    caller: &Caller<Read>,
    reached: &Reached,
    id: Uuid,
    change: AccountChange,
) -> Result<AccountAnswer, ApiError> {
    let author = Author::of(caller, reached);
    let plan = match change.plan {
        Some(plan) => Some(checked_plan(context, plan)?),
        None => None,
    };
    let summary = write_tx!(context.store, |tx| {
        let account = accounts::get(tx, id).await?;
        if let Some(plan) = plan.filter(|plan| *plan != account.plan) {
            accounts::set_plan(tx, id, &plan, now_ms()).await?;
            let mut entry = author.entry("account.plan_changed", target(id, &account.name));
            entry.detail = Some(format!("from {} to {plan}", account.plan));
            audit::append(tx, entry, now_ms()).await?;
        }
        accounts::summary(tx, id).await
    })?;
    Ok(AccountAnswer {
        account: record(context, caller, summary),
    })
}

/// The first user of an account, whose password no one knows until the welcome link is used.
struct FirstUser {
    username: String,
    password_hash: PasswordHash,
}

impl FirstUser {
    async fn named(username: String) -> Result<Self, ApiError> {
        let username = users::normalise_username(&username)?;
        let hashed =
            tokio::task::spawn_blocking(|| credentials::hash_password(&credentials::password()));
        Ok(Self {
            username,
            password_hash: hashed.await.map_err(ApiError::internal)??,
        })
    }

    async fn create(
        self,
        tx: &mut Tx<'_>,
        account_id: Uuid,
    ) -> Result<Secret, sluice_store::Error> {
        let new = NewUser {
            account_id,
            username: self.username,
            role: Role::Admin,
            is_operator: false,
            password_hash: self.password_hash,
        };
        let user = users::create(tx, new, now_ms()).await?;
        welcome_codes::create(tx, user.id, now_ms()).await
    }
}

fn checked_plan(context: &ServiceContext, plan: String) -> Result<String, ApiError> {
    match context.config.check_plan(&plan) {
        Ok(()) => Ok(plan),
        Err(reason) => Err(invalid!("plan: {reason}")),
    }
}

fn target(id: Uuid, name: &str) -> Target {
    Target {
        kind: "account",
        id: id.to_string(),
        name: Some(name.to_owned()),
    }
}

fn record(context: &ServiceContext, caller: &Caller<Read>, summary: Summary) -> AccountRecord {
    let account = summary.account;
    AccountRecord {
        own: account.id == caller.account_id(),
        plan_is_known: context.config.plans.contains_key(&account.plan),
        id: account.id,
        name: account.name,
        plan: account.plan,
        suspended_at: account.suspended_at.map(Timestamp),
        created_at: Timestamp(account.created_at),
        users: summary.users,
        keys: summary.keys,
    }
}
