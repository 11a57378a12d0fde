//! Canonical query of an image request: one text for everything that means the same image, and the key of caches.

use std::fmt::{Display, Write};

use super::{Anchor, Kind, VariantSpec};
use crate::{operation, task::Placeholder};

/// Writes the differences from the defaults, as a query in a fixed order; it parses to the same request.
pub(super) fn text(wanted: &VariantSpec) -> String {
    // All fields by name: without one of them two different images would share a key.
    let &VariantSpec {
        kind,
        width,
        height,
        fit,
        place,
        enlarge,
        quality,
        rotate,
        flip,
        flop,
        trim,
        ref effects,
        background,
        page,
        at_ms,
        live,
    } = wanted;
    let mut text = Text::default();
    let plain = VariantSpec::plain(kind);
    text.put_if("w", width);
    text.put_if("h", height);
    text.put_if("fit", (fit != plain.fit).then_some(fit.name()));
    match place {
        Some(Anchor::Smart) => text.put("gravity", "smart"),
        Some(Anchor::Point { x, y }) => {
            text.put(
                "fp",
                format_args!("{},{}", decimal(x, 1000), decimal(y, 1000)),
            );
        }
        None => {}
    }
    text.put_if("enlarge", enlarge.then_some(1));
    text.put_if("page", (page != plain.page).then_some(page));
    text.put_if(
        "t",
        (at_ms != plain.at_ms).then(|| f64::from(at_ms) / 1000.0),
    );
    text.put_if("frame", live.then_some("live"));
    text.put_if("trim", trim.then_some(1));
    text.put_if("rotate", (rotate != 0).then_some(rotate));
    text.put_if("flip", flip.then_some(1));
    text.put_if("flop", flop.then_some(1));
    for effect in operation::effects() {
        let steps = effects.get(effect.parameter);
        text.put_if(
            effect.parameter,
            steps.map(|steps| decimal(*steps, effect.steps)),
        );
    }
    text.put_if("bg", background);
    text.put_if("q", (quality != plain.quality).then_some(quality));
    text.put_if("format", format(kind));
    text.0
}

fn format(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Image(format) => format.map(|format| format.name()),
        Kind::Json => Some("json"),
        Kind::Placeholder(Placeholder::BlurHash) => Some("blurhash"),
        Kind::Placeholder(Placeholder::ThumbHash) => Some("thumbhash"),
    }
}

/// The shortest decimal of `steps` / `scale`.
fn decimal(steps: i32, scale: i32) -> f64 {
    f64::from(steps) / f64::from(scale)
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn put(&mut self, name: &str, value: impl Display) {
        let separator = if self.0.is_empty() { "" } else { "&" };
        write!(self.0, "{separator}{name}={value}").expect("a string takes everything");
    }

    fn put_if(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}
