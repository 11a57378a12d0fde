//! Registers the contexts of resources as `web::Data` of the actix application, and finds them from a request.

use actix_web::{HttpRequest, web};

use crate::application::context::AppContext;

/// Makes each resource's context available as [`web::Data`].
pub(super) fn register(app: AppContext, routes: &mut web::ServiceConfig) {
    routes
        .app_data(web::Data::from(app.platform))
        .app_data(web::Data::from(app.accounts))
        .app_data(web::Data::from(app.agents))
        .app_data(web::Data::from(app.changes))
        .app_data(web::Data::from(app.delivery))
        .app_data(web::Data::from(app.events))
        .app_data(web::Data::from(app.files))
        .app_data(web::Data::from(app.jobs))
        .app_data(web::Data::from(app.live))
        .app_data(web::Data::from(app.playback_tokens))
        .app_data(web::Data::from(app.service))
        .app_data(web::Data::from(app.shares))
        .app_data(web::Data::from(app.video))
        .app_data(web::Data::from(app.workflows));
}

/// The context behind a request, for code that is no handler.
pub(crate) fn of<C: 'static>(request: &HttpRequest) -> &web::Data<C> {
    request
        .app_data()
        .expect("the server is built with the contexts of all resources")
}
