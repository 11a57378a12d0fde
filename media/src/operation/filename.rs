//! File names of results: extension of the new format, empty names, longest extension.

use crate::format::Format;

/// Returns the name of a file in another format: the last extension replaced, or one added where there is none.
///
/// `photo.tar.png` as JPEG is `photo.tar.jpg`; a leading dot begins a name and no extension; an empty name is `file`.
/// A file that keeps its format keeps its own spelling of it (`.jpeg`).
pub fn renamed(filename: &str, format: Format) -> String {
    if Format::from_filename(filename) == Some(format) && !stem(filename).is_empty() {
        return filename.to_owned();
    }
    with_extension(filename, format.extension())
}

/// The name with another extension in the place of its last one.
pub(super) fn with_extension(filename: &str, extension: &str) -> String {
    let stem = match stem(filename) {
        "" => "file",
        stem => stem,
    };
    format!("{stem}.{extension}")
}

/// The name without its extension. What follows the last dot counts as one when it is short and has no blank in it.
fn stem(filename: &str) -> &str {
    const LONGEST_EXTENSION: usize = 10;
    match filename.rsplit_once('.') {
        Some((stem, extension))
            if extension.len() <= LONGEST_EXTENSION
                && extension.chars().all(|c| c.is_ascii_alphanumeric()) =>
        {
            if stem.is_empty() && Format::parse(extension).is_none() {
                filename
            } else {
                stem
            }
        }
        _ => filename,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_last_extension_only() {
        for (name, format, expected) in [
            ("photo.heic", Format::Jpg, "photo.jpg"),
            ("photo.tar.png", Format::Jpg, "photo.tar.jpg"),
            ("photo", Format::Webp, "photo.webp"),
            ("", Format::Png, "file.png"),
            (".png", Format::Jpg, "file.jpg"),
            (".png", Format::Png, "file.png"),
            (".profile", Format::Png, ".profile.png"),
            ("a.", Format::Png, "a.png"),
            ("photo.JPEG", Format::Jpg, "photo.JPEG"),
            ("写真.PNG", Format::Avif, "写真.avif"),
            ("Mr. Smith at home", Format::Jpg, "Mr. Smith at home.jpg"),
            (
                "v1.2 draft.final version",
                Format::Gif,
                "v1.2 draft.final version.gif",
            ),
        ] {
            assert_eq!(renamed(name, format), expected, "{name:?}");
        }
    }
}
