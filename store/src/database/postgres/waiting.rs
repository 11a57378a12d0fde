//! Units that wait for a connection, in turns: those of one account after each other, those that are serial with all alone.

use std::collections::{HashMap, HashSet, VecDeque};

use tokio::time::Instant;

use crate::{serial::Serial, unit::Queued};

/// Units of one kind that share a transaction.
pub(super) struct Group {
    pub(super) serial: Serial,
    pub(super) units: Vec<Queued>,
}

/// The queues. A kind of units is in `turns` while some of it wait and none runs.
#[derive(Default)]
pub(super) struct Waiting {
    queues: HashMap<Serial, VecDeque<Queued>>,
    turns: VecDeque<Serial>,
    running: HashSet<Serial>,
    len: usize,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, queued: Queued) {
        let serial = queued.serial;
        let queue = self.queues.entry(serial).or_default();
        if queue.is_empty() && !self.running.contains(&serial) {
            self.turns.push_back(serial);
        }
        queue.push_back(queued);
        self.len += 1;
    }

    /// Takes the group whose turn it is, of at most so many units. It counts as running until [`Waiting::finish`].
    pub(super) fn next(&mut self, most: usize) -> Option<Group> {
        let at = self.place_of_next()?;
        let serial = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&serial)?;
        let units: Vec<Queued> = queue.drain(..queue.len().min(most)).collect();
        self.len -= units.len();
        self.running.insert(serial);
        Some(Group { serial, units })
    }

    /// Units that are serial with all wait until no other runs, and those of accounts that came later wait for them.
    fn place_of_next(&self) -> Option<usize> {
        let runs_all = self.running.contains(&Serial::All);
        let mut is_behind_all = false;
        for (at, serial) in self.turns.iter().enumerate() {
            let may_run = match serial {
                Serial::Nothing => true,
                Serial::All => !self.running.iter().any(|it| *it != Serial::Nothing),
                Serial::Account(_) => !runs_all && !is_behind_all,
            };
            if may_run {
                return Some(at);
            }
            is_behind_all |= *serial == Serial::All;
        }
        None
    }

    /// Takes the units that are late, out of turn. A probe stays, which is late from the beginning.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<Queued> {
        let mut late = Vec::new();
        for queue in self.queues.values_mut() {
            let (gone, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(queue)
                .into_iter()
                .partition(|queued| queued.expires <= now && queued.expires > queued.since);
            late.extend(gone);
            *queue = kept;
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|serial| self.queues.contains_key(serial));
        self.len -= late.len();
        late
    }

    /// Notes that a group is done.
    pub(super) fn finish(&mut self, serial: Serial) {
        self.running.remove(&serial);
        match self.queues.get(&serial) {
            Some(queue) if !queue.is_empty() => self.turns.push_back(serial),
            _ => drop(self.queues.remove(&serial)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::unit::Submitted;

    fn unit(serial: Serial) -> Queued {
        waiting_for(serial, Duration::from_secs(1))
    }

    /// Returns a unit that is late after so long.
    fn waiting_for(serial: Serial, patience: Duration) -> Queued {
        let (unit, _answer) = Submitted::<(), _>::new(|_| Box::pin(async { Ok(()) }));
        let since = Instant::now();
        Queued {
            since,
            expires: since + patience,
            serial,
            unit: Box::new(unit),
        }
    }

    fn account(number: u128) -> Serial {
        Serial::Account(Uuid::from_u128(number))
    }

    #[test]
    fn accounts_run_beside_each_other_and_their_own_units_do_not() {
        let mut waiting = Waiting::default();
        for serial in [account(1), account(2), account(1), account(1)] {
            waiting.push(unit(serial));
        }
        let first = waiting.next(2).unwrap();
        assert_eq!((first.serial, first.units.len()), (account(1), 2));
        assert_eq!(waiting.next(2).unwrap().serial, account(2));
        assert!(waiting.next(2).is_none(), "one of the account runs");
        waiting.finish(account(1));
        assert_eq!(waiting.next(2).unwrap().units.len(), 1);
        assert_eq!(waiting.len(), 0);
    }

    #[test]
    fn units_that_are_serial_with_all_run_alone_and_are_not_passed() {
        let mut waiting = Waiting::default();
        for serial in [account(1), Serial::All, account(2), Serial::Nothing] {
            waiting.push(unit(serial));
        }
        assert_eq!(waiting.next(9).unwrap().serial, account(1));
        assert_eq!(waiting.next(9).unwrap().serial, Serial::Nothing);
        assert!(waiting.next(9).is_none(), "an account's unit runs");
        waiting.finish(account(1));
        assert_eq!(waiting.next(9).unwrap().serial, Serial::All);
        waiting.push(unit(account(1)));
        assert!(
            waiting.next(9).is_none(),
            "one that is serial with all runs"
        );
        waiting.finish(Serial::All);
        assert_eq!(waiting.next(9).unwrap().serial, account(2));
        assert_eq!(waiting.next(9).unwrap().serial, account(1));
    }

    #[test]
    fn late_units_leave_and_those_behind_them_keep_their_turns() {
        let soon = |serial| waiting_for(serial, Duration::from_secs(1));
        let later = |serial| waiting_for(serial, Duration::from_secs(60));
        let mut waiting = Waiting::default();
        waiting.push(soon(account(1)));
        assert_eq!(waiting.next(9).unwrap().serial, account(1));
        for queued in [
            soon(Serial::All),
            soon(account(1)),
            soon(account(2)),
            later(account(2)),
            later(account(3)),
            waiting_for(Serial::Nothing, Duration::ZERO),
        ] {
            waiting.push(queued);
        }
        assert!(waiting.take_late(Instant::now()).is_empty());
        let late = waiting.take_late(Instant::now() + Duration::from_secs(2));
        assert_eq!((late.len(), waiting.len()), (3, 3));
        let next = |waiting: &mut Waiting| waiting.next(9).unwrap().serial;
        assert_eq!(next(&mut waiting), account(2), "none waits for all");
        assert_eq!(next(&mut waiting), account(3));
        assert_eq!(next(&mut waiting), Serial::Nothing, "a probe is not late");
        waiting.push(soon(account(1)));
        assert!(waiting.next(9).is_none(), "one of the account runs");
        waiting.finish(account(1));
        assert_eq!(next(&mut waiting), account(1));
        assert_eq!(waiting.len(), 0);
    }
}
