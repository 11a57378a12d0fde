//! The few facts of a low-latency playlist that a viewer follows (RFC 8216bis).

/// A part or a whole segment that the playlist names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) msn: u64,
    /// The part's number in its segment; `None` for a whole segment.
    pub(crate) part: Option<u32>,
    pub(crate) duration_s: f64,
    pub(crate) uri: String,
    /// A place that is counted and holds no media.
    pub(crate) gap: bool,
}

/// A media playlist, full or a delta update.
#[derive(Debug, Default)]
pub(crate) struct Playlist {
    pub(crate) entries: Vec<Listed>,
    pub(crate) part_target_s: Option<f64>,
    pub(crate) init: Option<String>,
    pub(crate) can_skip: bool,
    pub(crate) ended: bool,
    /// Directives of the next blocking reload.
    pub(crate) next_msn: u64,
    pub(crate) next_part: u32,
}

impl Playlist {
    /// Reads what the harness needs; lines that it does not know are passed over.
    pub(crate) fn parse(text: &str) -> Self {
        let mut list = Self::default();
        let (mut duration_s, mut gap) = (0.0, false);
        for line in text.lines() {
            let (tag, value) = line.split_once(':').unwrap_or((line, ""));
            match tag {
                "#EXT-X-MEDIA-SEQUENCE" => list.next_msn = value.parse().unwrap_or(0),
                "#EXT-X-SKIP" => {
                    list.next_msn += number(value, "SKIPPED-SEGMENTS").unwrap_or(0.0) as u64
                }
                "#EXT-X-PART-INF" => list.part_target_s = number(value, "PART-TARGET"),
                "#EXT-X-SERVER-CONTROL" => {
                    list.can_skip = attribute(value, "CAN-SKIP-UNTIL").is_some()
                }
                "#EXT-X-MAP" => list.init = attribute(value, "URI").map(str::to_owned),
                "#EXT-X-ENDLIST" => list.ended = true,
                "#EXT-X-PART" => list.add_part(value),
                "#EXTINF" => duration_s = value.trim_end_matches(',').parse().unwrap_or(0.0),
                "#EXT-X-GAP" => gap = true,
                _ if !line.starts_with('#') && !line.is_empty() => {
                    list.close_segment(duration_s, line, std::mem::take(&mut gap))
                }
                _ => {}
            }
        }
        list
    }

    fn add_part(&mut self, attributes: &str) {
        self.entries.push(Listed {
            msn: self.next_msn,
            part: Some(self.next_part),
            duration_s: number(attributes, "DURATION").unwrap_or(0.0),
            uri: attribute(attributes, "URI").unwrap_or_default().to_owned(),
            gap: attribute(attributes, "GAP") == Some("YES"),
        });
        self.next_part += 1;
    }

    fn close_segment(&mut self, duration_s: f64, uri: &str, gap: bool) {
        self.entries.push(Listed {
            msn: self.next_msn,
            part: None,
            duration_s,
            uri: uri.to_owned(),
            gap,
        });
        self.next_msn += 1;
        self.next_part = 0;
    }
}

fn number(attributes: &str, name: &str) -> Option<f64> {
    attribute(attributes, name)?.parse().ok()
}

/// The value of an attribute, without its quotes. Names are matched whole: `DURATION` is not in `X-DURATION`.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        if key.trim_start_matches(',') == name {
            return Some(value);
        }
        rest = next;
    }
    None
}
