//! Paths of images, `/cdn/v1/{deliveryKey}/{fileId}` and `/p/{preset}`, read by hand for speed. The router's regular expressions
//! cost as much as the rest of a hit.

/// The parts of `{deliveryKey}/{fileId}` or `{deliveryKey}/{fileId}/p/{preset}`. None of them ever needs an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    pub key: &'a str,
    pub file: &'a str,
    pub preset: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Reads a path; `None` for one of another form.
    pub fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix("/cdn/v1/")?.split('/');
        let (key, file) = (parts.next()?, parts.next()?);
        let preset = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some("p"), Some(preset), None) => Some(preset),
            _ => return None,
        };
        let is_whole = !key.is_empty() && !file.is_empty() && preset != Some("");
        is_whole.then_some(Self { key, file, preset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_forms_are_addresses() {
        let cases = [
            ("/cdn/v1/k/f", Some(("k", "f", None))),
            ("/cdn/v1/k/f/p/hero", Some(("k", "f", Some("hero")))),
            ("/cdn/v1/k", None),
            ("/cdn/v1/k/", None),
            ("/cdn/v1//f", None),
            ("/cdn/v1/k/f/", None),
            ("/cdn/v1/k/f/p", None),
            ("/cdn/v1/k/f/p/", None),
            ("/cdn/v1/k/f/q/hero", None),
            ("/cdn/v1/k/f/p/hero/x", None),
            ("/cdn/v2/k/f", None),
            ("", None),
        ];
        for (path, expected) in cases {
            let found = Address::parse(path).map(|found| (found.key, found.file, found.preset));
            assert_eq!(found, expected, "{path}");
        }
    }
}
