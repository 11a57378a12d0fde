use std::io::{Cursor as Reader, Read as _};

use proptest::prelude::*;

use super::*;

const NOON: i64 = 1_795_000_000_000;

/// Files' bytes by number, and the archive of them.
struct Sample {
    layout: Layout,
    contents: Vec<Vec<u8>>,
}

impl Sample {
    /// A path's parts before the last are folders; one that ends with a slash is a folder only.
    fn of(paths: &[(&str, &[u8])]) -> Self {
        let mut builder = Builder::default();
        let mut folders = vec![("", Folder::ROOT)];
        for (path, _) in paths {
            for (slash, _) in path.match_indices('/') {
                let whole = &path[..=slash];
                if folders.iter().any(|(known, _)| *known == whole) {
                    continue;
                }
                let (parent, name) = split(&path[..slash]);
                let parent = folders
                    .iter()
                    .find(|(known, _)| *known == parent)
                    .unwrap()
                    .1;
                folders.push((whole, builder.folder(parent, name, NOON).unwrap()));
            }
        }
        let mut contents = Vec::new();
        for (path, bytes) in paths.iter().filter(|(path, _)| !path.ends_with('/')) {
            let (parent, name) = split(path);
            let parent = folders
                .iter()
                .find(|(known, _)| *known == parent)
                .unwrap()
                .1;
            let facts = Contents {
                size: bytes.len() as u64,
                crc32: crc32fast::hash(bytes),
            };
            builder.file(parent, name, facts, NOON).unwrap();
            contents.push(bytes.to_vec());
        }
        Self {
            layout: builder.finish(),
            contents,
        }
    }

    fn range(&self, start: u64, len: u64) -> Vec<u8> {
        let mut cursor = self.layout.cursor(start, len);
        let mut bytes = Vec::new();
        while let Some(piece) = cursor.next(&self.layout) {
            match piece {
                Piece::Bytes(headers) => bytes.extend(headers),
                Piece::Contents { file, offset, len } => {
                    let contents = &self.contents[file as usize];
                    bytes.extend(&contents[offset as usize..(offset + len) as usize]);
                }
            }
        }
        assert_eq!(cursor.left(), 0);
        bytes
    }

    fn whole(&self) -> Vec<u8> {
        self.range(0, self.layout.len())
    }
}

/// `a/b/c` is `c` in `a/b/`.
fn split(path: &str) -> (&str, &str) {
    path.rfind('/')
        .map_or(("", path), |slash| path.split_at(slash + 1))
}

/// Names and contents, as an independent reader finds them.
fn read(bytes: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Reader::new(bytes)).unwrap();
    let count = archive.len();
    let read = |index| {
        let mut entry = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        assert_eq!(entry.is_dir(), entry.name().ends_with('/'));
        (entry.name().to_owned(), bytes)
    };
    (0..count).map(read).collect()
}

fn names(paths: &[&str]) -> Vec<String> {
    let paths: Vec<_> = paths.iter().map(|path| (*path, &b"x"[..])).collect();
    let entries = read(Sample::of(&paths).whole());
    entries.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn another_reader_finds_what_was_put_in() {
    let sample = Sample::of(&[
        ("empty/", b""),
        ("a.txt", b"alpha"),
        ("deep/er/b.bin", &[7; 100_000]),
        ("deep/none", b""),
        ("写真.jpg", b"image"),
    ]);
    let whole = sample.whole();
    assert_eq!(whole.len() as u64, sample.layout.len());
    let expected: Vec<(&str, &[u8])> = vec![
        ("empty/", b""),
        ("deep/", b""),
        ("deep/er/", b""),
        ("a.txt", b"alpha"),
        ("deep/er/b.bin", &[7; 100_000]),
        ("deep/none", b""),
        ("写真.jpg", b"image"),
    ];
    let found = read(whole);
    assert!(
        found
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .eq(expected)
    );
}

#[test]
fn an_archive_of_nothing_is_one() {
    let sample = Sample::of(&[]);
    assert!(sample.layout.is_empty());
    assert_eq!(sample.layout.len(), 22);
    assert!(read(sample.whole()).is_empty());
}

#[test]
fn names_that_would_overwrite_each_other_are_numbered() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["a.jpg", "A.JPG"], &["a.jpg", "A (2).JPG"]),
        (&["é.jpg", "e\u{301}.jpg"], &["é.jpg", "é (2).jpg"]),
        (
            &["a (2).jpg", "a.jpg", "A.jpg"],
            &["a (2).jpg", "a.jpg", "A (3).jpg"],
        ),
        (&["x/a", "y/a"], &["x/", "y/", "x/a", "y/a"]),
        (&["x/", "X"], &["x/", "X (2)"]),
        (&["a:b", "a*b", "a_b"], &["a_b", "a_b (2)", "a_b (3)"]),
    ];
    for (given, expected) in cases {
        assert_eq!(names(given), expected);
    }
}

#[test]
fn many_of_one_name_are_numbered_in_one_go() {
    let mut builder = Builder::default();
    let none = Contents { size: 0, crc32: 0 };
    for number in 0..100_000 {
        assert_eq!(
            builder.file(Folder::ROOT, "a.jpg", none, 0).unwrap(),
            number
        );
    }
    let layout = builder.finish();
    assert_eq!(layout.path(99_999), b"a (100000).jpg");
}

#[test]
fn long_names_that_differ_at_their_ends_only_share_their_numbers() {
    let mut builder = Builder::default();
    let none = Contents { size: 0, crc32: 0 };
    for number in 0..5000 {
        let name = format!("{}{number:015}", "x".repeat(240));
        for _ in 0..2 {
            builder.file(Folder::ROOT, &name, none, 0).unwrap();
        }
    }
    let layout = builder.finish();
    let last = layout.path(9999);
    assert_eq!(last.len(), 242 + " (5001)".len());
    assert!(last.ends_with(b" (5001)"));
}

/// Names that are one to a file system although they have other lengths in bytes, and are cut elsewhere therefore.
#[test]
fn names_that_fold_alike_share_their_numbers_however_long_they_are() {
    const NAMES: u64 = 20_000;
    for (plain, other, bytes, extension) in [("s", "ſ", 236, ""), ("fi", "ﬁ", 250, ".jpg")] {
        let mut builder = Builder::default();
        let none = Contents { size: 0, crc32: 0 };
        for number in 0..NAMES {
            // The number's bits are at the name's beginning or in its middle, in letters that fold alike.
            let first = if number % 2 == 0 { 0 } else { 40 };
            let letters = (0..(bytes - extension.len()) / plain.len()).map(|place| {
                let bit = place.checked_sub(first).filter(|bit| *bit < 17);
                match bit.is_some_and(|bit| number >> bit & 1 == 1) {
                    true => other,
                    false => plain,
                }
            });
            let name: String = letters.chain([extension]).collect();
            builder.file(Folder::ROOT, &name, none, 0).unwrap();
        }
        let tried = builder.tried();
        assert!(tried <= NAMES, "{other} {bytes} {extension}: {tried}");
    }
}

#[test]
fn paths_beyond_the_format_are_refused() {
    let mut builder = Builder::default();
    let mut folder = Folder::ROOT;
    let name = "x".repeat(255);
    for _ in 0..255 {
        folder = builder.folder(folder, &name, 0).unwrap();
    }
    // 65 280 bytes, a name of 254 and a slash.
    builder.folder(folder, &name[1..], 0).unwrap();
    assert!(builder.folder(folder, &name, 0).is_err());
    assert!(
        builder
            .file(folder, &"y".repeat(255), Contents { size: 0, crc32: 0 }, 0)
            .is_err()
    );
}

#[test]
fn any_range_is_that_part_of_the_whole() {
    let mut paths: Vec<(String, Vec<u8>)> = (0..300)
        .map(|n| (format!("f{}/{n}", n % 7), vec![n as u8; n % 50]))
        .collect();
    paths.push(("none/".to_owned(), Vec::new()));
    let paths: Vec<(&str, &[u8])> = paths
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect();
    let sample = Sample::of(&paths);
    let whole = sample.whole();
    let total = whole.len() as u64;
    for start in 0..total {
        let end = (start + 90).min(total);
        assert_eq!(sample.range(start, 90), whole[start as usize..end as usize]);
    }
    proptest!(|(start in 0..total, len in 0..total)| {
        let end = start.saturating_add(len).min(total);
        prop_assert_eq!(&sample.range(start, len), &whole[start as usize..end as usize]);
    });
    assert!(sample.range(total, 1).is_empty());
    assert!(sample.range(u64::MAX, u64::MAX).is_empty());
}

/// Headers of a huge archive, its contents left out.
fn headers(layout: &Layout, start: u64) -> Vec<u8> {
    let mut cursor = layout.cursor(start, u64::MAX);
    let mut bytes = Vec::new();
    while let Some(piece) = cursor.next(layout) {
        match piece {
            Piece::Bytes(headers) => bytes.extend(headers),
            Piece::Contents { .. } => panic!("contents in the directory"),
        }
    }
    bytes
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut eight = [0; 8];
    eight[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(eight)
}

#[test]
fn sizes_and_offsets_beyond_4_gib_have_64_bits() {
    for size in [u64::from(u32::MAX) - 1, u64::from(u32::MAX), 5 << 30] {
        let mut builder = Builder::default();
        for name in ["a", "b"] {
            let contents = Contents { size, crc32: 1 };
            builder.file(Folder::ROOT, name, contents, NOON).unwrap();
        }
        let layout = builder.finish();
        let is_large = size >= u64::from(u32::MAX);
        let local_len = 30 + 1 + 9 + if is_large { 20 } else { 0 };
        let directory = layout.directory();
        assert_eq!(directory.at, 2 * (local_len + size), "{size}");

        let tail = headers(&layout, directory.at);
        assert_eq!(directory.at + tail.len() as u64, layout.len());
        // The second record: its offset needs 64 bits by now.
        let second = 46 + 1 + 9 + if is_large { 20 } else { 0 };
        assert_eq!(number(&tail, second, 4), 0x0201_4B50);
        assert_eq!(number(&tail, second + 6, 2), 45);
        assert_eq!(number(&tail, second + 42, 4), u64::from(u32::MAX));
        let offset_at = second + 46 + 1 + 4 + if is_large { 16 } else { 0 };
        assert_eq!(number(&tail, offset_at, 8), local_len + size);
        // ZIP64's end of the directory, 98 bytes before the archive's.
        let end = tail.len() - 98;
        assert_eq!(number(&tail, end, 4), 0x0606_4B50);
        assert_eq!(number(&tail, end + 32, 8), 2);
        assert_eq!(number(&tail, end + 40, 8), directory.len);
        assert_eq!(number(&tail, end + 48, 8), directory.at);
        assert_eq!(number(&tail, end + 56 + 8, 8), directory.at + directory.len);
    }
}

#[test]
fn a_million_entries_are_counted_right_and_take_little() {
    for count in [65_534, 65_535, 1_000_000] {
        let mut builder = Builder::default();
        let album = builder.folder(Folder::ROOT, "album", NOON).unwrap();
        for number in 1..count {
            let name = format!("IMG_{number:07}.jpg");
            let contents = Contents {
                size: 600_000,
                crc32: number,
            };
            builder.file(album, &name, contents, NOON).unwrap();
        }
        assert!(builder.bytes() < 41 * count as usize, "{}", builder.bytes());
        let layout = builder.finish();
        assert_eq!((layout.entries(), layout.files()), (count, count - 1));
        let tail = headers(&layout, layout.directory().at);
        assert_eq!(layout.directory().at + tail.len() as u64, layout.len());
        let end = tail.len() - 22;
        assert_eq!(number(&tail, end + 10, 2), u64::from(count.min(65_535)));
        if count >= 65_535 {
            assert_eq!(number(&tail, tail.len() - 98 + 32, 8), u64::from(count));
        }
        // The last entry is found from its offset.
        let last = layout.find(layout.directory().at - 1, |place| place.local);
        assert_eq!(last.entry, count - 1);
    }
}
