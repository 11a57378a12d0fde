//! Search for a newer program that waits on the disk: its version and its schema (`newerProgram`, `newerSchemaWaits`), asked of the file
//! that replaced this process's own (`sluice schema`).

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest time for the other program to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Most bytes of its answer.
const MOST_BYTES: usize = 4_096;

/// Answer of `sluice schema`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProgramRecord {
    pub version: String,
    /// Schema that the program brings the database to at its start.
    pub schema: i64,
}

impl ProgramRecord {
    /// Makes the record of this program.
    pub fn own() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: sluice_store::schema_version(),
        }
    }
}

/// Device and inode of a file, and the time of its change.
type Identity = (u64, u64, i64);

/// The file of this process's program, as it was at the start.
pub(crate) struct OwnProgram {
    /// `None` where the kernel does not name it.
    file: Option<(PathBuf, Identity)>,
    /// The last other file at that path and its answer; `None`: it did not answer.
    asked: Mutex<Option<(Identity, Option<ProgramRecord>)>>,
}

impl OwnProgram {
    pub(crate) fn at_start() -> Self {
        let path = env::current_exe().ok();
        Self {
            file: path.and_then(|path| Some((path.clone(), identity(&path).ok()?))),
            asked: Mutex::new(None),
        }
    }

    /// Returns the program that has taken this one's place on the disk, when it differs in version or schema. Blocks for as long
    /// as that takes to answer, once for each file.
    pub(crate) fn replacement(&self) -> Option<ProgramRecord> {
        let (path, own) = self.file.as_ref()?;
        let found = identity(path).ok().filter(|found| found != own)?;
        let mut asked = self.asked.lock();
        if let Some((known, answer)) = &*asked
            && *known == found
        {
            return answer.clone();
        }
        let answer = ask(Command::new(path).arg("schema")).filter(|it| *it != ProgramRecord::own());
        *asked = Some((found, answer.clone()));
        answer
    }
}

fn identity(path: &PathBuf) -> io::Result<Identity> {
    let file = fs::metadata(path)?;
    Ok((file.dev(), file.ino(), file.mtime()))
}

/// Runs a program that answers by one line of JSON; `None` for one that does anything else.
fn ask(command: &mut Command) -> Option<ProgramRecord> {
    let until = Instant::now() + PATIENCE;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => thread::sleep(LOOK_EVERY),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    // What a pipe holds is there when the process has ended.
    let mut answer = Vec::new();
    let output = child.stdout.take()?;
    io::Read::read_to_end(&mut io::Read::take(output, MOST_BYTES as u64), &mut answer).ok()?;
    status
        .success()
        .then(|| serde_json::from_slice(&answer).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(script: &str) -> Option<ProgramRecord> {
        ask(Command::new("/bin/sh").args(["-c", script]))
    }

    #[test]
    fn a_program_says_its_version_and_schema() {
        let expected = ProgramRecord {
            version: "9.0.0".into(),
            schema: 99,
        };
        let line = r#"echo '{"version":"9.0.0","schema":99,"more":1}'"#;
        assert_eq!(answered(line), Some(expected));
        assert_eq!(answered(&format!("{line}; exit 2")), None);
        assert_eq!(answered("echo usage"), None);
        assert_eq!(ask(&mut Command::new("/nonexistent")), None);
    }

    #[test]
    fn a_program_in_its_own_place_is_no_replacement() {
        assert_eq!(OwnProgram::at_start().replacement(), None);
    }

    #[test]
    fn another_file_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sluice");
        let calls = folder.path().join("calls");
        let script = format!(
            "#!/bin/sh\necho >> {}\necho '{{\"version\":\"9\",\"schema\":99}}'\n",
            calls.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let program = OwnProgram {
            file: Some((path, (0, 0, 0))),
            asked: Mutex::new(None),
        };
        let schema = || program.replacement().map(|it| it.schema);
        assert_eq!((schema(), schema()), (Some(99), Some(99)));
        assert_eq!(fs::read_to_string(calls).unwrap(), "\n");
    }
}
