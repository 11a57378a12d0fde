//! Captions (`.vtt`, `.srt`) to WebVTT: UTF-8 with or without byte order mark, order of cues, problems with their line.
//!
//! Both readers go over the text once, line by line; a problem names its line. What is served is written again from
//! what was understood, so that nothing odd in an upload reaches a player.

mod cue;
mod language;
mod lines;
mod subrip;
mod webvtt;

pub use cue::Time;
pub use language::language_tag;

use cue::Cue;
use lines::Lines;

/// Error of a caption text: the line, counted from 1, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Problem {
    pub line: usize,
    pub what: String,
}

impl Problem {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

/// Makes WebVTT of WebVTT or SubRip, distinguished by the first line; cues in the order of their starts. The caller
/// bounds the bytes.
pub fn to_webvtt(bytes: &[u8]) -> Result<String, Problem> {
    let text = decode(bytes)?;
    let (blocks, mut cues) = match webvtt::has_signature(text) {
        true => webvtt::read(Lines::of(text))?,
        false => (Vec::new(), subrip::read(Lines::of(text))?),
    };
    if cues.is_empty() {
        return Err(Problem::new(1, "there is no cue in it"));
    }
    cues.sort_by_key(|cue| cue.start_ms);
    Ok(write(&blocks, &cues))
}

/// Decodes UTF-8, with or without a byte order mark; rejects NUL.
fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    let line_at = |end: usize| 1 + bytes[..end].iter().filter(|byte| **byte == b'\n').count();
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = line_at(error.valid_up_to());
        Problem::new(
            line,
            "the text is not UTF-8: save the file with that encoding",
        )
    })?;
    match text.find('\0') {
        Some(end) => Err(Problem::new(line_at(end), "there is a NUL character")),
        None => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

fn write(blocks: &[String], cues: &[Cue]) -> String {
    let mut text = "WEBVTT\n".to_owned();
    for block in blocks {
        text.push('\n');
        text.push_str(block);
    }
    for cue in cues {
        text.push('\n');
        cue.write(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_captions_is_refused_with_its_line() {
        let cases: [(&[u8], &str); 24] = [
            (b"", "line 1: there is no cue in it"),
            (b"WEBVTT", "line 1: there is no cue in it"),
            (
                b"WEBVTT\n\nNOTE nothing here\n",
                "line 1: there is no cue in it",
            ),
            (b"WEBVTTx\n\n00:01.000 --> 00:02.000\na\n", "line 1: "),
            (b"\n\xff\xfe", "line 2: the text is not UTF-8"),
            (
                b"WEBVTT\n\n00:01.000 --> 00:02.000\na\0b",
                "line 4: there is a NUL",
            ),
            (
                b"WEBVTT\n\n00:02.000 --> 00:01.000\na\n",
                "line 3: a cue must end after its start",
            ),
            (
                b"WEBVTT\n\n00:02.000 --> 00:02.000\na\n",
                "line 3: a cue must end after its start",
            ),
            (
                b"WEBVTT\n\n00:61.000 --> 00:62.000\na\n",
                "line 3: `00:61.000` is no time",
            ),
            (
                b"WEBVTT\n\n00:01.00 --> 00:02.000\na\n",
                "line 3: `00:01.00` is no time",
            ),
            (
                b"WEBVTT\n\n00:01,000 --> 00:02,000\na\n",
                "line 3: `00:01,000` is no time",
            ),
            (
                b"WEBVTT\n\n1:00:01.000 --> 1:00:02.000\na\n",
                "line 3: `1:00:01.000` is no time",
            ),
            (
                b"WEBVTT\n\n99999999999999999999:00:01.000 --> 00:02.000\na\n",
                "line 3: ",
            ),
            (b"WEBVTT\n\n-0:01.000 --> 00:02.000\na\n", "line 3: "),
            (b"WEBVTT\n\n00:01.000 -->\na\n", "line 3: "),
            (
                b"WEBVTT\n\n00:01.000 --> 00:02.000 colour:red\na\n",
                "line 3: `colour:red` is no cue setting",
            ),
            (
                b"WEBVTT\n\n00:01.000 --> 00:02.000 align\na\n",
                "line 3: `align` is no cue setting",
            ),
            (
                b"WEBVTT\n\n00:01.000 --> 00:02.000\na\nb --> c\n",
                "line 5: ",
            ),
            (b"WEBVTT\n\nsome words\nand more\n", "line 4: "),
            (
                b"WEBVTT\n\n00:01.000 --> 00:02.000\na\n\nSTYLE\n::cue {}\n",
                "line 6: ",
            ),
            (b"<html>", "line 1: "),
            (
                b"1\n00:00:01,000 --> 00:00:01,000\na\n",
                "line 2: a cue must end after its start",
            ),
            (
                b"1\n00:00:01,000 --> 00:00:02,000\na\n\nlost words\n",
                "line 5: ",
            ),
            (b"1\n00:00:01 --> 00:00:02\na\n", "line 2: "),
        ];
        for (bytes, expected) in cases {
            let shown = String::from_utf8_lossy(bytes);
            let problem = to_webvtt(bytes).expect_err(&shown).to_string();
            assert!(problem.starts_with(expected), "{shown:?}: {problem}");
        }
    }

    #[test]
    fn webvtt_is_written_again_in_the_order_of_time() {
        let given = "\u{feff}WEBVTT - made by hand\r\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\r\n\r\n\
            STYLE\r\n::cue { color: lime }\r\n\r\nREGION\nid:top\n\n\
            NOTE a comment\nof two lines\n\n\
            second\n100:00:01.500 --> 100:00:02.000 line:0 align:start\n<v Ann>later</v>\n\n\n\
            00:01.000\t-->\t00:02.250\nfirst & foremost\r\ntwo lines\r\n";
        let expected = "WEBVTT\n\nSTYLE\n::cue { color: lime }\n\nREGION\nid:top\n\n\
            00:00:01.000 --> 00:00:02.250\nfirst & foremost\ntwo lines\n\n\
            second\n100:00:01.500 --> 100:00:02.000 line:0 align:start\n<v Ann>later</v>\n";
        let written = to_webvtt(given.as_bytes()).unwrap();
        assert_eq!(written, expected);
        assert_eq!(
            to_webvtt(written.as_bytes()).unwrap(),
            expected,
            "written twice"
        );
    }

    #[test]
    fn subrip_becomes_webvtt() {
        let given = "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello</i> <B>you</B> & me <3\r\n\r\n\r\n\
            2\n00:00:03,5 --> 00:00:04,000  X1:10 X2:20 Y1:1 Y2:2\n{\\an8}<font color=\"#fff\">Up</font> --> down\n<font\n\n\
            0:00:02.600 --> 0:00:02.900\nno number\n";
        let expected = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\n<i>Hello</i> <b>you</b> &amp; me &lt;3\n\n\
            00:00:02.600 --> 00:00:02.900\nno number\n\n\
            00:00:03.500 --> 00:00:04.000\nUp --&gt; down\n&lt;font\n";
        let written = to_webvtt(given.as_bytes()).unwrap();
        assert_eq!(written, expected);
        assert_eq!(
            to_webvtt(written.as_bytes()).unwrap(),
            expected,
            "written twice"
        );
    }

    #[test]
    fn a_text_made_to_be_slow_is_read_in_one_pass() {
        // Each of these takes minutes in a parser that looks ahead for an end that is missing.
        for piece in ["<font ", "{\\", "<", "&", "-->", "- - >"] {
            let text = format!(
                "1\n00:00:01,000 --> 00:00:02,000\n{}\n",
                piece.repeat(60_000)
            );
            let _ = to_webvtt(text.as_bytes());
        }
        let _ = to_webvtt("WEBVTT\n\n".repeat(40_000).as_bytes());
        let _ = to_webvtt("\n".repeat(200_000).as_bytes());
    }
}
