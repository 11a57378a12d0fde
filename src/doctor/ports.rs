//! `sluice doctor` on listening addresses: free, or the process that holds them.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener, UdpSocket},
};

use sluice_ingest::publish::Protocol;

use super::finding::Finding;
use crate::{
    config::Config,
    protocols::{Transport, transport},
};

/// The kernel's list of the sockets of a protocol (proc(5)), and the command that shows them.
struct Kind {
    tables: [&'static str; 2],
    /// State of a listening socket.
    waiting: &'static str,
    shown_by: &'static str,
}

const TCP: Kind = Kind {
    tables: ["/proc/net/tcp", "/proc/net/tcp6"],
    waiting: "0A",
    shown_by: "sudo ss -ltnp",
};
const UDP: Kind = Kind {
    tables: ["/proc/net/udp", "/proc/net/udp6"],
    waiting: "07",
    shown_by: "sudo ss -lunp",
};

/// Listening process, as far as /proc shows it to this user.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    process: u32,
    name: String,
}

/// Checks all listening addresses. `service` is the process that holds the data folder; its own listeners are expected.
pub(super) fn check(config: &Config, service: Option<u32>) -> Vec<Finding> {
    let (key, address) = ("http.listen", config.http.listen);
    let bound = TcpListener::bind(address).map(drop);
    let mut findings = vec![look("http port", key, address, &TCP, bound, service)];
    for transport in Protocol::ALL.map(transport) {
        let Some(listener) = transport.listener() else {
            continue;
        };
        let Some(address) = (listener.address)(config) else {
            continue;
        };
        let (kind, bound) = match transport {
            Transport::Tcp(..) => (&TCP, TcpListener::bind(address).map(drop)),
            Transport::Udp(..) => (&UDP, UdpSocket::bind(address).map(drop)),
            Transport::Outgoing(_) | Transport::Offered => continue,
        };
        let (check, key) = (listener.check, listener.setting);
        findings.push(look(check, key, address, kind, bound, service));
    }
    findings.extend(webrtc(config, service));
    findings
}

/// Both listeners of WebRTC, which belong to no protocol of encoders alone.
fn webrtc(config: &Config, service: Option<u32>) -> Vec<Finding> {
    let settings = &config.webrtc;
    if !settings.enabled {
        return Vec::new();
    }
    let (key, address) = ("webrtc.listen", settings.listen);
    let bound = UdpSocket::bind(address).map(drop);
    let mut findings = vec![look("webrtc port", key, address, &UDP, bound, service)];
    if let Some(address) = settings.tcp_listen {
        let (check, key) = ("webrtc tcp port", "webrtc.tcp_listen");
        let bound = TcpListener::bind(address).map(drop);
        findings.push(look(check, key, address, &TCP, bound, service));
    }
    findings
}

fn look(
    check: &'static str,
    key: &str,
    address: SocketAddr,
    kind: &Kind,
    bound: io::Result<()>,
    service: Option<u32>,
) -> Finding {
    let listener = match bound {
        Ok(()) => None,
        Err(_) => listener_on(kind, address.port()),
    };
    judge(check, key, address, kind, bound, listener, service)
}

fn judge(
    check: &'static str,
    key: &str,
    address: SocketAddr,
    kind: &Kind,
    bound: io::Result<()>,
    listener: Option<Listener>,
    service: Option<u32>,
) -> Finding {
    let Err(error) = bound else {
        return match address.port() {
            0 => Finding::ok(check, format!("{address}: any free port is taken at start")),
            _ => Finding::ok(check, format!("{address} is free")),
        };
    };
    match (error.kind(), listener) {
        (io::ErrorKind::AddrInUse, Some(listener)) if Some(listener.process) == service => {
            Finding::ok(check, format!("{address} is held by the running service"))
        }
        (io::ErrorKind::AddrInUse, Some(Listener { process, name })) => Finding::fail(
            check,
            format!("{address} is held by {name} (process {process})"),
            format!("stop that program, or choose another port with {key}"),
        ),
        (io::ErrorKind::AddrInUse, None) => Finding::fail(
            check,
            format!("{address} is held by another program"),
            format!(
                "`{}` names it; stop it, or choose another port with {key}",
                kind.shown_by
            ),
        ),
        (io::ErrorKind::AddrNotAvailable, _) => Finding::fail(
            check,
            format!("this machine has no address {}", address.ip()),
            format!(
                "set {key} to 0.0.0.0:{} or to an address of this machine",
                address.port()
            ),
        ),
        (io::ErrorKind::PermissionDenied, _) => Finding::fail(
            check,
            format!("{address} is not allowed to this user"),
            format!(
                "ports below 1024 need CAP_NET_BIND_SERVICE (see packaging/sluice.service); or change {key}"
            ),
        ),
        _ => Finding::fail(
            check,
            format!("{address}: {error}"),
            format!("correct {key}"),
        ),
    }
}

/// Finds the listener of a port by its socket's inode.
fn listener_on(kind: &Kind, port: u16) -> Option<Listener> {
    let inode = kind
        .tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| listening_inode(&table, kind.waiting, port))?;
    let process = process_with_socket(inode)?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(Listener {
        process,
        name: name.trim().to_owned(),
    })
}

/// The inode of the socket that waits on `port`, from the text of a table.
fn listening_inode(table: &str, waiting: &str, port: u16) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
        let listens = *fields.get(3)? == waiting && local == port;
        listens.then(|| fields.get(9)?.parse().ok())?
    })
}

/// Finds the process that holds a socket; processes of other users do not show their files.
fn process_with_socket(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let mut files = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        files
            .any(|file| {
                fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())
            })
            .then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn only_listening_sockets_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 111 1\n\
            1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1\n\
            2: short\n";
        assert_eq!(listening_inode(table, TCP.waiting, 8080), Some(222));
        assert_eq!(listening_inode(table, TCP.waiting, 1935), None);
        assert_eq!(listening_inode("", TCP.waiting, 8080), None);
    }

    #[test]
    fn a_held_port_names_its_holder_unless_it_is_the_service() {
        let address = "127.0.0.1:8080".parse().unwrap();
        let held = |process| {
            Some(Listener {
                process,
                name: "nginx".into(),
            })
        };
        let failed = |kind: io::ErrorKind| Err(io::Error::from(kind));
        for (bound, listener, level, word) in [
            (Ok(()), None, Level::Ok, "free"),
            (
                failed(io::ErrorKind::AddrInUse),
                held(7),
                Level::Ok,
                "running service",
            ),
            (
                failed(io::ErrorKind::AddrInUse),
                held(8),
                Level::Fail,
                "nginx (process 8)",
            ),
            (
                failed(io::ErrorKind::AddrInUse),
                None,
                Level::Fail,
                "another program",
            ),
            (
                failed(io::ErrorKind::AddrNotAvailable),
                None,
                Level::Fail,
                "no address 127.0.0.1",
            ),
            (
                failed(io::ErrorKind::PermissionDenied),
                None,
                Level::Fail,
                "not allowed",
            ),
        ] {
            let finding = judge(
                "http port",
                "http.listen",
                address,
                &TCP,
                bound,
                listener,
                Some(7),
            );
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.message.contains(word), "{finding:?}");
        }
    }

    #[test]
    fn every_protocol_that_is_listened_for_has_a_check() {
        let config = Config::default();
        let listened = Protocol::ALL.into_iter().filter(|protocol| {
            let listener = transport(*protocol).listener();
            listener.is_some_and(|listener| (listener.address)(&config).is_some())
        });
        let mut expected = vec!["http port".to_owned()];
        expected.extend(listened.map(|protocol| format!("{} port", protocol.as_str())));
        expected.extend(["webrtc port", "webrtc tcp port"].map(str::to_owned));
        let checks: Vec<&str> = check(&config, None).iter().map(|it| it.check).collect();
        assert_eq!(checks, expected);
        assert!(checks.contains(&"srt port") && !checks.contains(&"rtmps port"));
    }

    #[test]
    fn this_process_is_found_as_a_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listener_on(&TCP, listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(found.process, std::process::id());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let found = listener_on(&UDP, socket.local_addr().unwrap().port()).unwrap();
        assert_eq!(found.process, std::process::id());
    }
}
