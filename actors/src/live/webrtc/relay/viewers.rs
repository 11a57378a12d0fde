//! Viewers of one input and what each is sent: passed on, re-encoded, or nothing.
//!
//! Decided for all viewers at once, when one comes or goes and when the source changes.

use std::collections::HashMap;

use sluice_ingest::webrtc::{
    message::{FeedId, SessionId, ToGateway},
    treatment::{self, Treatment},
};
use sluice_media::codec::{AudioConfig, VideoCodec};
use tokio::sync::oneshot;

use super::{
    super::{WebRtcError, branch::BranchTracks, outbox::Outbox, report::BranchHealth},
    Takes,
    feeds::{FeedIdsNow, Source},
};

/// Way of a track to a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// The source has no such track, or the viewer takes none.
    #[default]
    Nothing,
    Copied,
    Reencoded,
}

impl Way {
    fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Copied => Some("copied"),
            Self::Reencoded => Some("reencoded"),
        }
    }
}

type Decision = Result<(), WebRtcError>;

struct Viewer {
    takes: Takes,
    is_connected: bool,
    video: Way,
    audio: Way,
    feeds: (Option<FeedId>, Option<FeedId>),
    attached: (Option<FeedId>, Option<FeedId>),
    decision: Option<oneshot::Sender<Decision>>,
}

/// See the module documentation.
pub(super) struct Viewers {
    viewers: HashMap<SessionId, Viewer>,
    /// Sessions for which there is no way any more.
    unserved: Vec<SessionId>,
    /// Reason for which video is re-encoded.
    reason: Option<&'static str>,
    can_reencode: bool,
}

/// Feeds and branch that all viewers together need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub copies_video: bool,
    pub copies_audio: bool,
    pub branch: BranchTracks,
}

impl Viewers {
    pub fn new(can_reencode: bool) -> Self {
        Self {
            viewers: HashMap::new(),
            unserved: Vec::new(),
            reason: None,
            can_reencode,
        }
    }

    /// Notes that this machine cannot re-encode.
    pub fn forgo_branch(&mut self) {
        self.can_reencode = false;
    }

    pub fn is_empty(&self) -> bool {
        self.viewers.is_empty()
    }

    /// Adds a viewer; the receiver gets the decision.
    pub fn join(&mut self, session: SessionId, takes: Takes) -> oneshot::Receiver<Decision> {
        let (decision, receiver) = oneshot::channel();
        let viewer = Viewer {
            takes,
            is_connected: false,
            video: Way::Nothing,
            audio: Way::Nothing,
            feeds: (None, None),
            attached: (None, None),
            decision: Some(decision),
        };
        self.viewers.insert(session, viewer);
        receiver
    }

    /// Attaches a viewer to its feeds.
    pub fn connect(&mut self, session: SessionId, outbox: &Outbox) {
        if let Some(viewer) = self.viewers.get_mut(&session) {
            viewer.is_connected = true;
            viewer.attach(session, outbox);
        }
    }

    pub fn leave(&mut self, session: SessionId) {
        self.viewers.remove(&session);
        self.unserved.retain(|unserved| *unserved != session);
    }

    pub fn take_unserved(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.unserved)
    }

    /// Decides by the source. Viewers whom no way leads to are left out, and named by [`Viewers::take_unserved`].
    pub fn plan(&mut self, source: &Source) -> Plan {
        self.reason = None;
        let can_reencode = self.can_reencode;
        let mut lost = Vec::new();
        for (session, viewer) in &mut self.viewers {
            match video_way(source, viewer.takes) {
                Ok((way, reason)) => {
                    viewer.video = way;
                    self.reason = self.reason.or(reason);
                }
                Err(error) => lost.push((*session, error)),
            }
            viewer.audio = match audio_way(source.audio.as_deref(), viewer.takes) {
                Way::Reencoded if !can_reencode => Way::Nothing,
                way => way,
            };
        }
        for (session, error) in lost {
            self.lose(session, error);
        }
        match can_reencode {
            true => self.needs(),
            false => self.without_video_branch(),
        }
    }

    /// Leaves out the viewers whose video would be re-encoded.
    pub fn without_video_branch(&mut self) -> Plan {
        let needy = |(session, viewer): (&SessionId, &Viewer)| {
            (viewer.video == Way::Reencoded).then_some(*session)
        };
        let needy: Vec<SessionId> = self.viewers.iter().filter_map(needy).collect();
        for session in needy {
            self.lose(session, WebRtcError::Busy);
        }
        self.reason = None;
        self.needs()
    }

    fn lose(&mut self, session: SessionId, error: WebRtcError) {
        let Some(mut viewer) = self.viewers.remove(&session) else {
            return;
        };
        match viewer.decision.take() {
            Some(decision) => drop(decision.send(Err(error))),
            None => self.unserved.push(session),
        }
    }

    fn needs(&self) -> Plan {
        let any = |way: fn(&Viewer) -> bool| self.viewers.values().any(way);
        Plan {
            copies_video: any(|it| it.video == Way::Copied),
            copies_audio: any(|it| it.audio == Way::Copied),
            branch: BranchTracks {
                video: any(|it| it.video == Way::Reencoded),
                audio: any(|it| it.audio == Way::Reencoded),
            },
        }
    }

    /// Attaches all viewers to the feeds of the plan, and answers those who wait for the decision.
    pub fn settle(&mut self, ids: &FeedIdsNow, outbox: &Outbox) {
        for (session, viewer) in &mut self.viewers {
            let video = match viewer.video {
                Way::Nothing => None,
                Way::Copied => ids.video,
                Way::Reencoded => ids.branch_video,
            };
            let audio = match viewer.audio {
                Way::Nothing => None,
                Way::Copied => ids.audio,
                Way::Reencoded => ids.branch_audio,
            };
            viewer.feeds = (video, audio);
            viewer.attach(*session, outbox);
            if let Some(decision) = viewer.decision.take() {
                let _ = decision.send(Ok(()));
            }
        }
    }

    pub fn health(&self, cpu_percent: Option<f64>) -> BranchHealth {
        let most = |of: fn(&Viewer) -> Way| {
            let mut ways = self.viewers.values().map(of);
            let is_reencoded = ways.clone().any(|way| way == Way::Reencoded);
            match is_reencoded {
                true => Way::Reencoded.as_str(),
                false => ways.find_map(Way::as_str),
            }
        };
        let (video, audio) = (most(|it| it.video), most(|it| it.audio));
        let is_reencoded = [video, audio].contains(&Way::Reencoded.as_str());
        BranchHealth {
            video,
            audio,
            reason: self.reason.filter(|_| video == Way::Reencoded.as_str()),
            cpu_percent: cpu_percent.filter(|_| is_reencoded),
        }
    }
}

impl Viewer {
    fn attach(&mut self, session: SessionId, outbox: &Outbox) {
        if !self.is_connected || self.attached == self.feeds {
            return;
        }
        self.attached = self.feeds;
        let (video, audio) = self.feeds;
        outbox.order(ToGateway::Attach {
            session,
            video,
            audio,
        });
    }
}

/// Decides how video comes to a viewer; the reason when it is re-encoded.
fn video_way(source: &Source, takes: Takes) -> Result<(Way, Option<&'static str>), WebRtcError> {
    let Some(config) = source.video.as_deref().filter(|_| !takes.video.is_empty()) else {
        return Ok((Way::Nothing, None));
    };
    match treatment::of_video(config, source.reorders, takes.video) {
        Treatment::Passthrough => Ok((Way::Copied, None)),
        Treatment::Reencode(reason) if takes.video.contains(VideoCodec::Avc) => {
            Ok((Way::Reencoded, Some(reason.as_str())))
        }
        Treatment::Reencode(_) => Err(WebRtcError::NoCommonCodec(format!(
            "the stream has {}, and the offer has no h264 into which it could be re-encoded",
            config.codec.name()
        ))),
    }
}

fn audio_way(config: Option<&AudioConfig>, takes: Takes) -> Way {
    match config {
        Some(config) if takes.audio => match treatment::passes_audio(config) {
            true => Way::Copied,
            false => Way::Reencoded,
        },
        _ => Way::Nothing,
    }
}
