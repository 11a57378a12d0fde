//! Fuzz targets of the worker's parsers: jobs, replies, ZIP archives (see [`sluice_media::fuzzing`]).

use std::{io::Write as _, os::unix::net::UnixStream, time::Instant};

use sluice_media::fuzzing::Target;
#[cfg(feature = "codecs")]
use sluice_media::task::Limits;

use crate::{
    channel::{Channel, Patience},
    protocol::{Job, Reply},
};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target::new("worker_reply", replies),
    Target::new("worker_job", jobs),
    #[cfg(feature = "codecs")]
    Target::new("zip_archive", zip_archive),
];

/// Longest input; it fits into a socket's buffer, so that one thread can write it and read it.
const MAX_BYTES: usize = 64 * 1024;

/// A channel whose other end has sent the bytes and closed.
fn channel(bytes: &[u8]) -> Channel {
    let (channel, other) = Channel::pair().expect("a socket pair");
    let mut other = UnixStream::from(other);
    let sent = other.write_all(&bytes[..bytes.len().min(MAX_BYTES)]);
    sent.expect("the buffer takes it");
    channel
}

fn patience() -> Patience<'static> {
    Patience {
        until: Some(Instant::now()),
        cancelled: None,
    }
}

/// Receives what a worker answers; an answer that is taken is taken again as it was read.
fn replies(bytes: &[u8]) {
    let channel = channel(bytes);
    while let Ok(frame) = channel.receive_frame(patience()) {
        let Ok(reply) = Reply::parse(&frame) else {
            continue;
        };
        let text = serde_json::to_vec(&reply).expect("a reply is plain values");
        assert_eq!(Reply::parse(&text).as_ref(), Ok(&reply));
        if let Reply::Done { done, .. } = &reply {
            let _ = done.facts();
        }
    }
}

/// Receives what the service asks of a worker.
fn jobs(bytes: &[u8]) {
    let channel = channel(bytes);
    while let Ok((job, descriptors)) = channel.receive_with_descriptors::<Job>(patience()) {
        assert!(descriptors.is_empty());
        let _ = (job.task.reads_document(), job.task.draws_text());
    }
}

/// Lists an archive and unpacks its first member; both stay within the limits.
#[cfg(feature = "codecs")]
fn zip_archive(bytes: &[u8]) {
    use crate::image::archive;

    let limits = Limits {
        max_pixels: 1 << 20,
        max_frames: 16,
        max_total_pixels: 1 << 20,
        max_output_bytes: 1 << 20,
        max_members: 16,
        max_duration_ms: 1_000,
        max_side: 1_024,
    };
    if let Ok(members) = archive::list(bytes, &limits) {
        assert!(members.len() <= 16);
        if let Some(member) = members.first().filter(|member| member.size < 1 << 20)
            && let Ok((_, unpacked)) = archive::extract(bytes, member.index, &limits)
        {
            assert_eq!(unpacked.len() as u64, member.size);
        }
    }
}
