//! Session descriptions: bounds of an offer before the library reads it (`MAX_LINES`, `MAX_LINE`, `MAX_MEDIA_LINES`), and changes of
//! its answer.
//!
//! Pure. An offer is text of a stranger: it is checked line by line, and the library is given only the audio and video that are
//! meant for it. Sections that this gateway never takes (data channels) are taken out and answered as rejected, as RFC 3264 §6 asks.

use std::fmt::Write as _;

use super::super::message::{MAX_SDP, Role};

/// Most lines of an offer. Chromium's have 200 to 300.
const MAX_LINES: usize = 1_000;
/// Most bytes of a line.
const MAX_LINE: usize = 300;
/// Most bytes of a candidate's line, which may have extensions.
const MAX_CANDIDATE_LINE: usize = 1_000;
/// Most media sections.
const MAX_MEDIA_LINES: usize = 4;
/// Lengths of an ICE user fragment and password (RFC 8839 §5.4).
const UFRAG_LENGTHS: std::ops::RangeInclusive<usize> = 4..=256;
const PASSWORD_LENGTHS: std::ops::RangeInclusive<usize> = 22..=256;
/// Lengths of a section's id; the library keeps 16 bytes.
const MID_LENGTHS: std::ops::RangeInclusive<usize> = 1..=16;
/// Profile of media that this gateway sends and receives.
const PROFILE: &str = "UDP/TLS/RTP/SAVPF";
/// Name of the stream that both tracks of an answer are in. Browsers synchronise audio and video of one stream only.
const STREAM: &str = "sluice";

/// Rule that an offer breaks; the text goes to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidOffer(pub String);

fn invalid<T>(rule: impl Into<String>) -> Result<T, InvalidOffer> {
    Err(InvalidOffer(rule.into()))
}

/// An offer within the bounds.
#[derive(Debug)]
pub(super) struct CheckedOffer {
    /// Offer of audio and video for the library.
    pub sdp: String,
    /// Names of the codecs that were offered.
    pub codecs: Vec<String>,
    /// Ids of the audio and the video section.
    pub audio_mid: Option<String>,
    pub video_mid: Option<String>,
    /// Sections in the order of the offer.
    sections: Vec<OfferedSection>,
}

#[derive(Debug)]
enum OfferedSection {
    Media,
    /// A section that is answered as rejected: the words of its media line but the port, and its id.
    Other {
        kind: String,
        rest: String,
        mid: Option<String>,
    },
}

/// Checks an offer and prepares it for the library.
pub(super) fn check_offer(sdp: &str, role: Role) -> Result<CheckedOffer, InvalidOffer> {
    let lines = checked_lines(sdp)?;
    let (session, sections) = split(&lines);
    if sections.is_empty() {
        return invalid("the offer has no media section");
    }
    if sections.len() > MAX_MEDIA_LINES {
        return invalid(format!(
            "the offer has more than {MAX_MEDIA_LINES} media sections"
        ));
    }
    check_credentials(&lines)?;
    let mut offer = CheckedOffer {
        sdp: String::with_capacity(sdp.len()),
        codecs: Vec::new(),
        audio_mid: None,
        video_mid: None,
        sections: Vec::new(),
    };
    let mut rejected = Vec::new();
    let mut body = String::with_capacity(sdp.len());
    for section in sections {
        let [kind, port, rest] = media_line(section[0])?;
        let mid = value(section, "a=mid:").map(str::to_owned);
        let known = match kind {
            "audio" => &mut offer.audio_mid,
            "video" => &mut offer.video_mid,
            "application" => {
                rejected.extend(mid.clone());
                offer.sections.push(OfferedSection::Other {
                    kind: kind.to_owned(),
                    rest: rest.to_owned(),
                    mid,
                });
                continue;
            }
            _ => return invalid("the offer has media that is neither audio nor video"),
        };
        if known.is_some() {
            return invalid("the offer has more than one audio or more than one video section");
        }
        let Some(mid) = mid.filter(|mid| MID_LENGTHS.contains(&mid.len())) else {
            return invalid(
                "the offer has a media section without an id (a=mid) of at most 16 bytes",
            );
        };
        *known = Some(mid);
        check_section(section, port, rest, role)?;
        offer.sections.push(OfferedSection::Media);
        offer.codecs.extend(codecs(section));
        write_section(section, role, &mut body);
    }
    if offer
        .sections
        .iter()
        .all(|section| matches!(section, OfferedSection::Other { .. }))
    {
        return invalid("the offer has neither audio nor video");
    }
    write_session(session, &rejected, &mut offer.sdp);
    offer.sdp.push_str(&body);
    Ok(offer)
}

/// Splits an offer into lines and checks what counts for all of them.
fn checked_lines(sdp: &str) -> Result<Vec<&str>, InvalidOffer> {
    if sdp.len() > MAX_SDP {
        return invalid("the offer is too long");
    }
    let lines: Vec<&str> = sdp.lines().take(MAX_LINES + 1).collect();
    if lines.len() > MAX_LINES {
        return invalid(format!("the offer has more than {MAX_LINES} lines"));
    }
    if lines.first() != Some(&"v=0") {
        return invalid("the offer does not begin with the line v=0");
    }
    for line in &lines {
        let most = match line.starts_with("a=candidate:") {
            true => MAX_CANDIDATE_LINE,
            false => MAX_LINE,
        };
        if line.len() > most {
            return invalid(format!("the offer has a line of more than {most} bytes"));
        }
        if line.chars().any(char::is_control) {
            return invalid("the offer has control characters");
        }
    }
    Ok(lines)
}

/// Splits lines into those of the session and those of each media section.
fn split<'l, 'a>(lines: &'l [&'a str]) -> (&'l [&'a str], Vec<&'l [&'a str]>) {
    let is_media = |line: &&str| line.starts_with("m=");
    let end = lines.iter().position(is_media).unwrap_or(lines.len());
    let (session, mut rest) = lines.split_at(end);
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let len = rest[1..].iter().position(is_media);
        let (section, behind) = rest.split_at(len.map_or(rest.len(), |len| len + 1));
        sections.push(section);
        rest = behind;
    }
    (session, sections)
}

/// Checks what ICE and DTLS need, in the session's part or in a section.
fn check_credentials(lines: &[&str]) -> Result<(), InvalidOffer> {
    let has_fingerprint = lines.iter().any(|line| {
        line.strip_prefix("a=fingerprint:")
            .is_some_and(|value| value.to_ascii_lowercase().starts_with("sha-256 "))
    });
    if !has_fingerprint {
        return invalid("the offer has no fingerprint of sha-256");
    }
    for (name, lengths) in [
        ("a=ice-ufrag:", UFRAG_LENGTHS),
        ("a=ice-pwd:", PASSWORD_LENGTHS),
    ] {
        match value(lines, name) {
            Some(text) if lengths.contains(&text.len()) => {}
            _ => return invalid(format!("the offer has no line {name} of the right length")),
        }
    }
    Ok(())
}

/// Returns the kind, the port and the rest of a media line.
fn media_line(line: &str) -> Result<[&str; 3], InvalidOffer> {
    let mut words = line.trim_start_matches("m=").splitn(3, ' ');
    match [words.next(), words.next(), words.next()] {
        [Some(kind), Some(port), Some(rest)] => Ok([kind, port, rest]),
        _ => invalid("the offer has an incomplete media line"),
    }
}

fn check_section(section: &[&str], port: &str, rest: &str, role: Role) -> Result<(), InvalidOffer> {
    if port.parse::<u16>().is_err() {
        return invalid("the offer has a media line without a port");
    }
    let mut words = rest.split(' ');
    if words.next() != Some(PROFILE) {
        return invalid(format!(
            "the offer has media of another profile than {PROFILE}"
        ));
    }
    if words.any(|payload_type| !payload_type.parse::<u8>().is_ok_and(|number| number < 128)) {
        return invalid("the offer has a payload type that is no number below 128");
    }
    let wrong = match role {
        Role::Viewer => ["a=sendonly", "a=inactive"],
        Role::Publisher => ["a=recvonly", "a=inactive"],
    };
    match section.iter().any(|line| wrong.contains(line)) {
        true if role == Role::Viewer => invalid("the offer of a viewer must be recvonly"),
        true => invalid("the offer of a publisher must be sendonly"),
        false => Ok(()),
    }
}

/// Returns the first value of a line that begins with `name`.
fn value<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix(name))
}

/// Returns the names of a section's codecs, without those that only repair or pad.
fn codecs(section: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in section {
        let encoding = line
            .strip_prefix("a=rtpmap:")
            .and_then(|rest| rest.split_once(' '));
        let Some((name, _)) = encoding.and_then(|(_, encoding)| encoding.split_once('/')) else {
            continue;
        };
        let is_auxiliary = [
            "rtx",
            "red",
            "ulpfec",
            "flexfec-03",
            "telephone-event",
            "CN",
        ]
        .contains(&name);
        if !is_auxiliary && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Writes a section with its one direction, without layers of simulcast, since one encoding is taken, and without candidates: this
/// side answers checks and makes none, so it has no use for addresses, which may be names of the local network.
fn write_section(section: &[&str], role: Role, out: &mut String) {
    let direction = match role {
        Role::Viewer => "a=recvonly",
        Role::Publisher => "a=sendonly",
    };
    for line in section {
        let is_left_out = ["a=sendrecv", "a=recvonly", "a=sendonly"].contains(line)
            || line.starts_with("a=candidate:")
            || line.starts_with("a=simulcast:")
            || line.starts_with("a=rid:");
        if !is_left_out {
            push_line(out, line);
        }
    }
    push_line(out, direction);
}

/// Writes the session's part, its group without the sections that were taken out.
fn write_session(session: &[&str], rejected: &[String], out: &mut String) {
    for line in session {
        match line.strip_prefix("a=group:BUNDLE") {
            None if line.starts_with("a=candidate:") => {}
            None => push_line(out, line),
            Some(mids) => {
                out.push_str("a=group:BUNDLE");
                for mid in mids.split_ascii_whitespace() {
                    if !rejected.iter().any(|rejected| rejected == mid) {
                        let _ = write!(out, " {mid}");
                    }
                }
                out.push_str("\r\n");
            }
        }
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push_str("\r\n");
}

/// Returns the library's answer as it goes to the client: both tracks in one stream, and the sections that were taken out
/// rejected.
pub(super) fn finish_answer(offer: &CheckedOffer, answer: &str) -> String {
    let lines: Vec<&str> = answer.lines().collect();
    let (session, sections) = split(&lines);
    let mut out = String::with_capacity(answer.len() + 256);
    for line in session {
        match line.starts_with("a=msid-semantic:") {
            true => push_line(&mut out, &format!("a=msid-semantic: WMS {STREAM}")),
            false => push_line(&mut out, line),
        }
    }
    let mut answered = sections.into_iter();
    for section in &offer.sections {
        match section {
            OfferedSection::Media => {
                for line in answered.next().unwrap_or_default() {
                    push_line(&mut out, &in_one_stream(line));
                }
            }
            OfferedSection::Other { kind, rest, mid } => {
                push_line(&mut out, &format!("m={kind} 0 {rest}"));
                push_line(&mut out, "c=IN IP4 0.0.0.0");
                if let Some(mid) = mid {
                    push_line(&mut out, &format!("a=mid:{mid}"));
                }
            }
        }
    }
    out
}

/// Puts the track of a line about a stream into [`STREAM`].
fn in_one_stream(line: &str) -> String {
    let is_about_stream = line.starts_with("a=msid:") || line.starts_with("a=ssrc:");
    let Some((before, ids)) = line.split_once("msid:").filter(|_| is_about_stream) else {
        return line.to_owned();
    };
    match ids.split_once(' ') {
        Some((_, track)) => format!("{before}msid:{STREAM} {track}"),
        None => format!("{before}msid:{STREAM}"),
    }
}

#[cfg(test)]
mod tests;
