//! Form of a workflow run: exactly one `file`, and `uploadSource`.

use actix_web::{HttpRequest, dev::Payload};

use crate::{
    application::{
        error::ApiError,
        field,
        object::camel_case,
        part::{Part, SizeLimits},
        workflows::operations::RequestContext,
    },
    http::multipart::{Form, FormLimits},
};

/// The field that holds the file.
const FILE: &str = "file";

/// Content of a form.
pub(super) struct RunForm {
    pub part: Part,
    /// Value of `upload_source` in conditions.
    pub source: Option<String>,
}

impl RunForm {
    /// Reads the form: 400 for what is no form, and for none or several files; else as [`Form::read`].
    pub(super) async fn read(
        request: &HttpRequest,
        payload: Payload,
        context: &RequestContext,
    ) -> Result<Self, ApiError> {
        let limits = FormLimits {
            files: 1,
            size: SizeLimits::of(&context.plan),
        };
        let mut form = Form::read(request, payload, &context.handles.files, limits).await?;
        let part = form.files.pop().ok_or_else(|| {
            invalid!("a file is missing: send exactly one as the form's field `file`")
        })?;
        if camel_case(&part.field) != FILE {
            return Err(field::wrong(
                "the file",
                "the form's field `file`",
                &part.field,
            ));
        }
        Ok(Self {
            source: form.text("uploadSource").map(str::to_owned),
            part,
        })
    }
}
