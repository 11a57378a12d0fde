//! The first start: what an empty database is given, so that a newcomer can stream at once.

use crate::{
    Error, Secret, Store, accounts, api_keys, credentials,
    live_inputs::{self, LiveInput, NewLiveInput},
    users::{self, NewUser, Role},
};

/// What the operator fixed; what is missing is made up.
#[derive(Clone, Debug, Default)]
pub struct Bootstrap {
    pub admin_password: Option<Secret>,
    /// `svc_` and 43 base62.
    pub api_key: Option<Secret>,
}

/// The plain credentials of the first start, for showing them once.
#[derive(Clone, Debug)]
pub struct FirstCredentials {
    pub username: String,
    pub admin_password: Secret,
    pub api_key: Secret,
    pub live_input: LiveInput,
    pub stream_key: Secret,
}

/// Fills an empty database in one transaction: an account, the user `admin`, an API key with scope `admin`, a live input.
/// `None` when there is an account already. `Error::Invalid` when a fixed credential cannot be used.
pub async fn bootstrap(
    store: &Store,
    fixed: Bootstrap,
    now_ms: i64,
) -> Result<Option<FirstCredentials>, Error> {
    if accounts::count(&mut store.read().await?).await? > 0 {
        return Ok(None);
    }
    let admin_password = fixed.admin_password.unwrap_or_else(credentials::password);
    let api_key = fixed.api_key.unwrap_or_else(credentials::api_key);
    let password_hash = hash_off_thread(admin_password.clone()).await?;

    store
        .write(move |tx| {
            Box::pin(async move {
                if accounts::count(tx).await? > 0 {
                    return Ok(None);
                }
                let account = accounts::create(tx, "Default", now_ms).await?;
                let admin = NewUser {
                    account_id: account.id,
                    username: "admin".into(),
                    role: Role::Admin,
                    password_hash,
                };
                let user = users::create(tx, admin, now_ms).await?;
                let scope = api_keys::Scope::Admin;
                api_keys::create_from(tx, account.id, "First key", scope, &api_key, now_ms).await?;
                let first = NewLiveInput {
                    name: "My first stream".into(),
                    ..NewLiveInput::default()
                };
                let (live_input, stream_key) =
                    live_inputs::create(tx, account.id, first, now_ms).await?;
                Ok(Some(FirstCredentials {
                    username: user.username,
                    admin_password,
                    api_key,
                    live_input,
                    stream_key,
                }))
            })
        })
        .await
}

async fn hash_off_thread(password: Secret) -> Result<credentials::PasswordHash, Error> {
    tokio::task::spawn_blocking(move || credentials::hash_password(&password))
        .await
        .map_err(|error| Error::Internal(format!("hashing a password: {error}")))?
}
