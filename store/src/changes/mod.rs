//! Changes of an account as nudges (`GET /api/changes`): kinds such as `live_input` and `file`, actions, progress. They
//! are of what was committed, and of what moves without a commit.
//!
//! - A nudge says which resource to look at again, never what it is now. Equal nudges are merged, and a reader that falls
//!   behind gets the kind as a whole, so that a nudge may be lost but a change cannot be missed.
//! - Nudges of rows are derived from the tables: the writer's connection records them by triggers ([`tables`]), in the
//!   transaction that changes the row, and the writer appends them to the [`ChangeLog`] after the commit. No verb can
//!   forget one.
//! - State that has no row (live or reconnecting, progress, an output's status) is appended by the actor that publishes
//!   it.
//! - Directories and caches of a node follow the rows of all accounts ([`EverythingFollower`]), whichever node changed them.

mod account_log;
mod everything;
mod log;
mod recorder;
mod tables;

use uuid::Uuid;

pub use account_log::Batch;
pub use everything::{Everything, EverythingFollower};
pub use log::{ChangeLog, Follower};

pub(crate) use recorder::{Recorded, Recorder, merged_texts};
pub(crate) use tables::postgres_triggers;

text_enum! {
    /// The kind of a resource, as clients know it.
    pub enum Kind {
        Account = "account",
        User = "user",
        Session = "session",
        ApiKey = "api_key",
        Audit = "audit",
        File = "file",
        Folder = "folder",
        Share = "share",
        Upload = "upload",
        LiveInput = "live_input",
        Output = "output",
        Recording = "recording",
        Stream = "stream",
        Job = "job",
        Run = "run",
        Workflow = "workflow",
        Webhook = "webhook",
        Delivery = "delivery",
        Event = "event",
        DeliveryKey = "delivery_key",
        PlaybackKey = "playback_key",
        Preset = "preset",
        Usage = "usage",
        Service = "service",
        System = "system",
    }
}

impl Kind {
    /// Returns whether a change of this kind may end a credential.
    pub fn is_of_credentials(self) -> bool {
        matches!(
            self,
            Self::Account | Self::User | Self::Session | Self::ApiKey
        )
    }

    fn from_index(index: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(index).ok()?).copied()
    }
}

text_enum! {
    /// Kind of change of the resource.
    pub enum Action {
        Created = "created",
        Changed = "changed",
        Deleted = "deleted",
    }
}

impl Action {
    /// Merges two actions of one resource, for a client that has seen neither: what it does not know is created, whatever
    /// changed since, and what is gone stays deleted, although parts of it may change after it.
    fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Created | Self::Deleted, Self::Changed) => self,
            (_, next) => next,
        }
    }

    fn from_index(index: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(index).ok()?).copied()
    }
}

/// A nudge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// `None`: any resource of this kind.
    pub id: Option<Uuid>,
    pub action: Action,
}

impl Change {
    /// A change of state that has no row, such as an input that begins to reconnect.
    pub fn of_state(kind: Kind, id: Uuid) -> Self {
        Self {
            kind,
            id: Some(id),
            action: Action::Changed,
        }
    }
}

/// Progress of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub kind: Kind,
    pub id: Uuid,
    /// 0 to 100.
    pub percent: u8,
    /// The place in the queue of the workers; 1 is next.
    pub queue_place: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_actions_are_what_happened_to_one_who_saw_neither() {
        use Action::{Changed, Created, Deleted};
        for (first, next, merged) in [
            (Created, Created, Created),
            (Created, Changed, Created),
            (Created, Deleted, Deleted),
            (Changed, Created, Created),
            (Changed, Changed, Changed),
            (Changed, Deleted, Deleted),
            (Deleted, Created, Created),
            (Deleted, Changed, Deleted),
            (Deleted, Deleted, Deleted),
        ] {
            assert_eq!(first.then(next), merged, "{first:?} {next:?}");
        }
    }
}
