//! Macro of the route table: a line as a resource with its methods (405, `Allow`) and its OpenAPI entry.

use actix_web::{HttpRequest, HttpResponse, Resource, Route, guard, http::Method, web};

use crate::application::error::ApiError;

/// Makes `configure`, `ROUTES` and `openapi` from lines `"path" => METHOD module::handler, …;`, and describes the
/// handlers of `delivery`, `playback`, `streams`, `agents` and `screens`.
macro_rules! routes {
    (delivery: $($delivered:ident),+; playback: $($viewed:ident),+; streams: $($streamed:ident),+; agents: $($asked:ident),+; screens: $($screen:ident),+; $($path:literal => $($method:ident $module:ident :: $handler:ident),+;)+) => {
        /// Every path with its methods.
        pub const ROUTES: &[(&str, &[&str])] = &[$(($path, &[$(stringify!($method)),+])),+];

        /// Adds the table, the routes of delivery, playback, streams, agents and screens and the answer to everything else to an
        /// application. The router tries them in this order: the most frequent ones come first.
        fn configure(app: &mut actix_web::web::ServiceConfig) {
            cdn::configure(app);
            playback::configure(app);
            video::playback::configure(app);
            $(
                let methods = [$(stringify!($method)),+];
                app.service(
                    table::resource($path, &methods)
                        $(.route(table::on(actix_web::http::Method::$method).to($module::$handler)))+
                );
            )+
            mcp::configure(app);
            dashboard::configure(app);
            app.default_service(actix_web::web::to(table::no_such_path));
        }

        #[derive(utoipa::OpenApi)]
        #[openapi(
            info(
                title = "Sluice",
                version = "1.0.0",
                license(name = "Apache-2.0", identifier = "Apache-2.0"),
            ),
            paths($($($module::$handler),+),+, $(cdn::$delivered),+, $(playback::$viewed),+, $(video::$streamed),+, $(mcp::$asked),+, $(dashboard::$screen),+),
            components(schemas($crate::application::error::ErrorBody)),
            modifiers(&Shared),
        )]
        struct Description;

        /// The API's description, OpenAPI 3.1.0.
        pub fn openapi() -> utoipa::openapi::OpenApi {
            <Description as utoipa::OpenApi>::openapi()
        }
    };
}

pub(super) use routes;

/// A path that answers 405 with `Allow` to methods it does not know.
pub(super) fn resource(path: &str, methods: &[&str]) -> Resource {
    let allow = allow(methods);
    web::resource(path).default_service(web::to(move |request: HttpRequest| {
        let rejection = ApiError::MethodNotAllowed {
            method: request.method().to_string(),
            allow: allow.clone(),
        };
        async move { Err::<HttpResponse, _>(rejection) }
    }))
}

/// The guard of a method; GET answers HEAD too.
pub(super) fn on(method: Method) -> Route {
    match method {
        Method::GET => web::route().guard(guard::Any(guard::Get()).or(guard::Head())),
        other => web::method(other),
    }
}

fn allow(methods: &[&str]) -> String {
    let mut allowed: Vec<&str> = methods.to_vec();
    if methods.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.join(", ")
}

/// Answers 404 to every path outside the table.
pub(super) async fn no_such_path() -> Result<HttpResponse, ApiError> {
    Err(ApiError::NotFound("path"))
}
