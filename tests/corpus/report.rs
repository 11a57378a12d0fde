//! Counts of the answers.

use std::{collections::BTreeMap, fmt, path::Path};

use crate::support::server::Fetched;

/// Statuses that a file may get on any way.
const EXPECTED: [u16; 7] = [200, 201, 400, 404, 413, 415, 422];

/// Answers by way and status, and what was wrong with any of them.
#[derive(Debug, Default)]
pub struct Report {
    counts: BTreeMap<String, BTreeMap<u16, usize>>,
    pub wrong: Vec<String>,
}

impl Report {
    pub fn add(&mut self, way: &str, path: &Path, answer: &Fetched) {
        let status = answer.status.as_u16();
        let counts = self.counts.entry(way.to_owned()).or_default();
        *counts.entry(status).or_default() += 1;
        if let Err(complaint) = judge(status, answer) {
            let text = String::from_utf8_lossy(&answer.bytes[..answer.bytes.len().min(200)]);
            let path = path.display();
            self.wrong
                .push(format!("{way}: {path}: {status}, {complaint}: {text}"));
        }
    }

    pub fn merge(&mut self, other: Self) {
        for (way, counts) in other.counts {
            let mine = self.counts.entry(way).or_default();
            for (status, count) in counts {
                *mine.entry(status).or_default() += count;
            }
        }
        self.wrong.extend(other.wrong);
    }
}

fn judge(status: u16, answer: &Fetched) -> Result<(), &'static str> {
    if !EXPECTED.contains(&status) {
        return Err("not a status for a file");
    }
    if status < 400 {
        return Ok(());
    }
    let error = answer.json().map_err(|_| "not JSON")?;
    let text = error["error"].as_str().unwrap_or_default();
    if text.is_empty() {
        return Err("no reason given");
    }
    if text.contains("/proc/") || text.contains("/tmp/") {
        return Err("a path of this machine is revealed");
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (way, counts) in &self.counts {
            write!(formatter, "  {way:<18}")?;
            for (status, count) in counts {
                write!(formatter, " {status}: {count:<5}")?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}
