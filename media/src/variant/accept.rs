//! `Accept` header of image requests: folded into whether WebP and AVIF are shown (RFC 9110 §12.5.1).

/// Formats that a client shows beyond JPEG, PNG and GIF.
///
/// Only formats that it names count: `*/*` and `image/*` come from clients that know neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AcceptClass {
    pub webp: bool,
    pub avif: bool,
}

impl AcceptClass {
    /// Folds a header; several are joined by commas beforehand. A weight of 0, or one that cannot be read, excludes the
    /// format.
    pub fn fold(header: Option<&str>) -> Self {
        let mut class = Self::default();
        for range in header.unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let is_accepted = parts.all(is_no_rejection);
            class.webp |= is_accepted && media_type.eq_ignore_ascii_case("image/webp");
            class.avif |= is_accepted && media_type.eq_ignore_ascii_case("image/avif");
        }
        class
    }

    /// Removes AVIF where that is not negotiated.
    pub(super) fn as_far_as(self, avif: bool) -> Self {
        Self {
            avif: self.avif && avif,
            ..self
        }
    }

    /// Name in cache keys and logs.
    pub fn name(self) -> &'static str {
        match (self.webp, self.avif) {
            (false, false) => "plain",
            (true, false) => "webp",
            (false, true) => "avif",
            (true, true) => "avif+webp",
        }
    }
}

/// Returns whether a parameter of a media range leaves it accepted.
fn is_no_rejection(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, weight)) if name.trim().eq_ignore_ascii_case("q") => weight
            .trim()
            .parse::<f32>()
            .is_ok_and(|weight| weight > 0.0 && weight <= 1.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_headers_of_real_clients_and_odd_ones() {
        for (header, name) in [
            (None, "plain"),
            (Some(""), "plain"),
            (Some("*/*"), "plain"),
            (Some("image/*,*/*;q=0.8"), "plain"),
            (
                Some("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
                "avif+webp",
            ),
            (Some("image/webp,image/png;q=0.9"), "webp"),
            (Some("image/avif;q=0.9, image/webp;q=0"), "avif"),
            (Some("IMAGE/WEBP ; Q=0.000"), "plain"),
            (Some("image/webp;q=0.001"), "webp"),
            (Some("image/webp;q=NaN"), "plain"),
            (Some("image/webp;v=b3;q=0"), "plain"),
            (Some("image/webp;q=0,image/webp"), "webp"),
            (Some(",;,=;q"), "plain"),
            (Some("image/webpx"), "plain"),
        ] {
            assert_eq!(AcceptClass::fold(header).name(), name, "{header:?}");
        }
    }
}
