//! `limit` and `cursor` of a request's query, and single query parameters in both spellings.

use std::future::Ready;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use sluice_store::Page;
use url::form_urlencoded;

use crate::application::{
    error::ApiError,
    object::camel_case,
    page::{WHOLE_LIST, page},
};

/// The wanted rows of a list: `DEFAULT` of them when the client names no limit.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery<const DEFAULT: u32 = WHOLE_LIST>(pub Page);

impl<const DEFAULT: u32> FromRequest for PageQuery<DEFAULT> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(page(request.query_string(), DEFAULT).map(Self))
    }
}

/// The first value of a query parameter, in either spelling of its name.
pub(in crate::http) fn query_value(request: &HttpRequest, name: &str) -> Option<String> {
    form_urlencoded::parse(request.query_string().as_bytes())
        .find(|(given, _)| camel_case(given) == name)
        .map(|(_, value)| value.into_owned())
}
