//! The dispatcher over a plain table, under simulated time, with receivers and faults by chance.
//!
//! Each seed is a run of its own: endpoints of all manners, crashes, a locked database, clocks that jump, replays, owners
//! that resume what was paused. The rules that hold in every run are checked where they could be broken ([`world`]) and at
//! its end. A failure names its seed; `SLUICE_SEED` runs that one alone.

mod receiver;
mod table;
mod world;

use std::time::Duration;

use self::{
    receiver::Manner,
    table::{End, Status},
    world::{Happening, World},
};
use super::WebhookSettings;

/// Runs of everything by chance.
const SEEDS: u64 = 2_000;
/// Runs of a receiver that is down for two hours.
const OUTAGES: u64 = 60;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Random numbers by a seed (splitmix64): quick, and the same everywhere.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` up to and with `high`.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.roll() % (high - low + 1) as u64) as i64
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.roll().is_multiple_of(chances)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.roll() % from.len() as u64) as usize]
    }

    /// From 0 up to 1.
    fn fraction(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Runs the seeds on all cores; the first that fails ends the test. `SLUICE_SEEDS_TIMES` makes them more.
fn each_seed(seeds: u64, run: fn(u64)) {
    if let Ok(seed) = std::env::var("SLUICE_SEED") {
        return run(seed.parse().unwrap());
    }
    let times = std::env::var("SLUICE_SEEDS_TIMES").map_or(1, |times| times.parse().unwrap());
    let seeds = seeds * times;
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || (thread..seeds).step_by(threads as usize).for_each(run));
        }
    });
}

/// Bounds and times that make failures coincide often.
fn narrow_settings(dice: &mut Dice) -> WebhookSettings {
    let max_in_flight = dice.between(1, 8) as usize;
    WebhookSettings {
        max_in_flight,
        max_per_endpoint: dice.between(1, max_in_flight.min(4) as i64) as usize,
        retry_after_s: dice
            .pick(&[
                &[5, 30, 120, 600, 1_800][..],
                &[1, 1, 1],
                &[60],
                &[5, 5, 30, 30, 60, 60],
            ])
            .to_vec(),
        suspend_after: dice.between(2, 10) as u32,
        suspend_over: Duration::from_secs(dice.pick(&[0, 60, 300])),
        probe_every: Duration::from_secs(dice.pick(&[10, 60])),
        ..WebhookSettings::default()
    }
}

#[test]
fn whatever_happens_the_rules_hold_and_everything_arrives() {
    each_seed(SEEDS, |seed| {
        let mut dice = Dice(seed);
        let mut world = World::new(seed, narrow_settings(&mut dice));
        let endpoints = dice.between(1, 4);
        for _ in 0..endpoints {
            world.add_endpoint(Manner::any(&mut dice));
        }
        let end = dice.between(5, 60) * MINUTE;
        for _ in 0..dice.between(3, 24) {
            let of = dice.between(0, endpoints - 1) as usize;
            world.at(dice.between(0, end), Happening::Event(of));
        }
        for _ in 0..dice.between(0, 6) {
            let fault = match dice.between(0, 6) {
                0 => Happening::Crash,
                1 => Happening::Panic,
                2 => Happening::Locked(dice.between(1, 30) * SECOND),
                3 => Happening::Jump(dice.between(-2 * HOUR, 2 * HOUR)),
                4 => Happening::Jump(dice.pick(&[-1, 1]) * 30 * 24 * HOUR),
                5 => Happening::Replay,
                _ => Happening::Resume(dice.between(0, endpoints - 1) as usize),
            };
            world.at(dice.between(0, end), fault);
        }
        world.at(end, Happening::Calm);
        world.run_until(end + 3 * HOUR);
        world.check_the_end();
    });
}

/// A receiver in use that is down over lunch loses nothing, and gets it in order.
#[test]
fn a_receiver_that_is_down_for_two_hours_gets_everything_in_order() {
    each_seed(OUTAGES, |seed| {
        let mut dice = Dice(seed);
        let mut world = World::new(seed, WebhookSettings::default());
        let receiver = world.add_endpoint(Manner::Healthy);
        let neighbour = world.add_endpoint(Manner::Healthy);
        let (down, up) = (10 * MINUTE, 10 * MINUTE + 2 * HOUR);
        let end = up + 10 * MINUTE;
        let mut at = 0;
        while at < end {
            world.at(at, Happening::Event(receiver));
            if dice.one_in(8) {
                world.at(at, Happening::Event(neighbour));
            }
            // At least one a minute, now and then some at once.
            at += dice.pick(&[0, 1, 20 * SECOND, MINUTE, MINUTE, MINUTE]);
        }
        let manner = dice.pick(&[
            Manner::Failing,
            Manner::Hanging,
            Manner::RetryAfter(Some(99_999_999)),
            Manner::RetryAfter(None),
        ]);
        world.at(down, Happening::Becomes(receiver, manner));
        world.at(up, Happening::Becomes(receiver, Manner::Healthy));
        world.run_until(end + 2 * HOUR);
        world.check_the_end();

        let rows = || world.table.rows.iter().filter(|row| row.of == receiver);
        assert!(
            rows().all(|row| row.status == Status::Delivered),
            "seed {seed}"
        );
        let back = world.time_of(up);
        let after_the_outage = rows().filter_map(|row| {
            let last = row.attempts.last()?;
            (last.began_at >= back).then_some(last.order)
        });
        let orders: Vec<usize> = after_the_outage.collect();
        assert!(orders.len() > 60, "seed {seed}: {} came late", orders.len());
        assert!(
            orders.is_sorted(),
            "seed {seed}: begun out of order: {orders:?}"
        );
    });
}

/// With a receiver that fails for ever, and a schedule that ends before it is suspended, the deliveries fail after the
/// schedule.
#[test]
fn a_delivery_climbs_the_whole_ladder() {
    each_seed(20, |seed| {
        let settings = WebhookSettings {
            suspend_after: 1_000,
            ..WebhookSettings::default()
        };
        let mut world = World::new(seed, settings);
        let of = world.add_endpoint(Manner::Failing);
        world.at(0, Happening::Event(of));
        world.at(MINUTE, Happening::Crash);
        world.run_until(3 * HOUR);
        let row = &world.table.rows[0];
        let failed = |end: &Option<End>| matches!(end, Some(End::Recorded { .. }));
        let climbed = row.attempts.iter().filter(|made| failed(&made.end)).count();
        assert_eq!((row.status, climbed), (Status::Failed, 6), "seed {seed}");
    });
}

/// However much waits for one endpoint, the others wait for a turn only.
#[test]
fn a_backlog_starves_no_one() {
    each_seed(10, |seed| {
        let settings = WebhookSettings {
            max_in_flight: 1,
            max_per_endpoint: 1,
            ..WebhookSettings::default()
        };
        let mut world = World::new(seed, settings);
        let of_backlog = world.add_endpoint(Manner::Healthy);
        let neighbours: Vec<usize> = (0..3)
            .map(|_| world.add_endpoint(Manner::Healthy))
            .collect();
        for _ in 0..400 {
            world.at(0, Happening::Event(of_backlog));
        }
        for second in 1..20 {
            for neighbour in &neighbours {
                world.at(second * SECOND, Happening::Event(*neighbour));
            }
        }
        world.run_until(HOUR);
        world.check_the_end();
        let longest = world.longest_wait(&neighbours);
        assert!(longest < SECOND, "seed {seed}: waited for {longest} ms");
    });
}
