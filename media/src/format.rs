//! File formats: names, extensions, MIME types, classes (image, video, audio …), and which can be written (`TABLE`).
//!
//! A format is one row of [`TABLE`]; nothing else in the service lists formats. The bytes of a file decide its format;
//! names only break ties, see [`Format::recognise`].

mod sniff;

use serde::{Deserialize, Serialize};

use sniff::Prolog;

/// A file format, by the name that requests and answers use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Jpg,
    Png,
    Webp,
    Avif,
    Tiff,
    Gif,
    Heif,
    Jxl,
    Bmp,
    Ico,
    Tga,
    Svg,
    Pdf,
    Mp4,
    Webm,
    Mov,
    Mkv,
    Avi,
    Mpg,
    Wmv,
    Flv,
    Ts,
    #[serde(rename = "3gp")]
    ThreeGp,
    Mp3,
    Wav,
    Ogg,
    M4a,
    Flac,
    Aac,
    Wma,
    Ac3,
    Aiff,
    Amr,
    Zip,
}

/// Class of a format's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Pixels.
    Raster,
    /// Shapes, rendered at any size.
    Vector,
    /// Pages.
    Document,
    Video,
    Audio,
    /// Other files.
    Archive,
}

impl Class {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raster => "raster",
            Self::Vector => "vector",
            Self::Document => "document",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Archive => "archive",
        }
    }

    /// Words for messages: `a raster image`, `a video` …
    pub fn noun(self) -> &'static str {
        match self {
            Self::Raster => "a raster image",
            Self::Vector => "a vector image",
            Self::Document => "a document",
            Self::Video => "a video",
            Self::Audio => "an audio file",
            Self::Archive => "an archive",
        }
    }

    /// Returns whether it has a duration.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Video | Self::Audio)
    }
}

/// Properties of a format.
struct Row {
    format: Format,
    /// Word on the wire, and the extension of files that we name.
    name: &'static str,
    /// Other extensions and spellings.
    aliases: &'static [&'static str],
    /// Media type as registered with IANA, where it is.
    mime: &'static str,
    other_mimes: &'static [&'static str],
    class: Class,
    /// True when it can hold transparency.
    alpha: bool,
    /// True when it keeps animation, when read and when written.
    animates: bool,
    /// True when an image can be rendered into it, or video and audio be put into it.
    written: bool,
    /// Returns whether the first bytes of a file are of this format; at most one row says yes.
    matches: fn(&[u8]) -> bool,
}

/// A row without aliases, alpha and animation that is only read.
const fn row(
    format: Format,
    name: &'static str,
    mime: &'static str,
    class: Class,
    matches: fn(&[u8]) -> bool,
) -> Row {
    Row {
        format,
        name,
        aliases: &[],
        mime,
        other_mimes: &[],
        class,
        alpha: false,
        animates: false,
        written: false,
        matches,
    }
}

/// All formats, in the order of [`Format`].
const TABLE: &[Row] = &[
    Row {
        aliases: &["jpeg", "jpe", "jfif"],
        other_mimes: &["image/jpg", "image/pjpeg"],
        written: true,
        ..row(Format::Jpg, "jpg", "image/jpeg", Class::Raster, sniff::jpg)
    },
    Row {
        alpha: true,
        written: true,
        ..row(Format::Png, "png", "image/png", Class::Raster, sniff::png)
    },
    Row {
        alpha: true,
        animates: true,
        written: true,
        ..row(
            Format::Webp,
            "webp",
            "image/webp",
            Class::Raster,
            sniff::webp,
        )
    },
    Row {
        alpha: true,
        written: true,
        other_mimes: &["image/avif-sequence"],
        ..row(
            Format::Avif,
            "avif",
            "image/avif",
            Class::Raster,
            sniff::avif,
        )
    },
    Row {
        aliases: &["tif"],
        alpha: true,
        written: true,
        ..row(
            Format::Tiff,
            "tiff",
            "image/tiff",
            Class::Raster,
            sniff::tiff,
        )
    },
    Row {
        alpha: true,
        animates: true,
        written: true,
        ..row(Format::Gif, "gif", "image/gif", Class::Raster, sniff::gif)
    },
    Row {
        aliases: &["heic", "hif", "heics", "heifs"],
        other_mimes: &["image/heic", "image/heic-sequence", "image/heif-sequence"],
        alpha: true,
        written: true,
        ..row(
            Format::Heif,
            "heif",
            "image/heif",
            Class::Raster,
            sniff::heif,
        )
    },
    Row {
        alpha: true,
        written: true,
        ..row(Format::Jxl, "jxl", "image/jxl", Class::Raster, sniff::jxl)
    },
    Row {
        aliases: &["dib"],
        other_mimes: &["image/x-ms-bmp", "image/x-bmp"],
        alpha: true,
        ..row(Format::Bmp, "bmp", "image/bmp", Class::Raster, sniff::bmp)
    },
    Row {
        other_mimes: &["image/x-icon"],
        alpha: true,
        ..row(
            Format::Ico,
            "ico",
            "image/vnd.microsoft.icon",
            Class::Raster,
            sniff::ico,
        )
    },
    Row {
        other_mimes: &["image/tga", "image/x-targa"],
        alpha: true,
        ..row(Format::Tga, "tga", "image/x-tga", Class::Raster, sniff::tga)
    },
    Row {
        alpha: true,
        ..row(
            Format::Svg,
            "svg",
            "image/svg+xml",
            Class::Vector,
            sniff::svg,
        )
    },
    row(
        Format::Pdf,
        "pdf",
        "application/pdf",
        Class::Document,
        sniff::pdf,
    ),
    Row {
        aliases: &["m4v"],
        other_mimes: &["video/x-m4v"],
        written: true,
        ..row(Format::Mp4, "mp4", "video/mp4", Class::Video, sniff::mp4)
    },
    Row {
        written: true,
        ..row(
            Format::Webm,
            "webm",
            "video/webm",
            Class::Video,
            sniff::webm,
        )
    },
    Row {
        aliases: &["qt"],
        written: true,
        ..row(
            Format::Mov,
            "mov",
            "video/quicktime",
            Class::Video,
            sniff::mov,
        )
    },
    Row {
        other_mimes: &["video/x-matroska"],
        written: true,
        ..row(
            Format::Mkv,
            "mkv",
            "video/matroska",
            Class::Video,
            sniff::mkv,
        )
    },
    Row {
        other_mimes: &["video/vnd.avi", "video/avi"],
        ..row(
            Format::Avi,
            "avi",
            "video/x-msvideo",
            Class::Video,
            sniff::avi,
        )
    },
    Row {
        aliases: &["mpeg", "mpe", "vob", "m1v", "m2v"],
        other_mimes: &["video/x-mpeg", "video/mp2p"],
        ..row(Format::Mpg, "mpg", "video/mpeg", Class::Video, sniff::mpg)
    },
    Row {
        aliases: &["asf"],
        other_mimes: &["video/x-ms-asf", "application/vnd.ms-asf"],
        ..row(
            Format::Wmv,
            "wmv",
            "video/x-ms-wmv",
            Class::Video,
            sniff::wmv,
        )
    },
    row(Format::Flv, "flv", "video/x-flv", Class::Video, sniff::flv),
    Row {
        aliases: &["m2ts", "mts", "m2t"],
        other_mimes: &["video/vnd.dlna.mpeg-tts"],
        ..row(Format::Ts, "ts", "video/mp2t", Class::Video, sniff::ts)
    },
    Row {
        aliases: &["3gpp", "3g2", "3gpp2"],
        other_mimes: &["video/3gpp2", "audio/3gpp", "audio/3gpp2"],
        ..row(
            Format::ThreeGp,
            "3gp",
            "video/3gpp",
            Class::Video,
            sniff::three_gp,
        )
    },
    Row {
        other_mimes: &["audio/mp3"],
        written: true,
        ..row(Format::Mp3, "mp3", "audio/mpeg", Class::Audio, sniff::mp3)
    },
    Row {
        aliases: &["wave"],
        written: true,
        other_mimes: &["audio/vnd.wave", "audio/wave", "audio/x-wav"],
        ..row(Format::Wav, "wav", "audio/wav", Class::Audio, sniff::wav)
    },
    Row {
        aliases: &["oga", "opus"],
        written: true,
        other_mimes: &["application/ogg"],
        ..row(Format::Ogg, "ogg", "audio/ogg", Class::Audio, sniff::ogg)
    },
    Row {
        aliases: &["m4b"],
        written: true,
        other_mimes: &["audio/x-m4a", "audio/m4a"],
        ..row(Format::M4a, "m4a", "audio/mp4", Class::Audio, sniff::m4a)
    },
    Row {
        other_mimes: &["audio/x-flac"],
        written: true,
        ..row(
            Format::Flac,
            "flac",
            "audio/flac",
            Class::Audio,
            sniff::flac,
        )
    },
    Row {
        aliases: &["adts"],
        other_mimes: &["audio/aacp", "audio/x-aac", "audio/x-hx-aac-adts"],
        ..row(Format::Aac, "aac", "audio/aac", Class::Audio, sniff::aac)
    },
    row(
        Format::Wma,
        "wma",
        "audio/x-ms-wma",
        Class::Audio,
        sniff::wma,
    ),
    row(Format::Ac3, "ac3", "audio/ac3", Class::Audio, sniff::ac3),
    Row {
        aliases: &["aif", "aifc"],
        other_mimes: &["audio/x-aiff"],
        ..row(
            Format::Aiff,
            "aiff",
            "audio/aiff",
            Class::Audio,
            sniff::aiff,
        )
    },
    Row {
        aliases: &["awb"],
        other_mimes: &["audio/amr-wb"],
        ..row(Format::Amr, "amr", "audio/amr", Class::Audio, sniff::amr)
    },
    Row {
        other_mimes: &["application/x-zip-compressed"],
        ..row(
            Format::Zip,
            "zip",
            "application/zip",
            Class::Archive,
            sniff::zip,
        )
    },
];

impl Format {
    /// Every format, in the order of the table.
    pub const ALL: &[Self] = &{
        let mut all = [Self::Jpg; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].format;
            index += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The word on the wire: `jpg`, `heif` …
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The extension of files that we name, without the dot.
    pub fn extension(self) -> &'static str {
        self.name()
    }

    /// Parses a name or another extension in use (`jpeg`, `tif`, `heic`), in any case, with or without a dot before it.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim();
        let word = word.strip_prefix('.').unwrap_or(word);
        find(|row| {
            std::iter::once(&row.name)
                .chain(row.aliases)
                .any(|name| name.eq_ignore_ascii_case(word))
        })
    }

    /// Other extensions and spellings that [`parse`](Self::parse) knows.
    pub fn aliases(self) -> &'static [&'static str] {
        self.row().aliases
    }

    pub fn mime(self) -> &'static str {
        self.row().mime
    }

    /// Finds the format of a media type; parameters are ignored.
    pub fn from_mime(mime: &str) -> Option<Self> {
        let essence = mime.split(';').next().unwrap_or_default().trim();
        find(|row| {
            std::iter::once(&row.mime)
                .chain(row.other_mimes)
                .any(|mime| mime.eq_ignore_ascii_case(essence))
        })
    }

    /// Finds the format of a file name's extension.
    pub fn from_filename(filename: &str) -> Option<Self> {
        filename
            .rsplit_once('.')
            .and_then(|(_, extension)| Self::parse(extension))
    }

    pub fn class(self) -> Class {
        self.row().class
    }

    /// Returns whether it can hold transparency.
    pub fn has_alpha(self) -> bool {
        self.row().alpha
    }

    /// Returns whether it keeps animation, when read and when written.
    pub fn can_animate(self) -> bool {
        self.row().animates
    }

    pub fn is_image(self) -> bool {
        matches!(self.class(), Class::Raster | Class::Vector)
    }

    /// Returns whether an operation can write it; every format can be read.
    pub fn is_written(self) -> bool {
        self.row().written
    }

    /// Returns whether a [`Render`](crate::task::Render) can write it.
    pub fn is_image_target(self) -> bool {
        self.row().written && self.is_image()
    }

    /// Returns whether a [`Transcode`](crate::av::Transcode) can write it.
    pub fn is_timed_target(self) -> bool {
        self.row().written && self.class().is_timed()
    }

    /// Recognises a file by its first bytes (4 KiB are enough), never by a name.
    ///
    /// `None` for everything that is of no format here: text, playlists, executables. A TGA is recognised only when its
    /// footer is among the bytes; see [`recognise`](Self::recognise).
    pub fn sniff(head: &[u8]) -> Option<Self> {
        find(|row| (row.matches)(head))
    }

    /// Recognises a file as [`sniff`](Self::sniff) does, with its name as a tie-breaker where the bytes are ambiguous:
    /// a `.tga` whose header is plausible, and an `.svg` that opens with so long a comment that its root element has
    /// not been seen.
    pub fn recognise(head: &[u8], filename: &str) -> Option<Self> {
        Self::sniff(head).or_else(|| match Self::from_filename(filename)? {
            Self::Tga if sniff::plausible_tga(head) => Some(Self::Tga),
            Self::Svg if sniff::prolog(head) == Prolog::Unfinished => Some(Self::Svg),
            _ => None,
        })
    }
}

fn find(wanted: impl Fn(&Row) -> bool) -> Option<Format> {
    TABLE.iter().find(|row| wanted(row)).map(|row| row.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_formats_and_every_word_means_one() {
        let mut words = std::collections::BTreeSet::new();
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.format as usize, index, "{}", row.name);
            for word in std::iter::once(&row.name)
                .chain(row.aliases)
                .chain(std::iter::once(&row.mime))
                .chain(row.other_mimes)
            {
                assert!(words.insert(*word), "{word} is listed twice");
            }
            let wire = serde_json::to_value(row.format).expect("a unit variant");
            assert_eq!(wire, row.name);
        }
    }

    #[test]
    fn parses_words_names_and_media_types() {
        for (text, format) in [
            ("JPEG", Some(Format::Jpg)),
            (".tif", Some(Format::Tiff)),
            (" heic ", Some(Format::Heif)),
            ("hif", Some(Format::Heif)),
            ("", None),
            (".", None),
            ("..png", None),
            ("exe", None),
        ] {
            assert_eq!(Format::parse(text), format, "{text:?}");
        }
        for (name, format) in [
            ("a.tar.PNG", Some(Format::Png)),
            ("png", None),
            (".gif", Some(Format::Gif)),
            ("a.", None),
            ("日本語.webp", Some(Format::Webp)),
        ] {
            assert_eq!(Format::from_filename(name), format, "{name:?}");
        }
        for (mime, format) in [
            ("image/SVG+xml; charset=utf-8", Some(Format::Svg)),
            ("image/heic", Some(Format::Heif)),
            ("text/html", None),
        ] {
            assert_eq!(Format::from_mime(mime), format, "{mime:?}");
        }
    }

    #[test]
    fn a_name_helps_only_where_bytes_cannot_say() {
        let mut tga = vec![0u8; 64];
        tga[2] = 2;
        (tga[12], tga[14], tga[16]) = (4, 4, 32);
        assert_eq!(Format::sniff(&tga), None);
        assert_eq!(Format::recognise(&tga, "a.tga"), Some(Format::Tga));
        assert_eq!(Format::recognise(&tga, "a.png"), None);
        assert_eq!(Format::recognise(b"#EXTM3U\n", "a.tga"), None);

        let long = format!("<?xml version=\"1.0\"?><!-- {} ", "x".repeat(4070));
        assert_eq!(
            Format::recognise(long.as_bytes(), "a.svg"),
            Some(Format::Svg)
        );
        assert_eq!(Format::recognise(long.as_bytes(), "a.xml"), None);
        assert_eq!(Format::recognise(b"<html>", "a.svg"), None);
        assert_eq!(
            Format::recognise(b"\xff\xd8\xff\xe0", "a.svg"),
            Some(Format::Jpg)
        );
    }
}
