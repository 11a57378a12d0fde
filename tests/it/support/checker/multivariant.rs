//! The multivariant playlist of a live input: one muxed rendition.

use sluice_testkit::attributes::{Attributes, integer};

/// Attributes of the rendition in the playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multivariant {
    pub version: u64,
    pub bandwidth: u64,
    pub average_bandwidth: Option<u64>,
    /// RFC 6381 strings, such as `avc1.64000b` and `mp4a.40.2`.
    pub codecs: Vec<String>,
    pub resolution: Option<(u64, u64)>,
    pub frame_rate: Option<f64>,
    /// Address of the media playlist, relative to this one.
    pub uri: String,
}

/// Reads it, and checks what RFC 8216bis asks of it: BANDWIDTH (not below the average), CODECS, and for video
/// RESOLUTION and FRAME-RATE.
pub fn check_multivariant(text: &str) -> Result<Multivariant, String> {
    let body = text
        .strip_suffix('\n')
        .ok_or("the text does not end with a line end")?;
    let lines: Vec<&str> = body.split('\n').collect();
    let [head, version, stream, uri] = lines[..] else {
        return Err(format!(
            "{} lines instead of head, version, rendition and URI",
            lines.len()
        ));
    };
    if head != "#EXTM3U" {
        return Err("the first line is not #EXTM3U".into());
    }
    let version = version
        .strip_prefix("#EXT-X-VERSION:")
        .ok_or("no EXT-X-VERSION")?;
    let stream = stream
        .strip_prefix("#EXT-X-STREAM-INF:")
        .ok_or("no EXT-X-STREAM-INF")?;
    if uri.starts_with('#') || uri.trim() != uri || uri.is_empty() {
        return Err(format!("{uri:?} is no URI"));
    }
    let found = rendition(stream, integer(version)?, uri)?;
    check(&found)?;
    Ok(found)
}

fn rendition(stream: &str, version: u64, uri: &str) -> Result<Multivariant, String> {
    let mut attributes = Attributes::parse(stream)?;
    let resolution = attributes.plain("RESOLUTION")?.map(|text| {
        let (width, height) = text.split_once('x').ok_or("RESOLUTION without x")?;
        Ok::<_, String>((integer(width)?, integer(height)?))
    });
    let codecs = attributes.quoted("CODECS")?.ok_or("no CODECS")?;
    let found = Multivariant {
        version,
        bandwidth: attributes.integer("BANDWIDTH")?.ok_or("no BANDWIDTH")?,
        average_bandwidth: attributes.integer("AVERAGE-BANDWIDTH")?,
        codecs: codecs.split(',').map(str::to_owned).collect(),
        resolution: resolution.transpose()?,
        frame_rate: attributes.decimal("FRAME-RATE")?,
        uri: uri.to_owned(),
    };
    attributes.finish()?;
    Ok(found)
}

fn check(found: &Multivariant) -> Result<(), String> {
    let average = found.average_bandwidth.unwrap_or(1);
    if average == 0 || average > found.bandwidth {
        return Err(format!(
            "bandwidth {} below average {average}",
            found.bandwidth
        ));
    }
    let kinds = ["avc1.", "hvc1.", "av01.", "mp4a.", "opus", "Opus"];
    let unknown = |codec: &&String| !kinds.iter().any(|kind| codec.starts_with(kind));
    if let Some(codec) = found.codecs.iter().find(unknown) {
        return Err(format!("codec {codec:?}"));
    }
    let has_video = found
        .codecs
        .iter()
        .any(|codec| kinds[..3].iter().any(|kind| codec.starts_with(kind)));
    if has_video != found.resolution.is_some() {
        return Err(format!(
            "RESOLUTION {:?} for {:?}",
            found.resolution, found.codecs
        ));
    }
    if found
        .frame_rate
        .is_some_and(|rate| !has_video || rate <= 0.0)
    {
        return Err(format!(
            "FRAME-RATE {:?} for {:?}",
            found.frame_rate, found.codecs
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "#EXTM3U\n#EXT-X-VERSION:9\n\
        #EXT-X-STREAM-INF:BANDWIDTH=200,AVERAGE-BANDWIDTH=100,CODECS=\"avc1.64000b,mp4a.40.2\",RESOLUTION=160x96,FRAME-RATE=30.000\n\
        media.m3u8\n";

    #[test]
    fn the_good_one_is_read() {
        let found = check_multivariant(GOOD).unwrap();
        assert_eq!((found.bandwidth, found.resolution), (200, Some((160, 96))));
        assert_eq!(found.codecs, ["avc1.64000b", "mp4a.40.2"]);
        assert_eq!(found.uri, "media.m3u8");
    }

    #[test]
    fn damaged_ones_are_refused() {
        let damages = [
            ("#EXTM3U\n", ""),
            ("#EXT-X-VERSION:9\n", ""),
            ("BANDWIDTH=200,", ""),
            ("BANDWIDTH=200,", "BANDWIDTH=99,"),
            ("BANDWIDTH=100,", "BANDWIDTH=0,"),
            (",RESOLUTION=160x96", ""),
            ("160x96", "160"),
            ("avc1.64000b,", ""),
            ("mp4a.40.2", "vorbis"),
            ("\"avc1.64000b,mp4a.40.2\"", "avc1.64000b"),
            ("FRAME-RATE=30.000", "FRAME-RATE=0"),
            ("FRAME-RATE=30.000", "FRAMERATE=30"),
            ("media.m3u8\n", ""),
            ("media.m3u8\n", "media.m3u8"),
            ("media.m3u8\n", "media.m3u8\nother.m3u8\n"),
        ];
        for (from, to) in damages {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD);
            assert!(check_multivariant(&text).is_err(), "{text}");
        }
    }
}
