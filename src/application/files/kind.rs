//! Media type (`mime_type`) of a stored file: by its bytes where they are known, else by its extension, never by the client's
//! `Content-Type`.

use sluice_media::format::{Class, Format};

/// Media type of unknown bytes.
const UNKNOWN: &str = "application/octet-stream";

/// Types by extension, of files that have no signature of their own or that are archives with a meaning.
const BY_EXTENSION: &[(&str, &str)] = &[
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("vtt", "text/vtt"),
    ("srt", "application/x-subrip"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("rtf", "application/rtf"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
    ("7z", "application/x-7z-compressed"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("epub", "application/epub+zip"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    // TypeScript source; a transport stream is recognised by its bytes.
    ("ts", "text/plain"),
];

/// The media type of a file that begins with `head`.
pub(crate) fn mime_type(head: &[u8], filename: &str) -> &'static str {
    match Format::recognise(head, filename) {
        // Office documents and books are archives; their name gives the more exact type.
        Some(Format::Zip) => by_extension(filename).unwrap_or(Format::Zip.mime()),
        Some(format) => format.mime(),
        None => by_extension(filename)
            .or_else(|| by_audio(filename))
            .unwrap_or(UNKNOWN),
    }
}

fn by_extension(filename: &str) -> Option<&'static str> {
    let (_, extension) = filename.rsplit_once('.')?;
    BY_EXTENSION
        .iter()
        .find(|(known, _)| extension.eq_ignore_ascii_case(known))
        .map(|(_, mime_type)| *mime_type)
}

/// Returns the type by the name: some audio and video has no fixed first bytes, so its name is trusted; an image
/// without an image's signature is not an image.
fn by_audio(filename: &str) -> Option<&'static str> {
    Format::from_filename(filename)
        .filter(|format| matches!(format.class(), Class::Audio | Class::Video))
        .map(Format::mime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_before_names() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
        let cases: [(&[u8], &str, &str); 13] = [
            (PNG, "page.html", "image/png"),
            (PNG, "", "image/png"),
            (b"<html><script>", "photo.png", UNKNOWN),
            (b"<html><script>", "page.HTML", "text/html"),
            (b"<html><script>", "page", UNKNOWN),
            (b"#EXTM3U", "clip.png", UNKNOWN),
            (b"", "empty.jpg", UNKNOWN),
            (b"", "notes.txt", "text/plain"),
            (b"PK\x03\x04", "book.docx", BY_EXTENSION[21].1),
            (b"PK\x03\x04", "photo.jpg", "application/zip"),
            (b"\xff\xfb\x90", "song.mp3", "audio/mpeg"),
            (b"import x from 'y'", "index.ts", "text/plain"),
            (b"[playlist]", "song.wma", "audio/x-ms-wma"),
        ];
        for (head, name, expected) in cases {
            assert_eq!(mime_type(head, name), expected, "{name}");
        }
    }
}
