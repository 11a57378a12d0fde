//! Buffer that a workflow run passes from node to node: place (blob, scratch file), name, type, size and dimensions of its
//! bytes.

use std::{fs::File, sync::Arc};

use sluice_media::{format::Format, operation::OperationInput, task::OutputFacts, workflow::Facts};
use sluice_store::{
    Error as StoreError,
    blob::{BlobHash, Scratched, Sealed},
    files,
    workflows::{BufferLocation as JournalledPlace, Run, StepOutput},
};

use super::WorkflowServices;
use crate::durable::{input::known_format, step_error::StepError};

/// A file on its way through the nodes.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) filename: String,
    pub(super) mime: String,
    pub(super) size: u64,
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) duration_ms: Option<i64>,
    pub(super) place: Place,
    /// The file, once it was opened.
    file: Option<Arc<File>>,
    /// A worker was asked for its dimensions; they stay unknown when it had none.
    is_inspected: bool,
}

/// Place of the bytes.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A blob that a row names.
    Blob(BlobHash),
    /// A blob that is to be recorded with the next change.
    Sealed(Arc<Sealed>),
    /// A file of the run's scratch folder, which is open.
    Scratch(Scratched),
}

impl Place {
    /// Returns the length in bytes; `None` where only the blob's row has it.
    fn length(&self) -> Option<u64> {
        match self {
            Self::Blob(_) => None,
            Self::Sealed(sealed) => Some(sealed.blob().size),
            Self::Scratch(scratched) => Some(scratched.length),
        }
    }
}

impl Buffer {
    /// Returns the input of a run. `Error::NotFound` when it has expired.
    pub(super) fn input(run: &Run) -> Result<Self, StoreError> {
        let blob = run.input_blob.ok_or(StoreError::NotFound("input"))?;
        Ok(Self {
            filename: run.input_filename.clone(),
            mime: run.input_mime.clone(),
            size: run.input_size.unsigned_abs(),
            width: None,
            height: None,
            duration_ms: None,
            place: Place::Blob(blob),
            file: None,
            is_inspected: false,
        })
    }

    /// Returns the result of a journalled step; `None` when it is gone or differs.
    pub(super) async fn journalled(
        services: &WorkflowServices,
        run: &Run,
        position: u32,
        output: &StepOutput,
    ) -> Result<Option<Self>, StoreError> {
        let blobs = services.store.blobs();
        let (place, file) = match output.place {
            JournalledPlace::Blob => {
                let file = match blobs.open(&output.blob()).await {
                    Ok(file) => Some(file),
                    Err(StoreError::NotFound(_)) => None,
                    Err(error) => return Err(error),
                };
                (Place::Blob(output.blob()), file)
            }
            JournalledPlace::Scratch => {
                let expected = output.scratched();
                let file = blobs.open_scratch(run.id, position, &expected).await?;
                (Place::Scratch(expected), file)
            }
        };
        Ok(file.map(|file| Self {
            filename: output.filename.clone(),
            mime: output.mime.clone(),
            size: output.length.unsigned_abs(),
            width: output.width,
            height: output.height,
            duration_ms: None,
            place,
            file: Some(Arc::new(file)),
            is_inspected: false,
        }))
    }

    /// Makes a buffer of an operation's result; `file` is the one at its place, opened.
    pub(super) fn made(
        filename: String,
        format: Format,
        facts: &OutputFacts,
        place: Place,
        file: Option<File>,
    ) -> Self {
        Self {
            filename,
            mime: format.mime().to_owned(),
            size: place.length().unwrap_or(facts.bytes),
            width: facts.width,
            height: facts.height,
            duration_ms: facts.duration_ms.and_then(|ms| i64::try_from(ms).ok()),
            place,
            file: file.map(Arc::new),
            is_inspected: false,
        }
    }

    /// Returns the file, opened for reading; to be read at positions, since others read it too.
    pub(super) async fn file(
        &mut self,
        services: &WorkflowServices,
    ) -> Result<Arc<File>, StoreError> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let hash = match &self.place {
            Place::Blob(hash) => *hash,
            Place::Sealed(sealed) => sealed.blob().hash,
            Place::Scratch(_) => return Err(StoreError::NotFound("buffer")),
        };
        let file = Arc::new(services.store.blobs().open(&hash).await?);
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Opens it for an operation.
    pub(super) async fn source(
        &mut self,
        services: &WorkflowServices,
    ) -> Result<(OperationInput, Arc<File>), StepError> {
        let file = self.file(services).await?;
        let format = known_format(&file, &self.filename)?;
        Ok((OperationInput::new(format, self.filename.clone()), file))
    }

    /// Returns the pixels of one frame, where they are known.
    pub(super) fn pixels(&self) -> Option<u64> {
        let (width, height) = self.width.zip(self.height)?;
        Some(u64::from(width) * u64::from(height))
    }

    /// Returns whether only a worker can find its width, height and duration, and was not asked yet.
    pub(super) fn is_unmeasured(&self) -> bool {
        let is_timed =
            Format::from_mime(&self.mime).is_some_and(|format| format.class().is_timed());
        let is_known = match is_timed {
            true => self.duration_ms.is_some(),
            false => self.width.is_some(),
        };
        !is_known && !self.is_inspected
    }

    /// Takes the size as shown and the duration that a worker found, or that it found none.
    pub(super) fn measured(&mut self, facts: files::Facts) {
        (self.width, self.height) = (facts.width, facts.height);
        self.duration_ms = facts.duration_ms;
        self.is_inspected = true;
    }

    /// Returns the facts for conditions.
    pub(super) fn facts(&self, run: &Run) -> Facts {
        Facts {
            mime: Some(self.mime.clone()),
            size_bytes: Some(self.size),
            width: self.width,
            height: self.height,
            duration_s: self.duration_ms.map(|ms| ms as f64 / 1_000.0),
            upload_source: Some(run.upload_source.clone()),
            ..Facts::named(&self.filename)
        }
    }

    /// Returns its blob; `None` for scratch.
    pub(super) fn blob(&self) -> Option<BlobHash> {
        match &self.place {
            Place::Blob(hash) => Some(*hash),
            Place::Sealed(sealed) => Some(sealed.blob().hash),
            Place::Scratch(_) => None,
        }
    }

    /// Returns the journal's form of a step's result.
    pub(super) fn journal(&self) -> Option<StepOutput> {
        let (place, sha256) = match &self.place {
            Place::Scratch(scratched) => (JournalledPlace::Scratch, scratched.sha256),
            _ => (JournalledPlace::Blob, *self.blob()?.as_bytes()),
        };
        Some(StepOutput {
            place,
            sha256,
            length: self.length(),
            filename: self.filename.clone(),
            mime: self.mime.clone(),
            width: self.width,
            height: self.height,
        })
    }

    /// Returns its length in bytes, as the journal has it.
    pub(super) fn length(&self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX)
    }
}
