//! Strangers: offers that are not followed, forged checks, TCP connections that send nothing or take nothing.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    time::Duration,
};

use super::{
    super::{
        super::message::{FromGateway, GoneReason, OfferError, Role, ToGateway},
        Options,
    },
    client::Client,
    service::{PATIENCE, Service},
};

fn quick() -> Options {
    Options {
        handshake_timeout: Duration::from_millis(500),
        ..Options::default()
    }
}

fn ufrag(sdp: &str) -> &str {
    sdp.lines()
        .find_map(|line| line.strip_prefix("a=ice-ufrag:"))
        .unwrap()
}

/// Returns the answer to the offer of a viewer.
fn answer(service: &mut Service, session: u32, offer: &str) -> String {
    service.offer(session, Role::Viewer, offer);
    match service.wait(|message| matches!(message, FromGateway::Answered { .. })) {
        FromGateway::Answered { sdp, .. } => sdp,
        _ => unreachable!(),
    }
}

/// Returns a connectivity check without a right integrity.
fn forged_check(local: &str, remote: &str) -> Vec<u8> {
    let username = format!("{local}:{remote}");
    let mut attributes = Vec::new();
    let mut push = |kind: u16, value: &[u8]| {
        attributes.extend_from_slice(&kind.to_be_bytes());
        attributes.extend_from_slice(&(value.len() as u16).to_be_bytes());
        attributes.extend_from_slice(value);
        attributes.resize(attributes.len().next_multiple_of(4), 0);
    };
    push(0x0006, username.as_bytes());
    push(0x0024, &[0x6e, 0, 0, 1]);
    push(0x802a, &[1; 8]);
    push(0x0025, &[]);
    push(0x0008, &[7; 20]);
    let mut check = vec![0, 1];
    check.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
    check.extend_from_slice(&0x2112_a442_u32.to_be_bytes());
    check.extend_from_slice(&[9; 12]);
    check.extend_from_slice(&attributes);
    check
}

#[test]
fn an_unanswered_offer_times_out_and_says_whether_anything_came() {
    let mut service = Service::start(quick());
    let (_client, offer) = Client::viewer();
    let sdp = answer(&mut service, 1, &offer);
    let gone = |reason| FromGateway::Gone { session: 1, reason };
    service.wait(|message| *message == gone(GoneReason::Unreachable));
    assert!(sdp.contains("a=candidate:"));
    let (_client, offer) = Client::viewer();
    let sdp = answer(&mut service, 1, &offer);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let check = forged_check(ufrag(&sdp), ufrag(&offer));
    stranger.send_to(&check, service.udp).unwrap();
    service.wait(|message| *message == gone(GoneReason::Handshake));
    service.end().unwrap();
}

#[test]
fn forged_checks_and_media_of_strangers_are_not_answered_and_change_nothing() {
    let mut service = Service::start(Options::default());
    let (mut client, offer) = Client::viewer();
    let sdp = answer(&mut service, 1, &offer);
    client.accept(&sdp);
    client.run_until(|client| client.is_connected);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (local, remote) = (ufrag(&sdp), ufrag(&offer));
    for round in 0..2_000_usize {
        let datagram = match round % 4 {
            0 => forged_check(local, remote),
            1 => forged_check("unknown", remote),
            2 => vec![128, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            _ => vec![22, 254, 253, 0, 0],
        };
        stranger.send_to(&datagram, service.udp).unwrap();
    }
    service.send(&ToGateway::Attach {
        session: 1,
        video: Some(1),
        audio: None,
    });
    service.video(1, 0, true, 100);
    client.run_until(|client| client.frames().len() == 1);
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 2_048]).is_err());
    service.end().unwrap();
}

#[test]
fn offers_beyond_the_number_of_sessions_are_rejected() {
    let mut service = Service::start(Options {
        max_sessions: 3,
        max_pending: 2,
        threads: 1,
        ..Options::default()
    });
    let (mut client, offer) = Client::viewer();
    let sdp = answer(&mut service, 1, &offer);
    client.accept(&sdp);
    client.run_until(|client| client.is_connected);
    for session in [2, 3] {
        let (_client, offer) = Client::viewer();
        answer(&mut service, session, &offer);
    }
    let (_client, offer) = Client::viewer();
    service.offer(4, Role::Viewer, &offer);
    service.wait(|message| {
        matches!(
            message,
            FromGateway::Rejected {
                session: 4,
                reason: OfferError::Full,
                ..
            }
        )
    });
    service.end().unwrap();
}

#[test]
fn a_tcp_connection_without_a_right_check_is_closed() {
    let mut service = Service::start(Options::default());
    let (_client, offer) = Client::viewer();
    let sdp = answer(&mut service, 1, &offer);
    let framed = |bytes: Vec<u8>| {
        let mut frame = (bytes.len() as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(&bytes);
        frame
    };
    let forged = framed(forged_check(ufrag(&sdp), ufrag(&offer)));
    let unknown = framed(forged_check("unknown", "x"));
    // Nothing, half a length, a forged check, one of no session, a frame that is too long.
    for bytes in [vec![], vec![0], forged, unknown, vec![0xff; 4]] {
        let mut stream = TcpStream::connect(service.tcp).unwrap();
        stream.write_all(&bytes).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let end = stream.read(&mut [0; 64]);
        assert!(
            matches!(end, Ok(0))
                || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    service.end().unwrap();
}

#[test]
fn a_tcp_viewer_that_takes_nothing_is_cut() {
    let mut service = Service::start(Options::default());
    let (mut client, offer) = Client::tcp_viewer(service.tcp);
    let sdp = answer(&mut service, 1, &offer);
    client.accept(&sdp);
    client.run_until(|client| client.is_connected);
    service.send(&ToGateway::Attach {
        session: 1,
        video: Some(1),
        audio: None,
    });
    // More than the kernel keeps for both ends, and nothing is read any more.
    for frame in 0..40 {
        service.video(1, frame * 3_000, true, 1 << 20);
    }
    let gone = FromGateway::Gone {
        session: 1,
        reason: GoneReason::TooSlow,
    };
    service.wait(|message| *message == gone);
    service.end().unwrap();
}
