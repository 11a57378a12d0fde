//! Faults of a seeded schedule: kills and halts of nodes, PostgreSQL and S3, and lines that are cut, silent, slow or lossy.

use std::{fmt, time::Duration};

use rustix::process::Signal;
use sluice_testkit::relay::{Line, Relay};
use tokio::time::sleep;

use super::{Failure, dice::Dice, installation::Installation};

/// Longest time for which a killed process stays away.
const LONGEST_ABSENCE_MS: u64 = 8_000;
/// Time for which a node is halted: longer than its lease.
const HALTED: Duration = Duration::from_secs(10);
/// Text of the message at which connections to PostgreSQL are cut.
const COMMIT: &[u8] = b"COMMIT";

/// Line of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    ToPostgres,
    ToObjects,
    FromPeers,
    /// All three: the node is cut off.
    All,
}

/// State of a line for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    IsCut,
    IsSilent,
    IsSlow,
    /// One commit in 20 is cut, or one request in 20 answered 503.
    LosesSome,
}

/// A fault with all that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    KillNode {
        node: usize,
        away: Duration,
    },
    HaltNode {
        node: usize,
    },
    StopPostgres {
        away: Duration,
    },
    KillObjects {
        away: Duration,
    },
    Line {
        node: usize,
        side: Side,
        trouble: Trouble,
        lasts: Duration,
    },
}

impl Fault {
    /// Draws a fault: kills of nodes 60 %, and each other kind 10 %.
    pub fn draw(dice: &mut Dice, nodes: usize) -> Self {
        let node = dice.below(nodes as u64) as usize;
        let away = Duration::from_millis(dice.below(LONGEST_ABSENCE_MS));
        match dice.below(10) {
            0..6 => Self::KillNode { node, away },
            6 => Self::HaltNode { node },
            7 => Self::StopPostgres { away: away / 2 },
            8 => Self::KillObjects { away: away / 2 },
            _ => {
                const SIDES: [Side; 4] = [
                    Side::ToPostgres,
                    Side::ToObjects,
                    Side::FromPeers,
                    Side::All,
                ];
                const TROUBLES: [Trouble; 4] = [
                    Trouble::IsCut,
                    Trouble::IsSilent,
                    Trouble::IsSlow,
                    Trouble::LosesSome,
                ];
                Self::Line {
                    node,
                    side: SIDES[dice.below(4) as usize],
                    trouble: TROUBLES[dice.below(4) as usize],
                    lasts: Duration::from_secs(2) + away,
                }
            }
        }
    }

    /// Makes the fault, and mends it.
    pub async fn happen(self, installation: &mut Installation) -> Result<(), Failure> {
        match self {
            Self::KillNode { node, away } => {
                let node = &mut installation.nodes[node];
                node.kill()?;
                sleep(away).await;
                node.launch()?;
            }
            Self::HaltNode { node } => {
                let node = &installation.nodes[node];
                node.signal(Signal::STOP)?;
                sleep(HALTED).await;
                node.signal(Signal::CONT)?;
            }
            Self::StopPostgres { away } => {
                installation.postgres.stop_at_once()?;
                sleep(away).await;
                installation.postgres.launch().await?;
            }
            Self::KillObjects { away } => {
                installation.objects.kill()?;
                sleep(away).await;
                installation.objects.launch().await?;
            }
            Self::Line {
                node,
                side,
                trouble,
                lasts,
            } => {
                let node = &installation.nodes[node];
                let lines: &[&Relay] = match side {
                    Side::ToPostgres => &[&node.to_postgres],
                    Side::ToObjects => &[&node.to_objects],
                    Side::FromPeers => &[&node.from_peers],
                    Side::All => &[&node.to_postgres, &node.to_objects, &node.from_peers],
                };
                for line in lines {
                    trouble.begin(line);
                }
                sleep(lasts).await;
                for line in lines {
                    mend(line);
                }
            }
        }
        for node in &mut installation.nodes {
            if !node.is_running() {
                return Err(format!("{} ended by itself after: {self}", node.name).into());
            }
            node.wait_ready().await?;
        }
        Ok(())
    }
}

impl Trouble {
    fn begin(self, line: &Relay) {
        match self {
            Self::IsCut => line.set(Line::IsCut),
            Self::IsSilent => line.set(Line::IsSilent),
            Self::IsSlow => line.set(Line::IsSlow(Duration::from_millis(200))),
            Self::LosesSome => {
                line.cut_at(COMMIT, 20);
                line.reject(20);
            }
        }
    }
}

fn mend(line: &Relay) {
    line.set(Line::Passes);
    line.stop_cutting();
    line.stop_rejecting();
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillNode { node, away } => {
                write!(formatter, "kill -9 node{}, away {away:?}", node + 1)
            }
            Self::HaltNode { node } => write!(formatter, "kill -STOP node{}", node + 1),
            Self::StopPostgres { away } => {
                write!(formatter, "PostgreSQL stopped at once, away {away:?}")
            }
            Self::KillObjects { away } => write!(formatter, "kill -9 S3, away {away:?}"),
            Self::Line {
                node,
                side,
                trouble,
                lasts,
            } => {
                write!(
                    formatter,
                    "line {side:?} of node{} {trouble:?} for {lasts:?}",
                    node + 1
                )
            }
        }
    }
}

#[test]
fn the_schedule_follows_its_seed_and_has_every_kind() {
    let draw = |seed| -> Vec<Fault> {
        let mut dice = Dice::new(seed);
        (0..300).map(|_| Fault::draw(&mut dice, 3)).collect()
    };
    let faults = draw(7);
    assert_eq!(faults, draw(7));
    assert_ne!(faults, draw(8));
    let count = |is_kind: fn(&Fault) -> bool| faults.iter().filter(|fault| is_kind(fault)).count();
    let kills = count(|fault: &Fault| matches!(fault, Fault::KillNode { .. }));
    assert!((150..210).contains(&kills), "{kills}");
    for is_kind in [
        (|fault: &Fault| matches!(fault, Fault::HaltNode { .. })) as fn(&Fault) -> bool,
        |fault: &Fault| matches!(fault, Fault::StopPostgres { .. }),
        |fault: &Fault| matches!(fault, Fault::KillObjects { .. }),
        |fault: &Fault| matches!(fault, Fault::Line { .. }),
    ] {
        assert!((15..50).contains(&count(is_kind)), "{}", count(is_kind));
    }
}
