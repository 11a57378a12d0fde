//! Frames of live inputs (`live.still_every`): the newest key frame of what is on air, decoded by a worker as a clip of one
//! part.
//!
//! A frame is decoded when someone asks and the one that is kept is older than `live.still_every`; anyone who asks meanwhile
//! gets the kept one. From it variants are rendered as from a stored JPEG. Nothing is older than [`OLDEST_MS`], except where
//! the encoder sends key frames more rarely than that.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read as _, Seek as _},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use sluice_media::{hls, task::Failure};
use sluice_store::now_ms;
use uuid::Uuid;

use super::{
    ImageServices, mezzanine,
    render::{self, Problem},
    source::{ImageSource, KnownLiveVariants, LiveFrame},
};
use crate::live::{Body, Playback, View};

/// Age above which a frame is not delivered while there is a newer one.
const OLDEST_MS: i64 = 10_000;
/// Most inputs whose frames are kept.
const MOST_INPUTS: usize = 1_024;
/// Time without a request after which an input's frame is forgotten.
const FORGET_AFTER_MS: i64 = 60_000;
/// Offset and length.
type Range = (u64, u64);

/// Reason why there is no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFrame {
    #[error("nothing is on air")]
    NotOnAir,
    #[error("the live stream has no frame")]
    NoKeyFrame,
    #[error(transparent)]
    Problem(#[from] Problem),
}

/// The frames that are kept, by input.
#[derive(Debug)]
pub(super) struct LiveFrames {
    every_ms: i64,
    slots: Mutex<HashMap<Uuid, Arc<Slot>>>,
}

/// State of an input's frame.
#[derive(Debug)]
struct Slot {
    since_ms: i64,
    /// Held by the request that decodes.
    turn: tokio::sync::Mutex<()>,
    kept: Mutex<Option<Kept>>,
    known_variants: Arc<KnownLiveVariants>,
}

#[derive(Clone, Debug)]
struct Kept {
    of: KeyFrame,
    made_ms: i64,
    made: Result<Arc<ImageSource>, Failure>,
}

/// Names a key frame: the part that begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyFrame {
    broadcast: String,
    msn: u64,
    part: u32,
    init: u32,
}

impl KeyFrame {
    /// Returns the newest that is listed; `None` without video.
    fn newest(view: &View) -> Option<Self> {
        if !view.window.stream_info()?.has_video {
            return None;
        }
        view.window.segments().rev().find_map(|segment| {
            let part = segment.parts.iter().rposition(|part| part.independent)?;
            Some(Self {
                broadcast: view.window.header().broadcast.clone(),
                msn: segment.msn,
                part: u32::try_from(part).ok()?,
                init: segment.init,
            })
        })
    }
}

impl LiveFrames {
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every_ms: i64::try_from(every.as_millis()).unwrap_or(OLDEST_MS),
            slots: Mutex::default(),
        }
    }

    /// Returns the slot of an input, and the inputs whose slots were dropped for it.
    fn slot(&self, input_id: Uuid, now_ms: i64) -> (Arc<Slot>, Vec<Uuid>) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&input_id) {
            return (slot.clone(), Vec::new());
        }
        let mut gone: Vec<(i64, Uuid)> = slots
            .iter()
            .map(|(id, slot)| (slot.made_ms(), *id))
            .filter(|(made_ms, _)| now_ms - made_ms > FORGET_AFTER_MS)
            .collect();
        if gone.is_empty() && slots.len() >= MOST_INPUTS {
            gone.extend(slots.iter().map(|(id, slot)| (slot.made_ms(), *id)).min());
        }
        for (_, id) in &gone {
            slots.remove(id);
        }
        let slot = Arc::new(Slot {
            since_ms: now_ms,
            turn: tokio::sync::Mutex::default(),
            kept: Mutex::default(),
            known_variants: Arc::default(),
        });
        slots.insert(input_id, slot.clone());
        (slot, gone.into_iter().map(|(_, id)| id).collect())
    }
}

impl Slot {
    fn kept(&self) -> Option<Kept> {
        self.kept.lock().clone()
    }

    fn made_ms(&self) -> i64 {
        self.kept().map_or(self.since_ms, |kept| kept.made_ms)
    }

    /// Returns the kept frame, unless it is older than `most_ms` and there is a newer key frame.
    fn within(&self, newest: &KeyFrame, now_ms: i64, most_ms: i64) -> Option<Kept> {
        self.kept()
            .filter(|kept| kept.of == *newest || now_ms - kept.made_ms < most_ms)
    }
}

/// See [`super::Images::live_frame`].
pub(super) async fn newest(
    services: &ImageServices,
    playback: &Playback,
) -> Result<Arc<ImageSource>, NoFrame> {
    let view = playback.now().listed().ok_or(NoFrame::NotOnAir)?;
    let newest = KeyFrame::newest(&view).ok_or(NoFrame::NoKeyFrame)?;
    let now_ms = now_ms();
    let (slot, gone) = services.frames.slot(playback.input_id, now_ms);
    for input_id in gone {
        services.memory.purge(input_id);
    }
    let every_ms = services.frames.every_ms;
    if let Some(kept) = slot.within(&newest, now_ms, every_ms) {
        return outcome(kept);
    }
    let _turn = match slot.turn.try_lock() {
        Ok(turn) => turn,
        Err(_) => match slot.within(&newest, now_ms, OLDEST_MS) {
            Some(kept) => return outcome(kept),
            None => wait_for(services, &slot).await?,
        },
    };
    if let Some(kept) = slot.within(&newest, now_ms, every_ms) {
        return outcome(kept);
    }
    match decode(services, playback.account_id, &view, &newest).await {
        Ok(video_frame) => Ok(keep(services, playback, &slot, newest, video_frame)),
        // Tried again with the next key frame.
        Err(Problem::Failed(failure)) => {
            let kept = Kept {
                of: newest,
                made_ms: sluice_store::now_ms(),
                made: Err(failure),
            };
            *slot.kept.lock() = Some(kept.clone());
            outcome(kept)
        }
        Err(problem) => match slot.within(&newest, now_ms, OLDEST_MS) {
            Some(kept) => outcome(kept),
            None => Err(problem.into()),
        },
    }
}

async fn wait_for<'s>(
    services: &ImageServices,
    slot: &'s Slot,
) -> Result<tokio::sync::MutexGuard<'s, ()>, NoFrame> {
    let patience = services.settings.render_wait;
    let turn = tokio::time::timeout(patience, slot.turn.lock()).await;
    Ok(turn.map_err(|_| Problem::Busy)?)
}

fn outcome(kept: Kept) -> Result<Arc<ImageSource>, NoFrame> {
    kept.made
        .map_err(|failure| NoFrame::Problem(Problem::Failed(failure)))
}

/// Replaces the earlier frame, whose variants are removed.
fn keep(
    services: &ImageServices,
    playback: &Playback,
    slot: &Slot,
    of: KeyFrame,
    video_frame: Bytes,
) -> Arc<ImageSource> {
    let made_ms = now_ms();
    let frame = LiveFrame {
        video_frame,
        known_variants: slot.known_variants.clone(),
    };
    let (input_id, account_id) = (playback.input_id, playback.account_id);
    let source = Arc::new(ImageSource::of_frame(input_id, account_id, frame, made_ms));
    let kept = Kept {
        of,
        made_ms,
        made: Ok(source.clone()),
    };
    let earlier = slot.kept.lock().replace(kept);
    if let Some(Ok(earlier)) = earlier.map(|earlier| earlier.made) {
        earlier.expire();
    }
    services.memory.purge(input_id);
    source
}

async fn decode(
    services: &ImageServices,
    account_id: Uuid,
    view: &View,
    of: &KeyFrame,
) -> Result<Bytes, Problem> {
    let gone = || Problem::Unavailable("a key frame is no longer there".to_owned());
    let init = view.segment_store.init(of.init).ok_or_else(gone)?;
    let part = view.segment_store.part(of.msn, of.part).ok_or_else(gone)?;
    let part = bytes_of(part).await?;
    let clip = render::in_memory(&hls::still_clip(&init, &part))?;
    services.count(|counters| &counters.mezzanines);
    let task = mezzanine::frame(0);
    render::only_output(render::assign(services, account_id, task, clip).await?)
}

async fn bytes_of(part: Body) -> Result<Vec<u8>, Problem> {
    let (path, offset, len) = match part {
        Body::Memory(pieces) => return Ok(pieces.concat()),
        Body::File { path, offset, len } => (path, offset, len),
        Body::Recorded(_) => {
            let text = "a part is no file of a recording".to_owned();
            return Err(Problem::Unavailable(text));
        }
    };
    let read = tokio::task::spawn_blocking(move || read(&path, (offset, len))).await;
    let unreadable = |error: &dyn std::fmt::Display| {
        Problem::Unavailable(format!("a key frame cannot be read: {error}"))
    };
    read.map_err(|error| unreadable(&error))?
        .map_err(|error| unreadable(&error))
}

/// A part is bounded by the packager, and so is what is read of it.
fn read(path: &std::path::Path, (offset, len): Range) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_bounded_and_forgotten() {
        let frames = LiveFrames::new(Duration::from_secs(5));
        let id = |number: u128| Uuid::from_u128(number);
        let (first, gone) = frames.slot(id(0), 0);
        assert!(gone.is_empty());
        assert!(Arc::ptr_eq(&first, &frames.slot(id(0), 59_000).0));
        for number in 1..MOST_INPUTS as u128 {
            let (_, gone) = frames.slot(id(number), 1_000);
            assert!(gone.is_empty(), "{number}");
        }
        let (_, gone) = frames.slot(id(5_000), 2_000);
        assert_eq!(gone, [id(0)], "the oldest makes room");
        let (_, gone) = frames.slot(id(6_000), 61_500);
        assert_eq!(gone.len(), MOST_INPUTS - 1, "what no one asked for");
        assert_eq!(frames.slots.lock().len(), 2);
    }

    #[test]
    fn a_frame_is_kept_while_it_is_young_or_the_newest() {
        let key_frame = |msn| KeyFrame {
            broadcast: "b".to_owned(),
            msn,
            part: 0,
            init: 0,
        };
        let frames = LiveFrames::new(Duration::from_secs(5));
        let (slot, _) = frames.slot(Uuid::nil(), 0);
        assert!(slot.within(&key_frame(1), 0, 5_000).is_none());
        let frame = LiveFrame {
            video_frame: Bytes::from_static(b"frame"),
            known_variants: slot.known_variants.clone(),
        };
        let source = ImageSource::of_frame(Uuid::nil(), Uuid::nil(), frame, 1_000);
        *slot.kept.lock() = Some(Kept {
            of: key_frame(1),
            made_ms: 1_000,
            made: Ok(Arc::new(source)),
        });
        for (newest, now_ms, expected) in [
            (1, 5_999, true),
            (1, 600_000, true),
            (2, 5_999, true),
            (2, 6_000, false),
        ] {
            let kept = slot.within(&key_frame(newest), now_ms, 5_000);
            assert_eq!(kept.is_some(), expected, "{newest} at {now_ms}");
        }
    }

    #[test]
    fn what_was_asked_for_before_is_not_new() {
        let known_variants = KnownLiveVariants::default();
        let request = |number: usize| Arc::<str>::from(format!("w={number}"));
        assert!(!known_variants.knows(&request(1)));
        assert!(known_variants.knows(&request(1)));
        for number in 2..1_000 {
            assert!(!known_variants.knows(&request(number)));
        }
        assert!(
            !known_variants.knows(&request(999)),
            "only so many are known"
        );
        assert!(known_variants.knows(&request(1)));
    }
}
