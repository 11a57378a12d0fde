//! `/app`: the page of the dashboard, its content security policy and headers; redirect from `/`. One page for every address below
//! it; its script shows the screen that the address names.

use actix_web::{HttpRequest, HttpResponse, http::header, web};

use super::{embedded, table};
use crate::application::{error::ApiError, reached::Reached};

/// File of the page.
const PAGE: &str = "app.html";
/// Address of the dashboard.
const PATH: &str = "/app";

/// Content security policy: own scripts, styles and data only, nothing inline, no frame around it, and no text that becomes markup
/// (Trusted Types). Previews of files and what the player decodes are blobs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Adds the routes below `/app` to an application.
pub(super) fn configure(app: &mut web::ServiceConfig) {
    app.service(
        table::resource("/app/{tail:.*}", &["GET"])
            .route(table::on(actix_web::http::Method::GET).to(screen)),
    );
}

/// The start
///
/// Leads to the dashboard.
#[utoipa::path(get, path = "/", tag = "pages", security(()), responses(
    (status = 302, description = "To `/app`", headers(("Location" = String, description = "`/app`"))),
))]
pub async fn start() -> HttpResponse {
    HttpResponse::Found()
        .insert_header((header::LOCATION, PATH))
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .finish()
}

/// The dashboard
///
/// A page without data; its script signs in, and calls the API.
#[utoipa::path(get, path = "/app", tag = "pages", security(()), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn app(request: HttpRequest, reached: Reached) -> Result<HttpResponse, ApiError> {
    page(&request, &reached)
}

/// A screen of the dashboard
///
/// The same page.
#[utoipa::path(get, path = "/app/{tail}", tag = "pages", security(()), params(
    ("tail" = String, Path, description = "The screen, such as `live` or `settings/usage`"),
), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn screen(request: HttpRequest, reached: Reached) -> Result<HttpResponse, ApiError> {
    page(&request, &reached)
}

fn page(request: &HttpRequest, reached: &Reached) -> Result<HttpResponse, ApiError> {
    let mut response = embedded::page(request, PAGE, POLICY)?;
    response
        .head
        .insert_header((header::X_FRAME_OPTIONS, "DENY"))
        .insert_header((header::REFERRER_POLICY, "same-origin"));
    if reached.address.is_https() {
        // Over plain HTTP browsers ignore it, with a message in their console.
        response
            .head
            .insert_header((header::CROSS_ORIGIN_OPENER_POLICY, "same-origin"));
    }
    Ok(response.finish())
}
