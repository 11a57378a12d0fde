//! The one text for everything that means the same image.

use std::fmt::{Display, Write};

use super::{Anchor, Kind, VariantSpec};
use crate::task::Placeholder;

/// What differs from the defaults, as a query in a fixed order; it parses to the same request.
pub(super) fn text(wanted: &VariantSpec) -> String {
    let mut text = Text::default();
    let plain = VariantSpec::plain(wanted.kind);
    text.put_if("w", wanted.width);
    text.put_if("h", wanted.height);
    text.put_if(
        "fit",
        (wanted.fit != plain.fit).then_some(wanted.fit.name()),
    );
    match wanted.place {
        Some(Anchor::Smart) => text.put("gravity", "smart"),
        Some(Anchor::Point { x, y }) => {
            text.put(
                "fp",
                format_args!("{},{}", decimal(x, 1000), decimal(y, 1000)),
            );
        }
        None => {}
    }
    text.put_if("enlarge", wanted.enlarge.then_some(1));
    text.put_if("page", (wanted.page != plain.page).then_some(wanted.page));
    text.put_if(
        "t",
        (wanted.at_ms != plain.at_ms).then(|| f64::from(wanted.at_ms) / 1000.0),
    );
    text.put_if("frame", wanted.live.then_some("live"));
    text.put_if("trim", wanted.trim.then_some(1));
    text.put_if("rotate", (wanted.rotate != 0).then_some(wanted.rotate));
    text.put_if("flip", wanted.flip.then_some(1));
    text.put_if("flop", wanted.flop.then_some(1));
    for (name, hundredths) in [("blur", wanted.blur), ("sharp", wanted.sharpen)] {
        text.put_if(name, (hundredths != 0).then(|| decimal(hundredths, 100)));
    }
    for (name, change) in [
        ("bri", wanted.brightness),
        ("con", wanted.contrast),
        ("sat", wanted.saturation),
    ] {
        text.put_if(name, (change != 0).then_some(change));
    }
    text.put_if("bg", wanted.background);
    text.put_if(
        "q",
        (wanted.quality != plain.quality).then_some(wanted.quality),
    );
    text.put_if("format", format(wanted.kind));
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
