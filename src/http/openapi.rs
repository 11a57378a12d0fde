//! What the operations of the API's description share: credentials, and the errors that any of them may answer.

use utoipa::{
    Modify,
    openapi::{
        ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, Schema,
        path::{Operation, PathItem},
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
    },
};

/// Adds them to every operation that the route table documents.
pub(super) struct Shared;

impl Modify for Shared {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, `svc_…`"))
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        components.add_security_scheme(
            "apiKey",
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key"))),
        );
        components.add_security_scheme(
            "session",
            SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(
                super::session::SECURE_COOKIE,
                &format!(
                    "The cookie of `POST /api/session`; over plain HTTP its name is `{}`",
                    super::session::PLAIN_COOKIE
                ),
            ))),
        );
        super::tools::describe(document);
        super::webhooks::describe(document);
        super::workflows::describe(document);
        if let Some(components) = &mut document.components {
            for schema in components.schemas.values_mut() {
                drop_null_defaults(schema);
            }
        }
        for (path, item) in &mut document.paths.paths {
            for operation in operations(item) {
                complete(operation, path);
            }
        }
    }
}

/// A field that may be left out has no default in the description. `null` stands there where a request type has one
/// ([`serde`]'s `default`), and is none of the values that a required field may have.
fn drop_null_defaults(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else {
        return;
    };
    for property in object.properties.values_mut() {
        let RefOr::T(property) = property else {
            continue;
        };
        let default = match property {
            Schema::Object(property) => &mut property.default,
            Schema::Array(property) => &mut property.default,
            Schema::OneOf(property) => &mut property.default,
            _ => continue,
        };
        default.take_if(|default| default.is_null());
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
        &mut item.options,
    ]
    .into_iter()
    .filter_map(Option::as_mut)
}

fn complete(operation: &mut Operation, path: &str) {
    name(operation);
    let needs_credential = match &operation.security {
        None => true,
        Some(required) => required
            .iter()
            .any(|requirement| *requirement != SecurityRequirement::default()),
    };
    if operation.security.is_none() {
        operation.security = Some(
            ["bearer", "apiKey", "session"]
                .map(|name| SecurityRequirement::new(name, [""; 0]))
                .into(),
        );
    }
    let mut errors = vec![("500", "A fault of the service")];
    if needs_credential {
        errors.push(("401", "No credential, or a wrong one"));
        errors.push(("403", "The credential's scope does not allow it"));
    }
    if path.starts_with("/cdn/") {
        errors.push(("413", "The source is too large"));
        errors.push(("415", "The file is no image, or does not decode"));
        errors.push(("416", "No byte of the range is there"));
        errors.push(("422", "The image cannot be rendered so"));
        errors.push((
            "429",
            "The month's deliveries are used up, or too many new variants in a minute",
        ));
        errors.push(("503", "Busy; see Retry-After"));
    }
    if path.starts_with("/api/") || path == "/mcp" {
        errors.push(("400", "A field or parameter is wrong; the text names it"));
        errors.push(("429", "Too many requests; see Retry-After"));
        errors.push(("503", "Busy; see Retry-After"));
    }
    if path.contains('{') {
        errors.push(("404", "Unknown id"));
    }
    if operation.request_body.is_some() {
        errors.push(("413", "The body is too large"));
        errors.push(("415", "The body is not JSON, or is encoded"));
    }
    for (status, description) in errors {
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_owned())
            .or_insert_with(|| error(description).into());
    }
}

/// Handlers of different resources share names; a generated client needs one for each operation: `live_create`.
fn name(operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next();
    if let (Some(tag), Some(handler)) = (tag, &operation.operation_id) {
        operation.operation_id = Some(format!("{tag}_{handler}"));
    }
}

fn error(description: &str) -> Response {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Error")))
        .build();
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build()
}
