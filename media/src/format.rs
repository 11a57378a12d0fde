//! File formats: names, extensions, MIME types, classes (image, video, audio …), and which can be written (`TABLE`).
//!
//! A format is one row of [`TABLE`]; nothing else in the service lists formats. The bytes of a file decide its format;
//! names only break ties, see [`Format::recognise`].

mod sniff;

use serde::{Deserialize, Serialize};

use sniff::Prolog;

words! {
    /// Class of a format's content.
    pub enum Class {
        /// Pixels.
        Raster = "raster",
        /// Shapes, rendered at any size.
        Vector = "vector",
        /// Pages.
        Document = "document",
        Video = "video",
        Audio = "audio",
        /// Other files.
        Archive = "archive",
    }
}

impl Class {
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

/// A row of a format that is only read, without alpha and animation.
const READ_ONLY: Row = Row {
    format: Format::Jpg,
    name: "",
    aliases: &[],
    mime: "",
    other_mimes: &[],
    class: Class::Raster,
    alpha: false,
    animates: false,
    written: false,
    matches: |_| false,
};

/// Makes of each line, `Variant = name [aliases], media type [others], class [properties], test of the first bytes`, a
/// variant of [`Format`] and its row. Properties are `alpha`, `animates` and `written`.
macro_rules! formats {
    ($($format:ident = $name:literal $aliases:tt, $mime:literal $mimes:tt, $class:ident [$($property:ident)*],
        $matches:path;)*) => {
        /// A file format, by the name that requests and answers use for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Format {
            $(#[serde(rename = $name)] $format,)*
        }

        /// All formats, in the order of [`Format`].
        #[allow(clippy::needless_update, reason = "a format may have all properties")]
        const TABLE: &[Row] = &[$(Row {
            format: Format::$format,
            name: $name,
            aliases: &$aliases,
            mime: $mime,
            other_mimes: &$mimes,
            class: Class::$class,
            matches: $matches,
            $($property: true,)*
            ..READ_ONLY
        },)*];

        impl Format {
            /// Every format, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$format,)*];
        }
    };
}

formats! {
    Jpg = "jpg" ["jpeg", "jpe", "jfif"], "image/jpeg" ["image/jpg", "image/pjpeg"], Raster [written], sniff::jpg;
    Png = "png" [], "image/png" [], Raster [alpha written], sniff::png;
    Webp = "webp" [], "image/webp" [], Raster [alpha animates written], sniff::webp;
    Avif = "avif" [], "image/avif" ["image/avif-sequence"], Raster [alpha written], sniff::avif;
    Tiff = "tiff" ["tif"], "image/tiff" [], Raster [alpha written], sniff::tiff;
    Gif = "gif" [], "image/gif" [], Raster [alpha animates written], sniff::gif;
    Heif = "heif" ["heic", "hif", "heics", "heifs"],
        "image/heif" ["image/heic", "image/heic-sequence", "image/heif-sequence"], Raster [alpha written], sniff::heif;
    Jxl = "jxl" [], "image/jxl" [], Raster [alpha written], sniff::jxl;
    Bmp = "bmp" ["dib"], "image/bmp" ["image/x-ms-bmp", "image/x-bmp"], Raster [alpha], sniff::bmp;
    Ico = "ico" [], "image/vnd.microsoft.icon" ["image/x-icon"], Raster [alpha], sniff::ico;
    Tga = "tga" [], "image/x-tga" ["image/tga", "image/x-targa"], Raster [alpha], sniff::tga;
    Svg = "svg" [], "image/svg+xml" [], Vector [alpha], sniff::svg;
    Pdf = "pdf" [], "application/pdf" [], Document [], sniff::pdf;
    Mp4 = "mp4" ["m4v"], "video/mp4" ["video/x-m4v"], Video [written], sniff::mp4;
    Webm = "webm" [], "video/webm" [], Video [written], sniff::webm;
    Mov = "mov" ["qt"], "video/quicktime" [], Video [written], sniff::mov;
    Mkv = "mkv" [], "video/matroska" ["video/x-matroska"], Video [written], sniff::mkv;
    Avi = "avi" [], "video/x-msvideo" ["video/vnd.avi", "video/avi"], Video [], sniff::avi;
    Mpg = "mpg" ["mpeg", "mpe", "vob", "m1v", "m2v"], "video/mpeg" ["video/x-mpeg", "video/mp2p"], Video [], sniff::mpg;
    Wmv = "wmv" ["asf"], "video/x-ms-wmv" ["video/x-ms-asf", "application/vnd.ms-asf"], Video [], sniff::wmv;
    Flv = "flv" [], "video/x-flv" [], Video [], sniff::flv;
    Ts = "ts" ["m2ts", "mts", "m2t"], "video/mp2t" ["video/vnd.dlna.mpeg-tts"], Video [], sniff::ts;
    ThreeGp = "3gp" ["3gpp", "3g2", "3gpp2"],
        "video/3gpp" ["video/3gpp2", "audio/3gpp", "audio/3gpp2"], Video [], sniff::three_gp;
    Mp3 = "mp3" [], "audio/mpeg" ["audio/mp3"], Audio [written], sniff::mp3;
    Wav = "wav" ["wave"], "audio/wav" ["audio/vnd.wave", "audio/wave", "audio/x-wav"], Audio [written], sniff::wav;
    Ogg = "ogg" ["oga", "opus"], "audio/ogg" ["application/ogg"], Audio [written], sniff::ogg;
    M4a = "m4a" ["m4b"], "audio/mp4" ["audio/x-m4a", "audio/m4a"], Audio [written], sniff::m4a;
    Flac = "flac" [], "audio/flac" ["audio/x-flac"], Audio [written], sniff::flac;
    Aac = "aac" ["adts"], "audio/aac" ["audio/aacp", "audio/x-aac", "audio/x-hx-aac-adts"], Audio [], sniff::aac;
    Wma = "wma" [], "audio/x-ms-wma" [], Audio [], sniff::wma;
    Ac3 = "ac3" [], "audio/ac3" [], Audio [], sniff::ac3;
    Aiff = "aiff" ["aif", "aifc"], "audio/aiff" ["audio/x-aiff"], Audio [], sniff::aiff;
    Amr = "amr" ["awb"], "audio/amr" ["audio/amr-wb"], Audio [], sniff::amr;
    Zip = "zip" [], "application/zip" ["application/x-zip-compressed"], Archive [], sniff::zip;
}

impl Format {
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
