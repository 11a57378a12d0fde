//! Image request and facts of the source to a worker's task: format of `auto` (AVIF, WebP, JPEG, PNG), focal point,
//! frame of a video.

use super::{AcceptClass, Anchor, Kind, VariantRequest, VariantSpec};
use crate::{
    av::AvTask,
    format::{Class, Format},
    operation,
    task::{Adjust, Effort, Encode, Failure, FailureCode, Gravity, Render, Resize, Task},
};

/// Facts of a stored image before it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceFacts {
    pub format: Format,
    pub has_alpha: bool,
    pub animated: bool,
    /// Shares of width and height, 0 to 1, as its owner set it.
    pub focal_point: Option<(f32, f32)>,
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub task: Task,
    /// Media type of the answer's body, which for JSON is made of the task's facts.
    pub mime: &'static str,
    /// `None`: the answer is no image.
    pub format: Option<Format>,
    /// The task reads the source's frame at this time, in milliseconds, as a [`FRAME`], and not the source.
    pub frame_ms: Option<u32>,
}

/// The format in which a clip's frame is kept for the tasks that read it.
pub const FRAME: Format = Format::Jpg;

impl VariantRequest {
    /// The task for this source and client. Fails where the file shows nothing.
    pub fn resolve(&self, accept: AcceptClass, source: &SourceFacts) -> Result<Resolved, Failure> {
        match source.format.class() {
            Class::Raster | Class::Vector | Class::Document => Ok(self.of_image(accept, source)),
            Class::Video | Class::Audio => Ok(self.of_clip(accept, source)),
            Class::Archive => Err(Failure::new(
                FailureCode::UnsupportedType,
                format!(
                    "images are delivered, and {} is an archive",
                    source.format.name()
                ),
            )),
        }
    }

    /// Resolves a request of a clip: its frame is an image like any other; an audio file's is its cover.
    fn of_clip(&self, accept: AcceptClass, source: &SourceFacts) -> Resolved {
        if self.wanted.kind == Kind::Json {
            return Resolved {
                task: Task::Av(Box::new(AvTask::Probe)),
                mime: "application/json",
                format: None,
                frame_ms: None,
            };
        }
        let of_frame = SourceFacts {
            format: FRAME,
            has_alpha: false,
            animated: false,
            ..*source
        };
        Resolved {
            frame_ms: Some(self.wanted.at_ms),
            ..self.of_image(accept, &of_frame)
        }
    }

    fn of_image(&self, accept: AcceptClass, source: &SourceFacts) -> Resolved {
        let wanted = &self.wanted;
        match wanted.kind {
            Kind::Json => Resolved {
                task: Task::Inspect {
                    format: source.format,
                },
                mime: "application/json",
                format: None,
                frame_ms: None,
            },
            Kind::Placeholder(style) => Resolved {
                task: Task::Placeholder {
                    source: source.format,
                    page: wanted.page,
                    style,
                },
                mime: "text/plain; charset=utf-8",
                format: None,
                frame_ms: None,
            },
            Kind::Image(format) => {
                let accept = accept.as_far_as(self.settings.avif_in_auto);
                let format = format.unwrap_or_else(|| wanted.negotiated(accept, source));
                Resolved {
                    task: Task::Render(Box::new(wanted.render(format, source))),
                    mime: format.mime(),
                    format: Some(format),
                    frame_ms: None,
                }
            }
        }
    }
}

impl VariantSpec {
    /// Chooses the format of `auto`: AVIF where the operator allows it, WebP where the client names it, else JPEG or
    /// PNG. Animations stay so where the client takes WebP.
    fn negotiated(&self, accept: AcceptClass, source: &SourceFacts) -> Format {
        let is_transparent = source.has_alpha && self.background.is_none();
        match accept {
            AcceptClass { webp: true, .. } if source.animated => Format::Webp,
            AcceptClass { avif: true, .. } => Format::Avif,
            AcceptClass { webp: true, .. } => Format::Webp,
            _ if is_transparent => Format::Png,
            _ => Format::Jpg,
        }
    }

    fn render(&self, format: Format, source: &SourceFacts) -> Render {
        // All fields by name: what a new one does is decided here.
        let &Self {
            kind: _,
            width,
            height,
            // With `place` and `enlarge` in `resize`.
            fit: _,
            place: _,
            enlarge: _,
            quality,
            rotate,
            flip,
            flop,
            trim,
            effects: _,
            background,
            page,
            // Which frame of a clip or a live input is the source.
            at_ms: _,
            live: _,
        } = self;
        let is_sized = width.is_some() || height.is_some();
        let output = Encode {
            effort: Effort::Fast,
            ..Encode::new(format, quality.of(format, self.longest_side()))
        };
        Render {
            page,
            trim,
            resize: is_sized.then(|| self.resize(source)),
            rotate,
            flip,
            flop,
            adjust: self.adjust(),
            background,
            ..Render::new(source.format, output)
        }
    }

    /// The longer of the sides asked for.
    pub(super) fn longest_side(&self) -> Option<u32> {
        self.width.max(self.height)
    }

    fn resize(&self, source: &SourceFacts) -> Resize {
        let share = |thousandths: i32| thousandths as f32 / 1000.0;
        let gravity = match (self.place, source.focal_point) {
            (Some(Anchor::Smart), _) => Gravity::Smart,
            (Some(Anchor::Point { x, y }), _) => Gravity::Point {
                x: share(x),
                y: share(y),
            },
            (None, Some((x, y))) => Gravity::Point { x, y },
            (None, None) => Gravity::CENTER,
        };
        Resize {
            gravity,
            enlarge: self.enlarge,
            ..Resize::new(self.width, self.height, self.fit)
        }
    }

    fn adjust(&self) -> Adjust {
        let mut adjust = Adjust::default();
        for effect in operation::effects() {
            if let Some(steps) = self.effects.get(effect.parameter) {
                (effect.apply)(&mut adjust, *steps as f32 / effect.steps as f32);
            }
        }
        adjust
    }
}
