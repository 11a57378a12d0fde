//! Playlists of assets, read strictly (RFC 8216): the multivariant playlist with its groups, and media playlists whose
//! segments are all there from number 0 on.

use sluice_testkit::attributes::{Attributes, decimal, integer};

/// A multivariant playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Master {
    pub variants: Vec<Variant>,
    /// `EXT-X-I-FRAME-STREAM-INF`.
    pub key_video_frames: Vec<Variant>,
    pub audio: Vec<Group>,
    pub captions: Vec<Group>,
}

/// Attributes of a rendition with the tracks that play along with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    pub bandwidth: u64,
    pub average_bandwidth: u64,
    pub codecs: Vec<String>,
    pub resolution: Option<(u64, u64)>,
    pub frame_rate: Option<f64>,
    pub uri: String,
    audio: Option<String>,
    captions: Option<String>,
}

/// `EXT-X-MEDIA`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub name: String,
    pub language: Option<String>,
    pub is_default: bool,
    pub uri: String,
    id: String,
}

/// A media playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Media {
    pub is_event: bool,
    pub is_ended: bool,
    pub key_video_frames_only: bool,
    pub target_duration_s: u64,
    pub map: Option<String>,
    pub segments: Vec<MediaSegment>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MediaSegment {
    pub uri: String,
    pub duration_s: f64,
    /// Length and offset.
    pub range: Option<(u64, u64)>,
}

impl Master {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut master = Self::default();
        let mut lines = body(text)?.peekable();
        let mut independent = false;
        while let Some(line) = lines.next() {
            match line.split_once(':') {
                Some(("#EXT-X-VERSION", version)) => drop(integer(version)?),
                Some(("#EXT-X-STREAM-INF", value)) => {
                    let uri = lines.next().filter(|uri| is_uri(uri));
                    let uri = uri.ok_or("EXT-X-STREAM-INF without its URI")?;
                    master.variants.push(variant(value, Some(uri))?);
                }
                Some(("#EXT-X-I-FRAME-STREAM-INF", value)) => {
                    master.key_video_frames.push(variant(value, None)?);
                }
                Some(("#EXT-X-MEDIA", value)) => master.group(value)?,
                None if line == "#EXT-X-INDEPENDENT-SEGMENTS" && !independent => independent = true,
                _ => return Err(format!("line {line:?}")),
            }
        }
        master.check()?;
        Ok(master)
    }

    fn group(&mut self, value: &str) -> Result<(), String> {
        let mut attributes = Attributes::parse(value)?;
        let kind = attributes.plain("TYPE")?.ok_or("no TYPE")?;
        let switch = |text: Option<&str>| match text {
            Some("YES") => Ok(true),
            None | Some("NO") => Ok(false),
            Some(other) => Err(format!("{other} is neither YES nor NO")),
        };
        let group = Group {
            id: attributes.quoted("GROUP-ID")?.ok_or("no GROUP-ID")?.into(),
            name: attributes.quoted("NAME")?.ok_or("no NAME")?.into(),
            language: attributes.quoted("LANGUAGE")?.map(str::to_owned),
            is_default: switch(attributes.plain("DEFAULT")?)?,
            uri: attributes.quoted("URI")?.ok_or("no URI")?.into(),
        };
        if group.is_default && !switch(attributes.plain("AUTOSELECT")?)? {
            return Err("DEFAULT without AUTOSELECT (RFC 8216 §4.3.4.1)".into());
        }
        attributes.plain("AUTOSELECT")?;
        let groups = match kind {
            "AUDIO" => {
                attributes.quoted("CHANNELS")?.ok_or("no CHANNELS")?;
                &mut self.audio
            }
            "SUBTITLES" => {
                switch(attributes.plain("FORCED")?)?;
                &mut self.captions
            }
            other => return Err(format!("TYPE={other}")),
        };
        if groups.iter().any(|other| other.name == group.name) {
            return Err(format!("NAME {:?} twice in a group", group.name));
        }
        groups.push(group);
        attributes.finish()
    }

    fn check(&self) -> Result<(), String> {
        let has = |groups: &[Group], id: &Option<String>| match id {
            Some(id) => groups.iter().any(|group| group.id == *id),
            None => groups.is_empty(),
        };
        for variant in &self.variants {
            if !has(&self.audio, &variant.audio) || !has(&self.captions, &variant.captions) {
                return Err(format!("the groups of {variant:?}"));
            }
        }
        let defaults = |groups: &[Group]| groups.iter().filter(|group| group.is_default).count();
        if defaults(&self.audio) > 1 || defaults(&self.captions) > 1 {
            return Err("two defaults in a group".into());
        }
        match self.variants.is_empty() {
            true => Err("no variant".into()),
            false => Ok(()),
        }
    }
}

fn variant(value: &str, uri: Option<&str>) -> Result<Variant, String> {
    let mut attributes = Attributes::parse(value)?;
    let resolution = attributes.plain("RESOLUTION")?.map(|text| {
        let (width, height) = text.split_once('x').ok_or("RESOLUTION without x")?;
        Ok::<_, String>((integer(width)?, integer(height)?))
    });
    let codecs = attributes.quoted("CODECS")?.ok_or("no CODECS")?;
    let uri = match uri {
        Some(uri) => uri,
        None => attributes.quoted("URI")?.ok_or("no URI")?,
    };
    let found = Variant {
        bandwidth: attributes.integer("BANDWIDTH")?.ok_or("no BANDWIDTH")?,
        average_bandwidth: attributes
            .integer("AVERAGE-BANDWIDTH")?
            .ok_or("no AVERAGE-BANDWIDTH")?,
        codecs: codecs.split(',').map(str::to_owned).collect(),
        resolution: resolution.transpose()?,
        frame_rate: attributes.decimal("FRAME-RATE")?,
        uri: uri.to_owned(),
        audio: attributes.quoted("AUDIO")?.map(str::to_owned),
        captions: attributes.quoted("SUBTITLES")?.map(str::to_owned),
    };
    if attributes
        .plain("CLOSED-CAPTIONS")?
        .is_some_and(|value| value != "NONE")
    {
        return Err("CLOSED-CAPTIONS that no one made".into());
    }
    attributes.finish()?;
    match (1..=found.bandwidth).contains(&found.average_bandwidth) {
        true => Ok(found),
        false => Err(format!("bandwidths of {found:?}")),
    }
}

impl Media {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut media = Self::default();
        let (mut duration_s, mut range, mut kind) = (None, None, None);
        for line in body(text)? {
            if media.is_ended {
                return Err("something behind EXT-X-ENDLIST".into());
            }
            match line.split_once(':') {
                Some(("#EXT-X-VERSION", version)) => drop(integer(version)?),
                Some(("#EXT-X-TARGETDURATION", value)) => media.target_duration_s = integer(value)?,
                Some(("#EXT-X-MEDIA-SEQUENCE", "0")) => {}
                Some(("#EXT-X-PLAYLIST-TYPE", value)) => kind = Some(value),
                Some(("#EXT-X-MAP", value)) => {
                    let mut attributes = Attributes::parse(value)?;
                    let uri = attributes.quoted("URI")?.ok_or("no URI")?;
                    if media.map.replace(uri.to_owned()).is_some() || !media.segments.is_empty() {
                        return Err("a second map".into());
                    }
                    attributes.finish()?;
                }
                Some(("#EXTINF", value)) => {
                    let seconds = value.strip_suffix(',').ok_or("EXTINF without its comma")?;
                    if duration_s.replace(decimal(seconds)?).is_some() {
                        return Err("two EXTINF".into());
                    }
                }
                Some(("#EXT-X-BYTERANGE", value)) => {
                    let (length, offset) = value.split_once('@').ok_or("a range without @")?;
                    range = Some((integer(length)?, integer(offset)?));
                }
                None if line == "#EXT-X-ENDLIST" => media.is_ended = true,
                None if line == "#EXT-X-I-FRAMES-ONLY" => media.key_video_frames_only = true,
                None if line == "#EXT-X-INDEPENDENT-SEGMENTS" => {}
                _ if is_uri(line) => media.segments.push(MediaSegment {
                    uri: line.to_owned(),
                    duration_s: duration_s.take().ok_or("a URI without EXTINF")?,
                    range: range.take(),
                }),
                _ => return Err(format!("line {line:?}")),
            }
        }
        media.is_event = kind == Some("EVENT");
        media.check(kind)?;
        Ok(media)
    }

    fn check(&self, kind: Option<&str>) -> Result<(), String> {
        if !matches!(kind, Some("EVENT" | "VOD")) || self.is_ended == self.is_event {
            return Err(format!("type {kind:?} with ended={}", self.is_ended));
        }
        for (at, segment) in self.segments.iter().enumerate() {
            if segment.duration_s.round() as u64 > self.target_duration_s {
                return Err(format!("segment {at} is longer than TARGETDURATION"));
            }
            if segment.range.is_some() != self.key_video_frames_only {
                return Err(format!("segment {at} with range {:?}", segment.range));
            }
        }
        Ok(())
    }

    pub fn duration_s(&self) -> f64 {
        self.segments.iter().map(|segment| segment.duration_s).sum()
    }
}

/// The lines behind the head.
fn body(text: &str) -> Result<impl Iterator<Item = &str>, String> {
    let text = text.strip_suffix('\n').ok_or("no line end at the end")?;
    let rest = text.strip_prefix("#EXTM3U\n").ok_or("no #EXTM3U")?;
    Ok(rest.split('\n'))
}

/// Returns whether it is relative, and does not leave its folder.
fn is_uri(line: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !line.is_empty() && line.chars().all(plain) && !line.starts_with('/') && !line.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"Audio\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"audio/media.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=200,AVERAGE-BANDWIDTH=100,CODECS=\"avc1.64000b,mp4a.40.2\",RESOLUTION=160x96,AUDIO=\"a\"\n\
        96p/media.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=20,AVERAGE-BANDWIDTH=10,CODECS=\"avc1.64000b\",URI=\"96p/iframes.m3u8\"\n";
    const MEDIA: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n\
        #EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:2.00000,\n0.m4s\n#EXTINF:1.50000,\n1.m4s\n#EXT-X-ENDLIST\n";

    #[test]
    fn good_ones_are_read() {
        let master = Master::parse(MASTER).unwrap();
        assert_eq!((master.variants.len(), master.audio.len()), (1, 1));
        let media = Media::parse(MEDIA).unwrap();
        assert_eq!((media.segments.len(), media.duration_s()), (2, 3.5));
    }

    #[test]
    fn damaged_ones_are_refused() {
        for (from, to) in [
            ("AUDIO=\"a\"", "AUDIO=\"b\""),
            ("AVERAGE-BANDWIDTH=100", "AVERAGE-BANDWIDTH=201"),
            ("96p/media.m3u8", "../media.m3u8"),
            (",RESOLUTION=160x96", ",RESOLUTION=160"),
            ("DEFAULT=YES,AUTOSELECT=YES", "DEFAULT=YES,AUTOSELECT=NO"),
            ("#EXT-X-INDEPENDENT-SEGMENTS", "#EXT-X-OTHER"),
        ] {
            assert!(Master::parse(&MASTER.replace(from, to)).is_err(), "{to}");
        }
        for (from, to) in [
            ("SEQUENCE:0", "SEQUENCE:1"),
            ("2.00000,", "2.60000,"),
            ("#EXTINF:1.50000,\n", ""),
            ("#EXT-X-ENDLIST\n", ""),
            ("VOD", "EVENT"),
            (
                "#EXTINF:2.00000,\n",
                "#EXTINF:2.00000,\n#EXT-X-BYTERANGE:1@0\n",
            ),
            ("#EXT-X-ENDLIST\n", "#EXT-X-ENDLIST\n2.m4s\n"),
        ] {
            assert!(Media::parse(&MEDIA.replace(from, to)).is_err(), "{to}");
        }
    }
}
