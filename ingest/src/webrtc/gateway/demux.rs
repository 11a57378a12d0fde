//! Thread that receives datagrams and passes them to the shards of their sessions (`BATCH`, `MAX_DATAGRAM`).
//!
//! What no session is known for is dropped here: a flood of strangers costs one look at a table each.

use std::{
    io::{self, IoSliceMut},
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use quinn_udp::{RecvMeta, UdpSockRef};
use rustix::event::{PollFd, PollFlags, poll};

use super::{
    inbox::{Datagram, Inbox},
    routes::Routes,
    send::Udp,
    tcp::{canonical, shard_of},
};

/// Reads of one call; each may have a run of datagrams.
const BATCH: usize = 32;
/// Size of a read.
const READ: usize = 64 << 10;
/// Most bytes of a datagram that is passed on.
const MAX_DATAGRAM: usize = 2_048;

/// Receives datagrams until `is_over`; `bell` wakes it then.
pub(super) fn serve(
    udp: &Udp,
    routes: &Routes,
    inboxes: &[Arc<Inbox>],
    bell: BorrowedFd<'_>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut buffers = vec![vec![0; READ]; BATCH];
    let mut metas = vec![RecvMeta::default(); BATCH];
    let mut sorted: Vec<Vec<Datagram>> = inboxes.iter().map(|_| Vec::new()).collect();
    while !is_over.load(Ordering::Relaxed) {
        let mut waiting = [
            PollFd::new(&udp.socket, PollFlags::IN),
            PollFd::new(&bell, PollFlags::IN),
        ];
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut slices: Vec<IoSliceMut<'_>> = buffers
            .iter_mut()
            .map(|buffer| IoSliceMut::new(buffer))
            .collect();
        let socket = UdpSockRef::from(&udp.socket);
        let reads = match udp.state.recv(socket, &mut slices, &mut metas) {
            Ok(reads) => reads,
            // Answers of routers to what was sent (ICMP) are errors of the socket, too.
            Err(_) => continue,
        };
        for (buffer, meta) in buffers.iter().zip(&metas).take(reads) {
            sort(&buffer[..meta.len], meta, routes, &mut sorted);
        }
        for (inbox, datagrams) in inboxes.iter().zip(&mut sorted) {
            inbox.datagrams(datagrams);
        }
    }
    Ok(())
}

/// Splits a read into its datagrams and sorts those of known sessions.
fn sort(bytes: &[u8], meta: &RecvMeta, routes: &Routes, sorted: &mut [Vec<Datagram>]) {
    let source = canonical(meta.addr);
    for datagram in bytes.chunks(meta.stride.max(1)) {
        if datagram.len() > MAX_DATAGRAM {
            continue;
        }
        let Some(session) = routes.of_datagram(source, datagram) else {
            continue;
        };
        sorted[shard_of(session, sorted.len())].push(Datagram {
            session,
            source,
            bytes: datagram.to_vec(),
            tcp: None,
        });
    }
}
