//! Recognises a file's format by its first bytes: magic numbers, `ftyp` brands, EBML, SVG prolog. Every function is
//! total and reads only its argument.

mod stream;

use crate::codec::AudioConfig;

pub(super) use stream::{aac, ac3, aiff, amr, flv, mpg, ts, wma, wmv};

pub(super) fn jpg(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xd8\xff")
}

pub(super) fn png(head: &[u8]) -> bool {
    head.starts_with(b"\x89PNG\r\n\x1a\n")
}

pub(super) fn webp(head: &[u8]) -> bool {
    is_riff(head, b"WEBP")
}

pub(super) fn avif(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::Avif)
}

/// Recognises classic TIFF and BigTIFF, of both byte orders.
pub(super) fn tiff(head: &[u8]) -> bool {
    [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]
        .iter()
        .any(|magic| head.starts_with(*magic))
}

pub(super) fn gif(head: &[u8]) -> bool {
    head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a")
}

pub(super) fn heif(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::Heif)
}

/// Recognises a bare code stream or the container (ISO/IEC 18181-2).
pub(super) fn jxl(head: &[u8]) -> bool {
    head.starts_with(b"\xff\x0a") || head.starts_with(b"\0\0\0\x0cJXL \r\n\x87\n")
}

/// Recognises BMP. `BM` alone begins many a text: the size of the header after it must be one that exists.
pub(super) fn bmp(head: &[u8]) -> bool {
    const HEADER_SIZES: [u8; 8] = [12, 16, 40, 52, 56, 64, 108, 124];
    head.starts_with(b"BM")
        && head
            .get(14..18)
            .is_some_and(|size| HEADER_SIZES.contains(&size[0]) && size[1..] == [0, 0, 0])
}

/// Recognises a directory of at least one icon whose first entry points behind the directory.
pub(super) fn ico(head: &[u8]) -> bool {
    let (true, Some(entry)) = (head.starts_with(b"\0\0\x01\0"), head.get(6..22)) else {
        return false;
    };
    let count = u32::from(u16::from_le_bytes([head[4], head[5]]));
    let offset = u32::from_le_bytes([entry[12], entry[13], entry[14], entry[15]]);
    // The byte is reserved; the encoder of .NET writes 255.
    count > 0 && matches!(entry[3], 0 | 255) && offset >= 6 + 16 * count
}

/// Recognises the footer of version 2, at the end of the file.
pub(super) fn tga(head: &[u8]) -> bool {
    head.ends_with(b"TRUEVISION-XFILE.\0") && plausible_tga(head)
}

/// Returns whether the 18 bytes of a TGA header could be one.
pub(super) fn plausible_tga(head: &[u8]) -> bool {
    let Some(header) = head.get(..18) else {
        return false;
    };
    let (colour_map, kind, depth) = (header[1], header[2], header[16]);
    let side = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    colour_map <= 1
        && matches!(kind, 1..=3 | 9..=11)
        && (colour_map == 1 || !matches!(kind, 1 | 9))
        && matches!(depth, 8 | 15 | 16 | 24 | 32)
        && side(12) > 0
        && side(14) > 0
}

pub(super) fn svg(head: &[u8]) -> bool {
    prolog(head) == Prolog::Svg
}

pub(super) fn pdf(head: &[u8]) -> bool {
    without_byte_order_mark(head).starts_with(b"%PDF-")
}

pub(super) fn mp4(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::Mp4)
}

pub(super) fn webm(head: &[u8]) -> bool {
    document_type(head) == Some(b"webm")
}

pub(super) fn mov(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::QuickTime)
}

pub(super) fn mkv(head: &[u8]) -> bool {
    document_type(head) == Some(b"matroska")
}

pub(super) fn three_gp(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::ThreeGp)
}

pub(super) fn avi(head: &[u8]) -> bool {
    is_riff(head, b"AVI ")
}

/// Recognises a frame header, or an ID3v2 tag that nothing but one (or padding) follows as far as can be seen.
pub(super) fn mp3(head: &[u8]) -> bool {
    match behind_tag(head) {
        Behind::NoTag => is_mp3_frame(head),
        Behind::OutOfSight => true,
        Behind::Audio(audio) => is_mp3_frame(audio) || audio[0] == 0,
    }
}

pub(super) fn wav(head: &[u8]) -> bool {
    is_riff(head, b"WAVE") || (head.starts_with(b"RF64") && head.get(8..12) == Some(b"WAVE"))
}

pub(super) fn ogg(head: &[u8]) -> bool {
    head.starts_with(b"OggS\0")
}

pub(super) fn m4a(head: &[u8]) -> bool {
    base_media(head) == Some(BaseMedia::Audio)
}

pub(super) fn flac(head: &[u8]) -> bool {
    head.starts_with(b"fLaC")
}

/// Recognises a first member, or the end record of an archive without any.
pub(super) fn zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Content behind an ID3v2 tag at the beginning of a file.
enum Behind<'a> {
    NoTag,
    /// The tag is longer than what was read, or nothing follows.
    OutOfSight,
    /// Content behind the tag, at least one byte.
    Audio(&'a [u8]),
}

/// Reads past the tag, whose size is four bytes of seven bits (ID3v2.4 §3.1).
fn behind_tag(head: &[u8]) -> Behind<'_> {
    let [b'I', b'D', b'3', 2..=4, _, _, a, b, c, d, ..] = head else {
        return Behind::NoTag;
    };
    let size = [a, b, c, d]
        .iter()
        .fold(0usize, |size, byte| size << 7 | usize::from(**byte & 0x7f));
    match head.get(10 + size..) {
        Some([]) | None => Behind::OutOfSight,
        Some(audio) => Behind::Audio(audio),
    }
}

fn is_mp3_frame(bytes: &[u8]) -> bool {
    AudioConfig::from_mp3_frame(bytes).is_ok()
}

fn is_riff(head: &[u8], form: &[u8; 4]) -> bool {
    head.starts_with(b"RIFF") && head.get(8..12) == Some(form)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BaseMedia {
    Avif,
    Heif,
    Mp4,
    QuickTime,
    Audio,
    ThreeGp,
}

/// Returns the kind of an ISO base media file by its `ftyp` box (ISO/IEC 14496-12 §4.3): the major brand, or the first
/// compatible one that says more. QuickTime files older than that box begin with their movie or media data.
fn base_media(head: &[u8]) -> Option<BaseMedia> {
    let size = u32::from_be_bytes(*head.first_chunk()?) as usize;
    match head.get(4..8)? {
        b"ftyp" => {}
        b"moov" | b"mdat" | b"wide" if size >= 8 || size == 1 => return Some(BaseMedia::QuickTime),
        _ => return None,
    }
    let brands = head.get(8..size.min(head.len()))?;
    let (major, compatible) = brands.split_first_chunk::<4>()?;
    let mut compatible = compatible.get(4..).unwrap_or_default().chunks_exact(4);
    match major {
        // "An image" and "a sequence of images": the compatible brands name the codec.
        b"mif1" | b"msf1" | b"miaf" => Some(
            if compatible.any(|brand| brand == b"avif" || brand == b"avis") {
                BaseMedia::Avif
            } else {
                BaseMedia::Heif
            },
        ),
        major => brand(major).or_else(|| compatible.find_map(brand)),
    }
}

fn brand(brand: &[u8]) -> Option<BaseMedia> {
    Some(match brand {
        b"avif" | b"avis" => BaseMedia::Avif,
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"mif1" | b"msf1" => {
            BaseMedia::Heif
        }
        b"qt  " => BaseMedia::QuickTime,
        b"M4A " | b"M4B " | b"M4P " => BaseMedia::Audio,
        b"isom" | b"avc1" | b"dash" | b"M4V " | b"M4VH" | b"M4VP" | b"MSNV" | b"f4v " | b"F4V "
        | b"mmp4" => BaseMedia::Mp4,
        [b'i', b's', b'o', b'2'..=b'9']
        | [b'm', b'p', b'4', b'1' | b'2']
        | [b'c', b'm', b'f', _] => BaseMedia::Mp4,
        // 3GPP TS 26.244 §5.3 and 3GPP2 C.S0050 §8.2.
        [b'3', b'g', ..] => BaseMedia::ThreeGp,
        _ => return None,
    })
}

/// Returns the DocType of an EBML header (RFC 8794 §11.2.4), which is within its first few dozen bytes.
fn document_type(head: &[u8]) -> Option<&[u8]> {
    const EBML: &[u8] = b"\x1a\x45\xdf\xa3";
    const DOC_TYPE: &[u8] = &[0x42, 0x82];
    let header = head.strip_prefix(EBML)?;
    let header = &header[..header.len().min(128)];
    let at = header.windows(2).position(|id| id == DOC_TYPE)? + DOC_TYPE.len();
    let length = usize::from(header.get(at)?.checked_sub(0x80)?);
    let text = header.get(at + 1..at + 1 + length)?;
    // It may be padded with zeros.
    Some(text.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Kind of a text that may be SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prolog {
    Svg,
    Other,
    /// XML as far as it was seen, and no element yet.
    Unfinished,
}

/// Skips everything allowed before the root element (XML 1.0 §2.8) and reads that element's name, or the one that a
/// document type declares.
pub(super) fn prolog(head: &[u8]) -> Prolog {
    let mut rest = without_byte_order_mark(head);
    let mut is_xml = false;
    loop {
        rest = rest.trim_ascii_start();
        let after = if rest.starts_with(b"<?") {
            after(rest, b"?>")
        } else if rest.starts_with(b"<!--") {
            after(rest, b"-->")
        } else if let Some(element) = document_type_name(rest).or(rest.strip_prefix(b"<")) {
            return match names_svg(element) {
                true => Prolog::Svg,
                false => Prolog::Other,
            };
        } else if rest.is_empty() && is_xml {
            return Prolog::Unfinished;
        } else {
            return Prolog::Other;
        };
        is_xml = true;
        match after {
            Some(after) => rest = after,
            None => return Prolog::Unfinished,
        }
    }
}

fn without_byte_order_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(end.len()).position(|window| window == end)?;
    Some(&text[at + end.len()..])
}

/// Returns the name of the root element behind `<!DOCTYPE`. The rest of the declaration may hide anything.
fn document_type_name(text: &[u8]) -> Option<&[u8]> {
    const START: &[u8] = b"<!DOCTYPE";
    let (start, name) = text.split_at_checked(START.len())?;
    start.eq_ignore_ascii_case(START).then_some(name)
}

/// Returns whether the next name is `svg`, in any name space prefix.
fn names_svg(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let end = text
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'['));
    let name = &text[..end.unwrap_or(text.len())];
    let local = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
    local.eq_ignore_ascii_case(b"svg")
}

#[cfg(test)]
mod tests {
    use crate::format::{Format, TABLE};

    fn ftyp(major: &[u8; 4], compatible: &[&[u8; 4]]) -> Vec<u8> {
        let size = 16 + 4 * compatible.len() as u32;
        let mut file = size.to_be_bytes().to_vec();
        file.extend_from_slice(b"ftyp");
        file.extend_from_slice(major);
        file.extend_from_slice(&[0; 4]);
        for brand in compatible {
            file.extend_from_slice(*brand);
        }
        file.extend_from_slice(b"\0\0\0\x08free");
        file
    }

    #[test]
    fn recognises_binary_formats_by_their_marks() {
        let bmp = |size: u8| {
            let mut file = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0".to_vec();
            file.extend_from_slice(&[size, 0, 0, 0, 1, 0, 0, 0]);
            file
        };
        let icon = |offset: u8| {
            let mut file = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x10\0\0\0".to_vec();
            file.extend_from_slice(&[offset, 0, 0, 0]);
            file
        };
        let cases: [(Vec<u8>, Option<Format>); 27] = [
            (vec![], None),
            (b"\xff\xd8".to_vec(), None),
            (b"\xff\xd8\xff\xdb".to_vec(), Some(Format::Jpg)),
            (b"\x89PNG\r\n\x1a\n\0".to_vec(), Some(Format::Png)),
            (b"RIFF\x10\0\0\0WEBPVP8 ".to_vec(), Some(Format::Webp)),
            (b"RIFF\x10\0\0\0WAVEfmt ".to_vec(), Some(Format::Wav)),
            (b"RIFF\x10\0\0\0AVI LIST".to_vec(), Some(Format::Avi)),
            (b"RIFF\x10\0\0\0ACON".to_vec(), None),
            (b"MM\0+\0\x08\0\0".to_vec(), Some(Format::Tiff)),
            (b"II*\0\x08\0\0\0".to_vec(), Some(Format::Tiff)),
            (b"GIF88a".to_vec(), None),
            (b"GIF89a\x01\0".to_vec(), Some(Format::Gif)),
            (b"\xff\x0a\xfa\x1f".to_vec(), Some(Format::Jxl)),
            (bmp(40), Some(Format::Bmp)),
            (bmp(41), None),
            (b"BMW is a car and no bitmap".to_vec(), None),
            (icon(22), Some(Format::Ico)),
            (icon(5), None),
            (b"%PDF-1.7\n".to_vec(), Some(Format::Pdf)),
            (b"OggS\0\x02".to_vec(), Some(Format::Ogg)),
            (b"fLaC\0\0\0\x22".to_vec(), Some(Format::Flac)),
            (b"PK\x05\x06".to_vec(), Some(Format::Zip)),
            // An ADTS frame of AAC shares the first eleven bits of MPEG audio.
            (b"\xff\xf1\x50\x80\x02\x1f\xfc\x21".to_vec(), None),
            (b"\xff\xfb\x90\x64\0\0\x02\x3c".to_vec(), Some(Format::Mp3)),
            (b"ID3\x04\0\0\0\0\x02\x01TSSE".to_vec(), Some(Format::Mp3)),
            (b"ID3\x04\0\0\0\0\0\0fLaC\0\0\0\x22".to_vec(), None),
            (b"\xff\xfeh\0e\0".to_vec(), None),
        ];
        for (head, format) in cases {
            assert_eq!(Format::sniff(&head), format, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn tells_base_media_files_apart_by_their_brands() {
        for (file, format) in [
            (ftyp(b"heic", &[b"mif1", b"heic"]), Some(Format::Heif)),
            (ftyp(b"mif1", &[b"mif1", b"heic"]), Some(Format::Heif)),
            (ftyp(b"mif1", &[b"mif1", b"avif"]), Some(Format::Avif)),
            (ftyp(b"avis", &[b"msf1", b"iso8"]), Some(Format::Avif)),
            (ftyp(b"M4A ", &[b"M4A ", b"mp42"]), Some(Format::M4a)),
            (ftyp(b"isom", &[b"iso2", b"mp41"]), Some(Format::Mp4)),
            (ftyp(b"3gp5", &[]), Some(Format::ThreeGp)),
            (ftyp(b"3g2a", &[b"3g2a", b"isom"]), Some(Format::ThreeGp)),
            (ftyp(b"isom", &[b"isom", b"3gp5"]), Some(Format::Mp4)),
            (ftyp(b"XAVC", &[b"XAVC", b"mp42"]), Some(Format::Mp4)),
            (ftyp(b"qt  ", &[b"qt  "]), Some(Format::Mov)),
            (ftyp(b"crx ", &[b"crx "]), None),
            (b"\0\0\0\x08wide\0\0\0\0mdat".to_vec(), Some(Format::Mov)),
            (b"\0\0\0\x08ftyp".to_vec(), None),
            (b"\0\0\xff\xffftypmp42\0\0\0\0".to_vec(), Some(Format::Mp4)),
            (
                b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm".to_vec(),
                Some(Format::Webm),
            ),
            (
                b"\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\x82\x88matroska".to_vec(),
                Some(Format::Mkv),
            ),
            (b"\x1a\x45\xdf\xa3\xa3\x42\x82\x02x".to_vec(), None),
        ] {
            assert_eq!(Format::sniff(&file), format, "{}", file.escape_ascii());
        }
    }

    #[test]
    fn finds_the_root_element_of_svg_behind_its_prolog() {
        for (text, is_svg) in [
            ("<svg/>", true),
            (
                "\u{feff}\n <svg xmlns=\"http://www.w3.org/2000/svg\">",
                true,
            ),
            ("<?xml version='1.0'?><!-- a > b --><svg>", true),
            ("<!doctype svg PUBLIC \"-//W3C\" \"x\"><svg>", true),
            (
                "<!DOCTYPE svg [<!ENTITY a \"b\"> <!ENTITY c \"]\">]><svg:svg>",
                true,
            ),
            ("<!DOCTYPE svg [<!ENTITY a 'cut", true),
            ("<ns0:svg xmlns:ns0='x'>", true),
            ("<svgz>", false),
            ("<html><svg></svg></html>", false),
            ("<?xml version='1.0'?><MPD></MPD>", false),
            ("#EXTM3U\n#EXT-X-VERSION:3\nfile:///etc/passwd", false),
            ("<!-- svg", false),
            ("<", false),
            ("svg", false),
        ] {
            let expected = is_svg.then_some(Format::Svg);
            assert_eq!(Format::sniff(text.as_bytes()), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_a_panic(
            start in 0usize..12,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        ) {
            const STARTS: [&[u8]; 12] = [
                b"", b"\0\0\0\x20ftyp", b"\x1a\x45\xdf\xa3", b"<!DOCTYPE svg [", b"<?xml", b"ID3\x03\0\0",
                b"\0\0\x01\0", b"BM", b"RIFF", b"<svg", b"\xff\xfb", b"<!--",
            ];
            let head = [STARTS[start], bytes.as_slice()].concat();
            let matching = TABLE.iter().filter(|row| (row.matches)(&head)).count();
            proptest::prop_assert!(matching <= 1, "{matching} formats");
            let _ = Format::sniff(&head);
            let _ = Format::recognise(&head, "a.tga");
            let _ = Format::recognise(&head, "a.svg");
        }
    }
}
