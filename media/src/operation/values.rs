//! Trait of an operation's values: reading of its fields, its task, format and second result.

use super::{OperationInput, TextOutput, params::FieldError, reader::Reader, writable};
use crate::{
    format::Format,
    task::{Failure, Task},
};

/// Values of an operation, one type for each row of the table. [`Operation`](super::Operation) has methods of the same
/// names, with their contracts.
pub(super) trait Values {
    /// Reads the fields of the row.
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError>
    where
        Self: Sized;

    /// Makes the task. `source` is the first of the files and `others` follow it; the row accepts them.
    fn task(&self, source: &OperationInput, others: &[OperationInput]) -> Result<Task, Failure>;

    fn output_format(&self, source: Format) -> Option<Format> {
        Some(writable(source))
    }

    fn text_output(&self, _source: &OperationInput) -> Option<TextOutput> {
        None
    }

    fn is_packing(&self) -> bool {
        false
    }

    fn joins(&self) -> bool {
        self.is_packing()
    }

    fn opens_archives(&self) -> bool {
        false
    }

    /// Returns the files that the row's classes apply to; [`Self::task`] checks the others.
    fn worked_on<'a>(&self, sources: &'a [OperationInput]) -> &'a [OperationInput] {
        sources
    }
}
