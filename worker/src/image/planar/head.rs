//! Headers of a JPEG: size, EXIF orientation, colour space (JFIF, Adobe), ICC profile; decides whether its samples can
//! be used as they are.
//!
//! Only markers are read, in safe code; nothing is allocated by a declared length, and whatever looks odd makes the image
//! [`Head::read`] answers `None` for, or one that is not plain. (ITU-T T.81 annex B; EXIF 2.32 §4.6; ICC.1 annex B.4.)

use super::profile;

/// The facts of a JPEG that the planar path depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Stored size, before orientation.
    pub width: u32,
    pub height: u32,
    /// EXIF, 1 to 8.
    pub orientation: u8,
    /// True when it is an 8-bit grey or YCbCr image with Huffman coding.
    pub is_ycc: bool,
    /// True when it has no profile, or one that means sRGB.
    pub is_srgb: bool,
}

mod marker {
    pub const SOF0: u8 = 0xc0;
    /// Progressive; 1 is extended sequential, those above are lossless, hierarchical or arithmetic.
    pub const SOF2: u8 = 0xc2;
    pub const DHT: u8 = 0xc4;
    pub const JPG: u8 = 0xc8;
    pub const DAC: u8 = 0xcc;
    pub const SOI: u8 = 0xd8;
    pub const EOI: u8 = 0xd9;
    pub const SOS: u8 = 0xda;
    pub const SOF15: u8 = 0xcf;
    pub const APP0: u8 = 0xe0;
    pub const APP1: u8 = 0xe1;
    pub const APP2: u8 = 0xe2;
    pub const APP14: u8 = 0xee;
}

impl Head {
    /// Reads up to the first scan; `None` when there is no frame header before it.
    pub fn read(jpeg: &[u8]) -> Option<Self> {
        let mut markers = Markers::default();
        let mut rest = jpeg.strip_prefix(&[0xff, marker::SOI])?;
        loop {
            let (kind, body, after) = segment(rest)?;
            match kind {
                marker::SOS => break,
                marker::EOI => return None,
                _ => markers.take(kind, body)?,
            }
            rest = after;
        }
        markers.head()
    }
}

/// The next marker with the body of its segment, and what follows.
fn segment(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let start = bytes.strip_prefix(&[0xff])?;
    let fill = start.iter().position(|&byte| byte != 0xff)?;
    let (kind, rest) = start[fill..].split_first()?;
    let length = usize::from(u16_be(rest, 0)?);
    Some((*kind, rest.get(2..length)?, &rest[length..]))
}

#[derive(Default)]
struct Markers<'a> {
    frame: Option<Frame>,
    has_jfif: bool,
    adobe_transform: Option<u8>,
    orientation: Option<u8>,
    profile: Vec<ProfilePart<'a>>,
}

struct Frame {
    kind: u8,
    precision: u8,
    width: u16,
    height: u16,
    component_ids: Vec<u8>,
}

/// A profile is cut into numbered parts, since a segment holds at most 64 KB.
struct ProfilePart<'a> {
    number: u8,
    count: u8,
    bytes: &'a [u8],
}

impl<'a> Markers<'a> {
    /// Takes a segment; `None` ends the reading.
    fn take(&mut self, kind: u8, body: &'a [u8]) -> Option<()> {
        match kind {
            marker::DHT | marker::JPG | marker::DAC => {}
            marker::SOF0..=marker::SOF15 => {
                let frame = Frame::read(kind, body)?;
                self.frame.replace(frame).is_none().then_some(())?;
            }
            marker::APP0 => self.has_jfif |= body.starts_with(b"JFIF\0"),
            marker::APP14 if body.starts_with(b"Adobe") => {
                self.adobe_transform = body.get(11).copied();
            }
            marker::APP1 if self.orientation.is_none() => {
                self.orientation = body.strip_prefix(b"Exif\0\0").map(orientation);
            }
            marker::APP2 => {
                if let Some([number, count, bytes @ ..]) = body.strip_prefix(b"ICC_PROFILE\0") {
                    self.profile.push(ProfilePart {
                        number: *number,
                        count: *count,
                        bytes,
                    });
                }
            }
            _ => {}
        }
        Some(())
    }

    fn head(self) -> Option<Head> {
        let frame = self.frame.as_ref()?;
        Some(Head {
            width: u32::from(frame.width),
            height: u32::from(frame.height),
            orientation: self.orientation.unwrap_or(1),
            is_ycc: self.is_ycc(frame),
            is_srgb: self.is_srgb(frame),
        })
    }

    /// Returns the colour space as libjpeg infers it: JFIF is YCbCr, Adobe's marker names it, and without both the
    /// components' names decide.
    fn is_ycc(&self, frame: &Frame) -> bool {
        let is_plain = frame.precision == 8
            && frame.width > 0
            && frame.height > 0
            && frame.kind <= marker::SOF2;
        let is_coloured_so = match (&frame.component_ids[..], self.adobe_transform) {
            ([_], _) => true,
            ([_, _, _], _) if self.has_jfif => true,
            ([_, _, _], Some(transform)) => transform != 0,
            (ids @ [_, _, _], None) => ids != b"RGB",
            _ => false,
        };
        is_plain && is_coloured_so
    }

    fn is_srgb(&self, frame: &Frame) -> bool {
        if self.profile.is_empty() {
            return true;
        }
        let is_colour = frame.component_ids.len() == 3;
        is_colour
            && self
                .whole_profile()
                .is_some_and(|icc| profile::is_srgb(&icc))
    }

    /// The parts put together; `None` when one is missing or there twice.
    fn whole_profile(&self) -> Option<Vec<u8>> {
        let count = self.profile.len();
        let mut whole = Vec::new();
        for number in 1..=count {
            let mut same = self
                .profile
                .iter()
                .filter(|part| usize::from(part.number) == number);
            let part = same.next()?;
            if usize::from(part.count) != count || same.next().is_some() {
                return None;
            }
            whole.extend_from_slice(part.bytes);
        }
        Some(whole)
    }
}

impl Frame {
    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let [precision, h1, h0, w1, w0, count, components @ ..] = body else {
            return None;
        };
        if components.len() != usize::from(*count) * 3 {
            return None;
        }
        Some(Self {
            kind,
            precision: *precision,
            width: u16::from_be_bytes([*w1, *w0]),
            height: u16::from_be_bytes([*h1, *h0]),
            component_ids: components.chunks_exact(3).map(|chunk| chunk[0]).collect(),
        })
    }
}

/// The orientation in a TIFF structure, 1 when there is none.
fn orientation(tiff: &[u8]) -> u8 {
    const ORIENTATION: u16 = 0x0112;
    const SHORT: u16 = 3;
    let is_little = tiff.starts_with(b"II*\0");
    let u16_at = |bytes: &[u8], at: usize| {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let u32_at = |bytes: &[u8], at: usize| {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    let read = || {
        if !is_little && !tiff.starts_with(b"MM\0*") {
            return None;
        }
        let directory = tiff.get(usize::try_from(u32_at(tiff, 4)?).ok()?..)?;
        let count = usize::from(u16_at(directory, 0)?);
        let entry = directory
            .get(2..)?
            .chunks_exact(12)
            .take(count)
            .find(|entry| u16_at(entry, 0) == Some(ORIENTATION))?;
        let is_one_short = u16_at(entry, 2)? == SHORT && u32_at(entry, 4)? == 1;
        let value = u16_at(entry, 8)?;
        (is_one_short && (1..=8).contains(&value)).then_some(value as u8)
    };
    read().unwrap_or(1)
}

fn u16_be(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
