//! Images into one PDF, a page each: page sizes (A4, Letter, auto), JPEG quality, most pages.
//!
//! Every image is drawn again: upright, in sRGB, on white, as a JPEG, which is what a page holds (ISO 32000-1 §7.4.8).
//! So nothing of a file's own structure or metadata gets into the document.

use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref};
use sluice_media::{
    format::Format,
    task::{Encode, Failure, FailureCode, Limits, OutputFacts, PageSize},
};

use super::{Raster, bounds::check_output, vips};

/// The long edge of A4 at 300 dpi: more cannot be seen on paper.
const LONG_EDGE: u32 = 3508;
/// JPEG quality of pages.
const QUALITY: u8 = 92;
/// Most pages of a document.
const MAX_PAGES: usize = 1000;
/// Sizes of pages in points, 72 to the inch.
const A4: (f32, f32) = (595.276, 841.89);
const LETTER: (f32, f32) = (612.0, 792.0);
/// The longest side of a page that viewers take (ISO 32000-1 annex C).
const MAX_POINTS: f32 = 14_400.0;

/// Makes a PDF of `inputs`, whose formats are `sources`, in their order.
pub fn images_to_pdf(
    sources: &[Format],
    page_size: PageSize,
    inputs: &[&[u8]],
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    if sources.is_empty() || sources.len() != inputs.len() {
        return Err(Failure::internal(
            "a document came without one input for each page",
        ));
    }
    if sources.len() > MAX_PAGES {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the document would have {} pages; at most {MAX_PAGES} are made",
                sources.len()
            ),
        ));
    }
    let mut document = Document::new(sources.len());
    for (source, input) in sources.iter().zip(inputs) {
        let raster = vips::raster(*source, 1, input, limits, LONG_EDGE)?;
        let jpeg = vips::encode_raster(&raster, &Encode::new(Format::Jpg, QUALITY))?;
        document.add(&raster, &jpeg, page_size);
        check_output("the document", document.pdf.len(), limits)?;
    }
    let (pages, bytes) = document.finish();
    let facts = OutputFacts {
        pages,
        ..OutputFacts::of(Some(Format::Pdf), bytes.len())
    };
    Ok((facts, bytes))
}

/// A document in the making. Objects 1 and 2 are the catalogue and the page tree; each page has three.
struct Document {
    pdf: Pdf,
    pages: Vec<Ref>,
    next: Ref,
}

const CATALOGUE: Ref = Ref::new(1);
const PAGE_TREE: Ref = Ref::new(2);

impl Document {
    fn new(pages: usize) -> Self {
        let mut pdf = Pdf::new();
        pdf.catalog(CATALOGUE).pages(PAGE_TREE);
        Self {
            pdf,
            pages: Vec::with_capacity(pages),
            next: Ref::new(3),
        }
    }

    fn add(&mut self, raster: &Raster, jpeg: &[u8], page_size: PageSize) {
        const IMAGE: Name<'static> = Name(b"Image");
        let layout = Layout::of(raster.width, raster.height, page_size);
        let [page_id, image_id, content_id] = [(); 3].map(|()| self.next.bump());

        let mut page = self.pdf.page(page_id);
        page.media_box(Rect::new(0.0, 0.0, layout.page.0, layout.page.1));
        page.parent(PAGE_TREE);
        page.contents(content_id);
        page.resources().x_objects().pair(IMAGE, image_id);
        page.finish();

        let mut image = self.pdf.image_xobject(image_id, jpeg);
        image.filter(Filter::DctDecode);
        image.width(raster.width as i32);
        image.height(raster.height as i32);
        image.color_space().device_rgb();
        image.bits_per_component(8);
        image.finish();

        // An image is one unit wide and high; the matrix stretches and moves it.
        let mut content = Content::new();
        content.save_state();
        let (width, height) = layout.image;
        content.transform([width, 0.0, 0.0, height, layout.left, layout.bottom]);
        content.x_object(IMAGE);
        content.restore_state();
        self.pdf.stream(content_id, &content.finish());
        self.pages.push(page_id);
    }

    fn finish(mut self) -> (u32, Vec<u8>) {
        let count = i32::try_from(self.pages.len()).expect("pages are bounded");
        self.pdf
            .pages(PAGE_TREE)
            .kids(self.pages.iter().copied())
            .count(count);
        (count.unsigned_abs(), self.pdf.finish())
    }
}

/// Place of an image, in points from the bottom left.
#[derive(Debug, PartialEq)]
struct Layout {
    page: (f32, f32),
    image: (f32, f32),
    left: f32,
    bottom: f32,
}

impl Layout {
    fn of(width: u32, height: u32, page_size: PageSize) -> Self {
        let (width, height) = (width as f32, height as f32);
        let paper = match page_size {
            PageSize::Auto => return Self::own(width, height),
            PageSize::A4 => A4,
            PageSize::Letter => LETTER,
        };
        let page = if width > height {
            (paper.1, paper.0)
        } else {
            paper
        };
        let scale = (page.0 / width).min(page.1 / height);
        let image = (width * scale, height * scale);
        Self {
            page,
            image,
            left: (page.0 - image.0) / 2.0,
            bottom: (page.1 - image.1) / 2.0,
        }
    }

    /// The page is the image: at 72 dpi, or as many up to 300 as make it no higher than A4.
    fn own(width: f32, height: f32) -> Self {
        let points_per_pixel = (A4.1 / height).clamp(72.0 / 300.0, 1.0);
        let points_per_pixel = points_per_pixel.min(MAX_POINTS / width.max(height));
        let page = (width * points_per_pixel, height * points_per_pixel);
        Self {
            page,
            image: page,
            left: 0.0,
            bottom: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_image_or_the_paper() {
        let cases = [
            (100, 50, PageSize::Auto, (100.0, 50.0), (100.0, 50.0)),
            (
                1684,
                1684,
                PageSize::Auto,
                (841.89, 841.89),
                (841.89, 841.89),
            ),
            (16_000, 10, PageSize::Auto, (14_400.0, 9.0), (14_400.0, 9.0)),
            (10, 10, PageSize::A4, A4, (595.276, 595.276)),
            (200, 100, PageSize::Letter, (792.0, 612.0), (792.0, 396.0)),
            (100, 200, PageSize::Letter, LETTER, (396.0, 792.0)),
        ];
        for (width, height, size, page, image) in cases {
            let layout = Layout::of(width, height, size);
            for (found, expected) in [(layout.page, page), (layout.image, image)] {
                let off = (found.0 - expected.0)
                    .abs()
                    .max((found.1 - expected.1).abs());
                assert!(off < 0.1, "{width}x{height} {size:?}: {layout:?}");
            }
            let right = layout.left * 2.0 + layout.image.0;
            assert!((right - layout.page.0).abs() < 0.1, "{layout:?}");
        }
    }
}
