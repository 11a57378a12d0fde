//! A server process that the harness starts, and its figures from /proc.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::Failure;

/// `USER_HZ`, in which /proc counts processor time: 100 on every Linux architecture that Debian supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// A child that ends with the harness.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    child: Child,
}

/// What one moment's look at /proc gives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) cpu: Duration,
    pub(crate) resident_kib: u64,
    /// Shared pages divided among those who share them; 0 where the kernel does not tell.
    pub(crate) proportional_kib: u64,
}

impl Server {
    /// Starts the command with its output in `log`.
    pub(crate) fn start(
        name: &'static str,
        command: &mut Command,
        log: &Path,
    ) -> Result<Self, Failure> {
        let output = std::fs::File::create(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|cause| format!("{name} does not start: {cause}"))?;
        Ok(Self { name, child })
    }

    /// Processor time of all its threads since its start, and its memory now.
    pub(crate) fn figures(&self) -> Result<Figures, Failure> {
        let pid = self.child.id();
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{file}"))
                .map_err(|_| format!("{} has ended", self.name))
        };
        let stat = read("stat")?;
        // The command's name may hold spaces; the fields are counted from the bracket that closes it (proc(5)).
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .split(' ')
            .collect();
        let ticks: f64 = [11, 12]
            .iter()
            .filter_map(|&field| fields.get(field)?.parse::<f64>().ok())
            .sum();
        Ok(Figures {
            cpu: Duration::from_secs_f64(ticks / TICKS_PER_SECOND),
            resident_kib: kib(&read("status")?, "VmRSS:"),
            proportional_kib: read("smaps_rollup").map_or(0, |rollup| kib(&rollup, "Pss:")),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the child has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kib(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
