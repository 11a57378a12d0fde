//! Whole sessions: two of str0m with media both ways, and DTLS with OpenSSL.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, KeyingMaterial,
    ProtocolVersion, SrtpProfile,
};
use str0m::crypto::{CryptoError, CryptoProvider};
use str0m::media::{Direction, MediaKind, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};

use super::dtls::Dtls;
use super::{certificate, provider};

pub(super) fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Our DTLS, except that every session reports this profile: dimpl always negotiates the first.
#[derive(Debug)]
struct Fixed(SrtpProfile);

static FIXED: [Fixed; 3] = [
    Fixed(SrtpProfile::AES128_CM_SHA1_80),
    Fixed(SrtpProfile::AEAD_AES_128_GCM),
    Fixed(SrtpProfile::AEAD_AES_256_GCM),
];

impl DtlsProvider for Fixed {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Dtls.generate_certificate()
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        Ok(Box::new(FixedSession(
            Dtls.new_dtls(certificate, now, version, mtu)?,
            self.0,
        )))
    }
}

#[derive(Debug)]
struct FixedSession(Box<dyn DtlsInstance>, SrtpProfile);

impl DtlsInstance for FixedSession {
    fn set_active(&mut self, active: bool) {
        self.0.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.0.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        match self.0.poll_output(buffer) {
            DtlsOutput::KeyingMaterial(material, _) => {
                let material = KeyingMaterial::new(&material[..self.1.keying_material_len()]);
                DtlsOutput::KeyingMaterial(material, self.1)
            }
            other => other,
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.0.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.0.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.0.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.0.protocol_version()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.0.close()
    }
}

/// Two sessions of str0m that exchange packets in memory, in simulated time.
struct Pair {
    peers: [Rtc; 2],
    wakes: [Instant; 2],
    now: Instant,
    mid: Mid,
    received: [Vec<Vec<u8>>; 2],
}

impl Pair {
    fn negotiate(crypto: &Arc<CryptoProvider>, version: DtlsVersion) -> Self {
        let now = Instant::now();
        let mut peers = [1, 2].map(|host| {
            let mut rtc = RtcConfig::new()
                .set_crypto_provider(Arc::clone(crypto))
                .set_dtls_cert(certificate())
                .set_dtls_version(version)
                .build(now);
            rtc.add_local_candidate(Candidate::host(address(host), "udp").unwrap());
            rtc
        });
        let mut change = peers[0].sdp_api();
        let mid = change.add_media(MediaKind::Audio, Direction::SendRecv, None, None, None);
        let (offer, pending) = change.apply().unwrap();
        let answer = peers[1].sdp_api().accept_offer(offer).unwrap();
        peers[0].sdp_api().accept_answer(pending, answer).unwrap();
        Self {
            peers,
            wakes: [now; 2],
            now,
            mid,
            received: Default::default(),
        }
    }

    /// Lets both work until `until` holds; false when it does not within 10 s of simulated time.
    fn run(&mut self, mut until: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + Duration::from_secs(10);
        while self.now < end {
            let mut packets = VecDeque::new();
            for side in 0..2 {
                if self.wakes[side] <= self.now {
                    self.peers[side]
                        .handle_input(Input::Timeout(self.now))
                        .unwrap();
                    self.poll(side, &mut packets);
                }
            }
            while let Some((side, source, contents)) = packets.pop_front() {
                let receive =
                    Receive::new(Protocol::Udp, source, address(side as u8 + 1), &contents)
                        .unwrap();
                self.peers[side]
                    .handle_input(Input::Receive(self.now, receive))
                    .unwrap();
                self.poll(side, &mut packets);
            }
            if until(self) {
                return true;
            }
            self.now += Duration::from_millis(5);
        }
        false
    }

    fn poll(&mut self, side: usize, packets: &mut VecDeque<(usize, SocketAddr, Vec<u8>)>) {
        loop {
            match self.peers[side].poll_output().unwrap() {
                Output::Timeout(at) => {
                    self.wakes[side] = at;
                    break;
                }
                Output::Transmit(packet) => {
                    packets.push_back((1 - side, packet.source, packet.contents.to_vec()))
                }
                Output::Event(Event::MediaData(data)) => {
                    self.received[side].push(data.data.to_vec())
                }
                Output::Event(_) => {}
            }
        }
    }

    /// Sends audio from each side and sees it arrive at the other.
    fn talk(&mut self) -> bool {
        let mut sent = 0;
        self.run(|pair| {
            for side in 0..2 {
                let writer = pair.peers[side].writer(pair.mid).unwrap();
                let pt = writer.payload_params().next().unwrap().pt();
                let time = MediaTime::from_90khz(sent * 1_800);
                writer.write(pt, pair.now, time, spoken(side)).unwrap();
                pair.wakes[side] = pair.now;
            }
            sent += 1;
            (0..2).all(|side| pair.received[side].len() >= 20)
        }) && (0..2).all(|side| {
            self.received[side]
                .iter()
                .all(|frame| *frame == spoken(1 - side))
        })
    }
}

fn address(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

fn spoken(side: usize) -> Vec<u8> {
    vec![side as u8 + 1; 100 + side]
}

#[test]
fn media_flows_both_ways_with_each_srtp_profile() {
    for dtls in &FIXED {
        let crypto = Arc::new(CryptoProvider {
            dtls_provider: dtls,
            ..(*provider()).clone()
        });
        let mut pair = Pair::negotiate(&crypto, DtlsVersion::Dtls12);
        assert!(
            pair.run(|pair| pair.peers.iter().all(Rtc::is_connected)),
            "{dtls:?} connects"
        );
        assert!(pair.talk(), "{dtls:?} carries audio");
    }
}

#[test]
fn sessions_of_dtls_1_3_connect_too() {
    let mut pair = Pair::negotiate(&provider(), DtlsVersion::Dtls13);
    assert!(pair.run(|pair| pair.peers.iter().all(Rtc::is_connected)));
    assert!(pair.talk());
}

/// DTLS without ICE over a socket of loopback, until the peer has sent data, the session fails or 20 s are over.
struct Session {
    dtls: Box<dyn DtlsInstance>,
    socket: UdpSocket,
    profile: Option<SrtpProfile>,
    material: Vec<u8>,
    data: Vec<u8>,
}

impl Session {
    fn new(active: bool, socket: UdpSocket) -> Self {
        let mut dtls = Dtls
            .new_dtls(&certificate(), Instant::now(), DtlsVersion::Dtls12, None)
            .unwrap();
        dtls.set_active(active);
        Self {
            dtls,
            socket,
            profile: None,
            material: Vec::new(),
            data: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), DtlsImplError> {
        let end = Instant::now() + Duration::from_secs(20);
        let mut buffer = vec![0; 4096];
        let mut packet = vec![0; 4096];
        while self.data.is_empty() {
            assert!(Instant::now() < end, "no data of the peer came");
            self.dtls.handle_timeout(Instant::now())?;
            let wake = loop {
                match self.dtls.poll_output(&mut buffer) {
                    DtlsOutput::Packet(packet) => drop(self.socket.send(packet)),
                    DtlsOutput::KeyingMaterial(material, profile) => {
                        self.material = material.to_vec();
                        self.profile = Some(profile);
                    }
                    DtlsOutput::Connected => {
                        self.dtls.send_application_data(b"hello of dimpl\n")?;
                    }
                    DtlsOutput::ApplicationData(data) => self.data = data.to_vec(),
                    DtlsOutput::Timeout(at) => break at,
                    _ => {}
                }
            };
            let wait = wake.saturating_duration_since(Instant::now());
            self.socket
                .set_read_timeout(Some(
                    wait.clamp(Duration::from_millis(1), Duration::from_millis(100)),
                ))
                .unwrap();
            if let Ok(length) = self.socket.recv(&mut packet) {
                self.dtls.handle_packet(&packet[..length])?;
            }
        }
        Ok(())
    }
}

/// OpenSSL's command-line client or server; ended with the value.
struct OpenSsl(Child);

impl OpenSsl {
    fn start(arguments: &[&str]) -> Self {
        let child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the tests need Debian's openssl");
        Self(child)
    }

    fn say(&mut self, text: &str) {
        self.0
            .stdin
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    /// Closes its input and returns all that it has printed.
    fn finish(mut self) -> String {
        drop(self.0.stdin.take());
        let mut printed = String::new();
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut printed)
            .unwrap();
        printed
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a key and a certificate of the curve for OpenSSL, and returns their paths.
fn files(
    directory: &std::path::Path,
    curve: &'static rcgen::SignatureAlgorithm,
) -> (String, String) {
    let key = rcgen::KeyPair::generate_for(curve).unwrap();
    let certificate = rcgen::CertificateParams::default()
        .self_signed(&key)
        .unwrap();
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (
        write("key.pem", key.serialize_pem()),
        write("certificate.pem", certificate.pem()),
    )
}

const PROFILES: [(&str, SrtpProfile); 3] = [
    ("SRTP_AES128_CM_SHA1_80", SrtpProfile::AES128_CM_SHA1_80),
    ("SRTP_AEAD_AES_128_GCM", SrtpProfile::AEAD_AES_128_GCM),
    ("SRTP_AEAD_AES_256_GCM", SrtpProfile::AEAD_AES_256_GCM),
];

#[test]
fn a_client_of_openssl_gets_the_same_keys_of_each_profile() {
    let directory = tempfile::tempdir().unwrap();
    for ((name, profile), (curve, cipher)) in PROFILES.into_iter().zip([
        (
            &rcgen::PKCS_ECDSA_P256_SHA256,
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            &rcgen::PKCS_ECDSA_P384_SHA384,
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            &rcgen::PKCS_ECDSA_P256_SHA256,
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
    ]) {
        let (key, certificate) = files(directory.path(), curve);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let length = profile.keying_material_len().to_string();
        let mut client = OpenSsl::start(&[
            "s_client",
            "-dtls1_2",
            "-connect",
            &address,
            "-cert",
            &certificate,
            "-key",
            &key,
            "-cipher",
            cipher,
            "-use_srtp",
            name,
            "-keymatexport",
            "EXTRACTOR-dtls_srtp",
            "-keymatexportlen",
            &length,
        ]);
        client.say("hello of openssl\n");
        let (_, from) = socket.peek_from(&mut [0; 2048]).unwrap();
        socket.connect(from).unwrap();
        let mut session = Session::new(false, socket);
        session.run().unwrap();
        assert_eq!(session.data, b"hello of openssl\n");
        assert_eq!(session.profile, Some(profile));
        let printed = client.finish();
        let exported = printed
            .split("Keying material: ")
            .nth(1)
            .expect(&printed)
            .split_whitespace()
            .next()
            .unwrap();
        assert_eq!(hex(exported), session.material, "{name}");
    }
}

#[test]
fn a_server_of_openssl_is_joined() {
    let directory = tempfile::tempdir().unwrap();
    for curve in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
    ] {
        let (key, certificate) = files(directory.path(), curve);
        let mut server = OpenSsl::start(&[
            "s_server",
            "-dtls1_2",
            "-accept",
            "127.0.0.1:0",
            "-cert",
            &certificate,
            "-key",
            &key,
            "-Verify",
            "1",
            "-use_srtp",
            "SRTP_AEAD_AES_128_GCM",
        ]);
        let mut printed = BufReader::new(server.0.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let accepting = printed.find(|line| line.starts_with("ACCEPT ")).unwrap();
        let address = accepting.strip_prefix("ACCEPT ").unwrap();
        server.say("hello of openssl\n");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        let mut session = Session::new(true, socket);
        session.run().unwrap();
        assert_eq!(session.data, b"hello of openssl\n");
        assert_eq!(session.profile, Some(SrtpProfile::AEAD_AES_128_GCM));
        assert!(printed.any(|line| line.contains("hello of dimpl")));
    }
}
