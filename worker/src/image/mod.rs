//! Image tasks of a worker: render, inspect, vectorize, images to PDF, ZIP archives, placeholders. One
//! [`ImageProcessor`] per process performs them with reused codecs and buffers.
//!
//! Two paths render: the planar one takes plain JPEGs that only shrink, libvips everything else.
//! Nothing here panics on any bytes; what cannot be done is a [`Failure`] with words for the user.

use sluice_media::task::{Done, Failure, FailureCode, Limits, OutputFacts, Path, Render, Task};

pub mod archive;
pub(crate) mod bounds;
pub mod document;
pub mod placeholder;
pub mod planar;
pub mod raster;
pub mod vectorize;
pub mod vips;

/// An image in memory: 8-bit sRGB, rows from the top, without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    /// 3: red, green, blue. 4: with alpha, not premultiplied.
    pub bands: u8,
    pub pixels: Vec<u8>,
}

/// The codecs of one process.
pub struct ImageProcessor {
    planar: planar::Planar,
}

impl ImageProcessor {
    /// Starts libvips and loads everything that a sandboxed process can no longer open.
    pub fn new() -> Self {
        vips::start();
        Self {
            planar: planar::Planar::new(),
        }
    }

    /// Performs a task on inputs in memory; the bytes of each output come beside the facts.
    pub fn perform(
        &mut self,
        task: &Task,
        inputs: &[&[u8]],
        limits: &Limits,
    ) -> Result<(Done, Vec<Vec<u8>>), Failure> {
        match task {
            Task::Inspect { format } => {
                let image = vips::inspect(*format, first(inputs)?, limits)?;
                Ok((
                    Done {
                        image: Some(image),
                        ..Done::default()
                    },
                    Vec::new(),
                ))
            }
            Task::Render(render) => self.render(render, inputs, limits).map(one_output),
            Task::Vectorize { source, mono } => {
                vectorize::vectorize(*source, *mono, first(inputs)?, limits).map(one_output)
            }
            Task::ImagesToPdf { sources, page_size } => {
                document::images_to_pdf(sources, *page_size, inputs, limits).map(one_output)
            }
            Task::ListArchive => {
                let done = Done {
                    members: Some(archive::list(first(inputs)?, limits)?),
                    ..Done::default()
                };
                Ok((done, Vec::new()))
            }
            Task::ExtractMember { index } => {
                archive::extract(first(inputs)?, *index, limits).map(one_output)
            }
            Task::Placeholder {
                source,
                page,
                style,
            } => placeholder::placeholder(*source, *page, *style, first(inputs)?, limits)
                .map(one_output),
            Task::Av(_) => Err(Failure::internal(
                "work on a clip came to a worker for images",
            )),
        }
    }

    fn render(
        &mut self,
        render: &Render,
        inputs: &[&[u8]],
        limits: &Limits,
    ) -> Result<(OutputFacts, Vec<u8>), Failure> {
        let source = first(inputs)?;
        if render.path != Path::Vips
            && let Some(rendered) = self.planar.try_render(render, source, limits)
        {
            return rendered;
        }
        if render.path == Path::Planar {
            return Err(Failure::new(
                FailureCode::Impossible,
                "this image or request is not for the planar path",
            ));
        }
        vips::render(render, source, inputs.get(1).copied(), limits)
    }
}

impl Default for ImageProcessor {
    fn default() -> Self {
        Self::new()
    }
}

fn first<'a>(inputs: &[&'a [u8]]) -> Result<&'a [u8], Failure> {
    inputs
        .first()
        .copied()
        .ok_or_else(|| Failure::internal("a task came without its input"))
}

fn one_output((facts, bytes): (OutputFacts, Vec<u8>)) -> (Done, Vec<Vec<u8>>) {
    let done = Done {
        outputs: vec![facts],
        ..Done::default()
    };
    (done, vec![bytes])
}
