//! `/api/cdn-presets`: named sets of image parameters, used as `/cdn/v1/{deliveryKey}/{fileId}/p/{name}`.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_store::presets::{self, Preset};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::Body;
use crate::application::{
    answer::{Success, Timestamp},
    caller::{Caller, Read, Write},
    context::DeliveryContext,
    delivery::{self, PresetRequest},
    error::ApiError,
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresetRecord {
    id: Uuid,
    name: String,
    /// Without those that have no effect.
    #[schema(value_type = Object)]
    params: Map<String, Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub struct PresetAnswer {
    preset: PresetRecord,
}

#[derive(Serialize, ToSchema)]
pub struct PresetList {
    presets: Vec<PresetRecord>,
}

impl From<Preset> for PresetRecord {
    fn from(preset: Preset) -> Self {
        Self {
            id: preset.id,
            name: preset.name,
            params: in_json(&preset.params),
            created_at: Timestamp(preset.created_at),
            updated_at: Timestamp(preset.updated_at),
        }
    }
}

/// List presets
#[utoipa::path(get, path = "/api/cdn-presets", tag = "presets",
    responses((status = 200, description = "All of them, newest first", body = PresetList)))]
pub async fn list(
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let presets = presets::list(&mut context.store.read().await?, caller.account_id()).await?;
    let presets = presets.into_iter().map(PresetRecord::from).collect();
    Ok(HttpResponse::Ok().json(PresetList { presets }))
}

/// Make a preset
#[utoipa::path(post, path = "/api/cdn-presets", tag = "presets", request_body = PresetRequest, responses(
    (status = 201, description = "The preset", body = PresetAnswer),
    (status = 409, description = "There is one of that name", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    Body(request): Body<PresetRequest>,
) -> Result<HttpResponse, ApiError> {
    let preset = delivery::create_preset(&context, caller.account_id(), request).await?;
    Ok(HttpResponse::Created().json(PresetAnswer {
        preset: preset.into(),
    }))
}

/// Show a preset
#[utoipa::path(get, path = "/api/cdn-presets/{id}", tag = "presets",
    params(("id" = Uuid, Path, description = "The preset's id")),
    responses((status = 200, description = "The preset", body = PresetAnswer)))]
pub async fn show(
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let mut db = context.store.read().await?;
    let preset = presets::get(&mut db, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(PresetAnswer {
        preset: preset.into(),
    }))
}

/// Change a preset
///
/// Only what is given changes. Caches may answer with the old one for five minutes.
#[utoipa::path(patch, path = "/api/cdn-presets/{id}", tag = "presets", request_body = PresetRequest,
    params(("id" = Uuid, Path, description = "The preset's id")),
    responses((status = 200, description = "The preset as it is now", body = PresetAnswer)))]
pub async fn change(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<PresetRequest>,
) -> Result<HttpResponse, ApiError> {
    let preset = delivery::change_preset(&context, caller.account_id(), *id, request).await?;
    Ok(HttpResponse::Ok().json(PresetAnswer {
        preset: preset.into(),
    }))
}

/// Delete a preset
///
/// Addresses with its name are 404 from the answer on.
#[utoipa::path(delete, path = "/api/cdn-presets/{id}", tag = "presets",
    params(("id" = Uuid, Path, description = "The preset's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    delivery::delete_preset(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// A canonical query as an object; whole numbers are numbers.
fn in_json(canonical: &str) -> Map<String, Value> {
    canonical
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            let value = match value.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => Value::from(value),
            };
            (name.to_owned(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn params_are_shown_as_an_object() {
        let shown = in_json("w=400&fp=0.5,0.25&format=webp");
        assert_eq!(
            Value::Object(shown),
            json!({"w": 400, "fp": "0.5,0.25", "format": "webp"})
        );
        assert!(in_json("").is_empty());
    }
}
