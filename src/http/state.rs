//! The application behind a request.

use actix_web::{HttpRequest, web};

use crate::application::context::AppState;

impl AppState {
    /// The state behind a request of this server.
    pub(crate) fn of(request: &HttpRequest) -> &web::Data<Self> {
        request
            .app_data()
            .expect("the server is built with its state")
    }
}
