//! Creating and revoking the share link of a folder: its token, the hash of its password.

use std::sync::Arc;

use sluice_store::{
    Secret, credentials, folders, now_ms,
    shares::{self, NewShare, Share},
    write_tx,
};
use uuid::Uuid;

use super::request::NewShareRequest;
use crate::application::{
    context::ShareContext,
    error::ApiError,
    files::to_its_end,
    password_checks::PasswordUse,
    reached::Reached,
    signing::{self, Purpose, Signer},
};

/// Makes the link of a folder; requests under an earlier one end.
pub(crate) async fn create(
    context: &Arc<ShareContext>,
    account_id: Uuid,
    folder_id: Uuid,
    reached: &Reached,
    request: NewShareRequest,
) -> Result<(Share, Signer), ApiError> {
    let terms = request.checked(now_ms())?;
    let mut db = context.store.read().await?;
    folders::get(&mut db, account_id, folder_id).await?;
    let signer = Signer::of(&mut db).await?;
    drop(db);
    let password_hash = match terms.password {
        Some(password) => Some(hashed(context, reached, password).await?),
        None => None,
    };
    let share_id = Uuid::now_v7();
    let new = NewShare {
        id: share_id,
        account_id,
        folder_id,
        token_hash: credentials::hash(&token(&signer, share_id)),
        password_hash,
        download_limit: terms.download_limit,
        allow_download: terms.allow_download,
        expires_at: terms.expires_at,
    };
    let context = Arc::clone(context);
    let made = to_its_end(async move {
        let made = write_tx!(context.store, account_id, |tx| {
            shares::create(tx, new, now_ms()).await
        })?;
        if let Some(replaced) = &made.replaced {
            context.shares.open_requests.withdraw(&replaced.token_hash);
        }
        Ok(made)
    });
    Ok((made.await?.share, signer))
}

/// Revokes the link of a folder, where it has one; downloads in progress end.
pub(crate) async fn revoke(
    context: Arc<ShareContext>,
    account_id: Uuid,
    folder_id: Uuid,
) -> Result<(), ApiError> {
    to_its_end(async move {
        let revoked = write_tx!(context.store, account_id, |tx| {
            shares::delete(tx, account_id, folder_id).await
        })?;
        if let Some(share) = revoked {
            context.shares.open_requests.withdraw(&share.token_hash);
        }
        Ok(())
    })
    .await
}

/// Makes a token of 32 bytes that only the installation's key can distinguish from random ones and make again.
pub(crate) fn token(signer: &Signer, share_id: Uuid) -> String {
    signing::encode(&signer.sign(Purpose::Share, share_id.as_bytes()))
}

async fn hashed(
    context: &ShareContext,
    reached: &Reached,
    password: Secret,
) -> Result<credentials::PasswordHash, ApiError> {
    let checks = &context.password_checks;
    let turn = checks.turn(PasswordUse::Account, reached.client).await?;
    let hashed = turn.run(move || credentials::hash_password(&password));
    Ok(hashed.await??)
}
