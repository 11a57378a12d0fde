//! Reader of fragmented MP4 (ISO/IEC 14496-12), as far as counting frames and checking decode times needs.

use super::Failure;

/// A track of an init section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub id: u32,
    pub is_video: bool,
    pub timescale: u32,
}

/// Samples of one track in a movie fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub track: u32,
    /// In the track's timescale.
    pub decode_time: u64,
    pub duration: u64,
    pub samples: u32,
    pub bytes: u64,
}

/// The tracks that an init section (`ftyp`, `moov`) describes.
pub fn tracks(init: &[u8]) -> Result<Vec<Track>, Failure> {
    let top = boxes(init)?;
    if top.first().is_none_or(|first| first.kind != *b"ftyp") {
        return Err("an init section begins with ftyp".into());
    }
    let moov = find(&top, b"moov")?;
    let traks = boxes(moov)?;
    let traks = traks.iter().filter(|inner| inner.kind == *b"trak");
    traks.map(|trak| track(trak.body)).collect()
}

fn track(trak: &[u8]) -> Result<Track, Failure> {
    let trak = boxes(trak)?;
    let mdia = boxes(find(&trak, b"mdia")?)?;
    let times = |body: &[u8]| if body.first() == Some(&1) { 16 } else { 8 };
    let tkhd = find(&trak, b"tkhd")?;
    let mdhd = find(&mdia, b"mdhd")?;
    Ok(Track {
        id: u32_at(tkhd, 4 + times(tkhd))?,
        is_video: find(&mdia, b"hdlr")?.get(8..12) == Some(b"vide"),
        timescale: u32_at(mdhd, 4 + times(mdhd))?,
    })
}

/// The runs of a part or segment: any number of `moof` and `mdat` pairs, nothing else but `styp` and `prft`.
pub fn runs(media: &[u8]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let mut announced = None;
    for item in boxes(media)? {
        match (&item.kind, announced) {
            (b"moof", None) => {
                let fragment = fragment(item.body)?;
                announced = Some(fragment.iter().map(|run| run.bytes).sum::<u64>());
                runs.extend(fragment);
            }
            (b"mdat", Some(bytes)) if bytes == item.body.len() as u64 => announced = None,
            (b"mdat", Some(bytes)) => {
                let there = item.body.len();
                return Err(format!("samples of {bytes} bytes in an mdat of {there}").into());
            }
            (b"styp" | b"prft", None) => {}
            (kind, _) => {
                let kind = String::from_utf8_lossy(kind);
                return Err(format!("box {kind} where none belongs").into());
            }
        }
    }
    match announced {
        None => Ok(runs),
        Some(_) => Err("a moof without its mdat".into()),
    }
}

fn fragment(moof: &[u8]) -> Result<Vec<Run>, Failure> {
    let inner = boxes(moof)?;
    let trafs = inner.iter().filter(|inner| inner.kind == *b"traf");
    trafs.map(|traf| track_fragment(traf.body)).collect()
}

fn track_fragment(traf: &[u8]) -> Result<Run, Failure> {
    let traf = boxes(traf)?;
    let (tfhd, tfdt) = (find(&traf, b"tfhd")?, find(&traf, b"tfdt")?);
    let defaults = Defaults::read(tfhd)?;
    let mut run = Run {
        track: u32_at(tfhd, 4)?,
        decode_time: match tfdt.first() {
            Some(1) => u64::from(u32_at(tfdt, 4)?) << 32 | u64::from(u32_at(tfdt, 8)?),
            _ => u32_at(tfdt, 4)?.into(),
        },
        duration: 0,
        samples: 0,
        bytes: 0,
    };
    for trun in traf.iter().filter(|inner| inner.kind == *b"trun") {
        add_samples(&mut run, trun.body, defaults)?;
    }
    Ok(run)
}

/// A sample's duration and size where its run does not give them.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    duration: u32,
    size: u32,
}

impl Defaults {
    fn read(tfhd: &[u8]) -> Result<Self, Failure> {
        let flags = u32_at(tfhd, 0)? & 0x00FF_FFFF;
        let mut at = 8;
        let mut field = |flag: u32, length: usize| -> Result<u32, Failure> {
            if flags & flag == 0 {
                return Ok(0);
            }
            at += length;
            u32_at(tfhd, at - 4)
        };
        field(0x1, 8)?;
        field(0x2, 4)?;
        Ok(Self {
            duration: field(0x8, 4)?,
            size: field(0x10, 4)?,
        })
    }
}

fn add_samples(run: &mut Run, trun: &[u8], defaults: Defaults) -> Result<(), Failure> {
    let flags = u32_at(trun, 0)? & 0x00FF_FFFF;
    let count = u32_at(trun, 4)?;
    let mut at = 8 + [0x1, 0x4]
        .map(|flag| 4 * usize::from(flags & flag != 0))
        .iter()
        .sum::<usize>();
    let mut field = |flag: u32, default: u32| -> Result<u64, Failure> {
        if flags & flag == 0 {
            return Ok(default.into());
        }
        at += 4;
        Ok(u32_at(trun, at - 4)?.into())
    };
    for _ in 0..count {
        run.duration += field(0x100, defaults.duration)?;
        run.bytes += field(0x200, defaults.size)?;
        field(0x400, 0)?;
        field(0x800, 0)?;
    }
    run.samples += count;
    Ok(())
}

struct Item<'a> {
    kind: [u8; 4],
    body: &'a [u8],
}

/// The boxes in a row; they must fill it exactly.
fn boxes(mut bytes: &[u8]) -> Result<Vec<Item<'_>>, Failure> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0)? as usize;
        let kind: [u8; 4] = bytes
            .get(4..8)
            .and_then(|kind| kind.try_into().ok())
            .ok_or("a cut box head")?;
        let body = bytes.get(8..length).ok_or_else(|| {
            let name = String::from_utf8_lossy(&kind).into_owned();
            format!(
                "box {name} of {length} bytes where {} are left",
                bytes.len()
            )
        })?;
        items.push(Item { kind, body });
        bytes = &bytes[length..];
    }
    Ok(items)
}

fn find<'a>(items: &[Item<'a>], kind: &[u8; 4]) -> Result<&'a [u8], Failure> {
    let mut found = items.iter().filter(|item| item.kind == *kind);
    match (found.next(), found.next()) {
        (Some(item), None) => Ok(item.body),
        (None, _) => Err(format!("no box {}", String::from_utf8_lossy(kind)).into()),
        (Some(_), Some(_)) => Err(format!("two boxes {}", String::from_utf8_lossy(kind)).into()),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Failure> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    Ok(u32::from_be_bytes(*four.ok_or("a cut box")?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::support::media::numbered;

    #[test]
    fn a_fragmented_file_of_ffmpeg_is_read_to_the_last_sample() {
        let clip = numbered(0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fragmented.mp4");
        let status = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-i"])
            .arg(&clip.mp4)
            .args([
                "-c",
                "copy",
                "-movflags",
                "empty_moov+default_base_moof+frag_keyframe+skip_trailer",
            ])
            .arg(&path)
            .status()
            .unwrap();
        assert!(status.success());
        let file = std::fs::read(&path).unwrap();
        let moof = file
            .windows(4)
            .position(|window| window == b"moof")
            .unwrap()
            - 4;
        let (init, media) = file.split_at(moof);

        let tracks = tracks(init).unwrap();
        let video = tracks.iter().find(|track| track.is_video).unwrap();
        let runs = runs(media).unwrap();
        let video_runs = runs.iter().filter(|run| run.track == video.id);
        assert_eq!(
            video_runs.map(|run| run.samples).sum::<u32>(),
            clip.frames()
        );
    }

    #[test]
    fn damage_is_seen() {
        let mdat = b"\0\0\0\x0cmdatabcd";
        assert!(runs(mdat).is_err(), "an mdat without its moof");
        assert!(runs(&mdat[..10]).is_err(), "a cut box");
        assert!(
            runs(b"\0\0\0\x08free").is_err(),
            "a box that does not belong"
        );
        assert!(tracks(mdat).is_err(), "no init section");
    }
}
