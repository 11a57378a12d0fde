//! Viewers: packets, joins, feeds that are replaced, and ends.

use super::{
    super::{
        super::message::{
            CloseReason, FeedId, FromGateway, GoneReason, Role, SessionId, ToGateway, Transport,
        },
        Options,
    },
    client::Client,
    service::Service,
};

const SECOND: i64 = 90_000;

/// Connects a viewer.
fn connect(
    service: &mut Service,
    session: SessionId,
    (mut client, offer): (Client, String),
) -> Client {
    service.offer(session, Role::Viewer, &offer);
    let answered = service.wait(
        |message| matches!(message, FromGateway::Answered { session: of, .. } if *of == session),
    );
    let FromGateway::Answered {
        video, audio, sdp, ..
    } = answered
    else {
        unreachable!();
    };
    assert!(video.contains(sluice_media::codec::VideoCodec::Avc) && audio);
    client.accept(&sdp);
    client.run_until(|client| client.is_connected);
    client
}

fn attach(service: &mut Service, session: SessionId, video: FeedId, audio: FeedId) {
    service.send(&ToGateway::Attach {
        session,
        video: Some(video),
        audio: Some(audio),
    });
}

/// Asserts that the sequence numbers of both tracks begin at 1 and have no gap.
fn assert_whole(client: &Client) {
    for mid in [client.video, client.audio] {
        for (index, packet) in client.of_track(mid).into_iter().enumerate() {
            assert_eq!(*packet.seq_no, index as u64 + 1);
        }
    }
}

#[test]
fn a_viewer_is_sent_video_and_audio_by_both_transports() {
    let mut service = Service::start(Options::default());
    let tcp = Client::tcp_viewer(service.tcp);
    for (session, client, transport) in [
        (1, Client::viewer(), Transport::Udp),
        (2, tcp, Transport::Tcp),
    ] {
        let mut client = connect(&mut service, session, client);
        let connected = service.wait(|message| matches!(message, FromGateway::Connected { .. }));
        assert!(
            matches!(connected, FromGateway::Connected { transport: by, .. } if by == transport)
        );
        attach(&mut service, session, 1, 2);
        service.wait(|message| *message == FromGateway::KeyFrameWanted(1));
        for frame in 0..10 {
            let pts = 100 * SECOND + frame * 3_000;
            service.video(1, pts, frame == 0, 5_000);
            service.audio(2, pts);
        }
        client.run_until(|client| {
            client.frames().len() == 10 && client.of_track(client.audio).len() == 10
        });
        service.wait(|message| matches!(message, FromGateway::FirstFrame { session: of, .. } if *of == session));
        let frames = client.frames();
        assert!(frames[0].1 && frames[1..].iter().all(|(_, is_key)| !is_key));
        assert!(frames.windows(2).all(|pair| pair[1].0 == pair[0].0 + 3_000));
        assert_whole(&client);
        let delay = client.of_track(client.video)[0]
            .header
            .ext_vals
            .play_delay_max;
        assert_eq!(delay.map(|delay| delay.as_seconds()), Some(0.4));
        service.send(&ToGateway::Close {
            session,
            reason: CloseReason::Over,
        });
        client.run_until(|client| client.is_closed);
        let reason = GoneReason::Closed;
        service.wait(|message| *message == FromGateway::Gone { session, reason });
        service.send(&ToGateway::Forget(1));
    }
    service.end().unwrap();
}

#[test]
fn who_joins_in_the_middle_of_a_group_is_sent_it_at_once_with_squeezed_times() {
    let mut service = Service::start(Options::default());
    for frame in 0..40 {
        service.video(1, frame * 3_000, frame == 0, 3_000);
    }
    let mut client = connect(&mut service, 1, Client::viewer());
    attach(&mut service, 1, 1, 2);
    client.run_until(|client| client.frames().len() == 40);
    service.video(1, 40 * 3_000, false, 3_000);
    client.run_until(|client| client.frames().len() == 41);
    let frames = client.frames();
    assert!(frames[0].1 && frames[1..].iter().all(|(_, is_key)| !is_key));
    let steps: Vec<u32> = frames
        .windows(2)
        .map(|pair| pair[1].0.wrapping_sub(pair[0].0))
        .collect();
    assert_eq!(steps[..39], [90; 39]);
    assert_eq!(steps[39], 3_000);
    assert_whole(&client);
    service.end().unwrap();
}

#[test]
fn another_feed_begins_at_its_key_frame_with_times_and_numbers_of_the_first() {
    let mut service = Service::start(Options::default());
    let mut client = connect(&mut service, 1, Client::viewer());
    attach(&mut service, 1, 1, 2);
    service.wait(|message| *message == FromGateway::KeyFrameWanted(1));
    for frame in 0..10 {
        service.video(1, frame * 3_000, frame == 0, 100);
        service.audio(2, frame * 1_800);
    }
    attach(&mut service, 1, 3, 4);
    service.wait(|message| *message == FromGateway::KeyFrameWanted(3));
    for frame in 10..20 {
        // The first feed continues until the other one has its key frame; that one's audio is taken at once.
        service.video(1, frame * 3_000, false, 100);
        service.video(3, frame * 3_000, frame == 15, 100);
        service.audio(4, frame * 1_800);
        service.audio(2, frame * 1_800);
    }
    client.run_until(|client| {
        client.frames().len() == 21 && client.of_track(client.audio).len() == 20
    });
    let frames = client.frames();
    let times: Vec<u32> = frames.iter().map(|(time, _)| time - frames[0].0).collect();
    let expected = (0..16)
        .map(|frame| frame * 3_000)
        .chain([45_090])
        .chain((16..20).map(|frame| frame * 3_000));
    assert_eq!(times, expected.collect::<Vec<_>>());
    let marks: Vec<u8> = client
        .of_track(client.video)
        .iter()
        .filter_map(|packet| packet.payload.get(50).copied())
        .collect();
    assert_eq!(marks, [[1; 16].as_slice(), &[3; 5]].concat());
    let audio = client.of_track(client.audio);
    assert!(
        audio
            .windows(2)
            .all(|pair| pair[1].header.timestamp == pair[0].header.timestamp + 960)
    );
    assert_whole(&client);
    service.end().unwrap();
}

#[test]
fn a_feed_that_is_over_is_replaced_at_once_by_the_open_group_of_the_next() {
    let mut service = Service::start(Options::default());
    let mut client = connect(&mut service, 1, Client::viewer());
    attach(&mut service, 1, 1, 2);
    for frame in 0..3 {
        service.video(1, frame * 3_000, frame == 0, 100);
    }
    client.run_until(|client| client.frames().len() == 3);
    // The next publisher has begun before the viewer is attached to its feed.
    for frame in 10..13 {
        service.video(3, frame * 3_000, frame == 10, 100);
    }
    attach(&mut service, 1, 3, 4);
    service.send(&ToGateway::Forget(1));
    client.run_until(|client| client.frames().len() == 6);
    let frames = client.frames();
    assert!(frames[3].1);
    assert_eq!(frames[5].0, frames[0].0 + 12 * 3_000);
    assert!(frames.windows(2).all(|pair| pair[1].0 > pair[0].0));
    assert_whole(&client);
    service.end().unwrap();
}

#[test]
fn a_panic_in_one_session_ends_that_session_alone() {
    let mut service = Service::start(Options {
        threads: 1,
        ..Options::default()
    });
    let panicking = super::PANICKING_SESSION;
    let mut client = connect(&mut service, 1, Client::viewer());
    attach(&mut service, 1, 1, 2);
    connect(&mut service, panicking, Client::viewer());
    attach(&mut service, panicking, 1, 2);
    service.video(1, 0, true, 100);
    let gone = FromGateway::Gone {
        session: panicking,
        reason: GoneReason::Failed,
    };
    service.wait(|message| *message == gone);
    service.video(1, 3_000, false, 100);
    client.run_until(|client| client.frames().len() == 2);
    service.wait(|message| matches!(message, FromGateway::Alive { sessions: 1 }));
    service.end().unwrap();
}

#[test]
fn a_client_asks_for_key_frames_and_for_lost_packets() {
    let mut service = Service::start(Options::default());
    let mut client = connect(&mut service, 1, Client::viewer());
    attach(&mut service, 1, 1, 2);
    service.video(1, 0, true, 20_000);
    client.run_until(|client| client.frames().len() == 1);
    service.wait(|message| matches!(message, FromGateway::FirstFrame { .. }));
    // The request at the join may be a moment ago.
    let mut is_asked = false;
    client.run_until(|client| {
        let ssrc = client.of_track(client.video)[0].header.ssrc;
        if let Some(stream) = client.rtc.direct_api().stream_rx(&ssrc) {
            stream.request_keyframe(str0m::media::KeyframeRequestKind::Pli);
        }
        is_asked |= service.try_next() == Some(FromGateway::KeyFrameWanted(1));
        is_asked
    });
    service.end().unwrap();
}

#[test]
fn a_peer_that_closes_is_gone() {
    let mut service = Service::start(Options::default());
    let mut client = connect(&mut service, 1, Client::viewer());
    client.rtc.close().unwrap();
    client.run_until(|client| !client.rtc.is_alive());
    let gone = FromGateway::Gone {
        session: 1,
        reason: GoneReason::Peer,
    };
    service.wait(|message| *message == gone);
    service.end().unwrap();
}

#[test]
fn the_gateway_says_goodbye_at_its_end() {
    let mut service = Service::start(Options::default());
    let mut client = connect(&mut service, 1, Client::viewer());
    service.end().unwrap();
    client.run_until(|client| client.is_closed);
}
