//! Failures of the object store, by what may follow: nothing to read, no space, a change by the operator, another try.

use crate::Error;

/// Reason why a request to the object store failed. Texts complete the sentence "the object store …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Missing,
    Full,
    /// A repetition fails too: the operator has to change something.
    Rejected {
        reason: String,
        advice: &'static str,
    },
    /// A repetition may succeed.
    Transient(String),
}

impl Failure {
    pub(super) fn rejected(reason: impl Into<String>, advice: &'static str) -> Self {
        Self::Rejected {
            reason: reason.into(),
            advice,
        }
    }
}

impl From<Failure> for Error {
    /// Maps failures of a service that runs: what the operator has to mend is worth a retry too, since it worked at the start.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing => Self::NotFound("object"),
            Failure::Full => Self::Full,
            Failure::Rejected { reason, advice } => {
                Self::Objects(format!("the object store {reason}: {advice}"))
            }
            Failure::Transient(reason) => Self::Objects(format!("the object store {reason}")),
        }
    }
}
