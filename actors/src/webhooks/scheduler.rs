//! Bounds on webhook attempts in flight (`max_in_flight`, `max_per_endpoint`), half of them for failing endpoints, and turns
//! between endpoints. Pure.
//!
//! - At most `max_in_flight` in all and `max_per_endpoint` for one endpoint.
//! - A failing endpoint (its last attempt failed, or one runs for long) has one at a time, and all such endpoints
//!   together half of the whole: receivers that hang cannot take the places of those that answer.
//! - Places are given one a round, first to the endpoint that was served longest ago, so that a backlog starves no other. An
//!   endpoint that comes again is placed as if served just now.

use std::collections::HashMap;

use uuid::Uuid;

/// The bounds of attempts in flight.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub in_all: usize,
    pub for_one: usize,
}

impl Bounds {
    /// Returns the bound for all failing endpoints together; one at least, so that they can recover.
    pub fn failing(&self) -> usize {
        (self.in_all / 2).max(1)
    }
}

/// An endpoint for which something is due.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub endpoint_id: Uuid,
    pub in_flight: usize,
    pub is_failing: bool,
}

/// Attempts in flight, of all endpoints, whether they apply or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    pub in_all: usize,
    pub failing: usize,
}

/// Turns of the endpoints: one entry for each that was seen last time.
#[derive(Debug, Default)]
pub struct Scheduler {
    served: HashMap<Uuid, u64>,
    turn: u64,
}

/// Attempts that an endpoint may have now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub endpoint_id: Uuid,
    pub places: usize,
}

impl Scheduler {
    /// Forgets endpoints that are not among `present`, and notes those that are new.
    pub fn meet(&mut self, present: impl Iterator<Item = Uuid>) {
        self.turn += 1;
        let mut known = std::mem::take(&mut self.served);
        self.served = present
            .map(|id| (id, known.remove(&id).unwrap_or(self.turn)))
            .collect();
    }

    /// Divides the free places. The second part of the answer: whether an endpoint got fewer than its own bounds allow,
    /// because others had their turn.
    pub fn divide(
        &mut self,
        bounds: Bounds,
        load: Load,
        candidates: &[Candidate],
    ) -> (Vec<Grant>, bool) {
        let mut queue: Vec<&Candidate> = candidates.iter().collect();
        queue.sort_by_key(|candidate| (self.served_at(candidate), candidate.endpoint_id));
        let mut places = vec![0; queue.len()];
        let mut free = bounds.in_all.saturating_sub(load.in_all);
        let mut free_for_failing = bounds.failing().saturating_sub(load.failing);
        let mut is_short = false;
        loop {
            let mut has_given = false;
            for (candidate, given) in queue.iter().zip(&mut places) {
                if candidate.in_flight + *given >= allowed(bounds, candidate) {
                    continue;
                }
                if free == 0 || (candidate.is_failing && free_for_failing == 0) {
                    is_short = true;
                    continue;
                }
                free -= 1;
                free_for_failing -= usize::from(candidate.is_failing);
                *given += 1;
                has_given = true;
                self.turn += 1;
                self.served.insert(candidate.endpoint_id, self.turn);
            }
            if !has_given {
                break;
            }
        }
        let grants = queue.iter().zip(places).filter(|(_, places)| *places > 0);
        let grants = grants.map(|(candidate, places)| Grant {
            endpoint_id: candidate.endpoint_id,
            places,
        });
        (grants.collect(), is_short)
    }

    fn served_at(&self, candidate: &Candidate) -> u64 {
        let served = self.served.get(&candidate.endpoint_id);
        served.copied().unwrap_or(self.turn)
    }
}

fn allowed(bounds: Bounds, candidate: &Candidate) -> usize {
    match candidate.is_failing {
        true => 1,
        false => bounds.for_one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        in_all: 8,
        for_one: 4,
    };

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn candidate(number: u128, in_flight: usize, is_failing: bool) -> Candidate {
        Candidate {
            endpoint_id: id(number),
            in_flight,
            is_failing,
        }
    }

    fn load(in_all: usize, failing: usize) -> Load {
        Load { in_all, failing }
    }

    /// Endpoints and places, by endpoint.
    fn divided(load: Load, candidates: &[Candidate]) -> (Vec<(u128, usize)>, bool) {
        let (grants, is_short) = Scheduler::default().divide(BOUNDS, load, candidates);
        let mut places: Vec<(u128, usize)> = grants
            .iter()
            .map(|grant| (grant.endpoint_id.as_u128(), grant.places))
            .collect();
        places.sort_unstable();
        (places, is_short)
    }

    /// A name, the load, who applies, who gets what, and whether someone had to leave a place.
    type Case = (&'static str, Load, Vec<Candidate>, Vec<(u128, usize)>, bool);

    #[test]
    fn places_are_bounded_and_go_round() {
        let well = |number, in_flight| candidate(number, in_flight, false);
        let ill = |number, in_flight| candidate(number, in_flight, true);
        let cases: [Case; 10] = [
            ("none", load(0, 0), vec![], vec![], false),
            ("one", load(0, 0), vec![well(1, 0)], vec![(1, 4)], false),
            (
                "one with three",
                load(3, 0),
                vec![well(1, 3)],
                vec![(1, 1)],
                false,
            ),
            ("one with all", load(4, 0), vec![well(1, 4)], vec![], false),
            ("a full house", load(8, 0), vec![well(1, 0)], vec![], true),
            (
                "an overfull house",
                load(12, 9),
                vec![well(1, 0), ill(2, 0)],
                vec![],
                true,
            ),
            (
                "three share eight places",
                load(0, 0),
                vec![well(1, 0), well(2, 0), well(3, 0)],
                vec![(1, 3), (2, 3), (3, 2)],
                true,
            ),
            ("failing", load(0, 0), vec![ill(1, 0)], vec![(1, 1)], false),
            (
                "failing with one",
                load(4, 4),
                vec![ill(1, 1), ill(2, 4)],
                vec![],
                false,
            ),
            (
                "those that fail have half",
                load(2, 2),
                vec![ill(1, 0), ill(2, 0), ill(3, 0), well(4, 0)],
                vec![(1, 1), (2, 1), (4, 4)],
                true,
            ),
        ];
        for (name, load, candidates, places, is_short) in cases {
            assert_eq!(divided(load, &candidates), (places, is_short), "{name}");
        }
    }

    #[test]
    fn one_place_is_enough_for_failing_endpoints_to_get_well() {
        let tiny = Bounds {
            in_all: 1,
            for_one: 1,
        };
        let (grants, _) =
            Scheduler::default().divide(tiny, Load::default(), &[candidate(1, 0, true)]);
        assert_eq!(grants[0].places, 1);
    }

    #[test]
    fn everybody_has_a_turn_though_only_one_place_is_free() {
        for is_failing in [false, true] {
            let mut scheduler = Scheduler::default();
            let candidates: Vec<Candidate> = (0..5)
                .map(|number| candidate(number, 0, is_failing))
                .collect();
            let mut turns = Vec::new();
            for round in 0..15 {
                // A newcomer in every round must not push the others back for ever.
                let newcomer = candidate(100 + round, 0, is_failing);
                let all: Vec<Candidate> = candidates.iter().copied().chain([newcomer]).collect();
                scheduler.meet(all.iter().map(|candidate| candidate.endpoint_id));
                let (grants, is_short) = scheduler.divide(BOUNDS, load(7, 3), &all);
                assert!(is_short);
                turns.extend(grants.iter().map(|grant| grant.endpoint_id.as_u128()));
            }
            for number in 0..5 {
                let had = turns.iter().filter(|turn| **turn == number).count();
                assert!(had >= 2, "{number} had {had} turns of {turns:?}");
            }
        }
    }

    #[test]
    fn a_neighbour_that_is_well_does_not_decide_whose_turn_it_is_among_failing_ones() {
        let mut scheduler = Scheduler::default();
        let candidates = [
            candidate(1, 0, true),
            candidate(2, 0, true),
            candidate(3, 0, false),
        ];
        scheduler.meet(candidates.iter().map(|candidate| candidate.endpoint_id));
        let first = |scheduler: &mut Scheduler| {
            let (grants, _) = scheduler.divide(BOUNDS, load(3, 3), &candidates);
            let ill = grants.iter().find(|grant| grant.endpoint_id != id(3));
            ill.map(|grant| grant.endpoint_id.as_u128())
        };
        assert_eq!(first(&mut scheduler), Some(1));
        assert_eq!(first(&mut scheduler), Some(2));
        assert_eq!(first(&mut scheduler), Some(1));
    }
}
