//! Invitations: one-time links (`/app/join`) with which a person chooses a name and a password and becomes a user of the account;
//! make, list, revoke, redeem.

use sluice_store::{
    Secret, accounts,
    audit::{self, Actor, NewEntry, Target},
    credentials,
    invitations::{self, Invitation, Invitee, NewInvitation},
    now_ms,
    users::{self, Role},
    write_tx,
};
use uuid::Uuid;

use super::lost_rights;
use crate::application::{
    audit::{Author, network_text},
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
    password_checks::PasswordUse,
    sessions::{self, Client, Opened},
};

/// Longest `note`, in characters.
pub(crate) const MAX_NOTE: usize = 200;
/// Counts guessed codes as wrong passwords of one user; no name of a user has blanks.
const CODES: &str = "an invitation";

// Actions in the audit log.
const CREATED: &str = "invitation.created";
const REVOKED: &str = "invitation.revoked";
const USED: &str = "invitation.used";

/// Invitation to be made, checked.
#[derive(Debug)]
pub(crate) struct InvitationRequest {
    pub role: Role,
    pub note: Option<String>,
    pub lifetime_h: u32,
}

/// An invitation that can be used, as its holder sees it.
#[derive(Debug)]
pub(crate) struct Offer {
    pub role: Role,
    pub account_name: String,
    pub expires_at: i64,
}

/// Makes an invitation; its code is known from this answer only.
pub(crate) async fn create(
    context: &AccountContext,
    caller: &Caller<Admin>,
    author: Author,
    asked: InvitationRequest,
) -> Result<(Invitation, Secret), ApiError> {
    let (account_id, actor) = (caller.account_id(), caller.actor());
    let most = context.config.account.max_invitations;
    let caller = caller.clone();
    write_tx!(context.store, account_id, |tx| {
        if let Some(lost) = lost_rights(tx, &caller).await? {
            return Ok(Err(lost));
        }
        let new = NewInvitation {
            account_id,
            role: asked.role,
            note: asked.note,
            created_by: audit::actor_name(tx, actor).await?,
            created_by_user: match actor {
                Actor::User(id) => Some(id),
                Actor::Key(_) => None,
            },
            lifetime_ms: i64::from(asked.lifetime_h) * 60 * 60 * 1000,
        };
        let now_ms = now_ms();
        let made = invitations::create(tx, new, most, now_ms).await?;
        let mut entry = author.entry(CREATED, target(&made.0));
        entry.detail = Some(made.0.role.as_str().to_owned());
        audit::append(tx, entry, now_ms).await?;
        Ok(Ok(made))
    })?
}

/// The account's invitations, newest first.
pub(crate) async fn list(
    context: &AccountContext,
    caller: &Caller<Admin>,
) -> Result<Vec<Invitation>, ApiError> {
    let mut db = context.store.read().await?;
    Ok(invitations::list(&mut db, caller.account_id()).await?)
}

/// Revokes an invitation that was not used.
pub(crate) async fn revoke(
    context: &AccountContext,
    caller: &Caller<Admin>,
    author: Author,
    id: Uuid,
) -> Result<(), ApiError> {
    let account_id = caller.account_id();
    let caller = caller.clone();
    write_tx!(context.store, account_id, |tx| {
        if let Some(lost) = lost_rights(tx, &caller).await? {
            return Ok(Err(lost));
        }
        let revoked = invitations::revoke(tx, account_id, id).await?;
        audit::append(tx, author.entry(REVOKED, target(&revoked)), now_ms()).await?;
        Ok(Ok(()))
    })?
}

/// Finds the invitation of a code, without using it; guesses are counted as those of [`redeem`].
pub(crate) async fn look(
    context: &AccountContext,
    client: &Client<'_>,
    code: Secret,
) -> Result<Offer, ApiError> {
    let invitation = checked(context, client, &code).await?;
    let mut db = context.store.read().await?;
    let account = accounts::get(&mut db, invitation.account_id).await?;
    match account.is_suspended() {
        true => Err(ApiError::AccountSuspended),
        false => Ok(Offer {
            role: invitation.role,
            account_name: account.name,
            expires_at: invitation.expires_at,
        }),
    }
}

/// Makes a user of an invitation and opens their first session. A name that is taken leaves the invitation as it is.
pub(crate) async fn redeem(
    context: &AccountContext,
    client: &Client<'_>,
    code: Secret,
    name: &str,
    password: Secret,
) -> Result<Opened, ApiError> {
    let username = users::normalise_username(name).map_err(|_| {
        invalid!("name must have 1 to 64 letters, digits or . _ @ + -, got `{name:.60}`")
    })?;
    check_password(&password)?;
    let invitation = checked(context, client, &code).await?;
    let account = accounts::get(&mut context.store.read().await?, invitation.account_id).await?;
    if account.is_suspended() {
        return Err(ApiError::AccountSuspended);
    }
    let turn = context
        .password_checks
        .turn(PasswordUse::Account, client.address)
        .await?;
    let hash = turn.run(move || credentials::hash_password(&password));
    let invitee = Invitee {
        username,
        password_hash: hash.await??,
    };
    let (most_users, most_sessions) = (
        context.config.account.max_users,
        context.config.sign_in.max_sessions,
    );
    let network = client.address.map(network_text);
    let new_session = sessions::new_session(context, client, Uuid::nil());
    let made = write_tx!(context.store, |tx| {
        let now_ms = now_ms();
        // Another request may have used it meanwhile.
        let Some((invitation, user)) =
            invitations::redeem(tx, &code, invitee, most_users, now_ms).await?
        else {
            return Ok(None);
        };
        let entry = NewEntry {
            account_id: user.account_id,
            actor: Actor::User(user.id),
            action: USED,
            target: Some(target(&invitation)),
            network,
            detail: Some(format!("{}, {}", user.username, user.role.as_str())),
        };
        audit::append(tx, entry, now_ms).await?;
        let mut new_session = new_session;
        new_session.user_id = user.id;
        let token = sessions::open(tx, new_session, most_sessions).await?;
        Ok(Some((user, token)))
    })?;
    let (user, token) = made.ok_or_else(unusable)?;
    Ok(Opened {
        user,
        account,
        token,
    })
}

/// Finds the invitation of a code; each try is counted before it is compared, and a right one is taken back.
async fn checked(
    context: &AccountContext,
    client: &Client<'_>,
    code: &Secret,
) -> Result<Invitation, ApiError> {
    let (attempts, address) = (&context.attempts, client.address);
    sessions::begin_code(attempts, CODES, address).await?;
    let mut db = context.store.read().await?;
    let Some(invitation) = invitations::of_code(&mut db, code, now_ms()).await? else {
        tracing::info!(client = ?address, "invitation rejected");
        return Err(unusable());
    };
    attempts.succeeded(CODES, address).await;
    Ok(invitation)
}

/// Names the field as this request does.
fn check_password(password: &Secret) -> Result<(), ApiError> {
    credentials::check_chosen_password(password).map_err(|error| match error.into() {
        ApiError::Invalid(message) => {
            ApiError::Invalid(message.replacen("newPassword", "password", 1))
        }
        other => other,
    })
}

/// The one answer to a code that is unknown, used, revoked or expired.
fn unusable() -> ApiError {
    ApiError::Gone(
        "this invitation was used already, was revoked or has expired: sign in if you have joined, else ask for another one",
    )
}

fn target(invitation: &Invitation) -> Target {
    Target {
        kind: "invitation",
        id: invitation.id.to_string(),
        name: invitation.note.clone(),
    }
}
