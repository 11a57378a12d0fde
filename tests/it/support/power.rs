//! Simulates a power loss of a broadcast on air: an older journal, corrupt files and another boot of the machine.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Failure;

/// Bytes that did not reach the disk.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// The journal's lines from before a segment's end on, and the second half of the segment's file.
    TornTail,
    /// The second half of the segment's file, which has its length all the same.
    Zeros,
}

/// Characters of a line before its JSON: a CRC-32 in hexadecimal and a space.
const CRC: usize = 9;

/// Makes of a killed service's data folder what a power cut would have left, with segment `msn` as the newest whose end
/// was journalled or not.
pub fn cut(data_dir: &Path, input_id: &str, msn: u64, loss: Loss) -> Result<(), Failure> {
    let folder = broadcast(&data_dir.join("live").join(input_id))?;
    let path = folder.join("window.journal");
    let text = String::from_utf8(std::fs::read(&path)?)?;
    let mut journal = String::new();
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(&line[CRC..])?;
        let is_end = record["t"] == "segmentEnd" && record["msn"] == msn;
        if is_end && matches!(loss, Loss::TornTail) {
            // Tears the line before it.
            journal.truncate(journal.len() - 20);
            break;
        }
        if record["t"] == "header" {
            record["bootId"] = "the boot before the power cut".into();
        }
        let json = record.to_string();
        journal.push_str(&format!(
            "{:08x} {json}\n",
            crc32fast::hash(json.as_bytes())
        ));
    }
    std::fs::write(&path, journal)?;

    let path = folder.join(format!("{msn}.m4s"));
    let mut bytes = std::fs::read(&path)?;
    let half = bytes.len() / 2;
    match loss {
        Loss::TornTail => bytes.truncate(half),
        Loss::Zeros => bytes[half..].fill(0),
    }
    Ok(std::fs::write(&path, bytes)?)
}

/// The only folder in this one.
fn broadcast(input: &Path) -> Result<PathBuf, Failure> {
    let mut folders = std::fs::read_dir(input)?;
    match (folders.next(), folders.next()) {
        (Some(folder), None) => Ok(folder?.path()),
        _ => Err("not one broadcast".into()),
    }
}
