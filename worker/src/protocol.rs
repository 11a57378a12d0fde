//! Messages between service and worker: job, reply, report; version, frame size, descriptors; sandbox layers in force.
//!
//! A message is JSON in one frame of bounded length; descriptors of inputs, then of outputs, ride on the job's frame
//! (`SCM_RIGHTS`). Both sides are the same binary, yet the version is checked: an upgrade may leave an old worker running.

use serde::{Deserialize, Serialize};
use sluice_media::{
    av::Report,
    task::{Done, Failure, Limits, Task},
};

/// Rises with every change of the messages.
pub const VERSION: u16 = 2;
/// The longest frame, in bytes.
pub const MAX_FRAME: usize = 1 << 20;
/// Descriptors that a job may carry, inputs and outputs together: what the kernel takes in one message (`SCM_MAX_FD`).
pub const MAX_DESCRIPTORS: usize = 253;
/// Characters of a failure's text; ours are much shorter.
const MAX_TEXT_CHARS: usize = 1_000;
/// Elements that a worker may miss, and the bytes of the name of one.
const MAX_ELEMENTS: usize = 200;
const MAX_ELEMENT_BYTES: usize = 64;

/// Service → worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub version: u16,
    pub id: u64,
    pub task: Task,
    pub limits: Limits,
    /// Number of the descriptors that are inputs; the rest are outputs.
    pub inputs: u8,
    pub outputs: u8,
    /// CPU seconds after which the kernel ends the worker.
    pub cpu_seconds: u32,
}

/// Worker → service, once when it is ready and once per job; between them, any number of reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Reply {
    Ready {
        version: u16,
        layers: Layers,
        /// Elements of GStreamer that the work needs and this machine lacks.
        #[serde(default)]
        missing_elements: Vec<String>,
    },
    #[serde(rename = "told")]
    Reported {
        id: u64,
        report: Report,
    },
    Done {
        id: u64,
        done: Box<Done>,
    },
    Failed {
        id: u64,
        failure: Failure,
    },
}

impl Reply {
    /// Reads the bytes of one answer. The worker is not trusted: whatever they are, the answer is within bounds or there is
    /// none, and the text of a failure is short and plain.
    pub fn parse(frame: &[u8]) -> Result<Self, String> {
        if frame.len() > MAX_FRAME {
            return Err(format!(
                "an answer of {} bytes, at most {MAX_FRAME} are taken",
                frame.len()
            ));
        }
        let mut reply = serde_json::from_slice(frame).map_err(|error| error.to_string())?;
        match &mut reply {
            Self::Ready {
                missing_elements, ..
            } => {
                let is_name = |name: &String| {
                    name.len() <= MAX_ELEMENT_BYTES && name.bytes().all(|it| it.is_ascii_graphic())
                };
                if missing_elements.len() > MAX_ELEMENTS || !missing_elements.iter().all(is_name) {
                    return Err("a list of elements that names none".into());
                }
            }
            Self::Reported { report, .. } => check_report(report)?,
            Self::Done { done, .. } => check_done(done)?,
            Self::Failed { failure, .. } => plain(&mut failure.message),
        }
        Ok(reply)
    }
}

fn check_report(report: &Report) -> Result<(), String> {
    match report {
        Report::Working { share } if !share.is_finite() => Err("a share that is no number".into()),
        _ => Ok(()),
    }
}

fn check_done(done: &Done) -> Result<(), String> {
    if done.outputs.len() > MAX_DESCRIPTORS {
        return Err(format!("facts of {} results", done.outputs.len()));
    }
    let members = done.members.iter().flatten();
    let is_odd = |name: &str| name.contains(['/', '\\']) || name.contains(char::is_control);
    match members
        .map(|member| &member.filename)
        .find(|name| is_odd(name))
    {
        Some(name) => Err(format!("a member of an archive is called {name:?}")),
        None => Ok(()),
    }
}

/// Makes a text fit for an answer and for a log.
fn plain(text: &mut String) {
    let is_plain = text.chars().count() <= MAX_TEXT_CHARS && !text.contains(char::is_control);
    if !is_plain {
        let shown = |character: char| match character.is_control() {
            true => ' ',
            false => character,
        };
        *text = text.chars().take(MAX_TEXT_CHARS).map(shown).collect();
    }
}

/// Layers of the sandbox that are in force in a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layers {
    pub rlimits: bool,
    pub no_new_privileges: bool,
    /// The ABI in force; `None`: the kernel has no landlock.
    pub landlock: Option<u8>,
    pub seccomp: bool,
}

impl Layers {
    /// Returns why untrusted bytes are not read under these layers where all are required, with the change to make;
    /// `None` when none is missing.
    pub fn rejection(&self) -> Option<String> {
        let missing = self.missing();
        (!missing.is_empty()).then(|| {
            format!(
                "this machine lacks {} of the sandbox: give the service a kernel that has it, or set image_workers.sandbox = \"best-effort\"",
                missing.join(" and ")
            )
        })
    }

    /// The names of what is missing, for people.
    pub fn missing(&self) -> Vec<&'static str> {
        [
            ("rlimits", self.rlimits),
            ("no_new_privs", self.no_new_privileges),
            ("landlock", self.landlock.is_some()),
            ("seccomp", self.seccomp),
        ]
        .into_iter()
        .filter_map(|(name, there)| (!there).then_some(name))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(value: &serde_json::Value) -> Result<Reply, String> {
        Reply::parse(value.to_string().as_bytes())
    }

    #[test]
    fn answers_out_of_bounds_are_none() {
        let done = |done: serde_json::Value| json!({"message": "done", "id": 1, "done": done});
        let outputs = |count: usize| {
            let output = json!({"bytes": 1, "pages": 1});
            done(json!({"outputs": vec![output; count]}))
        };
        let member = |name: &str| {
            done(json!({"members": [{"index": 0, "filename": name, "size": 1}], "outputs": []}))
        };
        let missing = |names: Vec<String>| {
            let layers = Layers::default();
            json!({"message": "ready", "version": 2, "layers": layers, "missing_elements": names})
        };
        let share = |share: f64| {
            json!({"message": "told", "id": 1, "report": serde_json::to_value(
                Report::Working { share: 0.5 }).map(|mut it| { it["share"] = json!(share); it }).unwrap()})
        };
        for (value, is_taken) in [
            (outputs(1), true),
            (outputs(MAX_DESCRIPTORS + 1), false),
            (member("a name.jpg"), true),
            (member("../../etc/passwd"), false),
            (member("a\\b"), false),
            (member("a\u{0}b"), false),
            (missing(vec!["x264enc".into()]), true),
            (missing(vec!["x".into(); MAX_ELEMENTS + 1]), false),
            (missing(vec!["a\nline".into()]), false),
            (share(0.5), true),
            (share(1e300), false),
            (json!({"message": "done", "id": -1}), false),
            (json!([]), false),
        ] {
            assert_eq!(parsed(&value).is_ok(), is_taken, "{value}");
        }
        assert!(Reply::parse(&vec![b' '; MAX_FRAME + 1]).is_err());
        assert!(Reply::parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn the_text_of_a_failure_is_short_and_plain() {
        let failed = |message: &str| {
            let failure = json!({"code": "undecodable", "message": message});
            match parsed(&json!({"message": "failed", "id": 1, "failure": failure})) {
                Ok(Reply::Failed { failure, .. }) => failure.message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(failed("the file is empty"), "the file is empty");
        assert_eq!(failed("a\nforged\u{1b} line"), "a forged  line");
        assert_eq!(failed(&"ü".repeat(5_000)).chars().count(), MAX_TEXT_CHARS);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..200,
            at in 0_usize..200,
        ) {
            let _ = Reply::parse(&bytes);
            let valid = Reply::Failed {
                id: 1,
                failure: Failure::new(sluice_media::task::FailureCode::Undecodable, "why"),
            };
            let mut valid = serde_json::to_vec(&valid).unwrap();
            valid.truncate(cut);
            let at = at.min(valid.len());
            valid.splice(at..at, bytes.iter().copied().take(3));
            let _ = Reply::parse(&valid);
        }
    }
}
