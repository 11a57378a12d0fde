//! `sluice doctor` on the machine: clock, oldest kernel, fonts, limit of open files.

use std::{
    env, fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::process::{Resource, getrlimit};

use super::finding::Finding;

/// Earliest plausible time, 2026-11-01, shortly before this program was written.
const EARLIEST_CLOCK_S: u64 = 1_793_491_200;
/// The kernel of Debian 11, the oldest that this is run on.
const OLDEST_KERNEL: (u32, u32) = (5, 10);
/// Folder of scalable typefaces on Debian.
const TYPEFACES: &str = "/usr/share/fonts";
/// Open files that are enough; a hard limit of 1 024 is exhausted by a few hundred viewers.
const RECOMMENDED_OPEN_FILES: u64 = 4096;
/// File that systemd-timesyncd makes once the clock has been set.
const TIMESYNC: &str = "/run/systemd/timesync/synchronized";
/// Programs that set the clock.
const TIME_SERVICES: [&str; 3] = ["chronyd", "ntpd", "openntpd"];

pub(super) fn check() -> Vec<Finding> {
    vec![clock(), kernel(), packages(), open_files()]
}

fn clock() -> Finding {
    let now_seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let keeper = if is_container() {
        Some("the host".to_owned())
    } else if Path::new(TIMESYNC).exists() {
        Some("systemd-timesyncd".to_owned())
    } else {
        running(&TIME_SERVICES)
    };
    judge_clock(now_seconds, keeper.as_deref())
}

fn judge_clock(now_seconds: u64, keeper: Option<&str>) -> Finding {
    const CHECK: &str = "clock";
    match keeper {
        _ if now_seconds < EARLIEST_CLOCK_S => Finding::fail(
            CHECK,
            "it shows a time before this program was written",
            "set it: sessions, certificates and playlists depend on it",
        ),
        Some(keeper) => Finding::ok(CHECK, format!("plausible, kept by {keeper}")),
        None => Finding::warn(
            CHECK,
            "plausible, but nothing seems to keep it right",
            "install systemd-timesyncd or chrony: playlists carry the time of day",
        ),
    }
}

fn is_container() -> bool {
    env::var_os("container").is_some()
        || ["/.dockerenv", "/run/.containerenv"]
            .iter()
            .any(|it| Path::new(it).exists())
}

/// The first of these programs that runs.
fn running(names: &[&str]) -> Option<String> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        names.contains(&name.trim()).then(|| name.trim().to_owned())
    })
}

fn kernel() -> Finding {
    judge_kernel(&rustix::system::uname().release().to_string_lossy())
}

fn judge_kernel(release: &str) -> Finding {
    const CHECK: &str = "kernel";
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST_KERNEL => Finding::warn(
            CHECK,
            format!("Linux {release}"),
            "this version was not tested; Linux 5.10 or newer is expected",
        ),
        _ => Finding::ok(CHECK, format!("Linux {release}")),
    }
}

/// Checks for packages that are needed at run time; the program would not run without the libraries it is linked to.
fn packages() -> Finding {
    const CHECK: &str = "packages";
    if Path::new(TYPEFACES).is_dir() {
        Finding::ok(CHECK, "libvips and libavif are there, and typefaces")
    } else {
        Finding::warn(
            CHECK,
            format!("there is no {TYPEFACES}"),
            "install a typeface (fonts-dejavu-core): text in drawings and watermarks has none",
        )
    }
}

fn open_files() -> Finding {
    judge_open_files(getrlimit(Resource::Nofile).maximum)
}

/// Judges the hard limit, since `serve` raises its own up to there; `None` is unlimited.
fn judge_open_files(allowed: Option<u64>) -> Finding {
    const CHECK: &str = "open files";
    match allowed {
        None => Finding::ok(CHECK, "unlimited"),
        Some(allowed) if allowed >= RECOMMENDED_OPEN_FILES => {
            Finding::ok(CHECK, format!("{allowed} allowed"))
        }
        Some(allowed) => Finding::warn(
            CHECK,
            format!(
                "at most {allowed} allowed in this shell, and every viewer and encoder takes one or two"
            ),
            "raise the hard limit (ulimit -Hn), or start by packaging/sluice.service, which sets LimitNOFILE",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn clocks() {
        let today = EARLIEST_CLOCK_S + 1;
        assert_eq!(judge_clock(0, Some("chronyd")).level, Level::Fail);
        assert_eq!(judge_clock(today, None).level, Level::Warn);
        assert_eq!(judge_clock(today, Some("chronyd")).level, Level::Ok);
    }

    #[test]
    fn kernels() {
        for (release, level) in [
            ("4.19.0-27-amd64", Level::Warn),
            ("5.9.1", Level::Warn),
            ("5.10.0-30-amd64", Level::Ok),
            ("6.1.0-28-amd64", Level::Ok),
            ("10.0-rc1", Level::Ok),
            ("strange", Level::Ok),
        ] {
            assert_eq!(judge_kernel(release).level, level, "{release}");
        }
    }

    #[test]
    fn limits_of_open_files() {
        for (allowed, level) in [
            (None, Level::Ok),
            (Some(65_536), Level::Ok),
            (Some(1024), Level::Warn),
        ] {
            assert_eq!(judge_open_files(allowed).level, level, "{allowed:?}");
        }
    }
}
