//! Advice of a live input's health: sentences for the person at the encoder (OBS settings) and their thresholds. Each
//! rule is one function: facts in, one sentence or none out.
//!
//! Settings are named as OBS Studio names them, because that is where people look; a sentence never blames, and says
//! what gets better.

use super::Measured;

/// Facts that advice needs and the meter cannot measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdviceContext {
    /// The broadcast's `EXT-X-TARGETDURATION`; 0 when there is no playlist yet.
    pub target_duration_s: u32,
    /// True when the input is set to low latency.
    pub low_latency: bool,
    /// Units left out of this session because their bytes were corrupt or their codec is not carried.
    pub damaged_units: u64,
    /// Description of the last of them, in plain words.
    pub last_damage: Option<String>,
    /// Reason why segments cannot be written, if so.
    pub disk_error: Option<String>,
    /// Reason why the database cannot be reached, if so.
    pub database_error: Option<String>,
    /// Times another encoder with the same key was rejected or displaced of late.
    pub conflicts: u64,
    /// Addresses of the encoders that fight for the key, as many as are known.
    pub conflict_addresses: Vec<String>,
    /// State of the connection, where the protocol knows it (SRT).
    pub line: Option<LinkStatistics>,
}

/// Statistics of a lossy link, as the receiver sees it. Counters are packets since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStatistics {
    /// Packets that never arrived, or too late to be played.
    pub lost: u64,
    /// Packets lost on the way and sent again.
    pub retransmitted: u64,
    /// Packets that arrived and were discarded because the service did not keep up.
    pub discarded: u64,
    pub received: u64,
    pub rtt_ms: f64,
    /// Negotiated latency: the time within which a lost packet may be retransmitted.
    pub latency_ms: u32,
    /// Contents of the receive buffer, by time.
    pub buffer_ms: u32,
}

type Rule = fn(&Measured, &AdviceContext) -> Option<String>;

/// Rules in the order of what affects viewers most.
const RULES: [Rule; 17] = [
    silence,
    conflict,
    disk,
    database,
    damage,
    overrun,
    line,
    unplayable_format,
    hevc,
    stalls,
    jumps,
    drift,
    key_frames,
    frame_rate,
    av_offset,
    b_frames,
    bitrate,
];

/// Returns sentences that name the encoder setting to change; none for a healthy stream.
pub fn advice(measured: &Measured, context: &AdviceContext) -> Vec<String> {
    RULES
        .iter()
        .filter_map(|rule| rule(measured, context))
        .collect()
}

/// Age up to which an event gets advice.
const RECENT_MS: i64 = 60_000;

fn is_recent(age_ms: Option<i64>) -> bool {
    age_ms.is_some_and(|age_ms| age_ms <= RECENT_MS)
}

fn silence(measured: &Measured, _: &AdviceContext) -> Option<String> {
    const SILENT_MS: i64 = 3_000;
    let age_ms = measured
        .last_media_age_ms
        .filter(|age_ms| *age_ms > SILENT_MS)?;
    Some(format!(
        "No media has arrived for {}; check that the encoder is still streaming and that its network is up.",
        seconds(age_ms as f64 / 1_000.0)
    ))
}

fn conflict(_: &Measured, context: &AdviceContext) -> Option<String> {
    if context.conflicts == 0 {
        return None;
    }
    let whom = match context.conflict_addresses.as_slice() {
        [] => "Another encoder uses".to_owned(),
        [address] => format!("Another encoder ({address}) uses"),
        addresses => format!("Other encoders ({}) use", addresses.join(", ")),
    };
    Some(format!(
        "{whom} the same stream key; stop it there, or rotate the key of this live input."
    ))
}

fn disk(_: &Measured, context: &AdviceContext) -> Option<String> {
    let reason = context.disk_error.as_deref()?;
    Some(format!(
        "Segments cannot be written ({reason}); viewers continue from memory, but a restart would lose the window: free \
         space on the service's disk."
    ))
}

fn database(_: &Measured, context: &AdviceContext) -> Option<String> {
    let reason = context.database_error.as_deref()?;
    Some(format!(
        "The database cannot be reached ({reason}); viewers continue, but changes to this input are not stored."
    ))
}

fn overrun(_: &Measured, context: &AdviceContext) -> Option<String> {
    let line = context.line.filter(|line| line.discarded > 0)?;
    Some(format!(
        "{} packets arrived and were thrown away because the service did not keep up; move other work off its machine.",
        line.discarded
    ))
}

/// Advises a larger latency: a lost packet arrives again within a few round trips, if the latency leaves time for them.
fn line(_: &Measured, context: &AdviceContext) -> Option<String> {
    const ROUND_TRIPS: f64 = 4.0;
    const STEP_MS: f64 = 50.0;
    const MUCH: f64 = 0.1;
    let line = context.line?;
    let needed_ms = (line.rtt_ms * ROUND_TRIPS / STEP_MS).ceil() * STEP_MS;
    let latency_ms = f64::from(line.latency_ms);
    let set = |to_ms: f64| {
        format!(
            "add latency={:.0} to the address in OBS or ffmpeg (microseconds), or set srt.latency of the service to {to_ms:.0}ms",
            to_ms * 1_000.0
        )
    };
    if line.lost > 0 {
        let to_ms = needed_ms.max(latency_ms * 2.0);
        return Some(format!(
            "{} packets were lost on the line for good (round trip {:.0} ms, latency {latency_ms:.0} ms); {}, lower Settings \
             → Output → Streaming → Video Bitrate, or use a wired network.",
            line.lost,
            line.rtt_ms,
            set(to_ms)
        ));
    }
    if latency_ms > 0.0 && latency_ms < needed_ms {
        return Some(format!(
            "The line's round trip of {:.0} ms leaves too little time in a latency of {latency_ms:.0} ms to send lost packets \
             again; {}.",
            line.rtt_ms,
            set(needed_ms)
        ));
    }
    let share = line.retransmitted as f64 / line.received.max(1) as f64;
    (share > MUCH).then(|| {
        format!(
            "{:.0} % of the packets had to be sent again; the line is nearly full: lower Settings → Output → Streaming → \
             Video Bitrate.",
            share * 100.0
        )
    })
}

fn damage(_: &Measured, context: &AdviceContext) -> Option<String> {
    // Corruption by lost packets is no matter of codecs; the link has a sentence of its own.
    if context
        .line
        .is_some_and(|line| line.lost + line.discarded > 0)
    {
        return None;
    }
    let units = match context.damaged_units {
        0 => return None,
        1 => "1 unit was left out".to_owned(),
        units => format!("{units} units were left out"),
    };
    let cause = context
        .last_damage
        .as_deref()
        .map(|cause| format!(" (last: {cause})"))
        .unwrap_or_default();
    Some(format!(
        "{units}{cause}; in Settings → Output → Streaming set Video Encoder to an H.264 one and Audio Encoder to AAC."
    ))
}

/// Advises NV12: browsers decode H.264 with 8 bits and halved chroma only.
fn unplayable_format(measured: &Measured, _: &AdviceContext) -> Option<String> {
    let profile = measured
        .video_profile
        .as_deref()
        .filter(|_| measured.video_codec == Some("h264"))?;
    let unplayable = ["4:4:4", "4:2:2", "High 10"]
        .iter()
        .any(|sign| profile.contains(sign));
    unplayable.then(|| {
        format!("Browsers cannot play H.264 {profile}; set Settings → Advanced → Video → Color Format to NV12.")
    })
}

fn hevc(measured: &Measured, _: &AdviceContext) -> Option<String> {
    (measured.video_codec == Some("hevc")).then(|| {
        "Many browsers cannot play HEVC; set Settings → Output → Streaming → Video Encoder to an H.264 one, so that \
         all viewers can watch."
            .to_owned()
    })
}

fn stalls(measured: &Measured, _: &AdviceContext) -> Option<String> {
    if !is_recent(measured.last_stall_age_ms) {
        return None;
    }
    Some(format!(
        "The stream paused for more than 1 s {}; the upload is too slow for it: lower Settings → Output → Streaming → \
         Video Bitrate, or turn on Settings → Advanced → Network → Dynamically change bitrate to manage congestion.",
        times(measured.stalls)
    ))
}

fn jumps(measured: &Measured, _: &AdviceContext) -> Option<String> {
    if !is_recent(measured.last_timestamp_jump_age_ms) {
        return None;
    }
    Some(format!(
        "Time stamps jumped {}, and viewers see each as a cut; stop and start streaming in OBS, and if a file or another \
         stream is relayed, let the relay make new time stamps.",
        times(measured.timestamp_jumps)
    ))
}

fn drift(measured: &Measured, _: &AdviceContext) -> Option<String> {
    const BEHIND_MS: i64 = -2_000;
    const AHEAD_MS: i64 = 5_000;
    let drift_ms = measured.drift_ms?;
    let distance = seconds(drift_ms.abs() as f64 / 1_000.0);
    if drift_ms < BEHIND_MS {
        return Some(format!(
            "The stream has fallen {distance} behind real time; lower Settings → Output → Streaming → Video Bitrate, or \
             choose a faster preset of the encoder."
        ));
    }
    (drift_ms > AHEAD_MS).then(|| {
        format!(
            "The stream runs {distance} ahead of real time; send it at its own speed (ffmpeg: -re before the input)."
        )
    })
}

fn key_frames(measured: &Measured, context: &AdviceContext) -> Option<String> {
    const TOO_SHORT_S: f64 = 0.5;
    const LONGEST_FOR_LOW_LATENCY_S: f64 = 2.5;
    const LONGEST_S: f64 = 4.5;
    let interval_s = measured.key_frame_interval_s?;
    let longest_s = if context.low_latency {
        LONGEST_FOR_LOW_LATENCY_S
    } else {
        LONGEST_S.max(f64::from(context.target_duration_s) + 0.5)
    };
    let gain = if interval_s > longest_s {
        "viewers join faster and latency stays low"
    } else if interval_s < TOO_SHORT_S {
        "the same bitrate gives a better quality"
    } else {
        return None;
    };
    Some(format!(
        "Key frames come every {}; set Settings → Output → Streaming → Keyframe Interval to 2 s, so that {gain}.",
        seconds(interval_s)
    ))
}

/// Reports missing frames. A rate of about half the declared one is a field rate or a doubled clock, not an overloaded
/// encoder.
fn frame_rate(measured: &Measured, _: &AdviceContext) -> Option<String> {
    let declared = measured
        .declared_frame_rate
        .filter(|declared| (10.0..=120.0).contains(declared))?;
    let measured_rate = measured.frame_rate?;
    let share = measured_rate / declared;
    let is_half = (0.47..0.53).contains(&share);
    (share < 0.85 && !is_half).then(|| {
        format!(
            "Only {measured_rate:.0} of {declared:.0} frames per second arrive; the encoder is overloaded or drops \
             frames: lower Settings → Video → Common FPS Values or Output (Scaled) Resolution, or choose a faster \
             preset of the encoder."
        )
    })
}

fn av_offset(measured: &Measured, _: &AdviceContext) -> Option<String> {
    const TOLERATED_MS: i64 = 700;
    let offset_ms = measured
        .av_offset_ms
        .filter(|offset_ms| offset_ms.abs() > TOLERATED_MS)?;
    let direction = if offset_ms > 0 { "ahead of" } else { "behind" };
    Some(format!(
        "Audio arrives {} {direction} the video, which adds to latency; check Edit → Advanced Audio Properties → Sync \
         Offset, and restart the stream.",
        seconds(offset_ms.abs() as f64 / 1_000.0)
    ))
}

/// Advises against many B-frames; two at 60 frames per second add too little latency to mention.
fn b_frames(measured: &Measured, context: &AdviceContext) -> Option<String> {
    const NOTABLE_MS: i64 = 100;
    let delay_ms = measured
        .reorder_delay_ms
        .filter(|delay_ms| context.low_latency && *delay_ms >= NOTABLE_MS)?;
    Some(format!(
        "B-frames delay the video by {delay_ms} ms; for the lowest latency set Settings → Output → Streaming → Max \
         B-frames to 0 (x264: Tune to zerolatency)."
    ))
}

fn bitrate(measured: &Measured, _: &AdviceContext) -> Option<String> {
    const FULL_HD_PIXELS: u32 = 1920 * 1088;
    let bitrate_bps = measured.video_bitrate_bps?;
    let pixels = u32::from(measured.width?) * u32::from(measured.height?);
    let (enough_bps, recommended) = if pixels <= FULL_HD_PIXELS {
        (16_000_000, "6000 to 9000 Kbps")
    } else {
        (50_000_000, "20000 to 35000 Kbps")
    };
    (bitrate_bps > enough_bps).then(|| {
        format!(
            "The video takes {:.0} Mbit/s, more than many viewers can load; set Settings → Output → Streaming → Video \
             Bitrate to {recommended}.",
            bitrate_bps as f64 / 1_000_000.0
        )
    })
}

/// Writes "0.04 s", "8.3 s", "12 s".
fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{seconds:.2} s"),
        0.1..10.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
