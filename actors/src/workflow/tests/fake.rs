//! Workers that record their work in the text of their output, and that a test can hold up.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{Seek as _, Write as _},
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

use parking_lot::Mutex;
use sluice_media::{
    format::Format,
    task::{Done, Failure, FailureCode, ImageFacts, OutputFacts, Task},
};
use tokio::sync::Semaphore;

use crate::{
    compute::{Assignment, Error, Finished, Output},
    fixtures::{Performer, Running, image_facts},
};

/// Bytes between a format's magic number and the text.
const TEXT: &[u8] = b"\0TEXT:";

/// A file of the format that its name has, with a text in it.
pub(super) fn content(filename: &str, text: &str) -> Vec<u8> {
    let format = Format::from_filename(filename).unwrap_or(Format::Png);
    [mark(format), TEXT, text.as_bytes()].concat()
}

fn mark(format: Format) -> &'static [u8] {
    match format {
        Format::Png => b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        Format::Webp => b"RIFF\x10\0\0\0WEBPVP8 ",
        Format::Jpg => b"\xff\xd8\xff\xdb",
        Format::Pdf => b"%PDF-1.7\n",
        Format::Mp4 => b"\0\0\0\x18ftypisom\0\0\x02\0isommp42",
        other => panic!("no mark for {other:?}"),
    }
}

pub(super) fn text_in(bytes: &[u8]) -> String {
    let at = bytes.windows(TEXT.len()).position(|part| part == TEXT);
    let at = at.expect("a file of these tests has a text") + TEXT.len();
    String::from_utf8(bytes[at..].to_vec()).unwrap()
}

fn text_of(file: &File) -> String {
    let mut bytes = vec![0; 64 << 10];
    let length = file.read_at(&mut bytes, 0).unwrap();
    text_in(&bytes[..length])
}

/// See the module documentation.
pub(super) struct Fake {
    /// Tasks that were finished, as `text>label`.
    done: Mutex<Vec<String>>,
    /// Tasks with these labels take a permit of the gate.
    held: Mutex<HashSet<String>>,
    pub(super) gate: Semaphore,
    pub(super) running: AtomicUsize,
    failing: Mutex<HashMap<String, FailureCode>>,
    dying: Mutex<HashSet<String>>,
    /// So many tasks are refused as busy first.
    pub(super) busy: AtomicUsize,
    /// Every result gets a number, as from an encoder that never does the same twice.
    pub(super) is_fickle: std::sync::atomic::AtomicBool,
    number: AtomicUsize,
    /// Tasks of others end all the time: every look finds one more.
    pub(super) others_end: std::sync::atomic::AtomicBool,
    pub(super) ended: std::sync::atomic::AtomicU64,
    /// Characters of a tag that every inspection finds.
    pub(super) tag_chars: AtomicUsize,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            done: Mutex::default(),
            held: Mutex::default(),
            gate: Semaphore::new(0),
            running: AtomicUsize::new(0),
            failing: Mutex::default(),
            dying: Mutex::default(),
            busy: AtomicUsize::new(0),
            is_fickle: false.into(),
            number: AtomicUsize::new(0),
            others_end: false.into(),
            ended: 0.into(),
            tag_chars: AtomicUsize::new(0),
        }
    }
}

impl Fake {
    /// Tasks with that label wait for a permit of the gate.
    pub(super) fn hold(&self, label: &str) {
        self.held.lock().insert(label.to_owned());
    }

    pub(super) fn release(&self) {
        self.held.lock().clear();
        self.gate.add_permits(1_000);
    }

    pub(super) fn fail(&self, label: &str, code: FailureCode) {
        self.failing.lock().insert(label.to_owned(), code);
    }

    pub(super) fn mend(&self) {
        self.failing.lock().clear();
        self.dying.lock().clear();
    }

    pub(super) fn die_at(&self, label: &str) {
        self.dying.lock().insert(label.to_owned());
    }

    /// Returns how often a task with that label was finished.
    pub(super) fn times(&self, label: &str) -> usize {
        let end = format!(">{label}");
        let done = self.done.lock();
        done.iter().filter(|text| text.ends_with(&end)).count()
    }

    fn write(&self, task: &Task, mut output: &File, made: &str) -> Done {
        let (format, width) = match task {
            Task::Render(render) => {
                let resized = render.resize.and_then(|resize| resize.width);
                (render.output.format, resized)
            }
            _ => (Format::Pdf, None),
        };
        let bytes = [mark(format), TEXT, made.as_bytes()].concat();
        output.rewind().unwrap();
        output.write_all(&bytes).unwrap();
        Done {
            outputs: vec![OutputFacts {
                bytes: bytes.len() as u64,
                format: Some(format),
                width: width.or_else(|| width_in(made)),
                height: Some(100),
                pages: 1,
                duration_ms: None,
                applied_quality: None,
                path: None,
            }],
            ..Done::default()
        }
    }
}

/// Returns the name of a task in these tests: its format, and the width when it resizes.
fn label(task: &Task, mark: Option<String>) -> String {
    match task {
        Task::Render(render) => {
            let width = render.resize.and_then(|resize| resize.width);
            let width = width.map(|width| width.to_string()).unwrap_or_default();
            let mark = mark.map(|mark| format!("+{mark}")).unwrap_or_default();
            format!(
                "{}{width}{mark}",
                render.output.format.name().to_lowercase()
            )
        }
        Task::Inspect { .. } => "inspect".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The number after `w=`.
fn width_in(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("w=")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn image(format: Format, text: &str) -> Result<ImageFacts, Failure> {
    let unknown = || Failure::new(FailureCode::Undecodable, "it does not decode");
    Ok(image_facts(
        format,
        width_in(text).ok_or_else(unknown)?,
        100,
    ))
}

impl Performer for Fake {
    async fn perform(&self, assignment: Assignment) -> Result<Finished, Error> {
        if self.busy.load(SeqCst) > 0 {
            self.busy.fetch_sub(1, SeqCst);
            return Err(Error::Busy);
        }
        let _running = Running::begin(&self.running);
        let text = text_of(&assignment.inputs[0]);
        let label = label(
            &assignment.task,
            assignment.inputs.get(1).map(|mark| text_of(mark)),
        );
        if self.held.lock().contains(&label) {
            self.gate.acquire().await.unwrap().forget();
        }
        assert!(
            !self.dying.lock().contains(&label),
            "a test asked for this panic"
        );
        if let Some(code) = self.failing.lock().get(&label) {
            return Err(Failure::new(*code, "a test asked for this failure").into());
        }
        let done = match &assignment.task {
            Task::Inspect { format } => {
                let mut image = image(*format, &text)?;
                if let chars @ 1.. = self.tag_chars.load(SeqCst) {
                    let tag = ("ImageDescription".to_owned(), "x".repeat(chars));
                    image.exif.extend([tag]);
                }
                Done {
                    image: Some(image),
                    ..Done::default()
                }
            }
            task => {
                let Output::Files(outputs) = assignment.output else {
                    panic!("runs write files");
                };
                let mut made = format!("{text}>{label}");
                if self.is_fickle.load(SeqCst) {
                    made += &format!("#{}", self.number.fetch_add(1, SeqCst));
                }
                self.write(task, &outputs[0], &made)
            }
        };
        self.done.lock().push(format!("{text}>{label}"));
        Ok(Finished {
            done,
            bytes: Vec::new(),
        })
    }

    fn signs(&self) -> u64 {
        let more = u64::from(self.others_end.load(SeqCst));
        self.ended.fetch_add(more, SeqCst)
    }
}
