//! Strict parser of live media playlists (RFC 8216bis §4) for tests. Unknown tags are errors: the service writes none.

use crate::attributes::{Attributes, decimal, integer};

/// Content of one playlist. In a delta update the skipped segments are missing, and a map that was named among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaPlaylist {
    pub version: u64,
    pub target_duration_s: u64,
    pub control: Option<ServerControl>,
    pub part_target_s: Option<f64>,
    pub media_sequence: u64,
    pub discontinuity_sequence: u64,
    /// SKIPPED-SEGMENTS; 0 in a full playlist.
    pub skipped: u64,
    /// The last may be open: parts, and no URI yet.
    pub segments: Vec<Segment>,
    /// The URI of the hinted part.
    pub hint: Option<String>,
    pub ended: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerControl {
    pub can_block_reload: bool,
    pub part_hold_back_s: Option<f64>,
    pub hold_back_s: Option<f64>,
    pub can_skip_until_s: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    pub msn: u64,
    /// `None` while the segment is open.
    pub whole: Option<Whole>,
    /// The map in force; `None` when no tag named one so far.
    pub map: Option<String>,
    pub date_time_ms: Option<i64>,
    pub discontinuity: bool,
    /// EXT-X-GAP: there are no media, and so neither map nor date.
    pub gap: bool,
    /// Discontinuity sequence number: the playlist's, and one more for each tag up to here.
    pub range: u64,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    pub uri: String,
    pub duration_s: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub uri: String,
    pub duration_s: f64,
    pub independent: bool,
    pub gap: bool,
}

impl Segment {
    pub fn is_closed(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns EXTINF of a closed segment, the sum of its parts of an open one.
    pub fn duration_s(&self) -> f64 {
        match &self.whole {
            Some(whole) => whole.duration_s,
            None => self.parts_s(),
        }
    }

    pub fn parts_s(&self) -> f64 {
        self.parts.iter().map(|part| part.duration_s).sum()
    }
}

impl MediaPlaylist {
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text
            .strip_suffix('\n')
            .ok_or("the text does not end with a line end")?;
        let mut lines = (1..).zip(body.split('\n'));
        if lines.next().is_none_or(|(_, line)| line != "#EXTM3U") {
            return Err("the first line is not #EXTM3U".into());
        }
        let mut reader = Reader::default();
        for (number, line) in lines {
            let read = reader.line(line);
            read.map_err(|reason| format!("line {number}, {line:?}: {reason}"))?;
        }
        reader.finish()
    }

    /// Returns media sequence number and part index after the last part.
    pub fn next(&self) -> (u64, u64) {
        match self.segments.last() {
            Some(open) if !open.is_closed() => (open.msn, open.parts.len() as u64),
            Some(closed) => (closed.msn + 1, 0),
            None => (self.media_sequence + self.skipped, 0),
        }
    }

    pub fn duration_s(&self) -> f64 {
        self.segments.iter().map(Segment::duration_s).sum()
    }
}

/// The segment whose tags are being read.
#[derive(Debug, Default)]
struct Reader {
    list: MediaPlaylist,
    seen: Vec<String>,
    open: Segment,
    duration_s: Option<f64>,
    map: Option<String>,
    /// A tag or part of a segment was read: the playlist's own tags must come before.
    in_segments: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.trim() != line || line.contains(char::is_control) {
            return Err("an empty line, white space or a control character".into());
        }
        if self.list.ended {
            return Err("something after EXT-X-ENDLIST".into());
        }
        if self.list.hint.is_some() {
            return Err("something after EXT-X-PRELOAD-HINT".into());
        }
        let (tag, value) = match line.split_once(':') {
            Some((tag, value)) if line.starts_with('#') => (tag, Some(value)),
            _ => (line, None),
        };
        match (tag, value) {
            (uri, None) if !uri.starts_with('#') => self.uri(uri),
            _ if self.duration_s.is_some() => Err("EXTINF is not followed by its URI".into()),
            ("#EXT-X-ENDLIST", None) => self.end_list(),
            ("#EXT-X-DISCONTINUITY", None) => self.discontinuity(),
            ("#EXT-X-GAP", None) => self.gap(),
            (
                "#EXT-X-MAP" | "#EXT-X-PROGRAM-DATE-TIME" | "#EXT-X-PART" | "#EXTINF",
                Some(value),
            ) => {
                self.in_segments = true;
                self.segment_tag(tag, value)
            }
            ("#EXT-X-PRELOAD-HINT", Some(value)) => self.preload_hint(value),
            (_, Some(value)) => self.playlist_tag(tag, value),
            _ => Err("an unknown line".into()),
        }
    }

    fn playlist_tag(&mut self, tag: &str, value: &str) -> Result<(), String> {
        if self.in_segments {
            return Err("the tag is below a segment".into());
        }
        if self.seen.iter().any(|seen| seen == tag) {
            return Err("the tag occurs twice".into());
        }
        self.seen.push(tag.to_owned());
        match tag {
            "#EXT-X-VERSION" => self.list.version = integer(value)?,
            "#EXT-X-TARGETDURATION" => self.list.target_duration_s = integer(value)?,
            "#EXT-X-MEDIA-SEQUENCE" => self.list.media_sequence = integer(value)?,
            "#EXT-X-DISCONTINUITY-SEQUENCE" => {
                self.list.discontinuity_sequence = integer(value)?;
            }
            "#EXT-X-SERVER-CONTROL" => self.list.control = Some(server_control(value)?),
            "#EXT-X-PART-INF" => {
                let mut attributes = Attributes::parse(value)?;
                self.list.part_target_s = attributes.decimal("PART-TARGET")?;
                attributes.finish()?;
            }
            "#EXT-X-SKIP" => {
                let mut attributes = Attributes::parse(value)?;
                let skipped = attributes.integer("SKIPPED-SEGMENTS")?;
                self.list.skipped = skipped
                    .filter(|&count| count > 0)
                    .ok_or("nothing is skipped")?;
                self.in_segments = true;
                attributes.finish()?;
            }
            _ => return Err("an unknown tag".into()),
        }
        Ok(())
    }

    fn discontinuity(&mut self) -> Result<(), String> {
        self.in_segments = true;
        if self.open.discontinuity {
            return Err("two discontinuities before one segment".into());
        }
        self.tags_before_parts()?;
        self.open.discontinuity = true;
        Ok(())
    }

    fn gap(&mut self) -> Result<(), String> {
        self.in_segments = true;
        if self.open.gap {
            return Err("two gaps before one segment".into());
        }
        self.open.gap = true;
        Ok(())
    }

    fn segment_tag(&mut self, tag: &str, value: &str) -> Result<(), String> {
        match tag {
            "#EXT-X-MAP" => {
                self.tags_before_parts()?;
                let mut attributes = Attributes::parse(value)?;
                self.map = Some(attributes.quoted("URI")?.ok_or("no URI")?.to_owned());
                attributes.finish()
            }
            "#EXT-X-PROGRAM-DATE-TIME" => {
                self.tags_before_parts()?;
                if self
                    .open
                    .date_time_ms
                    .replace(date_time_ms(value)?)
                    .is_some()
                {
                    return Err("two dates of one segment".into());
                }
                Ok(())
            }
            "#EXT-X-PART" => {
                self.open.parts.push(part(value)?);
                Ok(())
            }
            _ => {
                let seconds = value.strip_suffix(',').ok_or("EXTINF without its comma")?;
                self.duration_s = Some(decimal(seconds)?);
                Ok(())
            }
        }
    }

    /// Checks that tags of a segment come before its parts, for which they hold too (RFC 8216bis §4.4.4.9).
    fn tags_before_parts(&self) -> Result<(), String> {
        match self.open.parts.is_empty() {
            true => Ok(()),
            false => Err("a segment's tag below its first part".into()),
        }
    }

    fn uri(&mut self, uri: &str) -> Result<(), String> {
        let duration_s = self.duration_s.take().ok_or("a URI without EXTINF")?;
        self.open.whole = Some(Whole {
            uri: uri.to_owned(),
            duration_s,
        });
        self.push_open();
        Ok(())
    }

    fn push_open(&mut self) {
        let mut segment = std::mem::take(&mut self.open);
        let previous = self.list.segments.last();
        let range = previous.map_or(self.list.discontinuity_sequence, |previous| previous.range);
        segment.range = range + u64::from(segment.discontinuity);
        segment.msn =
            self.list.media_sequence + self.list.skipped + self.list.segments.len() as u64;
        segment.map = self.map.clone();
        self.list.segments.push(segment);
    }

    fn preload_hint(&mut self, value: &str) -> Result<(), String> {
        let mut attributes = Attributes::parse(value)?;
        if attributes.plain("TYPE")? != Some("PART") {
            return Err("a hint at something else than a part".into());
        }
        self.list.hint = Some(attributes.quoted("URI")?.ok_or("no URI")?.to_owned());
        attributes.finish()
    }

    fn end_list(&mut self) -> Result<(), String> {
        if self.open != Segment::default() {
            return Err("the last segment is still open".into());
        }
        self.list.ended = true;
        Ok(())
    }

    fn finish(mut self) -> Result<MediaPlaylist, String> {
        if self.duration_s.is_some() {
            return Err("EXTINF is not followed by its URI".into());
        }
        if self.open != Segment::default() {
            if self.open.parts.is_empty() {
                return Err("tags of a segment that has neither parts nor a URI".into());
            }
            self.push_open();
        }
        for needed in [
            "#EXT-X-VERSION",
            "#EXT-X-TARGETDURATION",
            "#EXT-X-MEDIA-SEQUENCE",
        ] {
            if !self.seen.iter().any(|seen| seen == needed) {
                return Err(format!("no {needed}"));
            }
        }
        Ok(self.list)
    }
}

fn server_control(value: &str) -> Result<ServerControl, String> {
    let mut attributes = Attributes::parse(value)?;
    let control = ServerControl {
        can_block_reload: attributes.yes("CAN-BLOCK-RELOAD")?,
        part_hold_back_s: attributes.decimal("PART-HOLD-BACK")?,
        hold_back_s: attributes.decimal("HOLD-BACK")?,
        can_skip_until_s: attributes.decimal("CAN-SKIP-UNTIL")?,
    };
    attributes.finish()?;
    Ok(control)
}

fn part(value: &str) -> Result<Part, String> {
    let mut attributes = Attributes::parse(value)?;
    let part = Part {
        uri: attributes.quoted("URI")?.ok_or("no URI")?.to_owned(),
        duration_s: attributes.decimal("DURATION")?.ok_or("no DURATION")?,
        independent: attributes.yes("INDEPENDENT")?,
        gap: attributes.yes("GAP")?,
    };
    attributes.finish()?;
    Ok(part)
}

/// ISO 8601 with milliseconds and in UTC, as the service writes it.
fn date_time_ms(value: &str) -> Result<i64, String> {
    let utc = value.len() == "2026-11-21T12:00:00.000Z".len() && value.ends_with('Z');
    let time = utc.then(|| value.parse::<jiff::Timestamp>().ok()).flatten();
    let time = time.ok_or("no time in UTC with milliseconds")?;
    Ok(time.as_millisecond())
}
