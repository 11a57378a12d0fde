//! Newest changes of one account, merged and bounded: ids of each kind and rows with progress that are kept for
//! followers. Readers keep a position only.

use std::collections::VecDeque;

use uuid::Uuid;

use super::{Action, Change, Kind, Progress};

/// Different ids that are kept of one kind. A reader that lags behind more of them looks at the whole kind.
pub(super) const MOST_IDS: usize = 128;
/// Rows whose last progress is kept. Progress of a further one pushes the oldest out: its end is a change too.
const MOST_PROGRESS: usize = 256;

/// The changes since the first follower, in order of their numbers.
#[derive(Debug)]
pub(super) struct AccountLog {
    /// The number of the newest entry.
    newest: u64,
    kinds: [KindLog; Kind::ALL.len()],
    progress: VecDeque<(u64, Progress)>,
}

/// Entries of one kind, oldest first, each id once.
#[derive(Debug, Default)]
struct KindLog {
    entries: VecDeque<Entry>,
    /// Up to this number entries may have been pushed out.
    lost_up_to: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    id: Option<Uuid>,
    /// The action of all changes that the entry has, merged.
    action: Action,
    /// The number under which the resource was created; 0 when that is not known. A reader that is past it has seen that.
    created: u64,
}

impl Entry {
    /// Returns the action for a reader that has seen everything up to a number.
    fn action_after(&self, seen: u64) -> Action {
        match self.action {
            Action::Created if self.created <= seen => Action::Changed,
            action => action,
        }
    }
}

/// Changes and progress that a reader has not seen yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Kinds of which not every change is known any more.
    pub lost: Vec<Kind>,
    pub changes: Vec<Change>,
    pub progress: Vec<Progress>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.changes.is_empty() && self.progress.is_empty()
    }

    /// Returns whether a credential may have ended.
    pub fn is_of_credentials(&self) -> bool {
        let changed = self.changes.iter().map(|change| change.kind);
        changed
            .chain(self.lost.iter().copied())
            .any(Kind::is_of_credentials)
    }
}

impl Default for AccountLog {
    fn default() -> Self {
        Self {
            newest: 0,
            kinds: std::array::from_fn(|_| KindLog::default()),
            progress: VecDeque::new(),
        }
    }
}

impl AccountLog {
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds a change; it is merged with an earlier one of the same resource.
    pub(super) fn push(&mut self, change: Change) {
        self.newest += 1;
        let log = &mut self.kinds[change.kind as usize];
        let mut entry = Entry {
            number: self.newest,
            id: change.id,
            action: change.action,
            created: 0,
        };
        if change.action == Action::Created {
            entry.created = self.newest;
        }
        // The same resource tends to change again soon.
        let known = log.entries.iter().rposition(|it| it.id == change.id);
        if let Some(known) = known.and_then(|at| log.entries.remove(at)) {
            entry.action = known.action.then(change.action);
            entry.created = entry.created.max(known.created);
        }
        log.entries.push_back(entry);
        if log.entries.len() > MOST_IDS
            && let Some(oldest) = log.entries.pop_front()
        {
            log.lost_up_to = oldest.number;
        }
    }

    /// Notes that not every change of this kind is known.
    pub(super) fn lose(&mut self, kind: Kind) {
        self.newest += 1;
        let log = &mut self.kinds[kind as usize];
        log.entries.clear();
        log.lost_up_to = self.newest;
    }

    /// Replaces the progress of a row, which never falls: reports may come in any order. Returns false when nothing has
    /// moved.
    pub(super) fn report(&mut self, mut progress: Progress) -> bool {
        if let Some(at) = self.place_of(progress.kind, progress.id) {
            let known = self.progress[at].1;
            progress.percent = progress.percent.max(known.percent);
            if progress == known {
                return false;
            }
            self.progress.remove(at);
        }
        self.newest += 1;
        self.progress.push_back((self.newest, progress));
        if self.progress.len() > MOST_PROGRESS {
            self.progress.pop_front();
        }
        true
    }

    /// Replaces the progress of a row that begins again, which may be less than before.
    pub(super) fn restart(&mut self, progress: Progress) -> bool {
        if let Some(at) = self.place_of(progress.kind, progress.id) {
            self.progress.remove(at);
        }
        self.report(progress)
    }

    fn place_of(&self, kind: Kind, id: Uuid) -> Option<usize> {
        let mut rows = self.progress.iter();
        rows.rposition(|(_, it)| it.kind == kind && it.id == id)
    }

    /// Returns the changes and progress after a number.
    pub(super) fn after(&self, seen: u64) -> Batch {
        let mut batch = Batch::default();
        for (kind, log) in Kind::ALL.into_iter().zip(&self.kinds) {
            if log.lost_up_to > seen {
                batch.lost.push(kind);
                continue;
            }
            let newer = log.entries.iter().rev();
            let newer = newer.take_while(|entry| entry.number > seen);
            let from = batch.changes.len();
            batch.changes.extend(newer.map(|entry| Change {
                kind,
                id: entry.id,
                action: entry.action_after(seen),
            }));
            batch.changes[from..].reverse();
        }
        let newer = self.progress.iter().rev();
        let newer = newer.take_while(|(number, _)| *number > seen);
        batch.progress.extend(newer.map(|(_, progress)| *progress));
        batch.progress.reverse();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(kind: Kind, id: u128) -> Change {
        Change::of_state(kind, Uuid::from_u128(id))
    }

    #[test]
    fn equal_nudges_are_one_and_every_reader_gets_what_it_has_not_seen() {
        let mut log = AccountLog::default();
        log.push(changed(Kind::File, 1));
        log.push(changed(Kind::File, 2));
        let seen = log.newest();
        let gone = Change {
            action: Action::Deleted,
            ..changed(Kind::File, 1)
        };
        log.push(gone);
        log.push(changed(Kind::Job, 1));
        assert_eq!(log.after(seen).changes, [gone, changed(Kind::Job, 1)]);
        assert_eq!(
            log.after(0).changes,
            [changed(Kind::File, 2), gone, changed(Kind::Job, 1)]
        );
        assert!(log.after(log.newest()).is_empty());
    }

    #[test]
    fn merged_nudges_are_what_happened_to_each_reader() {
        use Action::{Changed, Created, Deleted};
        // Each case: the actions of one file, how many of them a reader has seen, and what it gets.
        let cases: [(&[Action], usize, Action); 12] = [
            (&[Created, Changed], 0, Created),
            (&[Created, Changed], 1, Changed),
            (&[Created, Changed, Changed], 0, Created),
            (&[Created, Changed, Changed], 2, Changed),
            (&[Changed, Created], 0, Created),
            (&[Changed, Changed], 0, Changed),
            (&[Created, Changed, Deleted], 0, Deleted),
            (&[Created, Changed, Deleted], 2, Deleted),
            (&[Deleted, Changed], 0, Deleted),
            (&[Deleted, Changed], 1, Deleted),
            (&[Deleted, Created], 0, Created),
            (&[Deleted, Created, Changed], 2, Changed),
        ];
        for (actions, seen, expected) in cases {
            let mut log = AccountLog::default();
            let mut number = 0;
            for (at, action) in actions.iter().enumerate() {
                log.push(Change {
                    action: *action,
                    ..changed(Kind::File, 1)
                });
                if at + 1 == seen {
                    number = log.newest();
                }
            }
            let found: Vec<Action> = log
                .after(number)
                .changes
                .iter()
                .map(|it| it.action)
                .collect();
            assert_eq!(found, [expected], "{actions:?} {seen}");
        }
    }

    #[test]
    fn a_reader_that_lags_loses_one_kind_and_no_other() {
        let mut log = AccountLog::default();
        log.push(changed(Kind::File, 0));
        log.push(changed(Kind::Delivery, 0));
        let seen = log.newest();
        let most = u128::try_from(MOST_IDS).unwrap();
        for id in 1..=most {
            log.push(changed(Kind::Delivery, id));
        }
        let batch = log.after(seen);
        assert_eq!(
            (batch.lost.as_slice(), batch.changes.len()),
            (&[][..], MOST_IDS)
        );
        log.push(changed(Kind::Delivery, most + 1));
        assert_eq!(log.after(seen).lost, [Kind::Delivery]);
        let of_start = log.after(0);
        assert_eq!(of_start.lost, [Kind::Delivery]);
        assert_eq!(of_start.changes, [changed(Kind::File, 0)]);
        assert!(log.after(log.newest()).is_empty());
    }

    #[test]
    fn a_kind_may_be_lost_as_a_whole() {
        let mut log = AccountLog::default();
        log.push(changed(Kind::ApiKey, 1));
        log.lose(Kind::ApiKey);
        let batch = log.after(0);
        assert_eq!(batch.lost, [Kind::ApiKey]);
        assert!(batch.changes.is_empty() && batch.is_of_credentials());
        log.push(changed(Kind::Usage, 1));
        assert!(!log.after(log.newest() - 1).is_of_credentials());
    }

    #[test]
    fn progress_is_the_last_of_each_row() {
        let mut log = AccountLog::default();
        let at = |id, percent| Progress {
            kind: Kind::Job,
            id: Uuid::from_u128(id),
            percent,
            queue_place: None,
        };
        assert!(log.report(at(1, 5)) && log.report(at(2, 1)) && log.report(at(1, 9)));
        assert!(!log.report(at(1, 9)), "nothing has moved");
        assert_eq!(log.after(0).progress, [at(2, 1), at(1, 9)]);
        assert!(!log.report(at(1, 3)), "it came late");
        assert!(log.restart(at(1, 3)));
        assert_eq!(log.after(0).progress, [at(2, 1), at(1, 3)]);
        for id in 3..1_000 {
            log.report(at(id, 0));
        }
        assert_eq!(log.after(0).progress.len(), MOST_PROGRESS);
    }
}
