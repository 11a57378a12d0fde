//! Safe bindings of libsrt: options of sockets, handshake callback, link statistics.
//!
//! libsrt has threads of its own; every function here may be called from any of ours. Its sockets are numbers that it
//! looks up, so that a closed one is an error and no memory is touched. Constants and layouts are those of `srt/srt.h`,
//! 1.5.1.
#![allow(unsafe_code, reason = "libsrt is a C library")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io,
    mem::{size_of, zeroed},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::IntoRawFd,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use super::stream_id::MAX_BYTES;
use crate::publish::LinkStatistics;

type SrtSocket = c_int;

const INVALID: SrtSocket = -1;
const ERROR: c_int = -1;
/// `SRT_EASYNCRCV`: no data at the moment.
const NOTHING_THERE: c_int = 6002;
/// `LOG_CRIT` of syslog(3).
const LOG_CRIT: c_int = 2;
/// The largest payload of a live message.
pub const MAX_MESSAGE: usize = 1456;

/// `SRT_SOCKOPT`.
const RCV_SYN: c_int = 2;
const RCV_DATA: c_int = 20;
const PASSPHRASE: c_int = 26;
const RCV_LATENCY: c_int = 43;
const STREAM_ID: c_int = 46;
const IPV6_ONLY: c_int = 54;
const PEER_IDLE_TIMEOUT: c_int = 55;

/// `SRT_REJX_ISE`: an unexpected error of ours.
const INTERNAL: c_int = 1500;

type Hook =
    extern "C" fn(*mut c_void, SrtSocket, c_int, *const libc::sockaddr, *const c_char) -> c_int;

unsafe extern "C" {
    fn srt_startup() -> c_int;
    fn srt_getversion() -> u32;
    fn srt_setloglevel(level: c_int);
    fn srt_create_socket() -> SrtSocket;
    fn srt_bind_acquire(socket: SrtSocket, udp: c_int) -> c_int;
    fn srt_listen(socket: SrtSocket, backlog: c_int) -> c_int;
    fn srt_listen_callback(socket: SrtSocket, hook: Hook, context: *mut c_void) -> c_int;
    fn srt_accept(
        socket: SrtSocket,
        address: *mut libc::sockaddr_storage,
        len: *mut c_int,
    ) -> SrtSocket;
    fn srt_recvmsg(socket: SrtSocket, buffer: *mut c_char, len: c_int) -> c_int;
    fn srt_close(socket: SrtSocket) -> c_int;
    fn srt_setsockflag(socket: SrtSocket, option: c_int, value: *const c_void, len: c_int)
    -> c_int;
    fn srt_getsockflag(
        socket: SrtSocket,
        option: c_int,
        value: *mut c_void,
        len: *mut c_int,
    ) -> c_int;
    fn srt_setrejectreason(socket: SrtSocket, reason: c_int) -> c_int;
    fn srt_getlasterror(errno: *mut c_int) -> c_int;
    fn srt_getlasterror_str() -> *const c_char;
    fn srt_bistats(
        socket: SrtSocket,
        stats: *mut Stats,
        clear: c_int,
        instantaneous: c_int,
    ) -> c_int;
}

/// Number of a caller's socket, the same at its handshake and when it is accepted.
pub type SocketNumber = c_int;

/// Decides on a caller by its stream id and address, in libsrt's receiving thread: its passphrase, or the code of its
/// rejection. It must be quick.
pub type Decide = dyn Fn(SocketNumber, &[u8], IpAddr) -> Result<String, u16> + Send + Sync;

/// Starts libsrt with its threads. Once, before anything else.
pub fn start() -> io::Result<()> {
    // SAFETY: no arguments; called once, by the gateway's main thread.
    let status = unsafe { srt_startup() };
    if status == ERROR {
        return Err(last_error("libsrt does not start"));
    }
    // SAFETY: a number that is valid.
    unsafe { srt_setloglevel(LOG_CRIT) };
    Ok(())
}

/// Returns the version as `0x00MMmmpp`.
pub fn version() -> u32 {
    // SAFETY: no arguments, reads a constant.
    unsafe { srt_getversion() }
}

/// Ends the process without libsrt's own cleanup, which may take seconds with the port still held.
pub fn exit_at_once(failed: bool) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(failed.into()) }
}

/// Socket of libsrt; closed when dropped, with a shutdown message to the peer.
#[derive(Debug)]
struct Socket(SrtSocket);

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: a number; libsrt rejects unknown ones.
        unsafe { srt_close(self.0) };
    }
}

impl Socket {
    fn set_number(&self, option: c_int, value: c_int) -> io::Result<()> {
        self.set(option, &value.to_ne_bytes())
    }

    fn set(&self, option: c_int, value: &[u8]) -> io::Result<()> {
        set_option(self.0, option, value)
    }

    fn number(&self, option: c_int) -> Option<c_int> {
        let mut value = [0; size_of::<c_int>()];
        (self.get(option, &mut value)? == value.len()).then(|| c_int::from_ne_bytes(value))
    }

    /// Reads an option; returns the value's length.
    fn get(&self, option: c_int, value: &mut [u8]) -> Option<usize> {
        let mut len = c_int::try_from(value.len()).ok()?;
        // SAFETY: the buffer has `len` bytes, and libsrt writes no more than that.
        let status =
            unsafe { srt_getsockflag(self.0, option, value.as_mut_ptr().cast(), &mut len) };
        let len = usize::try_from(len).ok()?;
        (status != ERROR && len <= value.len()).then_some(len)
    }
}

/// Listens on a UDP socket.
#[derive(Debug)]
pub struct Listener(Socket);

impl Listener {
    /// Takes ownership of the bound socket. `decide` is called at each handshake, for as long as the process runs.
    pub fn listen(
        udp: UdpSocket,
        latency: Duration,
        idle_timeout: Duration,
        backlog: usize,
        decide: Box<Decide>,
    ) -> io::Result<Self> {
        let is_v6 = udp.local_addr()?.is_ipv6();
        // SAFETY: no arguments.
        let socket = unsafe { srt_create_socket() };
        if socket == INVALID {
            return Err(last_error("no SRT socket"));
        }
        let socket = Socket(socket);
        socket.set_number(RCV_SYN, 0)?;
        socket.set_number(RCV_LATENCY, milliseconds(latency))?;
        socket.set_number(PEER_IDLE_TIMEOUT, milliseconds(idle_timeout))?;
        if is_v6 {
            socket.set_number(IPV6_ONLY, 0)?;
        }
        // SAFETY: a descriptor that no other owns from here on.
        if unsafe { srt_bind_acquire(socket.0, udp.into_raw_fd()) } == ERROR {
            return Err(last_error("the UDP socket cannot be used"));
        }
        let context: *mut Box<Decide> = Box::into_raw(Box::new(decide));
        // SAFETY: the context is never freed, as the listener may call it until the process ends; `on_caller` uses its
        // type.
        if unsafe { srt_listen_callback(socket.0, on_caller, context.cast()) } == ERROR {
            return Err(last_error("no callback"));
        }
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: numbers.
        if unsafe { srt_listen(socket.0, backlog) } == ERROR {
            return Err(last_error("the SRT socket does not listen"));
        }
        Ok(Self(socket))
    }

    /// Returns the next caller whose handshake is done; `None` when there is none at the moment.
    pub fn accept(&self) -> Option<Connection> {
        // SAFETY: a plain structure of numbers, for which zeroes are a value.
        let mut address: libc::sockaddr_storage = unsafe { zeroed() };
        let mut len = c_int::try_from(size_of::<libc::sockaddr_storage>()).expect("it is small");
        // SAFETY: the structure has room for every address, and `len` is its size.
        let accepted = unsafe { srt_accept(self.0.0, &mut address, &mut len) };
        if accepted == INVALID {
            return None;
        }
        let socket = Socket(accepted);
        // SAFETY: as large as any address; libsrt has filled it in.
        let remote = unsafe { socket_address((&raw const address).cast()) }?;
        let mut stream_id = vec![0; MAX_BYTES + 1];
        let len = socket.get(STREAM_ID, &mut stream_id)?;
        stream_id.truncate(len);
        let latency = socket.number(RCV_LATENCY).unwrap_or(0);
        Some(Connection {
            remote,
            stream_id,
            latency: Duration::from_millis(u64::try_from(latency).unwrap_or(0)),
            socket,
        })
    }
}

/// A caller. Closed when dropped.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    pub remote: SocketAddr,
    pub stream_id: Vec<u8>,
    /// Latency negotiated by both sides.
    pub latency: Duration,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Message(usize),
    Nothing,
    /// The connection is over, or was closed.
    Broken,
}

impl Connection {
    pub fn socket_number(&self) -> SocketNumber {
        self.socket.0
    }

    /// Reads one message into `buffer`, which has room for [`MAX_MESSAGE`].
    pub fn receive(&self, buffer: &mut [u8]) -> Received {
        let room = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
        // SAFETY: the buffer has `room` bytes, and libsrt writes no more than that.
        let len = unsafe { srt_recvmsg(self.socket.0, buffer.as_mut_ptr().cast(), room) };
        match usize::try_from(len) {
            Ok(0) => Received::Broken,
            Ok(len) => Received::Message(len.min(buffer.len())),
            Err(_) if last_code() == NOTHING_THERE => Received::Nothing,
            Err(_) => Received::Broken,
        }
    }

    /// Returns whether messages wait in the buffer, even if their time has not come.
    pub fn has_data(&self) -> bool {
        self.socket.number(RCV_DATA).is_some_and(|count| count > 0)
    }

    /// Returns the link statistics; `None` once the connection is over.
    pub fn line(&self) -> Option<LinkStatistics> {
        let mut stats = Stats([0; STATS_WORDS]);
        // SAFETY: larger than libsrt's structure; see `Stats`.
        if unsafe { srt_bistats(self.socket.0, &mut stats, 0, 1) } == ERROR {
            return None;
        }
        Some(stats.line())
    }
}

/// `CBytePerfMon`: 496 bytes in 1.5.1, with room for those that later releases may append.
#[repr(C)]
struct Stats([u64; STATS_WORDS]);

const STATS_WORDS: usize = 128;

impl Stats {
    /// Reads the fields at the offsets of `pktRecvTotal`, `pktRcvDropTotal`, `pktRcvRetrans`, `msRTT`, `msRcvBuf`,
    /// `msRcvTsbPdDelay`.
    fn line(&self) -> LinkStatistics {
        let count = |value: i32| u64::try_from(value).unwrap_or(0);
        let ms = |value: i32| u32::try_from(value).unwrap_or(0);
        let rtt_ms = f64::from_bits(self.long(328));
        LinkStatistics {
            received: self.long(16),
            lost: count(self.int(68)),
            retransmitted: count(self.int(164)),
            rtt_ms: if rtt_ms.is_finite() { rtt_ms } else { 0.0 },
            buffer_ms: ms(self.int(388)),
            latency_ms: ms(self.int(392)),
            discarded: 0,
        }
    }

    fn long(&self, offset: usize) -> u64 {
        self.0[offset / 8]
    }

    fn int(&self, offset: usize) -> i32 {
        let bytes = self.0[offset / 8].to_ne_bytes();
        let half = *bytes[offset % 8..]
            .first_chunk::<4>()
            .expect("offsets are multiples of 4");
        i32::from_ne_bytes(half)
    }
}

/// Called by libsrt at each handshake. A panic must not reach C.
extern "C" fn on_caller(
    context: *mut c_void,
    socket: SrtSocket,
    _version: c_int,
    remote: *const libc::sockaddr,
    stream_id: *const c_char,
) -> c_int {
    let decided = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the pointer from `Listener::listen`, never freed.
        let decide = unsafe { &*context.cast::<Box<Decide>>() };
        // SAFETY: libsrt gives the address it received from.
        let remote = unsafe { socket_address(remote) };
        let stream_id = if stream_id.is_null() {
            &[]
        } else {
            // SAFETY: a string that ends with a zero and stays until this function returns.
            unsafe { CStr::from_ptr(stream_id) }.to_bytes()
        };
        let remote = remote.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |it| it.ip());
        decide(socket, stream_id, remote)
    }));
    let code = match decided {
        Ok(Ok(passphrase)) => match set_option(socket, PASSPHRASE, passphrase.as_bytes()) {
            Ok(()) => return 0,
            Err(_) => INTERNAL,
        },
        Ok(Err(code)) => code.into(),
        Err(_) => INTERNAL,
    };
    // SAFETY: numbers.
    unsafe { srt_setrejectreason(socket, code) };
    ERROR
}

fn set_option(socket: SrtSocket, option: c_int, value: &[u8]) -> io::Result<()> {
    let len = c_int::try_from(value.len()).unwrap_or(0);
    // SAFETY: the value has `len` bytes, and libsrt copies them.
    match unsafe { srt_setsockflag(socket, option, value.as_ptr().cast(), len) } {
        ERROR => Err(last_error("an option of an SRT socket")),
        _ => Ok(()),
    }
}

/// # Safety
///
/// Null, or an address of the length that its family has.
unsafe fn socket_address(address: *const libc::sockaddr) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every address begins with its family.
    let family = c_int::from(unsafe { (&raw const (*address).sa_family).read_unaligned() });
    match family {
        libc::AF_INET => {
            // SAFETY: the family is IPv4.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family is IPv6.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Some(SocketAddr::new(ip, u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

fn milliseconds(duration: Duration) -> c_int {
    c_int::try_from(duration.as_millis()).unwrap_or(c_int::MAX)
}

fn last_code() -> c_int {
    // SAFETY: a null pointer means that errno is not requested.
    unsafe { srt_getlasterror(std::ptr::null_mut()) }
}

fn last_error(what: &str) -> io::Error {
    // SAFETY: libsrt's text of this thread's last error, which is valid until the next call; it is copied at once.
    let text = unsafe { CStr::from_ptr(srt_getlasterror_str()) };
    io::Error::other(format!("{what}: {}", text.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_from_their_places() {
        let mut stats = Stats([0; STATS_WORDS]);
        stats.0[16 / 8] = 1000;
        stats.0[328 / 8] = 12.5_f64.to_bits();
        let put = |stats: &mut Stats, offset: usize, value: i32| {
            let mut bytes = stats.0[offset / 8].to_ne_bytes();
            bytes[offset % 8..][..4].copy_from_slice(&value.to_ne_bytes());
            stats.0[offset / 8] = u64::from_ne_bytes(bytes);
        };
        for (offset, value) in [(68, 2), (164, 3), (388, 350), (392, 400), (72, -1)] {
            put(&mut stats, offset, value);
        }
        let expected = LinkStatistics {
            lost: 2,
            retransmitted: 3,
            discarded: 0,
            received: 1000,
            rtt_ms: 12.5,
            latency_ms: 400,
            buffer_ms: 350,
        };
        assert_eq!(stats.line(), expected);
    }

    #[test]
    fn the_library_is_new_enough() {
        assert!(version() >= 0x01_05_01, "{:x}", version());
    }
}
