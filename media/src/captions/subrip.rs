//! Reads SubRip (SRT) captions: times with comma or point, tags `<i>`, `<b>`, `<u>`; fonts and positions are dropped,
//! since WebVTT has them otherwise.

use super::{
    Cue, Lines, Problem,
    cue::{ARROW, milliseconds, times},
    lines::Line,
};

/// Tags longer than this count as text.
const LONGEST_TAG: usize = 200;

pub(super) fn read(mut lines: Lines<'_>) -> Result<Vec<Cue>, Problem> {
    let mut cues = Vec::new();
    while let Some(block) = lines.block() {
        cues.push(cue(&block)?);
    }
    Ok(cues)
}

fn cue(block: &[Line<'_>]) -> Result<Cue, Problem> {
    let is_number = |line: &str| line.trim().bytes().all(|byte| byte.is_ascii_digit());
    let block = match block {
        [first, rest @ ..] if is_number(first.1) && !rest.is_empty() => rest,
        whole => whole,
    };
    let (start_ms, end_ms, _places) = times(block[0], time).map_err(|problem| {
        // Words where times should be: an empty line inside the text of a cue, most often, or no captions at all.
        match block[0].1.contains(ARROW) {
            true => problem,
            false => Problem::new(
                problem.line,
                "expected WebVTT, or a block of SubRip: a number, then `00:00:01,000 --> 00:00:02,000`, then text without \
                 empty lines",
            ),
        }
    })?;
    let text = block[1..].iter().map(|(_, line)| cue_text(line));
    Ok(Cue {
        identifier: None,
        start_ms,
        end_ms,
        settings: String::new(),
        text: text.filter(|line| !line.trim().is_empty()).collect(),
    })
}

/// Parses `hh:mm:ss,mmm`, with a point instead of the comma and fewer digits as some programs write them.
fn time(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once([',', '.'])?;
    let is_plain =
        (1..=3).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let scale = [100, 10, 1].get(fraction.len().wrapping_sub(1))?;
    let ms: u64 = is_plain.then(|| fraction.parse().ok()).flatten()?;
    let mut parts = whole.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    milliseconds(hours, minutes, seconds, ms * scale)
}

/// A line of WebVTT's cue text: its own tags kept, other markup dropped, all else escaped.
fn cue_text(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['<', '>', '&', '{']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match tag(rest) {
            Some((tag, written)) => {
                text.push_str(written);
                tag
            }
            None => {
                text.push_str(match &rest[..1] {
                    "<" => "&lt;",
                    ">" => "&gt;",
                    "&" => "&amp;",
                    other => other,
                });
                1
            }
        };
        rest = &rest[taken..];
    }
    text.push_str(rest);
    text
}

/// The length of the tag that `text` begins with, and what is written for it. Looks at a bounded piece of the text.
fn tag(text: &str) -> Option<(usize, &'static str)> {
    const KEPT: [(&str, &str); 6] = [
        ("<b>", "<b>"),
        ("</b>", "</b>"),
        ("<i>", "<i>"),
        ("</i>", "</i>"),
        ("<u>", "<u>"),
        ("</u>", "</u>"),
    ];
    let begins = |prefix: &str| {
        text.get(..prefix.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    };
    if let Some((tag, written)) = KEPT.iter().find(|(tag, _)| begins(tag)) {
        return Some((tag.len(), written));
    }
    let close = match text.as_bytes() {
        [b'{', b'\\', ..] => b'}',
        _ if begins("<font") || begins("</font") => b'>',
        _ => return None,
    };
    let near = &text.as_bytes()[..text.len().min(LONGEST_TAG)];
    let end = near.iter().position(|byte| *byte == close)?;
    Some((end + 1, ""))
}
