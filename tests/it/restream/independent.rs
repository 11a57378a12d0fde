//! The RTMP writer against code that is not ours: the server of the crate `rtmp-rs` receives from it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rtmp_rs::{
    RtmpHandler, RtmpServer, ServerConfig,
    media::{FlvTag, FlvTagType},
    server::handler::MediaDeliveryMode,
    session::StreamContext,
};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::{Output, PLAYED, sender};
use crate::support::{Failure, encoder::Publish, eventually, http::free_port, media::Recipe};

/// Media messages of each kind that make a test's sample.
const SAMPLE: usize = 90;
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;

/// Bodies of media messages in their order, without decoder configurations.
type Bodies = Vec<Bytes>;

#[derive(Clone, Default)]
struct Received {
    audio: Arc<Mutex<Bodies>>,
    video: Arc<Mutex<Bodies>>,
}

impl RtmpHandler for Received {
    async fn on_media_tag(&self, _: &StreamContext, tag: &FlvTag) -> bool {
        let bodies = match tag.tag_type {
            FlvTagType::Audio => &self.audio,
            FlvTagType::Video => &self.video,
            _ => return true,
        };
        if is_media(&tag.data) {
            let mut bodies = bodies.lock().expect("no panic under this lock");
            bodies.push(tag.data.clone());
        }
        true
    }

    fn media_delivery_mode(&self) -> MediaDeliveryMode {
        MediaDeliveryMode::RawFlv
    }
}

/// The second byte of AAC and AVC bodies: 0 is a configuration, 1 media, 2 the end.
fn is_media(body: &[u8]) -> bool {
    body.get(1) == Some(&1)
}

/// An independent server, and what it has received.
struct Receiver {
    url: String,
    received: Received,
    _serving: AbortOnDropHandle<()>,
}

impl Receiver {
    fn start() -> Result<Self, Failure> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let received = Received::default();
        let config = ServerConfig::default().bind(address.parse()?);
        let server = RtmpServer::new(config, received.clone());
        let serving = tokio::spawn(async move {
            server.run().await.expect("the port is free");
        });
        Ok(Self {
            url: format!("rtmp://{address}/live/key"),
            received,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    async fn wait(&self, what: &str, bodies: &Mutex<Bodies>) -> Result<Bodies, Failure> {
        eventually(what, PLAYED, async || {
            let bodies = bodies.lock().expect("no panic under this lock");
            (bodies.len() >= SAMPLE).then(|| bodies.clone())
        })
        .await
    }
}

/// Media messages of a file with this type, in order.
fn read_flv(flv: &[u8], kind: u8) -> Result<Bodies, Failure> {
    let mut rest = flv.get(13..).ok_or("no FLV header")?;
    let mut tags = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(11) {
        let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
        let body = after.get(..length).ok_or("a cut tag")?;
        if head[0] == kind {
            tags.push(Bytes::copy_from_slice(body));
        }
        rest = after.get(length + 4..).unwrap_or_default();
    }
    Ok(tags)
}

/// Checks that what came is one stretch of what was sent: whole, unchanged and in order.
fn check_stretch(received: &[Bytes], sent: &[Bytes]) {
    let is_stretch = sent.windows(received.len()).any(|part| part == received);
    assert!(is_stretch, "{} of {}", received.len(), sent.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_independent_server_receives_every_frame_and_audio_unchanged() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let flv = std::fs::read(&clip.flv)?;
    let receiver = Receiver::start()?;
    let server = sender().start().await?;
    let source = server.api().create(json!({})).await?;
    Output::add(&server, &source.id, &receiver.url).await?;
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    for (kind, what, bodies) in [
        (VIDEO, "frames arrive", &receiver.received.video),
        (AUDIO, "audio arrives", &receiver.received.audio),
    ] {
        let received = receiver.wait(what, bodies).await?;
        check_stretch(&received, &read_flv(&flv, kind)?);
    }
    encoder.stop().await?;
    Ok(())
}
