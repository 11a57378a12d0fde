//! Server processes of tests: start, end, CPU time and memory from `/proc`, free ports.

use std::{
    collections::HashSet,
    iter::Sum,
    net::{TcpListener, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;

/// `USER_HZ`, in which /proc counts processor time: 100 on every Linux architecture that Debian supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Fields of `stat`: user and system time of the process ...
const OWN_TIME: [usize; 2] = [11, 12];
/// ... and of its children that have ended.
const WAITED_FOR: [usize; 2] = [13, 14];
const OWN_AND_WAITED_FOR: [usize; 4] = [11, 12, 13, 14];
/// Ports below those that the system gives to clients, which could take that of a server that does not listen yet.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A child that ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    pub name: &'static str,
    child: Child,
}

/// Figures of /proc at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub cpu: Duration,
    pub resident_kib: u64,
    /// Shared pages divided among the processes that share them; 0 where the kernel does not report them.
    pub proportional_kib: u64,
}

impl Sum for Figures {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, figures| Self {
            cpu: sum.cpu + figures.cpu,
            resident_kib: sum.resident_kib + figures.resident_kib,
            proportional_kib: sum.proportional_kib + figures.proportional_kib,
        })
    }
}

impl Server {
    /// Starts the command with its output in `log`.
    pub fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Self, Failure> {
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
    pub fn figures(&self) -> Result<Figures, Failure> {
        let figures = figures_of(self.child.id(), &OWN_TIME);
        Ok(figures.ok_or_else(|| format!("{} has ended", self.name))?)
    }

    /// The same of this process and all that descend from it, those that it has already waited for included.
    pub fn tree_figures(&self) -> Result<Figures, Failure> {
        self.figures()?;
        Ok(tree_figures(self.child.id()))
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

/// The sum over a process and its descendants.
pub fn tree_figures(root: u32) -> Figures {
    // A process that ended since the listing is skipped.
    family(root)
        .into_iter()
        .filter_map(|pid| figures_of(pid, &OWN_AND_WAITED_FOR))
        .sum()
}

/// The process, and all that descend from it.
fn family(root: u32) -> Vec<u32> {
    let mut members = vec![root];
    let mut asked = 0;
    while let Some(&pid) = members.get(asked) {
        members.extend(children(pid));
        asked += 1;
    }
    members
}

/// Returns the first process below `root` that was started with this argument.
pub fn descendant(root: u32, argument: &str) -> Option<u32> {
    family(root).into_iter().skip(1).find(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.any(|word| word == argument.as_bytes())
    })
}

/// A number of `/proc/{pid}/status`, such as that of `VmRSS:` in KiB; `None` when the process has ended.
pub fn status_field(pid: u32, name: &str) -> Option<u64> {
    number(
        &std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?,
        name,
    )
}

/// Reads the figures of a process; `None` when it has ended.
fn figures_of(pid: u32, times: &[usize]) -> Option<Figures> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    Some(Figures {
        cpu: cpu_time(&read("stat")?, times),
        resident_kib: number(&read("status")?, "VmRSS:").unwrap_or(0),
        proportional_kib: read("smaps_rollup")
            .and_then(|rollup| number(&rollup, "Pss:"))
            .unwrap_or(0),
    })
}

/// Returns the processor time of all children that this process has waited for.
pub fn cpu_of_ended_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    cpu_time(&stat, &WAITED_FOR)
}

/// The sum of some fields of `stat`. The command's name may hold spaces, so that they are counted from the bracket that
/// closes it (proc(5)).
fn cpu_time(stat: &str, times: &[usize]) -> Duration {
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks: f64 = times
        .iter()
        .filter_map(|&field| fields.get(field)?.parse::<f64>().ok())
        .sum();
    Duration::from_secs_f64(ticks / TICKS_PER_SECOND)
}

/// Returns the children of a process, which any of its threads may have started.
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            let pids = list.split_whitespace().map(str::to_owned);
            pids.collect::<Vec<_>>()
        })
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's workers outlive a master that is killed.
        let family = family(self.child.id());
        // Each fails only when its process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in &family[1..] {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The number in the line that begins with `name`.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns a port that is free on loopback, of TCP and of UDP: each one once, and none that a client of this machine takes.
pub fn free_port() -> Result<u16, Failure> {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    // Processes that run at once begin at different places.
    let from = u16::try_from(std::process::id() % 10_000)? + PORTS.start;
    let mut ports = (from..PORTS.end).chain(PORTS.start..from);
    let is_free = |port: u16| {
        let address = ("127.0.0.1", port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    let port = ports.find(|port| !given.contains(port) && is_free(*port));
    let port = port.ok_or("no port is free")?;
    given.insert(port);
    Ok(port)
}
