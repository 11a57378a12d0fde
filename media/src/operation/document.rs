//! Operations `pdf-preview` (a page of a PDF as image) and `image-to-pdf`.

use serde::{Deserialize, Serialize};

use super::{
    OperationInput,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    row::Row,
    transform::PREVIEW_FORMAT,
    values::Values,
};
use crate::{
    format::{Class, Format},
    task::{Encode, Failure, Fit, PageSize, Render, Resize, Task},
};

/// Highest page number that a request may name.
const MAX_PAGE: i64 = 100_000;
/// Most images of one PDF.
const MOST_IMAGES: usize = 1000;

pub(super) const PDF_PREVIEW: Row = Row {
    node: Some("pdf_preview"),
    fields: &[
        Field::integer("page", 1, MAX_PAGE, Some("1"), "counted from 1"),
        Field {
            default: Some("1600"),
            ..Field::side("width", "pixels")
        },
        PREVIEW_FORMAT,
        Field::integer("quality", 1, 100, Some("86"), "higher is better"),
    ],
    ..Row::of_one_file("pdf-preview", &[Class::Document], "Draws one page of a PDF")
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PdfPreview {
    pub page: u32,
    pub width: u32,
    pub format: Format,
    pub quality: u8,
}

impl Values for PdfPreview {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            page: fields.integer("page")?,
            width: fields.integer("width")?,
            format: fields.format("format")?,
            quality: fields.integer("quality")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        Ok(Task::Render(Box::new(Render {
            page: self.page,
            resize: Some(Resize {
                enlarge: true,
                ..Resize::new(Some(self.width), None, Fit::Inside)
            }),
            ..Render::new(source.format, Encode::new(self.format, self.quality))
        })))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }
}

pub(super) const IMAGE_TO_PDF: Row = Row {
    node: Some("image_to_pdf"),
    fields: &[Field::new(
        "pageSize",
        Kind::Choice(&["auto", "letter", "a4"]),
        Some("auto"),
        "auto: each page has its image's size",
    )],
    max_files: MOST_IMAGES,
    ..Row::of_one_file(
        "image-to-pdf",
        &[Class::Raster, Class::Vector],
        "Puts images into one PDF, one on each page",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageToPdf {
    pub page_size: PageSize,
}

impl Values for ImageToPdf {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let page_size = match fields.choice("pageSize")? {
            "letter" => PageSize::Letter,
            "a4" => PageSize::A4,
            _ => PageSize::Auto,
        };
        Ok(Self { page_size })
    }

    fn task(&self, source: &OperationInput, others: &[OperationInput]) -> Result<Task, Failure> {
        let sources = std::iter::once(source).chain(others);
        Ok(Task::ImagesToPdf {
            sources: sources.map(|source| source.format).collect(),
            page_size: self.page_size,
        })
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(Format::Pdf)
    }

    fn joins(&self) -> bool {
        true
    }
}
