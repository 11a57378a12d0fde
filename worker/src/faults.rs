//! Faults on demand for tests (`sluice worker --faults`): a worker that crashes, hangs, spins or allocates when its
//! input says so.
//!
//! Only `sluice worker --faults` of a debug build obeys it, and the service never starts a worker that way; tests put a
//! script that does in the program's place. The demand is at the very end of input 0, behind the end of its format.

use std::{
    fs::File,
    io::{self, Write as _},
    os::{fd::AsFd, unix::fs::FileExt as _},
    thread,
    time::Duration,
};

use sluice_media::av::Report;

/// Prefix of a fault's name.
pub const MARK: &[u8] = b"sluice-fault:";
/// The mark and the longest demand lie in this many bytes at the end.
const LOOKED_AT: usize = 64;
const CHUNK_BYTES: usize = 16 << 20;

/// Faults of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Ends as by a failed assertion in a C library.
    Crash,
    Panic,
    /// Uses the processor for ever.
    Spin,
    /// Takes memory until there is none.
    Allocate,
    /// Waits for ever.
    Hang,
    /// Waits so many milliseconds, then does its work.
    Nap(u64),
    /// Writes to standard error, more than is read.
    Shout,
    /// Reports that half is done, and waits for ever.
    Halfway,
    /// Reports without an end.
    Chatter,
}

/// The fault that an input asks for.
pub fn asked(input: &[u8]) -> Option<InjectedFault> {
    let tail = &input[input.len().saturating_sub(LOOKED_AT)..];
    let mark = tail
        .windows(MARK.len())
        .rposition(|window| window == MARK)?;
    let demand = std::str::from_utf8(&tail[mark + MARK.len()..]).ok()?;
    match demand.trim_end() {
        "crash" => Some(InjectedFault::Crash),
        "panic" => Some(InjectedFault::Panic),
        "spin" => Some(InjectedFault::Spin),
        "allocate" => Some(InjectedFault::Allocate),
        "hang" => Some(InjectedFault::Hang),
        "shout" => Some(InjectedFault::Shout),
        "halfway" => Some(InjectedFault::Halfway),
        "chatter" => Some(InjectedFault::Chatter),
        other => other
            .strip_prefix("nap:")?
            .parse()
            .ok()
            .map(InjectedFault::Nap),
    }
}

/// The fault that an open input asks for.
pub fn asked_by(input: &impl AsFd) -> Option<InjectedFault> {
    let file = File::from(input.as_fd().try_clone_to_owned().ok()?);
    let length = file.metadata().ok()?.len();
    let mut tail = vec![0; usize::try_from(length).map_or(LOOKED_AT, |it| it.min(LOOKED_AT))];
    let start = length - tail.len() as u64;
    file.read_exact_at(&mut tail, start).ok()?;
    asked(&tail)
}

/// Commits the fault; returns only from those that end.
pub fn commit(fault: InjectedFault, on_report: &mut dyn FnMut(Report)) {
    match fault {
        InjectedFault::Crash => std::process::abort(),
        InjectedFault::Panic => panic!("the input asked for it"),
        InjectedFault::Spin => spin(),
        InjectedFault::Allocate => allocate(),
        InjectedFault::Hang => hang(),
        InjectedFault::Halfway => {
            on_report(Report::Working { share: 0.5 });
            hang()
        }
        InjectedFault::Chatter => loop {
            on_report(Report::Working { share: 0.5 });
        },
        InjectedFault::Nap(milliseconds) => thread::sleep(Duration::from_millis(milliseconds)),
        InjectedFault::Shout => shout(),
    }
}

fn hang() -> ! {
    loop {
        thread::park();
    }
}

/// Writes as C libraries do: output without a reader is lost.
fn shout() {
    for line in 0..100_000 {
        let _ = writeln!(io::stderr(), "line {line} of very many");
    }
}

/// Spins until the kernel ends the process.
pub(crate) fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Allocates until the allocator gives up, which ends the process.
pub(crate) fn allocate() -> ! {
    let mut taken = Vec::new();
    loop {
        // Zeros are address space and no pages yet: fast, and what the limit counts.
        taken.push(std::hint::black_box(vec![0_u8; CHUNK_BYTES]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_come_at_the_end() {
        for (input, fault) in [
            (&b""[..], None),
            (b"\x89PNG...IEND", None),
            (b"...IENDsluice-fault:crash", Some(InjectedFault::Crash)),
            (b"sluice-fault:nap:250\n", Some(InjectedFault::Nap(250))),
            (b"sluice-fault:nap:soon", None),
            (b"sluice-fault:dance", None),
            (b"sluice-fault:spin and more behind it", None),
        ] {
            assert_eq!(asked(input), fault, "{}", String::from_utf8_lossy(input));
        }
        let mut far = b"sluice-fault:crash".to_vec();
        far.resize(200, b' ');
        assert_eq!(asked(&far), None);
    }
}
