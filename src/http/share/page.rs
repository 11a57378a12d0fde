//! `/share/folder/{token}`: page of a shared folder, password form, error pages, content security policy, largest form. Complete
//! HTML; scripts only make it more comfortable.
//!
//! What users stored appears as escaped text ([`Html`]) and as images and media; nothing of it runs here. A link that opens
//! nothing is answered with one page, whatever is wrong with it.

mod folder;
mod words;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError as _,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use sluice_store::Secret;
use url::form_urlencoded;
use uuid::Uuid;

use self::folder::{PageRequest, View};
use super::{
    access::{Entered, ShareAccess, enter},
    listing::listing,
    password,
};
use crate::{
    application::{context::ShareContext, error::ApiError, object::camel_case},
    http::{html::Html, page_frame::Frame},
};

/// Content security policy: everything comes from this site and nothing is inline; the player's buffers are blobs, its lists of
/// captions begin as empty `data:` documents.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self' data: blob:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Header that keeps search engines away.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
/// Largest form with a password.
const MAX_FORM_BYTES: usize = 8 * 1024;

/// Look through a shared folder
///
/// A page; `folderId`, `cursor` and `view` (`grid` or `list`) are parts of its own links. Every link that is not available is
/// answered with the same page.
#[utoipa::path(get, path = "/share/folder/{token}", tag = "pages", security(()), params(
    ("token" = String, Path, description = "The link's token"),
    ("folderId" = Option<Uuid>, Query, description = "A folder below the shared one; without it that"),
    ("cursor" = Option<String>, Query, description = "As the link to the next page has it"),
    ("view" = Option<String>, Query, description = "`grid` (the usual one) or `list`"),
), responses(
    (status = 200, description = "The folder, or a form for the link's password", body = String, content_type = "text/html"),
    (status = 404, description = "The link is not available, or the folder is not in it", body = String, content_type = "text/html")))]
pub async fn open_page(request: HttpRequest, context: web::Data<ShareContext>) -> HttpResponse {
    let page = match enter(&request).await {
        Ok(Entered::Open(access)) => folder_page(&request, &context, &access).await,
        Ok(Entered::Locked(_)) => password_page(StatusCode::OK, None),
        Err(error) => Err(error),
    };
    page.unwrap_or_else(error_page)
}

/// Show a link's password on its page
///
/// Receives the form on the page. The answer leads back to the page, with cookies that replace the password.
#[utoipa::path(post, path = "/share/folder/{token}", tag = "pages", security(()),
    params(("token" = String, Path, description = "The link's token")),
    request_body(content = String, content_type = "application/x-www-form-urlencoded", description = "`password`"),
    responses(
        (status = 303, description = "To the page", headers(("Set-Cookie" = String, description = "For this link"))),
        (status = 403, description = "Not the password: the form again", body = String, content_type = "text/html"),
        (status = 404, description = "The link is not available", body = String, content_type = "text/html"),
        (status = 429, description = "Too many wrong passwords", body = String, content_type = "text/html")))]
pub async fn enter_password(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    body: web::Payload,
) -> HttpResponse {
    take_password(&request, &context, body)
        .await
        .unwrap_or_else(error_page)
}

async fn take_password(
    request: &HttpRequest,
    context: &ShareContext,
    body: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let entered = enter(request).await?;
    let mut response = HttpResponse::SeeOther();
    response
        .insert_header((header::LOCATION, own_address(request)))
        .insert_header((header::CACHE_CONTROL, "no-store"));
    if let Entered::Locked(locked) = entered {
        let given = read_password(context, body).await?;
        match password::unlock(context, &locked, given).await {
            Ok(cookies) => {
                for cookie in cookies {
                    response.cookie(cookie);
                }
            }
            Err(error @ (ApiError::NoShare { .. } | ApiError::TooMany { .. })) => {
                return password_page(error.status_code(), Some(&error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(response.finish())
}

async fn read_password(context: &ShareContext, body: web::Payload) -> Result<Secret, ApiError> {
    let rejection = || invalid!("the form must hold a password");
    let reading = body.to_bytes_limited(MAX_FORM_BYTES);
    let body = tokio::time::timeout(context.config.http.body_timeout, reading).await;
    let body = body
        .map_err(|_| {
            ApiError::Timeout("the password did not arrive in time; send the form again".to_owned())
        })?
        .map_err(|_| rejection())?
        .map_err(|_| rejection())?;
    form_urlencoded::parse(&body)
        .find(|(name, _)| name == "password")
        .map(|(_, password)| Secret::new(password))
        .ok_or_else(rejection)
}

/// The page's address, relative to itself.
fn own_address(request: &HttpRequest) -> String {
    let token = token_of(request);
    match request.query_string() {
        "" => token.to_owned(),
        query => format!("{token}?{query}"),
    }
}

fn token_of(request: &HttpRequest) -> &str {
    request.match_info().get("token").unwrap_or_default()
}

async fn folder_page(
    request: &HttpRequest,
    context: &web::Data<ShareContext>,
    access: &ShareAccess,
) -> Result<HttpResponse, ApiError> {
    let (mut folder, mut cursor, mut view) = (None, None, View::default());
    for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
        match &*camel_case(&name) {
            "folderId" if !value.is_empty() => {
                folder = Some(Uuid::try_parse(&value).map_err(|_| ApiError::NotFound("folder"))?);
            }
            "cursor" if !value.is_empty() => cursor = Some(value),
            "view" => view = View::parse(&value),
            _ => {}
        }
    }
    let listing = listing(context, access, folder, cursor.as_deref()).await?;
    let asked = PageRequest {
        token: token_of(request),
        is_continuation: cursor.is_some(),
        view,
    };
    let html =
        Frame::named("share.html")?.fill(&listing.folder.name, folder::main(&listing, &asked));
    let page = head(StatusCode::OK).body(html);
    Ok(access.bound(page))
}

/// Makes the form for the password, with the error of the last one.
fn password_page(status: StatusCode, error: Option<&ApiError>) -> Result<HttpResponse, ApiError> {
    let mut main = Html::default();
    main.put(
        "<h1>This folder is protected</h1><p>Enter the password that came with the link.</p>\
         <form method=\"post\"><div class=\"field\"><label for=\"password\">Password</label>\
         <input class=\"input\" id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required autofocus",
        &[],
    );
    match error {
        None => main.put(">", &[]),
        Some(error) => main.put(
            " aria-invalid=\"true\" aria-describedby=\"wrong\"><p class=\"field-error\" id=\"wrong\" role=\"alert\">{}</p>",
            &[&described(error)],
        ),
    };
    main.put(
        "</div><button class=\"button button-solid\" type=\"submit\">Open the folder</button></form>",
        &[],
    );
    let html = Frame::named("notice.html")?.fill("Protected folder", main);
    let mut page = head(status);
    if let Some(ApiError::TooMany { retry_after_s, .. }) = error {
        page.insert_header((header::RETRY_AFTER, *retry_after_s));
    }
    Ok(page.body(html))
}

/// Describes a password that was not accepted, in a person's words.
fn described(error: &ApiError) -> String {
    match error {
        ApiError::TooMany { retry_after_s, .. } => {
            let minutes = words::counted(retry_after_s.div_ceil(60), "minute", "minutes");
            format!("There were too many wrong passwords. Try again in {minutes}.")
        }
        _ => "That is not the password of this link.".to_owned(),
    }
}

/// Makes the page for an error. Nothing in it is of the request.
fn error_page(error: ApiError) -> HttpResponse {
    let (title, detail) = match &error {
        ApiError::ShareUnavailable => (
            "This link is no longer available",
            "It may have expired, or its owner may have withdrawn it. Please ask anyone who sent it for a new one.",
        ),
        ApiError::NotFound(_) => (
            "This folder is no longer here",
            "It may have been moved or deleted. The link that you were sent still shows all that there is.",
        ),
        ApiError::Invalid(_) => (
            "This address is not complete",
            "Please open the link as you were sent it.",
        ),
        _ => (
            "The folder cannot be shown at the moment",
            "Please try again in a little while.",
        ),
    };
    let mut main = Html::default();
    main.put("<h1>{}</h1><p>{}</p>", &[&title, &detail]);
    let answered = error.error_response();
    match Frame::named("notice.html") {
        Ok(frame) => head(answered.status()).body(frame.fill(title, main)),
        Err(_) => answered,
    }
}

/// The head of every answer here.
fn head(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .content_type("text/html; charset=utf-8")
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((ROBOTS, "noindex, nofollow"));
    response
}
