//! Users of an account: role, operator's flag, links for a new password (`/app/welcome`), removal; the last admin stays.
//!
//! Each change and its entry in the audit log are one transaction. Admins of an account manage its users; to change an
//! operator one has to be one: who may see the whole installation is not for the admins of one account to decide.

pub(crate) mod invitations;

use sluice_store::{
    Secret, Tx,
    audit::{self, Target},
    now_ms,
    users::{self, Role, User},
    welcome_codes, write_tx,
};
use uuid::Uuid;

use super::{
    audit::Author,
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
};

// Actions in the audit log.
const CHANGED: &str = "user.changed";
const REMOVED: &str = "user.removed";
const RESET_LINK_MADE: &str = "user.reset_link_made";

/// Change of a user; `None` keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UserChange {
    pub role: Option<Role>,
    pub is_operator: Option<bool>,
}

/// A link with which a user chooses a password.
#[derive(Debug)]
pub(crate) struct ResetLink {
    pub code: Secret,
    pub expires_at: i64,
}

/// The users of the caller's account, by name.
pub(crate) async fn list(
    context: &AccountContext,
    caller: &Caller<Admin>,
) -> Result<Vec<User>, ApiError> {
    let mut db = context.store.read().await?;
    Ok(users::list_of_account(&mut db, caller.account_id(), MOST_LISTED).await?)
}

/// Returns why a change is rejected whose caller lost the rights for it: they are looked at when a request begins, and its body may
/// come much later.
async fn lost_rights(
    tx: &mut Tx<'_>,
    caller: &Caller<Admin>,
) -> Result<Option<ApiError>, sluice_store::Error> {
    Ok(match caller.is_still_admitted(tx).await? {
        true => None,
        false => Some(ApiError::Unauthenticated(
            "your rights have changed meanwhile: load the page again",
        )),
    })
}

/// Returns a user of the caller's account, or why the caller may not change them.
async fn changeable(
    tx: &mut Tx<'_>,
    caller: &Caller<Admin>,
    id: Uuid,
) -> Result<Result<User, ApiError>, sluice_store::Error> {
    if let Some(lost) = lost_rights(tx, caller).await? {
        return Ok(Err(lost));
    }
    let user = users::of_account(tx, caller.account_id(), id).await?;
    Ok(match user.is_operator && !is_operator(caller) {
        true => Err(for_operators()),
        false => Ok(user),
    })
}

/// Users of one list: more than `account.max_users` allows, for those that the command line made.
const MOST_LISTED: u32 = 2_000;

/// Changes role and operator's flag; sessions follow with their next request.
pub(crate) async fn change(
    context: &AccountContext,
    caller: &Caller<Admin>,
    author: Author,
    id: Uuid,
    change: UserChange,
) -> Result<User, ApiError> {
    let caller = caller.clone();
    write_tx!(context.store, |tx| {
        let user = match changeable(tx, &caller, id).await? {
            Ok(user) => user,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let role = change.role.unwrap_or(user.role);
        let operator = change.is_operator.unwrap_or(user.is_operator);
        if operator && !is_operator(&caller) {
            return Ok(Err(for_operators()));
        }
        if (role, operator) == (user.role, user.is_operator) {
            return Ok(Ok(user));
        }
        users::check_last(tx, &user, Some((role, operator))).await?;
        let now_ms = now_ms();
        let changed = users::set_role(tx, id, role, Some(operator), now_ms).await?;
        let mut entry = author.entry(CHANGED, target(&user));
        entry.detail = Some(format!("{}, before: {}", rights(&changed), rights(&user)));
        audit::append(tx, entry, now_ms).await?;
        Ok(Ok(changed))
    })?
}

/// Removes a user; every session ends with them.
pub(crate) async fn remove(
    context: &AccountContext,
    caller: &Caller<Admin>,
    author: Author,
    id: Uuid,
) -> Result<(), ApiError> {
    let caller = caller.clone();
    write_tx!(context.store, |tx| {
        let user = match changeable(tx, &caller, id).await? {
            Ok(user) => user,
            Err(rejection) => return Ok(Err(rejection)),
        };
        users::check_last(tx, &user, None).await?;
        // First, since the author's name is read, who may be the user.
        let mut entry = author.entry(REMOVED, target(&user));
        entry.detail = Some(rights(&user));
        audit::append(tx, entry, now_ms()).await?;
        users::delete(tx, id).await?;
        Ok(Ok(()))
    })?
}

/// Makes a link with which a user chooses a new password; an earlier one is no longer valid. Password and sessions end with its use.
pub(crate) async fn reset_link(
    context: &AccountContext,
    caller: &Caller<Admin>,
    author: Author,
    id: Uuid,
) -> Result<ResetLink, ApiError> {
    let caller = caller.clone();
    write_tx!(context.store, caller.account_id(), |tx| {
        let user = match changeable(tx, &caller, id).await? {
            Ok(user) => user,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let now_ms = now_ms();
        let code = welcome_codes::create(tx, id, now_ms).await?;
        audit::append(tx, author.entry(RESET_LINK_MADE, target(&user)), now_ms).await?;
        Ok(Ok(ResetLink {
            code,
            expires_at: now_ms + welcome_codes::LIFETIME_MS,
        }))
    })?
}

/// The link with which a user chooses a password. The code is in the fragment, which browsers send nowhere, so that no log of a
/// proxy holds it.
pub(crate) fn welcome_url(web: &str, code: &Secret) -> String {
    format!("{web}/app/welcome#{}", code.expose())
}

/// The link of an invitation, as [`welcome_url`].
pub(crate) fn join_url(web: &str, code: &Secret) -> String {
    format!("{web}/app/join#{}", code.expose())
}

/// A user as the target of an entry in the audit log.
pub(crate) fn target(user: &User) -> Target {
    Target {
        kind: "user",
        id: user.id.to_string(),
        name: Some(user.username.clone()),
    }
}

fn rights(user: &User) -> String {
    match user.is_operator {
        true => format!("{}, operator", user.role.as_str()),
        false => user.role.as_str().to_owned(),
    }
}

/// Returns whether a signed-in operator asks. A key is not one: every admin can make a key with scope admin.
fn is_operator(caller: &Caller<Admin>) -> bool {
    let signed_in = caller.signed_in();
    signed_in.is_some_and(|signed_in| signed_in.user.is_operator)
}

fn for_operators() -> ApiError {
    ApiError::InsufficientScope(
        "this user is or becomes an operator of the whole service: only a signed-in operator may do that",
    )
}
