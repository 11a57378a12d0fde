//! Reads WebVTT captions (W3C WebVTT §4): signature, cue settings, `NOTE`, `STYLE` and `REGION` blocks. Strict, so that
//! a mistake is reported to its author rather than shown to viewers.

use super::{
    Cue, Lines, Problem,
    cue::{ARROW, milliseconds, times},
    lines::Line,
};

/// Cue settings (§4.4).
const SETTINGS: [&str; 6] = ["vertical", "line", "position", "size", "align", "region"];

/// Returns whether the text begins as WebVTT does.
pub(super) fn has_signature(text: &str) -> bool {
    text.strip_prefix("WEBVTT")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// The style and region blocks, each with its line ends, and the cues.
pub(super) fn read(mut lines: Lines<'_>) -> Result<(Vec<String>, Vec<Cue>), Problem> {
    // The signature and the lines right below it, such as X-TIMESTAMP-MAP: the asset's own timeline begins at 0.
    lines.block();
    let (mut blocks, mut cues) = (Vec::new(), Vec::new());
    while let Some(block) = lines.block() {
        match kind_of(&block) {
            Kind::Note => {}
            Kind::Head if cues.is_empty() => blocks.push(verbatim(&block)),
            Kind::Head => {
                let what = "styles and regions must come before the first cue";
                return Err(Problem::new(block[0].0, what));
            }
            Kind::Cue => cues.push(cue(&block)?),
        }
    }
    Ok((blocks, cues))
}

enum Kind {
    Note,
    /// A style or a region.
    Head,
    Cue,
}

fn kind_of(block: &[Line<'_>]) -> Kind {
    if block.iter().take(2).any(|(_, line)| line.contains(ARROW)) {
        return Kind::Cue;
    }
    let (word, rest) = block[0]
        .1
        .split_once([' ', '\t'])
        .unwrap_or((block[0].1, ""));
    match word {
        "NOTE" => Kind::Note,
        "STYLE" | "REGION" if rest.trim().is_empty() => Kind::Head,
        _ => Kind::Cue,
    }
}

fn verbatim(block: &[Line<'_>]) -> String {
    block.iter().flat_map(|(_, line)| [*line, "\n"]).collect()
}

fn cue(block: &[Line<'_>]) -> Result<Cue, Problem> {
    let (identifier, rest) = match block {
        [first, rest @ ..] if !first.1.contains(ARROW) && !rest.is_empty() => {
            (Some(first.1.to_owned()), rest)
        }
        rest => (None, rest),
    };
    let (start_ms, end_ms, settings) = times(rest[0], time)?;
    let (number, text) = (rest[0].0, &rest[1..]);
    if let Some((number, _)) = text.iter().find(|(_, line)| line.contains(ARROW)) {
        let what = "the text of a cue must not hold `-->`: leave a line empty before the next cue";
        return Err(Problem::new(*number, what));
    }
    Ok(Cue {
        identifier,
        start_ms,
        end_ms,
        settings: checked_settings(number, settings)?,
        text: text.iter().map(|(_, line)| (*line).to_owned()).collect(),
    })
}

/// Checks that settings are `name:value` with a known name, between blanks.
fn checked_settings(number: usize, text: &str) -> Result<String, Problem> {
    let mut settings = Vec::new();
    for setting in text.split_ascii_whitespace() {
        let is_known = setting
            .split_once(':')
            .is_some_and(|(name, value)| SETTINGS.contains(&name) && !value.is_empty());
        if !is_known || settings.len() == SETTINGS.len() {
            let shown: String = setting.chars().take(30).collect();
            let names = SETTINGS.join(", ");
            let what =
                format!("`{shown}` is no cue setting; there are {names}, each as name:value");
            return Err(Problem::new(number, what));
        }
        settings.push(setting);
    }
    Ok(settings.join(" "))
}

/// Parses `hh:mm:ss.ttt` or `mm:ss.ttt`, with two digits of hours or more (§4.3).
fn time(text: &str) -> Option<u64> {
    let (whole, ms) = text.split_once('.')?;
    let is_plain = ms.len() == 3 && ms.bytes().all(|byte| byte.is_ascii_digit());
    let ms = is_plain.then(|| ms.parse().ok()).flatten()?;
    let mut parts = whole.rsplit(':');
    let (seconds, minutes) = (parts.next()?, parts.next()?);
    let hours = parts.next().unwrap_or("00");
    (parts.next().is_none() && hours.len() >= 2)
        .then(|| milliseconds(hours, minutes, seconds, ms))
        .flatten()
}
