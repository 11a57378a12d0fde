//! The values of one operation's fields, and what they make of its files.

use super::{OperationInput, TextOutput, params::FieldError, reader::Reader};
use crate::{
    format::Format,
    task::{Failure, Task},
};

/// Implemented by the type of a row of the table. [`Operation`](super::Operation) has methods of the same names, which
/// say more.
pub(super) trait Values {
    /// Reads the fields of the row.
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError>
    where
        Self: Sized;

    /// `source` is the first of the files and `others` follow it; the row accepts them.
    fn task(&self, source: &OperationInput, others: &[OperationInput]) -> Result<Task, Failure>;

    fn output_format(&self, source: Format) -> Option<Format>;

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
