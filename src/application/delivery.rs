//! Changes of delivery keys and presets: `/api/delivery-keys` (`alias`, `presets_only`), `/api/cdn-presets`; length of a preset's
//! name. A change is committed first, then image delivery has it at once, also when the client has gone meanwhile.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_media::variant::VariantRequest;
use sluice_store::{
    Secret,
    delivery_keys::{self, DeliveryKey, DeliveryKeyPatch, NewDeliveryKey},
    now_ms,
    presets::{self, Preset},
    write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    context::DeliveryContext,
    error::ApiError,
    field::{self, given},
    files::to_its_end,
};

/// Longest name of a preset, in characters.
const MAX_PRESET_NAME: usize = 64;

/// A key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(rename_all = "snake_case")]
pub struct NewDeliveryKeyRequest {
    /// 1 to 120 characters; `Delivery key` without one.
    name: Option<String>,
    /// 3 to 63 of `a-z 0-9 _ -`, free in the whole installation: used in addresses in place of the key.
    alias: Option<String>,
    /// True when the key delivers presets and nothing else (false).
    presets_only: Option<bool>,
}

/// The fields to change; null gives the alias up.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(rename_all = "snake_case")]
pub struct ChangeDeliveryKey {
    /// 1 to 120 characters.
    name: Option<String>,
    /// The same form as at the creation. Addresses with the former alias are 404 from the answer on.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    alias: Option<Option<String>>,
    /// True when the key delivers presets and nothing else.
    presets_only: Option<bool>,
}

/// A preset to be made or changed.
#[derive(Deserialize, ToSchema)]
pub struct PresetRequest {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    name: Option<String>,
    /// Delivery parameters by name, for instance `{"w": 400, "format": "webp"}`.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
}

/// Makes a delivery key; 409 when its alias is taken.
pub(crate) async fn create_key(
    context: Arc<DeliveryContext>,
    account_id: Uuid,
    request: NewDeliveryKeyRequest,
) -> Result<(DeliveryKey, Secret), ApiError> {
    let new = NewDeliveryKey {
        name: field::name(request.name)?.unwrap_or_else(|| "Delivery key".to_owned()),
        alias: request.alias,
        presets_only: request.presets_only.unwrap_or(false),
    };
    to_its_end(async move {
        let _changes = context.key_changes.lock().await;
        let (key, token) = write_tx!(context.store, account_id, |tx| {
            delivery_keys::create(tx, account_id, new, now_ms()).await
        })?;
        context.images.key_changed(&key);
        Ok((key, token))
    })
    .await
}

/// Changes what is given; 409 when the alias is taken.
pub(crate) async fn change_key(
    context: Arc<DeliveryContext>,
    account_id: Uuid,
    id: Uuid,
    request: ChangeDeliveryKey,
) -> Result<DeliveryKey, ApiError> {
    let patch = DeliveryKeyPatch {
        name: field::name(request.name)?,
        alias: request.alias,
        presets_only: request.presets_only,
    };
    to_its_end(async move {
        let _changes = context.key_changes.lock().await;
        let key = write_tx!(context.store, |tx| {
            delivery_keys::patch(tx, account_id, id, patch).await
        })?;
        context.images.key_changed(&key);
        Ok(key)
    })
    .await
}

/// Revokes a delivery key: addresses with it are 404 from here on.
pub(crate) async fn revoke_key(
    context: Arc<DeliveryContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    to_its_end(async move {
        let _changes = context.key_changes.lock().await;
        write_tx!(context.store, account_id, |tx| {
            delivery_keys::revoke(tx, account_id, id, now_ms()).await
        })?;
        context.images.key_revoked(id);
        Ok(())
    })
    .await
}

/// Makes a preset; 409 when there is one of that name.
pub(crate) async fn create_preset(
    context: &DeliveryContext,
    account_id: Uuid,
    request: PresetRequest,
) -> Result<Preset, ApiError> {
    let missing = |field: &str| invalid!("{field} is missing");
    let name = checked_name(request.name)?.ok_or_else(|| missing("name"))?;
    let params = canonical(context, request.params)?.ok_or_else(|| missing("params"))?;
    let _changes = context.key_changes.lock().await;
    let preset = write_tx!(context.store, account_id, |tx| {
        presets::create(tx, account_id, &name, &params, now_ms()).await
    })?;
    context.images.preset_changed(&preset);
    Ok(preset)
}

/// Changes what is given.
pub(crate) async fn change_preset(
    context: &DeliveryContext,
    account_id: Uuid,
    id: Uuid,
    request: PresetRequest,
) -> Result<Preset, ApiError> {
    let name = checked_name(request.name)?;
    let params = canonical(context, request.params)?;
    let _changes = context.key_changes.lock().await;
    let preset = write_tx!(context.store, account_id, |tx| {
        presets::get(tx, account_id, id).await?;
        presets::patch(tx, account_id, id, name, params, now_ms()).await
    })?;
    context.images.preset_changed(&preset);
    Ok(preset)
}

/// Deletes a preset: addresses with its name are 404 from here on.
pub(crate) async fn delete_preset(
    context: &DeliveryContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    let _changes = context.key_changes.lock().await;
    write_tx!(context.store, account_id, |tx| {
        presets::delete(tx, account_id, id).await
    })?;
    context.images.preset_deleted(account_id, id);
    Ok(())
}

/// Reads the row of a key again and applies it, whatever it is by now.
pub(crate) async fn read_key_again(context: &DeliveryContext, id: Uuid) -> Result<(), ApiError> {
    let _changes = context.key_changes.lock().await;
    match delivery_keys::by_id(&mut context.store.read().await?, id).await? {
        Some(key) => context.images.key_changed(&key),
        None => context.images.key_revoked(id),
    }
    Ok(())
}

/// Reads the row of a preset of the account again and applies it, whatever it is by now.
pub(crate) async fn read_preset_again(
    context: &DeliveryContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    let _changes = context.key_changes.lock().await;
    match presets::by_id(&mut context.store.read().await?, id).await? {
        Some(preset) => context.images.preset_changed(&preset),
        None => context.images.preset_deleted(account_id, id),
    }
    Ok(())
}

/// Reads all keys and presets again and applies them.
pub(crate) async fn read_all_again(context: &DeliveryContext) -> Result<(), ApiError> {
    let _changes = context.key_changes.lock().await;
    Ok(context.images.reload_directory().await?)
}

fn checked_name(given: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(name) = given else { return Ok(None) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !(1..=MAX_PRESET_NAME).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err(invalid!(
            "name must be 1 to {MAX_PRESET_NAME} of a-z, A-Z, 0-9, _ and -"
        ));
    }
    Ok(Some(name))
}

/// Returns the one query for all equivalent parameters.
fn canonical(
    context: &DeliveryContext,
    params: Option<Map<String, Value>>,
) -> Result<Option<String>, ApiError> {
    let Some(params) = params else {
        return Ok(None);
    };
    let request = VariantRequest::from_json(&params, &context.config.cdn.variants())
        .map_err(|error| invalid!("params: {}", error.message))?;
    Ok(Some(request.canonical().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_in_a_path() {
        for (name, expected) in [
            ("hero", true),
            ("Hero_2-x", true),
            ("", false),
            ("a/b", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(checked_name(Some(name.into())).is_ok(), expected, "{name}");
        }
        assert!(checked_name(Some("x".repeat(65))).is_err());
    }
}
