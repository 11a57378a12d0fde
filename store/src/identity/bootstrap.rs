//! First start: account, user `admin`, API key and live input of an empty database, and their credentials until they
//! are shown.
//!
//! The secrets are stored as hashes only. Until [`first_credentials_shown`] notes that a person could read them, each
//! start replaces them, so that a start that failed or was killed before it printed them loses nothing. A node leaves those of
//! another one that lives.

use uuid::Uuid;

use crate::{
    Connection, Error, Secret, Store, Tx, accounts, api_keys,
    cluster::MOST_AHEAD,
    credentials::{self, PasswordHash},
    duration_ms,
    live_inputs::{self, LiveInput, NewLiveInput},
    statement::{query, query_as},
    users::{self, NewUser, Role},
    welcome_codes,
};

const KEY_NAME: &str = "First key";

/// Credentials fixed by the operator; missing ones are generated.
#[derive(Clone, Debug, Default)]
pub struct Bootstrap {
    pub admin_password: Option<Secret>,
    /// `svc_` and 43 base62.
    pub api_key: Option<Secret>,
    /// The plan of the first account; without one [`accounts::UNLIMITED`].
    pub plan: Option<String>,
}

/// The plain credentials of the first start, for showing them once.
#[derive(Clone, Debug)]
pub struct FirstCredentials {
    pub username: String,
    pub admin_password: Secret,
    /// For the link with which the user chooses a password; `None` when the operator fixed one.
    pub welcome_code: Option<Secret>,
    pub api_key: Secret,
    pub live_input: LiveInput,
    pub stream_key: Secret,
}

/// The first credentials while they have not been shown.
#[derive(Clone, Debug, sqlx::FromRow)]
struct Unshown {
    user_id: Uuid,
    api_key_id: Uuid,
    live_input_id: Uuid,
    account_id: Uuid,
    /// True when none of them was used or changed.
    is_untouched: bool,
    /// True when another node made them, which lives and is about to show them.
    is_of_other: bool,
}

/// The secrets to be stored.
struct Chosen {
    admin_password: Secret,
    is_password_fixed: bool,
    password_hash: PasswordHash,
    api_key: Secret,
}

/// Fills an empty database in one transaction: an account, the user `admin`, an API key with scope `admin`, a live input.
/// Replaces the secrets of a database that was filled and whose credentials were not shown.
///
/// `None` when there is nothing to show. `Error::Invalid` when a fixed credential cannot be used.
pub async fn bootstrap(
    store: &Store,
    fixed: Bootstrap,
    now_ms: i64,
) -> Result<Option<FirstCredentials>, Error> {
    let node = store.owner();
    let mut db = store.read().await?;
    if accounts::count(&mut db).await? > 0 && unshown(&mut db, node).await?.is_none() {
        return Ok(None);
    }
    drop(db);
    let is_password_fixed = fixed.admin_password.is_some();
    let admin_password = fixed.admin_password.unwrap_or_else(credentials::password);
    let chosen = Chosen {
        is_password_fixed,
        password_hash: hash_off_thread(admin_password.clone()).await?,
        admin_password,
        api_key: fixed.api_key.unwrap_or_else(credentials::api_key),
    };
    let plan = fixed.plan.unwrap_or_else(|| accounts::UNLIMITED.to_owned());
    store
        .write(move |tx| {
            Box::pin(async move {
                match unshown(tx, node).await? {
                    Some(unshown) if unshown.is_of_other => Ok(None),
                    Some(unshown) if unshown.is_untouched => {
                        replace(tx, unshown, chosen, node, now_ms).await.map(Some)
                    }
                    Some(_) => {
                        forget(tx).await?;
                        Ok(None)
                    }
                    None if accounts::count(tx).await? > 0 => Ok(None),
                    None => fill(tx, &plan, chosen, node, now_ms).await.map(Some),
                }
            })
        })
        .await
}

/// Notes that the first credentials were shown: no later start replaces them.
pub async fn first_credentials_shown(store: &Store) -> Result<(), Error> {
    store
        .write(|tx| Box::pin(async move { forget(tx).await }))
        .await
}

async fn fill(
    tx: &mut Tx<'_>,
    plan: &str,
    chosen: Chosen,
    node: Uuid,
    now_ms: i64,
) -> Result<FirstCredentials, Error> {
    let account = accounts::create_on(tx, "Default", plan, now_ms).await?;
    let admin = NewUser {
        account_id: account.id,
        username: "admin".into(),
        role: Role::Admin,
        is_operator: true,
        password_hash: chosen.password_hash,
    };
    let user = users::create(tx, admin, now_ms).await?;
    let welcome_code = welcome_code(tx, user.id, chosen.is_password_fixed, now_ms).await?;
    let scope = api_keys::Scope::Admin;
    let key = api_keys::create_from(tx, account.id, KEY_NAME, scope, &chosen.api_key, now_ms);
    let key = key.await?;
    let first = NewLiveInput {
        name: "My first stream".into(),
        ..NewLiveInput::default()
    };
    let (live_input, stream_key) = live_inputs::create(tx, account.id, first, now_ms).await?;
    remember(tx, [user.id, key.id, live_input.id, node], now_ms).await?;
    Ok(FirstCredentials {
        username: user.username,
        admin_password: chosen.admin_password,
        welcome_code,
        api_key: chosen.api_key,
        live_input,
        stream_key,
    })
}

/// Replaces the secrets that an earlier start made; those are invalid afterwards.
async fn replace(
    tx: &mut Tx<'_>,
    unshown: Unshown,
    chosen: Chosen,
    node: Uuid,
    now_ms: i64,
) -> Result<FirstCredentials, Error> {
    let (account_id, user_id) = (unshown.account_id, unshown.user_id);
    users::set_password(tx, user_id, chosen.password_hash, now_ms).await?;
    let welcome_code = welcome_code(tx, user_id, chosen.is_password_fixed, now_ms).await?;
    // Deleted, not revoked: the operator may have fixed the same key at both starts.
    query("DELETE FROM api_keys WHERE id = $1")
        .bind(unshown.api_key_id)
        .execute(tx)
        .await?;
    let scope = api_keys::Scope::Admin;
    let key = api_keys::create_from(tx, account_id, KEY_NAME, scope, &chosen.api_key, now_ms);
    let key = key.await?;
    let (live_input, stream_key) =
        live_inputs::rotate_key(tx, account_id, unshown.live_input_id, now_ms).await?;
    remember(tx, [user_id, key.id, live_input.id, node], now_ms).await?;
    Ok(FirstCredentials {
        username: users::get(tx, user_id).await?.username,
        admin_password: chosen.admin_password,
        welcome_code,
        api_key: chosen.api_key,
        live_input,
        stream_key,
    })
}

/// Makes no code for a password that the operator fixed: its use would replace that one.
async fn welcome_code(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    is_password_fixed: bool,
    now_ms: i64,
) -> Result<Option<Secret>, Error> {
    match is_password_fixed {
        true => Ok(None),
        false => welcome_codes::create(tx, user_id, now_ms).await.map(Some),
    }
}

async fn unshown(db: &mut impl Connection, node: Uuid) -> Result<Option<Unshown>, Error> {
    let now_ms = crate::now_ms();
    let unshown = query_as(
        "SELECT first.user_id, first.api_key_id, first.live_input_id, users.account_id,
             users.updated_at = first.made_at AND api_keys.revoked_at IS NULL AND api_keys.last_used_at IS NULL
                 AND live_inputs.last_started_at IS NULL
                 AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.user_id = users.id) AS is_untouched,
             EXISTS (SELECT 1 FROM nodes n WHERE n.id = first.node_id AND n.id <> $1 AND n.state <> 'dead'
                     AND n.lease_until > $2 AND n.lease_until <= $3) AS is_of_other
         FROM first_credentials AS first
         JOIN users ON users.id = first.user_id
         JOIN api_keys ON api_keys.id = first.api_key_id
         JOIN live_inputs ON live_inputs.id = first.live_input_id",
    )
    .bind(node)
    .bind(now_ms)
    // One that ends later was written before the clock was set back.
    .bind(now_ms.saturating_add(duration_ms(MOST_AHEAD)))
    .fetch_optional(db)
    .await?;
    Ok(unshown)
}

/// Remembers the ids of user, key and live input, and the process that shows them.
async fn remember(
    tx: &mut Tx<'_>,
    [user_id, api_key_id, live_input_id, node_id]: [Uuid; 4],
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO first_credentials (id, user_id, api_key_id, live_input_id, made_at, node_id)
         VALUES (1, $1, $2, $3, $4, $5)
         ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, api_key_id = excluded.api_key_id,
             live_input_id = excluded.live_input_id, made_at = excluded.made_at, node_id = excluded.node_id",
    )
    .bind(user_id)
    .bind(api_key_id)
    .bind(live_input_id)
    .bind(now_ms)
    .bind(node_id)
    .execute(tx)
    .await?;
    Ok(())
}

async fn forget(tx: &mut Tx<'_>) -> Result<(), Error> {
    query("DELETE FROM first_credentials").execute(tx).await?;
    Ok(())
}

async fn hash_off_thread(password: Secret) -> Result<PasswordHash, Error> {
    let hashed = tokio::task::spawn_blocking(move || {
        let hash = credentials::hash_password(&password);
        // The service may be idle from here on.
        credentials::release_memory();
        hash
    });
    hashed
        .await
        .map_err(|error| Error::Internal(format!("hashing a password: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreSettings, now_ms, write_tx};

    /// Writes a node's row, and that it is about to show the first credentials.
    async fn leave_to(store: &Store, node: Uuid, lease_until: i64) {
        let written = write_tx!(store, |tx| {
            query("DELETE FROM nodes").execute(tx).await?;
            query(
                "INSERT INTO nodes (id, name, address, roles, version, schema, state, started_at, renewed_at, lease_until,
                     clock_offset_ms)
                 VALUES ($1, 'other', '', '[]', '', 0, 'up', 0, 0, $2, 0)",
            )
            .bind(node)
            .bind(lease_until)
            .execute(tx)
            .await?;
            query("UPDATE first_credentials SET node_id = $1")
                .bind(node)
                .execute(tx)
                .await?;
            Ok(())
        });
        written.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_credentials_of_a_node_are_left_to_it_while_its_lease_can_be_true() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let start = async || {
            let first = bootstrap(&store, Bootstrap::default(), now_ms()).await;
            first.unwrap().is_some()
        };
        assert!(start().await);
        let other = Uuid::now_v7();
        for (ahead_ms, is_shown) in [(8_000, false), (3_600_000, true)] {
            leave_to(&store, other, now_ms() + ahead_ms).await;
            assert_eq!(start().await, is_shown, "{ahead_ms}");
        }
        store.close().await;
    }
}
