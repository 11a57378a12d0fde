//! Publishers: frames to the service, key frames on demand.

use std::time::{Duration, Instant};

use sluice_media::codec::VideoCodec;
use str0m::{
    format::Codec,
    media::{Frequency, MediaTime},
};

use super::{
    super::{
        super::message::{AudioFrame, FromGateway, Role, VideoFrame},
        Options,
    },
    client::Client,
    service::Service,
};

fn publisher(service: &mut Service) -> Client {
    let (mut client, offer) = Client::publisher();
    service.offer(1, Role::Publisher, &offer);
    let FromGateway::Answered {
        video, audio, sdp, ..
    } = service.wait(|message| matches!(message, FromGateway::Answered { .. }))
    else {
        unreachable!();
    };
    assert!(video.contains(VideoCodec::Avc) && audio);
    client.accept(&sdp);
    client.run_until(|client| client.is_connected);
    client
}

/// Writes a video frame behind start codes.
fn write_video(client: &mut Client, frame: u64, is_key: bool) {
    let mid = client.video;
    let mut data = Vec::new();
    if is_key {
        data.extend_from_slice(&[0, 0, 0, 1, 0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40]);
        data.extend_from_slice(&[0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80]);
    }
    data.extend_from_slice(&[0, 0, 0, 1, if is_key { 0x65 } else { 0x41 }]);
    data.resize(data.len() + 3_000, frame as u8 | 0x80);
    let writer = client.rtc.writer(mid).unwrap();
    let params = writer
        .payload_params()
        .find(|params| params.spec().codec == Codec::H264);
    let pt = params.unwrap().pt();
    let time = MediaTime::new(500_000 + frame * 3_000, Frequency::NINETY_KHZ);
    writer.write(pt, Instant::now(), time, data).unwrap();
    client.step();
}

fn write_audio(client: &mut Client, frame: u64) {
    let mid = client.audio;
    let writer = client.rtc.writer(mid).unwrap();
    let params = writer
        .payload_params()
        .find(|params| params.spec().codec == Codec::Opus);
    let pt = params.unwrap().pt();
    let time = MediaTime::new(77_777 + frame * 960, Frequency::FORTY_EIGHT_KHZ);
    writer
        .write(pt, Instant::now(), time, vec![0xfc, frame as u8, 9])
        .unwrap();
    client.step();
}

#[test]
fn frames_of_a_publisher_come_whole_and_on_one_line() {
    let mut service = Service::start(Options::default());
    let mut client = publisher(&mut service);
    for frame in 0..20 {
        write_video(&mut client, frame, frame == 0);
        write_audio(&mut client, frame);
    }
    let (mut videos, mut audios): (Vec<VideoFrame>, Vec<AudioFrame>) = (Vec::new(), Vec::new());
    client.run_until(|_| {
        while let Some(message) = service.try_next() {
            match message {
                FromGateway::Video(frame) => videos.push(frame),
                FromGateway::Audio(frame) => audios.push(frame),
                _ => {}
            }
        }
        videos.len() == 20 && audios.len() == 20
    });
    for (index, frame) in videos.iter().enumerate() {
        assert_eq!(
            (frame.of, frame.codec, frame.key),
            (1, VideoCodec::Avc, index == 0)
        );
        assert_eq!(frame.data.last(), Some(&(index as u8 | 0x80)));
        let first = u32::from_be_bytes(*frame.data.first_chunk().unwrap());
        assert_eq!(first, if index == 0 { 7 } else { 3_001 });
    }
    assert!(
        videos
            .windows(2)
            .all(|pair| pair[1].pts_90k == pair[0].pts_90k + 3_000)
    );
    assert!(
        audios
            .windows(2)
            .all(|pair| (pair[1].pts_90k - pair[0].pts_90k - 1_800).abs() <= 45)
    );
    assert_eq!(audios[3].data[..], [0xfc, 3, 9]);
    assert!((videos[0].pts_90k - audios[0].pts_90k).abs() < 90_000);
    service.end().unwrap();
}

#[test]
fn a_publisher_is_asked_for_key_frames_at_the_interval_and_after_a_frame_without_one() {
    let options = Options {
        keyframe_interval: Duration::from_millis(700),
        ..Options::default()
    };
    let mut service = Service::start(options);
    let mut client = publisher(&mut service);
    // The first frame is no start for a decoder: it is left out.
    write_video(&mut client, 0, false);
    client.run_until(|client| client.key_frame_requests == 1);
    let mut frame = 1;
    client.run_until(|client| {
        write_video(client, frame, frame == 1);
        frame += 1;
        client.key_frame_requests >= 3
    });
    let first = service.wait(|message| matches!(message, FromGateway::Video(_)));
    let FromGateway::Video(first) = first else {
        unreachable!();
    };
    assert!(first.key);
    service.end().unwrap();
}
