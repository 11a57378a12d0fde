//! Audit log of requests that change something: an entry for each that a handler answered with success, written before the answer
//! goes out (`MAX_ANSWER`), and for each whose outcome is not known.
//!
//! Only ids of a request and its answer reach the log, read as UUIDs; names come from the store's columns of names. So no secret can
//! be in an entry.

use std::sync::Arc;

use actix_web::{
    Error, HttpMessage as _,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderMap},
    },
    middleware::Next,
};
use serde_json::Value;
use sluice_store::audit;
use uuid::Uuid;

use crate::{
    application::{
        audit::{Author, PendingEntry},
        caller::{Authentication, Identity},
        context::AccountContext,
        error::ApiError,
        reached::Reached,
    },
    http::{
        audit::actions::{Noted, Target, noted},
        context,
        tus::FILE_ID,
    },
};

/// Largest answer in which an id is looked for.
const MAX_ANSWER: usize = 64 * 1024;

/// Wraps the routes, inside of authentication.
pub async fn note_change(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some((mut pending, target)) = begin(&request) else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    if target == Target::StoredFile {
        pending.wait_for_target();
    }
    if *request.method() == Method::DELETE {
        // Afterwards it is gone.
        pending.find_name().await;
    }
    let response = next.call(request).await;
    let Ok(response) = response else {
        pending.forget();
        return Ok(response?.map_into_boxed_body());
    };
    let mut response = response.map_into_boxed_body();
    if is_of_unknown_outcome(&response) {
        pending.write_unknown();
        return Ok(response);
    }
    if !response.status().is_success() {
        pending.forget();
        return Ok(response);
    }
    match target {
        Target::InAnswer(kind) => {
            let (read, id) = id_in(response);
            response = read;
            if let Some(id) = id {
                pending.set_target(kind, id);
            }
        }
        Target::StoredFile => match stored_file(response.headers()) {
            Some(id) => pending.set_target("file", id),
            None => {
                pending.forget();
                return Ok(response);
            }
        },
        Target::InPath(..) | Target::None => {}
    }
    pending.find_name().await;
    pending.write().await;
    Ok(response)
}

/// The entry of a request that may change something; `None` when nothing of it is noted here.
fn begin(request: &ServiceRequest) -> Option<(PendingEntry, Target)> {
    if matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    ) {
        return None;
    }
    // Calls of `/mcp` are noted by tool.
    if !request.path().starts_with("/api/") {
        return None;
    }
    let identity = audited(request)?;
    // As the router sees it: with escapes of plain characters undone.
    let path = request.match_info().as_str();
    let pattern = request.resource_map().match_pattern(path);
    let pattern = pattern.unwrap_or_default();
    let Noted::Entry { action, target } = noted(request.method().as_str(), &pattern) else {
        return None;
    };
    let client = Reached::client_of(request.request());
    let author = Author::behind(&identity, client);
    let named = match target {
        Target::InPath(kind, placeholder) => {
            in_path(&pattern, path, placeholder).map(|id| (kind, id))
        }
        Target::InAnswer(_) | Target::StoredFile | Target::None => None,
    };
    let entry = match named {
        Some((kind, id)) => author.entry(
            action,
            audit::Target {
                kind,
                id: id.to_string(),
                name: None,
            },
        ),
        None => author.entry_without_target(action),
    };
    let store = &context::of::<AccountContext>(request.request()).store;
    Some((PendingEntry::new(store, entry), target))
}

/// The caller of a request whose changes are noted.
fn audited(request: &ServiceRequest) -> Option<Arc<Identity>> {
    match request.extensions().get::<Authentication>()? {
        Authentication::Known(identity) if identity.is_audited() => Some(identity.clone()),
        _ => None,
    }
}

/// The id at the place of `{placeholder}` in a path of this pattern.
fn in_path(pattern: &str, path: &str, placeholder: &str) -> Option<Uuid> {
    let mut segments = pattern.split('/').zip(path.split('/'));
    let (_, text) = segments.find(|(wanted, _)| {
        let name = wanted.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        name == Some(placeholder)
    })?;
    Uuid::try_parse(text).ok()
}

/// Returns whether the change that was asked for may have been made although its answer is an error.
fn is_of_unknown_outcome(response: &ServiceResponse<BoxBody>) -> bool {
    let error = response.response().error();
    let error = error.and_then(|error| error.as_error::<ApiError>());
    matches!(error, Some(ApiError::OutcomeUnknown(_)))
}

/// The id of the file that an upload became.
fn stored_file(headers: &HeaderMap) -> Option<Uuid> {
    Uuid::try_parse(headers.get(FILE_ID)?.to_str().ok()?).ok()
}

/// The id of the resource of an answer, which is unchanged.
fn id_in(response: ServiceResponse<BoxBody>) -> (ServiceResponse<BoxBody>, Option<Uuid>) {
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return (response, None);
    }
    let mut id = None;
    let response = response.map_body(|_, body| match body.try_into_bytes() {
        Ok(bytes) => {
            if bytes.len() <= MAX_ANSWER {
                id = serde_json::from_slice(&bytes).ok().as_ref().and_then(id_of);
            }
            BoxBody::new(bytes)
        }
        Err(body) => body,
    });
    (response, id)
}

/// The `id` of a record, or of the one record that an answer wraps: `{"id": …}`, `{"folder": {"id": …}, …}`.
fn id_of(answer: &Value) -> Option<Uuid> {
    let id = |value: &Value| Uuid::try_parse(value.get("id")?.as_str()?).ok();
    let fields = answer.as_object()?;
    id(answer).or_else(|| {
        let mut wrapped = fields.values().filter_map(id);
        wrapped.next().filter(|_| wrapped.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0196d2a0-0000-7000-8000-000000000001";

    #[test]
    fn ids_are_found_in_paths_and_answers() {
        let id = Uuid::try_parse(ID).ok();
        let pattern = "/api/live/inputs/{id}/outputs/{outputId}";
        let path = format!("/api/live/inputs/x/outputs/{ID}");
        assert_eq!(in_path(pattern, &path, "outputId"), id);
        assert_eq!(in_path(pattern, &path, "id"), None);
        for (answer, expected) in [
            (json!({"id": ID, "secret": "svc_x"}), id),
            (json!({"key": {"id": ID}, "token": "svc_x"}), id),
            (json!({"a": {"id": ID}, "b": {"id": ID}}), None),
            (json!({"id": "svc_secret"}), None),
            (json!({"success": true}), None),
            (json!([{"id": ID}]), None),
        ] {
            assert_eq!(id_of(&answer), expected, "{answer}");
        }
    }
}
