//! OpenAPI document: credentials, tags, operation ids, `X-CSRF-Token`, errors that every operation may answer.

use utoipa::{
    Modify,
    openapi::{
        ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder,
        Schema,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem},
        schema::{SchemaType, Type},
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
        tag::{Tag, TagBuilder},
    },
};

/// The scheme of a page's session.
const SESSION: &str = "session";

/// Adds credentials and errors to every operation that the route table documents.
pub(super) struct Shared;

impl Modify for Shared {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, `svc_…`"))
            .build();
        components.add_security_scheme("bearerAuth", SecurityScheme::Http(bearer));
        components.add_security_scheme(
            "apiKeyAuth",
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key"))),
        );
        components.add_security_scheme(
            SESSION,
            SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(
                super::session::SECURE_COOKIE,
                &format!(
                    "The cookie of `POST /api/session`; over plain HTTP its name is `{}`. Every change needs the session's `csrfToken` in the header `X-CSRF-Token` beside it",
                    super::session::PLAIN_COOKIE
                ),
            ))),
        );
        super::cdn::describe(document);
        super::tools::describe(document);
        super::webhooks::describe(document);
        super::workflows::describe(document);
        if let Some(components) = &mut document.components {
            for schema in components.schemas.values_mut() {
                drop_null_defaults(schema);
            }
        }
        document.info.description = Some(INTRODUCTION.to_owned());
        document.tags = Some(tags());
        for (path, item) in &mut document.paths.paths {
            let read = item.get.iter_mut();
            read.for_each(|operation| complete(operation, path));
            for operation in changes(item) {
                complete(operation, path);
                if takes_session(operation) {
                    operation
                        .parameters
                        .get_or_insert_default()
                        .push(csrf_header());
                }
            }
        }
    }
}

/// Removes `null` as a default of optional fields. [`serde`]'s `default` of a request type writes it, and it is no
/// value that a required field may have.
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

/// Introduction of the description, for readers before their first call: Markdown, one paragraph a line.
const INTRODUCTION: &str = "\
Live streams in, low-latency HLS out; files in, any image format and size out.

## Authentication

- **API key**, for programs: `Authorization: Bearer svc_…`, or `x-api-key: svc_…`. Make one in the dashboard under Settings, API keys, by `POST /api/keys`, or by `sluice keys add`; \
it is shown once. Its scope is `read` (look), `write` (also change) or `admin` (also keys and the audit log).
- **Session**, for pages: `POST /api/session` signs a user in by a cookie. Each change sends the `csrfToken` of the answer in the header `X-CSRF-Token`, from a page of the service's own origin. \
The user's role is the scope: `viewer` reads, `member` writes, `admin` is `admin`.
- **Delivery key**, for images in public pages: a part of the address, `/cdn/v1/{deliveryKey}/{fileId}`. It delivers images and opens nothing else.
- **Playback token**, for streams with signed playback: takes the place of the playback id in the address, `/live/{token}`, until it expires. \
`POST /api/live/inputs/{id}/playback-token` and `POST /api/video/streams/{id}/playback-token` make one; with a playback key your own program makes them without a call.

## Requests and answers

Bodies are JSON; fields are accepted in camelCase and snake_case. Errors are `{error, code?, detail?, upgradeUrl?}`, and `error` says what to change. \
429 and 503 name in `Retry-After` when to try again. After 503 with the code `outcome_unknown` look first: the change may have been made.";

/// The groups of operations with their titles, in the order of a first use: get a key, stream, watch, store, share, deliver, convert,
/// automate, and after that what is needed seldom.
const TAGS: &[(&str, &str, &str)] = &[
    ("keys", "API keys", "Credentials of programs"),
    (
        "live",
        "Live inputs",
        "Where encoders publish; health, recordings, clips and outputs",
    ),
    ("playback", "Playback", "What players fetch"),
    (
        "playback_keys",
        "Playback keys",
        "Keys with which programs mint playback tokens",
    ),
    ("files", "Files", "Stored files"),
    (
        "uploads",
        "Uploads by a signed address",
        "Bytes from a browser or device without a key",
    ),
    (
        "tus",
        "Resumable uploads",
        "Uploads that survive a bad line (tus 1.0)",
    ),
    ("folders", "Folders", "Folders of files"),
    ("shares", "Share links", "Links to folders"),
    (
        "delivery_keys",
        "Delivery keys",
        "Keys for images in public pages",
    ),
    (
        "delivery",
        "Image delivery",
        "Images by address, in any size and format",
    ),
    ("presets", "Presets", "Named parameters of image delivery"),
    ("video", "Video streams", "Adaptive streams of stored files"),
    (
        "convert",
        "Conversion",
        "Conversion and compression of files",
    ),
    ("tools", "Media tools", "One operation on a file"),
    ("jobs", "Jobs", "Work that continues without its request"),
    ("workflows", "Workflows", "Steps that run on a file"),
    ("webhooks", "Webhooks", "Signed posts about what happened"),
    (
        "events",
        "Events",
        "What happened, as a list and as a stream",
    ),
    ("usage", "Usage", "Use of the month's plan"),
    ("session", "Sessions", "Signing in to pages"),
    (
        "users",
        "Users",
        "People of the account, their roles and invitations",
    ),
    (
        "audit",
        "Audit log",
        "Changes by people and by keys with scope admin",
    ),
    ("agents", "Tools for agents", "MCP over HTTP"),
    ("pages", "Pages", "Pages for people"),
    ("system", "System", "The installation, for its operators"),
    (
        "operations",
        "Operation of the service",
        "Health, metrics, what the service can do, and this description",
    ),
];

fn tags() -> Vec<Tag> {
    let tag = |(name, title, description): &(&str, &str, &str)| {
        TagBuilder::new()
            .name(*name)
            .description(Some(*description))
            .extensions(Some([("x-displayName", *title)].into_iter().collect()))
            .build()
    };
    TAGS.iter().map(tag).collect()
}

/// The header that a session sends with a change; keys need none.
fn csrf_header() -> RefOr<Parameter> {
    let header = ParameterBuilder::new()
        .name("X-CSRF-Token")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Needed with a session's cookie: the `csrfToken` of `/api/session`. Not with a key",
        ))
        .schema(Some(
            ObjectBuilder::new().schema_type(SchemaType::new(Type::String)),
        ))
        .build();
    RefOr::T(header)
}

/// Returns whether a session's cookie may be used in place of a key.
fn takes_session(operation: &Operation) -> bool {
    let session = SecurityRequirement::new(SESSION, [""; 0]);
    let accepted = operation.security.iter().flatten();
    accepted.into_iter().any(|required| *required == session)
}

/// The operations that change something.
fn changes(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
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
            ["bearerAuth", "apiKeyAuth", SESSION]
                .map(|name| SecurityRequirement::new(name, [""; 0]))
                .into(),
        );
    }
    let mut errors = vec![("500", "An error of the service")];
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
    let is_in_query = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query);
    let mut parameters = operation.parameters.iter().flatten();
    let has_query = parameters.any(is_in_query);
    let is_api = path.starts_with("/api/") || path == "/mcp";
    if !is_api && (has_query || operation.request_body.is_some()) {
        errors.push(("400", "A field or parameter is wrong; the text names it"));
    }
    if is_api {
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
