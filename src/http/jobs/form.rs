//! Form of a job request: files, `sourceUrl`, `watermarkFile`, header `Idempotency-Key` and its length.

use actix_web::{HttpRequest, dev::Payload};
use sluice_media::operation::Params;

use crate::{
    application::{
        error::ApiError,
        jobs::{material::Material, submission::Submitter},
        object::camel_case,
        part::SizeLimits,
    },
    http::multipart::{Form, FormLimits},
};

/// The longest `Idempotency-Key`, in characters.
const MAX_IDEMPOTENCY_KEY: usize = 255;
/// The field of a watermark's own image.
const WATERMARK: &str = "watermarkFile";

/// Content of a form.
pub(in crate::http) struct Sent {
    pub params: Params,
    pub files: Vec<Material>,
    /// See [`JobRequest::sources`].
    pub sources: Vec<String>,
    /// A watermark's own image.
    pub watermark: Option<Material>,
}

impl Submitter<'_> {
    /// Reads a form: its fields, the files to work on or their addresses, and a watermark's own image.
    pub(in crate::http) async fn form(
        &self,
        request: &HttpRequest,
        payload: Payload,
    ) -> Result<Sent, ApiError> {
        let limits = FormLimits {
            // One more for the watermark's own image.
            files: self.plan.files_per_batch as usize + 1,
            size: SizeLimits::of(&self.plan),
        };
        let mut form = Form::read(request, payload, &self.context.files, limits).await?;
        let (files, sources) = (form.take_files(), form.sources()?);
        let watermark = form
            .files
            .into_iter()
            .find(|part| camel_case(&part.field) == WATERMARK);
        let mut params = Params::from_form(form.fields);
        if watermark.is_some() {
            params.set(WATERMARK, true);
        }
        Ok(Sent {
            params,
            files: files.into_iter().map(Material::Uploaded).collect(),
            sources,
            watermark: watermark.map(Material::Uploaded),
        })
    }
}

/// Reads the header `Idempotency-Key`, when it is there.
pub(in crate::http) fn idempotency_key(request: &HttpRequest) -> Result<Option<String>, ApiError> {
    let Some(value) = request.headers().get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=MAX_IDEMPOTENCY_KEY).contains(&key.trim().len()) => {
            Ok(Some(key.trim().to_owned()))
        }
        _ => Err(invalid!(
            "Idempotency-Key must have 1 to {MAX_IDEMPOTENCY_KEY} characters of ASCII"
        )),
    }
}
