//! ZIP archives as inputs: list of members, extraction, limits (`image_workers.max_members`, ratio of unpacked bytes,
//! encryption).
//!
//! Declared numbers bound what is tried and are never believed: bytes are counted while they come, and memory grows
//! with them. Names are reduced to their last part, so that no path of an archive means anything here.

use std::io::{Cursor, Read};

use sluice_media::task::{Failure, FailureCode, Limits, Member, OutputFacts};
use zip::{CompressionMethod, ZipArchive, read::ZipFile};

/// An archive may unpack to so many times its size, and to [`FREE_BYTES`] in any case. Flat bitmaps reach a few
/// hundred; what goes beyond repeats itself to fill disks.
const MAX_RATIO: u64 = 250;
const FREE_BYTES: u64 = 64 << 20;
/// Longest member name that is read.
const MAX_NAME_BYTES: usize = 1024;

type Zip<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The files of an archive, in its order: without folders, links, empty files, and files of desktops
/// (`__MACOSX`, `.DS_Store`, other names that begin with a dot).
pub fn list(input: &[u8], limits: &Limits) -> Result<Vec<Member>, Failure> {
    let mut archive = open(input)?;
    let mut members = Vec::new();
    let mut unpacked = 0u64;
    for index in 0..archive.len() {
        // Raw: a member that cannot be unpacked is named too.
        let file = archive.by_index_raw(index).map_err(damaged)?;
        let Some(filename) = filename(&file) else {
            continue;
        };
        check(&file, &filename, limits)?;
        unpacked = unpacked.saturating_add(file.size());
        members.push(Member {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            filename,
            size: file.size(),
        });
        if members.len() > limits.max_members as usize {
            return Err(Failure::new(
                FailureCode::TooLarge,
                format!(
                    "the archive has more than {} files (image_workers.max_members)",
                    limits.max_members
                ),
            ));
        }
    }
    check_ratio(unpacked, input.len() as u64)?;
    Ok(members)
}

/// Unpacks the member of that [`Member::index`].
pub fn extract(
    input: &[u8],
    index: u32,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let mut archive = open(input)?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let (name, size) = {
        let file = archive.by_index_raw(index).map_err(damaged)?;
        let Some(name) = filename(&file) else {
            return Err(damaged(()));
        };
        check(&file, &name, limits)?;
        check_ratio(file.size(), input.len() as u64)?;
        (name, file.size())
    };
    let mut bytes = Vec::new();
    let file = archive.by_index(index).map_err(damaged)?;
    // One byte more than declared reveals a member with a wrong size; the checksum is compared at its end.
    file.take(size + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| broken(&name))?;
    if bytes.len() as u64 != size {
        return Err(broken(&name));
    }
    let facts = OutputFacts::of(None, bytes.len());
    Ok((facts, bytes))
}

fn open(input: &[u8]) -> Result<Zip<'_>, Failure> {
    ZipArchive::new(Cursor::new(input)).map_err(damaged)
}

fn damaged<E>(_: E) -> Failure {
    Failure::new(
        FailureCode::Undecodable,
        "the archive is damaged or cut short",
    )
}

fn broken(name: &str) -> Failure {
    Failure::new(
        FailureCode::Undecodable,
        format!("`{name}` in the archive is damaged"),
    )
}

/// The last part of a member's path; `None`: not a file that a user put there.
fn filename<R: Read + ?Sized>(file: &ZipFile<'_, R>) -> Option<String> {
    let path = file.name();
    if file.is_dir() || file.is_symlink() || file.size() == 0 || path.len() > MAX_NAME_BYTES {
        return None;
    }
    let mut parts = path.split(['/', '\\']);
    let name = parts.next_back()?.trim();
    let is_ours = !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control);
    (is_ours && parts.all(|folder| folder != "__MACOSX")).then(|| name.to_owned())
}

/// Checks whether a member may be unpacked at all.
fn check<R: Read + ?Sized>(
    file: &ZipFile<'_, R>,
    name: &str,
    limits: &Limits,
) -> Result<(), Failure> {
    if file.encrypted() {
        return Err(Failure::new(
            FailureCode::UnsupportedType,
            format!("`{name}` in the archive is encrypted: send it without a password"),
        ));
    }
    if !matches!(
        file.compression(),
        CompressionMethod::Stored | CompressionMethod::Deflated
    ) {
        return Err(Failure::new(
            FailureCode::UnsupportedType,
            format!("`{name}` in the archive is packed by a method other than deflate"),
        ));
    }
    if file.size() > limits.max_output_bytes {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "`{name}` in the archive has {} bytes; at most {} are unpacked (image_workers.max_output)",
                file.size(),
                limits.max_output_bytes
            ),
        ));
    }
    Ok(())
}

fn check_ratio(unpacked: u64, packed: u64) -> Result<(), Failure> {
    let allowed = packed.saturating_mul(MAX_RATIO).max(FREE_BYTES);
    if unpacked <= allowed {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::TooLarge,
        format!(
            "the archive of {packed} bytes unpacks to {unpacked}; at most {MAX_RATIO} times its size is unpacked"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    const LIMITS: Limits = Limits {
        max_pixels: 1,
        max_frames: 1,
        max_total_pixels: 1,
        max_output_bytes: 1 << 30,
        max_members: 5,
        max_duration_ms: 0,
        max_side: 0,
    };

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let options = SimpleFileOptions::default();
            if name.ends_with('/') {
                writer.add_directory(*name, options).expect("a folder");
            } else {
                writer.start_file(*name, options).expect("a file");
                writer.write_all(bytes).expect("its bytes");
            }
        }
        writer.finish().expect("an archive").into_inner()
    }

    fn at(bytes: &[u8], pattern: &[u8]) -> usize {
        bytes
            .windows(pattern.len())
            .position(|window| window == pattern)
            .expect("the pattern")
    }

    /// The central directory's record of the only member.
    fn central(bytes: &[u8]) -> usize {
        at(bytes, b"PK\x01\x02")
    }

    #[test]
    fn lists_files_by_their_last_name_and_unpacks_each() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        writer.add_directory("a/b/", options).expect("a folder");
        writer.start_file("a/b/写真.png", options).expect("a file");
        writer.write_all(b"one").expect("bytes");
        writer
            .add_symlink("link.png", "/etc/passwd", options)
            .expect("a link");
        for name in ["__MACOSX/a/._x.png", "a/.DS_Store", "empty.png"] {
            writer.start_file(name, options).expect("a file");
            if name != "empty.png" {
                writer.write_all(b"x").expect("bytes");
            }
        }
        writer
            .start_file("..\\..\\etc/passwd", options.large_file(true))
            .expect("a file");
        writer.write_all(b"two").expect("bytes");
        let file = writer.finish().expect("an archive").into_inner();

        let members = list(&file, &LIMITS).expect("members");
        let names: Vec<&str> = members.iter().map(|member| &*member.filename).collect();
        assert_eq!(names, ["写真.png", "passwd"]);
        for (member, expected) in members.iter().zip([b"one", b"two"]) {
            let (facts, bytes) = extract(&file, member.index, &LIMITS).expect("a member");
            assert_eq!(bytes, expected);
            assert_eq!((facts.bytes, member.size), (3, 3));
        }
        let folder = extract(&file, 0, &LIMITS).expect_err("a folder");
        assert_eq!(folder.code, FailureCode::Undecodable);
        assert!(extract(&file, 99, &LIMITS).is_err());
        assert_eq!(
            list(b"PK\x05\x06", &LIMITS).map_err(|f| f.code),
            Err(FailureCode::Undecodable)
        );
    }

    #[test]
    fn limits_are_named() {
        let many: Vec<String> = (0..6).map(|index| format!("{index}.png")).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|name| (&**name, &b"x"[..])).collect();
        let failure = list(&archive(&many), &LIMITS).expect_err("six of five");
        assert_eq!(failure.code, FailureCode::TooLarge);
        assert!(failure.message.contains("5 files"), "{failure}");

        let small = Limits {
            max_output_bytes: 2,
            ..LIMITS
        };
        let file = archive(&[("a.png", b"three")]);
        let failure = list(&file, &small).expect_err("five of two bytes");
        assert!(
            failure.message.contains("image_workers.max_output"),
            "{failure}"
        );
        assert_eq!(
            extract(&file, 0, &small).map_err(|failure| failure.code),
            Err(FailureCode::TooLarge)
        );

        let zeros = vec![0; FREE_BYTES as usize + 1];
        let bomb = archive(&[("a.bmp", &zeros)]);
        let failure = list(&bomb, &LIMITS).expect_err("a bomb");
        assert!(failure.message.contains("250 times"), "{failure}");
        assert!(extract(&bomb, 0, &LIMITS).is_err());
    }

    #[test]
    fn lies_and_passwords_are_rejected() {
        let honest = archive(&[("a.png", &[7; 500])]);
        let mut encrypted = honest.clone();
        let flags = central(&encrypted) + 8;
        encrypted[flags] |= 1;
        let failure = list(&encrypted, &LIMITS).expect_err("a password");
        assert_eq!(failure.code, FailureCode::UnsupportedType);
        assert!(failure.message.contains("encrypted"), "{failure}");

        let size = central(&honest) + 24;
        for declared in [499u32, 501, 1] {
            let mut lying = honest.clone();
            lying[size..size + 4].copy_from_slice(&declared.to_le_bytes());
            assert_eq!(
                extract(&lying, 0, &LIMITS).map_err(|failure| failure.code),
                Err(FailureCode::Undecodable),
                "{declared}"
            );
        }
        let mut rotten = honest.clone();
        let checksum = central(&rotten) + 16;
        rotten[checksum] ^= 1;
        assert!(extract(&rotten, 0, &LIMITS).is_err());
    }

    proptest::proptest! {
        #[test]
        fn damaged_archives_never_panic(at in 0usize..300, byte in proptest::num::u8::ANY) {
            let mut file = archive(&[("a/", b""), ("a/b.png", b"some bytes, some bytes, some bytes")]);
            let at = at % file.len();
            file[at] = byte;
            if let Ok(members) = list(&file, &LIMITS) {
                for member in members {
                    let _ = extract(&file, member.index, &LIMITS);
                }
            }
        }
    }
}
