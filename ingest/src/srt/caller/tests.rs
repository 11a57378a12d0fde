//! Calls to listeners of `srt-tokio`, to a port without a listener, and to libsrt where it is linked.

use std::net::UdpSocket as StdUdpSocket;

use super::*;

const WITHIN: Duration = Duration::from_secs(10);
/// Latency that is enough on a busy machine, for late packets are lost.
const LATENCY: Duration = Duration::from_secs(2);

fn options() -> CallOptions {
    CallOptions {
        stream_id: Some("publish:studio:key".into()),
        passphrase: None,
        latency: LATENCY,
    }
}

fn local_socket() -> StdUdpSocket {
    let socket = StdUdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Returns transport packets, each with its number.
fn packets(numbers: std::ops::Range<u32>) -> Bytes {
    let mut packets = Vec::new();
    for number in numbers {
        packets.push(0x47);
        packets.extend(number.to_be_bytes());
        packets.resize(packets.len() + 183, 0xff);
    }
    packets.into()
}

/// Checks that all packets arrived, in order.
fn check(received: &[u8], count: u32) {
    let number = |packet: &[u8]| u32::from_be_bytes(*packet[1..].first_chunk().unwrap());
    let numbers: Vec<u32> = received.chunks(188).map(number).collect();
    let out_of_order = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    assert_eq!(out_of_order, None, "{} packets came", numbers.len());
    let ends = (numbers.first().copied(), numbers.last().copied());
    assert_eq!(ends, (Some(0), Some(count - 1)));
}

/// Returns both ends of a connection on this machine.
async fn connected() -> (SrtSocket, Caller) {
    let socket = local_socket();
    let remote = socket.local_addr().unwrap();
    let listening = SrtSocket::builder()
        .local(remote)
        .socket(UdpSocket::from_std(socket).unwrap())
        .listen();
    let (listener, caller) = tokio::join!(listening, Caller::connect(remote, options(), WITHIN));
    (listener.unwrap(), caller.unwrap())
}

#[tokio::test]
async fn packets_arrive_in_order_and_the_end_is_seen() {
    let (mut listener, mut caller) = connected().await;
    assert_eq!(caller.latency(), LATENCY);

    let sending = async {
        for from in (0..1000).step_by(50) {
            caller.send(packets(from..from + 50)).await.unwrap();
        }
        caller.close().await;
    };
    let receiving = async {
        let mut received = Vec::new();
        while let Some(message) = listener.next().await {
            let (_, message) = message.unwrap();
            assert!(message.len() <= MESSAGE_BYTES);
            received.extend_from_slice(&message);
        }
        received
    };
    let (received, ()) = tokio::join!(receiving, sending);
    check(&received, 1000);
}

#[tokio::test]
async fn a_peer_that_ends_is_noticed() {
    let (listener, mut caller) = connected().await;
    drop(listener);
    let noticed = async {
        loop {
            if let Err(failure) = caller.send(packets(0..1)).await {
                return failure;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let failure = timeout(2 * IDLE_TIMEOUT, noticed).await.unwrap();
    assert_eq!(failure, CallFailure::Ended);
}

#[tokio::test]
async fn a_closed_port_is_reported_at_once() {
    let remote = local_socket().local_addr().unwrap();
    let failure = Caller::connect(remote, options(), WITHIN)
        .await
        .unwrap_err();
    assert_eq!(failure, CallFailure::PortClosed);
}

#[tokio::test(start_paused = true)]
async fn silence_has_an_end() {
    let silent = local_socket();
    let remote = silent.local_addr().unwrap();
    let failure = Caller::connect(remote, options(), WITHIN)
        .await
        .unwrap_err();
    assert_eq!(failure, CallFailure::Unanswered { within: WITHIN });
}

#[tokio::test]
async fn what_cannot_be_said_is_refused_before_the_call() {
    let remote = ([127, 0, 0, 1], 9).into();
    for (stream_id, passphrase, expected) in [
        (None, Some("short"), CallFailure::PASSPHRASE),
        (None, Some(""), CallFailure::PASSPHRASE),
        (Some("x".repeat(513)), None, CallFailure::STREAM_ID),
    ] {
        let options = CallOptions {
            stream_id: stream_id.map(Into::into),
            passphrase: passphrase.map(Into::into),
            ..options()
        };
        let failure = Caller::connect(remote, options, WITHIN).await.unwrap_err();
        assert_eq!(failure, expected);
    }
}

/// Tests against libsrt, which nearly every receiver uses.
#[cfg(feature = "libsrt")]
mod against_libsrt {
    use std::{net::IpAddr, sync::Once};

    use super::*;
    use crate::srt::libsrt::{self, Connection, Listener, MAX_MESSAGE, Received};

    const PASSPHRASE: &str = "correct horse battery";
    const LISTENER_LATENCY: Duration = Duration::from_millis(120);

    /// Opens a listener that requires the passphrase, and rejects stream ids that are a code with it.
    fn listener() -> (Listener, SocketAddr) {
        static START: Once = Once::new();
        START.call_once(|| libsrt::start().unwrap());
        let socket = local_socket();
        let remote = socket.local_addr().unwrap();
        let decide = |_: i32, stream_id: &[u8], _: IpAddr| {
            let text = std::str::from_utf8(stream_id).unwrap();
            match text.parse() {
                Ok(code) => Err(code),
                Err(_) => Ok(PASSPHRASE.to_owned()),
            }
        };
        let listener =
            Listener::listen(socket, LISTENER_LATENCY, IDLE_TIMEOUT, 4, Box::new(decide)).unwrap();
        (listener, remote)
    }

    fn with(stream_id: &str, passphrase: Option<&str>) -> CallOptions {
        CallOptions {
            stream_id: Some(stream_id.into()),
            passphrase: passphrase.map(Into::into),
            ..options()
        }
    }

    async fn accepted(listener: &Listener) -> Connection {
        loop {
            if let Some(connection) = listener.accept() {
                return connection;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Receives until the end of the connection.
    async fn received(connection: &Connection, wanted: usize) -> Vec<u8> {
        let mut buffer = [0; MAX_MESSAGE];
        let mut received = Vec::new();
        while received.len() < wanted {
            match connection.receive(&mut buffer) {
                Received::Message(len) => received.extend_from_slice(&buffer[..len]),
                Received::Nothing => sleep(Duration::from_millis(5)).await,
                Received::Broken => break,
            }
        }
        received
    }

    #[tokio::test]
    async fn packets_arrive_encrypted_under_their_stream_id() {
        let (listener, remote) = listener();
        let call = Caller::connect(remote, with("publish:a:b", Some(PASSPHRASE)), WITHIN);
        let (connection, caller) = tokio::join!(accepted(&listener), call);
        let mut caller = caller.unwrap();
        assert_eq!(connection.stream_id, b"publish:a:b");
        assert_eq!((connection.latency, caller.latency()), (LATENCY, LATENCY));

        let sending = async {
            for from in (0..1000).step_by(50) {
                caller.send(packets(from..from + 50)).await.unwrap();
            }
            caller.close().await;
        };
        let receiving = timeout(WITHIN, received(&connection, 1000 * 188));
        let (received, ()) = tokio::join!(receiving, sending);
        check(&received.unwrap(), 1000);

        let over = async {
            let mut buffer = [0; MAX_MESSAGE];
            while connection.receive(&mut buffer) != Received::Broken {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(WITHIN, over).await.unwrap();
    }

    #[tokio::test]
    async fn the_larger_latency_holds_for_both() {
        let (listener, remote) = listener();
        let options = CallOptions {
            latency: Duration::from_millis(20),
            ..with("a", Some(PASSPHRASE))
        };
        let call = Caller::connect(remote, options, WITHIN);
        let (connection, caller) = tokio::join!(accepted(&listener), call);
        let latencies = (connection.latency, caller.unwrap().latency());
        assert_eq!(latencies, (LISTENER_LATENCY, LISTENER_LATENCY));
    }

    #[tokio::test]
    async fn rejections_come_in_words() {
        let (_listener, remote) = listener();
        for (stream_id, passphrase, words) in [
            (
                "1401",
                Some(PASSPHRASE),
                "it does not know this stream id or key",
            ),
            ("1409", Some(PASSPHRASE), "another sender is there already"),
            ("a", Some("wrong passphrase"), "the passphrase is wrong"),
            (
                "a",
                None,
                "it wants a passphrase where none is given, or none where one is",
            ),
        ] {
            let call = Caller::connect(remote, with(stream_id, passphrase), WITHIN);
            let expected = CallFailure::Refused {
                reason: words.into(),
            };
            assert_eq!(call.await.unwrap_err(), expected, "{stream_id}");
        }
    }

    #[tokio::test]
    async fn a_receiver_that_ends_is_noticed() {
        let (listener, remote) = listener();
        let call = Caller::connect(remote, with("a", Some(PASSPHRASE)), WITHIN);
        let (connection, caller) = tokio::join!(accepted(&listener), call);
        let mut caller = caller.unwrap();
        caller.send(packets(0..1)).await.unwrap();
        drop(connection);
        let failure = timeout(2 * IDLE_TIMEOUT, caller.ended()).await.unwrap();
        assert_eq!(failure, CallFailure::Ended);
        let refused = caller.send(packets(1..2)).await;
        assert_eq!(refused, Err(CallFailure::Ended));
    }
}
