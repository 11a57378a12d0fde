//! Sizes in settings (`64 MiB`, `2 GB`), as text that reads back to the same number: `bytesize` alone prints 2 GB as
//! "1.9 GiB".

use bytesize::ByteSize;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Largest first; the first that divides a size is the one it is written in.
const UNITS: [(u64, &str); 9] = [
    (1 << 40, "TiB"),
    (1_000_000_000_000, "TB"),
    (1 << 30, "GiB"),
    (1_000_000_000, "GB"),
    (1 << 20, "MiB"),
    (1_000_000, "MB"),
    (1 << 10, "KiB"),
    (1_000, "KB"),
    (1, "B"),
];

/// "64 MiB", "2 GB", "1500 B".
pub fn exact(size: ByteSize) -> String {
    let bytes = size.as_u64();
    let (unit, name) = UNITS
        .into_iter()
        .find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit))
        .unwrap_or((1, "B"));
    format!("{} {name}", bytes / unit)
}

/// Writes what [`deserialize`] reads; for `#[serde(with = "sluice_media::setting::size")]`.
pub fn serialize<S: Serializer>(size: &ByteSize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&exact(*size))
}

/// Reads a size with or without a unit.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    ByteSize::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back_as_they_were() {
        let cases = [
            (0, "0 B"),
            (1, "1 B"),
            (1500, "1500 B"),
            (1 << 20, "1 MiB"),
            (64_000_000, "64 MB"),
            (2_000_000_000, "2 GB"),
            (100_000_000_000, "100 GB"),
            (u64::MAX, "18446744073709551615 B"),
        ];
        for (bytes, text) in cases {
            assert_eq!(exact(ByteSize(bytes)), text);
            if bytes < 1 << 53 {
                assert_eq!(text.parse::<ByteSize>().unwrap(), ByteSize(bytes), "{text}");
            }
        }
    }
}
