//! Test clips whose frames carry their frame number, and the way back from bytes to numbers.
//!
//! A number is drawn as 16 vertical bars, black for 0 and white for 1, the highest bit on the left. Clips are made once
//! per machine in `target/test-media`, under a lock, and moved into place whole.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use super::Failure;

const WIDTH: usize = 160;
const HEIGHT: usize = 96;
const BARS: usize = 16;
const BAR_WIDTH: usize = WIDTH / BARS;
/// Columns of a bar that are looked at: its borders are blurred by the encoder.
const LOOKED_AT: std::ops::Range<usize> = 3..7;
/// Luma of limited range.
const BLACK: u8 = 16;
const WHITE: u8 = 235;
const SURELY_BLACK: u8 = 80;
const SURELY_WHITE: u8 = 170;
/// Changes when clips of the same name would look different.
const GENERATION: u32 = 1;
const SECONDS: u32 = 40;
/// Between two other frames.
const B_FRAMES: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    Avc,
    Hevc,
    Av1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    Aac,
    Opus,
}

/// Content of a clip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// The number in the first frame.
    pub offset: u32,
    pub seconds: u32,
    /// Frames per second as a fraction.
    pub rate: (u32, u32),
    /// Seconds from key frame to key frame.
    pub group_s: u32,
    /// True when H.264 has B-frames.
    pub reorders: bool,
    pub video: Option<VideoCodec>,
    pub audio: Option<AudioCodec>,
}

impl Recipe {
    /// 40 s of H.264 with two B-frames at 30 fps and a key frame each 2 s, and AAC at 48 kHz in stereo.
    pub fn numbered(offset: u32) -> Self {
        Self {
            offset,
            seconds: SECONDS,
            rate: (30, 1),
            group_s: 2,
            reorders: true,
            video: Some(VideoCodec::Avc),
            audio: Some(AudioCodec::Aac),
        }
    }

    /// Without B-frames, as an encoder with zero latency sends.
    pub fn in_order(self) -> Self {
        Self {
            reorders: false,
            ..self
        }
    }

    /// H.264 without B-frames and Opus, as WebRTC has them. Only the [`modern_ffmpeg`] can publish the clip.
    pub fn of_webrtc() -> Self {
        Self {
            audio: Some(AudioCodec::Opus),
            ..Self::numbered(0).in_order()
        }
    }

    pub fn video_only() -> Self {
        Self {
            audio: None,
            ..Self::numbered(0)
        }
    }

    pub fn audio_only() -> Self {
        Self {
            video: None,
            ..Self::numbered(0)
        }
    }

    /// A key frame each 10 s: longer than any target duration.
    pub fn long_groups() -> Self {
        Self {
            group_s: 10,
            ..Self::numbered(0)
        }
    }

    /// `(24, 1)`, `(30_000, 1001)`, `(60, 1)` …
    pub fn at_rate(rate: (u32, u32)) -> Self {
        Self {
            rate,
            ..Self::numbered(0)
        }
    }

    /// Another length than 40 s.
    pub fn lasting(self, seconds: u32) -> Self {
        Self { seconds, ..self }
    }

    /// Made by the [`modern_ffmpeg`], and only it can publish the clip.
    pub fn hevc_aac() -> Self {
        Self {
            video: Some(VideoCodec::Hevc),
            ..Self::numbered(0)
        }
    }

    /// Made by the [`modern_ffmpeg`], and only it can publish the clip.
    pub fn av1_opus() -> Self {
        Self {
            video: Some(VideoCodec::Av1),
            audio: Some(AudioCodec::Opus),
            ..Self::numbered(0)
        }
    }

    /// Frames in the clip.
    pub fn frames(&self) -> u32 {
        match self.video {
            Some(_) => (self.seconds * self.rate.0).div_ceil(self.rate.1),
            None => 0,
        }
    }

    /// Debian's ffmpeg neither writes nor publishes these codecs in FLV.
    pub fn needs_modern_ffmpeg(&self) -> bool {
        !matches!(self.video, None | Some(VideoCodec::Avc)) || self.audio == Some(AudioCodec::Opus)
    }

    /// The clip, made when it is not there yet. Blocks for some seconds then. Fails without the ffmpeg it needs.
    pub fn make(&self) -> Result<Clip, Failure> {
        let folder = target_folder().join("test-media");
        let name = self.name();
        let clip = Clip {
            recipe: self.clone(),
            flv: folder.join(format!("{name}.flv")),
            mp4: folder.join(format!("{name}.mp4")),
        };
        std::fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join(format!("{name}.lock")))?;
        lock.lock()?;
        if !clip.mp4.exists() {
            into_place(&clip.mp4, |path| self.encode(path))?;
        }
        if !clip.flv.exists() {
            into_place(&clip.flv, |path| self.remux(&clip.mp4, path))?;
        }
        Ok(clip)
    }

    /// The clip as MP4 with frames `times` as large, so that there is something to make smaller. Blocks.
    pub fn enlarged(&self, times: usize) -> Result<PathBuf, Failure> {
        let clip = self.make()?;
        let name = format!("{}-x{times}.mp4", self.name());
        let path = target_folder().join("test-media").join(&name);
        let lock = File::create(path.with_extension("lock"))?;
        lock.lock()?;
        if !path.exists() {
            let filter = format!("scale={}:{}:flags=neighbor", WIDTH * times, HEIGHT * times);
            into_place(&path, |path| {
                let mut command = Command::new("ffmpeg");
                command
                    .args(["-nostdin", "-v", "error", "-y", "-i"])
                    .arg(&clip.mp4);
                command.args(["-vf", &filter, "-c:v", "libx264", "-preset", "ultrafast"]);
                command
                    .args(["-crf", "20", "-c:a", "copy", "-f", "mp4"])
                    .arg(path);
                run(command, |_| Ok(())).map(drop)
            })?;
        }
        Ok(path)
    }

    fn name(&self) -> String {
        let video = match self.video {
            Some(VideoCodec::Avc) => "avc",
            Some(VideoCodec::Hevc) => "hevc",
            Some(VideoCodec::Av1) => "av1",
            None => "none",
        };
        let audio = match self.audio {
            Some(AudioCodec::Aac) => "aac",
            Some(AudioCodec::Opus) => "opus",
            None => "none",
        };
        let order = if self.reorders { "" } else { "-in-order" };
        let (rate, scale) = self.rate;
        format!(
            "v{GENERATION}-{video}-{audio}-{}s-{rate}by{scale}-g{}-from{}{order}",
            self.seconds, self.group_s, self.offset
        )
    }

    fn program(&self) -> Result<PathBuf, Failure> {
        if !self.needs_modern_ffmpeg() {
            return Ok("ffmpeg".into());
        }
        Ok(modern_ffmpeg()
            .ok_or("no current ffmpeg: run `make test`, or set SLUICE_TEST_FFMPEG")?)
    }

    fn encode(&self, path: &Path) -> Result<(), Failure> {
        let mut command = Command::new(self.program()?);
        command.args(["-nostdin", "-v", "error", "-y"]);
        if self.video.is_some() {
            let (size, rate) = (
                format!("{WIDTH}x{HEIGHT}"),
                format!("{}/{}", self.rate.0, self.rate.1),
            );
            command.args(["-f", "rawvideo", "-pix_fmt", "yuv420p"]);
            command.args(["-s", &size, "-r", &rate, "-i", "pipe:0"]);
        }
        if self.audio.is_some() {
            let tone = "sine=frequency=440:sample_rate=48000";
            command.args(["-f", "lavfi", "-i", tone]);
        }
        command.args(["-t", &self.seconds.to_string()]);
        command
            .args(self.video_options())
            .args(self.audio_options());
        command.args(["-f", "mp4"]).arg(path).env("SVT_LOG", "1");
        run(command, |pipe| self.draw(pipe)).map(drop)
    }

    fn video_options(&self) -> Vec<String> {
        let group = (self.rate.0 * self.group_s).div_ceil(self.rate.1);
        let b_frames = if self.reorders { B_FRAMES } else { 0 };
        let options = match self.video {
            Some(VideoCodec::Avc) => format!(
                "-c:v libx264 -preset veryfast -profile:v high -crf 20 -bf {b_frames} -b_strategy 0 \
                 -sc_threshold 0 -g {group} -keyint_min {group}"
            ),
            Some(VideoCodec::Hevc) => format!(
                "-c:v libx265 -preset ultrafast -crf 20 -tag:v hvc1 -x265-params \
                 log-level=error:bframes=2:b-adapt=0:scenecut=0:open-gop=0:keyint={group}:min-keyint={group}"
            ),
            Some(VideoCodec::Av1) => {
                format!("-c:v libsvtav1 -preset 12 -crf 30 -g {group}")
            }
            None => "-vn".into(),
        };
        options.split(' ').map(str::to_owned).collect()
    }

    fn audio_options(&self) -> Vec<String> {
        let options = match self.audio {
            Some(AudioCodec::Aac) => "-c:a aac -b:a 96k -ac 2 -ar 48000",
            Some(AudioCodec::Opus) => "-c:a libopus -b:a 96k -ac 2 -ar 48000",
            None => "-an",
        };
        options.split(' ').map(str::to_owned).collect()
    }

    fn draw(&self, pipe: &mut dyn Write) -> io::Result<()> {
        (0..self.frames()).try_for_each(|frame| pipe.write_all(&video_frame(self.offset + frame)))
    }

    fn remux(&self, from: &Path, path: &Path) -> Result<(), Failure> {
        let mut command = Command::new(self.program()?);
        command
            .args(["-nostdin", "-v", "error", "-y", "-i"])
            .arg(from);
        command.args(["-c", "copy", "-f", "flv"]).arg(path);
        run(command, |_| Ok(())).map(drop)
    }
}

/// A clip on disk, as FLV and as MP4.
#[derive(Clone, Debug)]
pub struct Clip {
    pub recipe: Recipe,
    pub flv: PathBuf,
    pub mp4: PathBuf,
}

impl Clip {
    /// The number in the first frame.
    pub fn first(&self) -> u32 {
        self.recipe.offset
    }

    pub fn frames(&self) -> u32 {
        self.recipe.frames()
    }
}

/// The clip of [`Recipe::numbered`].
pub fn numbered(offset: u32) -> Clip {
    Recipe::numbered(offset)
        .make()
        .expect("ffmpeg with libx264 is installed by `make test`")
}

/// An ffmpeg that publishes HEVC, AV1 and Opus (enhanced RTMP): `SLUICE_TEST_FFMPEG`, else what `make test` fetched,
/// else the one of the Python package imageio-ffmpeg. A caller that gets `None` says loudly what it skips.
pub fn modern_ffmpeg() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(find_modern_ffmpeg).clone()
}

fn find_modern_ffmpeg() -> Option<PathBuf> {
    let given = std::env::var_os("SLUICE_TEST_FFMPEG").map(PathBuf::from);
    let fetched = target_folder().join("tools/ffmpeg/ffmpeg");
    given
        .into_iter()
        .chain([fetched])
        .find(|path| path.is_file())
        .or_else(python_ffmpeg)
}

fn python_ffmpeg() -> Option<PathBuf> {
    let script = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

/// Reads the numbers in the frames of an fMP4 byte string (init section and segments), in the order of presentation.
/// Fails when the decoder complains or a frame's bars are unreadable.
pub fn read_numbers(init_and_segments: &[u8]) -> Result<Vec<u32>, Failure> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(init_and_segments)?;
    read_numbers_of(file.path())
}

/// [`read_numbers`] of a file that Debian's ffmpeg can decode.
pub fn read_numbers_of(path: &Path) -> Result<Vec<u32>, Failure> {
    numbers_in(&luma_of(path, None)?)
}

/// [`read_numbers`] of frames that were scaled.
pub fn read_scaled_numbers(init_and_segments: &[u8]) -> Result<Vec<u32>, Failure> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(init_and_segments)?;
    let back = format!("scale={WIDTH}:{HEIGHT}:flags=area");
    numbers_in(&luma_of(file.path(), Some(&back))?)
}

/// Fails when the decoder complains of the frames, or there are none.
pub fn decode(init_and_segments: &[u8]) -> Result<(), Failure> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(init_and_segments)?;
    match luma_of(file.path(), None)?.is_empty() {
        true => Err("nothing is decoded".into()),
        false => Ok(()),
    }
}

/// All frames in grey, one after the other.
fn luma_of(path: &Path, filter: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-i"]).arg(path);
    // In the time base of the file: the guessed rate of milliseconds may be far off, and two frames share a time then.
    command.args([
        "-map",
        "0:v:0",
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "-1",
    ]);
    if let Some(filter) = filter {
        command.args(["-vf", filter]);
    }
    command.args(["-f", "rawvideo", "-pix_fmt", "gray", "-"]);
    let output = run(command, |_| Ok(()))?;
    match output.stderr.is_empty() {
        true => Ok(output.stdout),
        false => Err(format!("decoding: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn numbers_in(luma: &[u8]) -> Result<Vec<u32>, Failure> {
    let video_frames = luma.chunks(WIDTH * HEIGHT).enumerate();
    video_frames
        .map(|(index, luma)| {
            number_in(luma).map_err(|reason| format!("frame {index}: {reason}").into())
        })
        .collect()
}

/// Checks that the numbers are `first`, `first + 1`, …; the error says where they are not.
pub fn check_contiguous(numbers: &[u32], first: u32) -> Result<(), Failure> {
    for (&number, expected) in numbers.iter().zip(first..) {
        if number != expected {
            let reason = format!("frame {number} where {expected} should be, in {numbers:?}");
            return Err(reason.into());
        }
    }
    Ok(())
}

/// [`check_contiguous`] for an encoder that was stopped anywhere: when that was between B-frames, the last frame, which
/// they refer to, comes after a hole.
pub fn check_contiguous_to_a_cut(numbers: &[u32], first: u32) -> Result<(), Failure> {
    let Some((&last, before)) = numbers.split_last() else {
        return Ok(());
    };
    check_contiguous(before, first)?;
    let next = first + u32::try_from(before.len())?;
    match (next..=next + B_FRAMES).contains(&last) {
        true => Ok(()),
        false => Err(format!("frame {last} where {next} should be, in {numbers:?}").into()),
    }
}

/// A planar 4:2:0 frame with the number's bars.
fn video_frame(number: u32) -> Vec<u8> {
    let row: Vec<u8> = (0..WIDTH)
        .map(|column| {
            let bit = BARS - 1 - column / BAR_WIDTH;
            if number >> bit & 1 == 1 { WHITE } else { BLACK }
        })
        .collect();
    let mut planes = row.repeat(HEIGHT);
    planes.resize(WIDTH * HEIGHT * 3 / 2, 128);
    planes
}

/// The number whose bars a gray frame shows. Every row must say the same.
fn number_in(luma: &[u8]) -> Result<u32, String> {
    if luma.len() != WIDTH * HEIGHT {
        return Err(format!("{} bytes of a frame", luma.len()));
    }
    let mut number = 0;
    for bar in 0..BARS {
        let columns = || {
            luma.chunks(WIDTH)
                .flat_map(|row| &row[bar * BAR_WIDTH..][LOOKED_AT])
        };
        let (darkest, lightest) = (columns().min(), columns().max());
        let bit = match (darkest.copied(), lightest.copied()) {
            (_, Some(lightest)) if lightest <= SURELY_BLACK => 0,
            (Some(darkest), _) if darkest >= SURELY_WHITE => 1,
            range => return Err(format!("bar {bar} is neither black nor white: {range:?}")),
        };
        number = number << 1 | bit;
    }
    Ok(number)
}

/// Makes a file under another name and moves it into place, so that no one finds half of it.
fn into_place(path: &Path, make: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let unfinished = path.with_extension("unfinished");
    make(&unfinished)?;
    Ok(std::fs::rename(unfinished, path)?)
}

/// Runs ffmpeg to its end while `feed` writes to its standard input.
fn run(
    mut command: Command,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Output, Failure> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| format!("{command:?} does not start: {cause}"))?;
    let mut input = BufWriter::new(child.stdin.take().expect("piped above"));
    let mut errors = child.stderr.take().expect("piped above");
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        errors.read_to_end(&mut text).map(|_| text)
    });
    let fed = feed(&mut input).and_then(|()| input.flush());
    drop(input);
    let mut output = child.wait_with_output()?;
    output.stderr = complaints.join().expect("reading does not panic")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {text}", output.status).into());
    }
    fed?;
    Ok(output)
}

/// Returns Cargo's target folder, the parent of `CARGO_TARGET_TMPDIR`.
pub fn target_folder() -> &'static Path {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().expect("a folder below target")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_drawing_and_reading() {
        for number in [0, 1, 0x5555, 0xAAAA, 0xFFFF] {
            let planes = video_frame(number);
            assert_eq!(number_in(&planes[..WIDTH * HEIGHT]), Ok(number));
        }
    }

    #[test]
    fn a_frame_that_shows_no_number_is_refused() {
        let mut torn = video_frame(1)[..WIDTH * HEIGHT / 2].to_vec();
        torn.extend(&video_frame(2)[..WIDTH * HEIGHT / 2]);
        for luma in [vec![128; WIDTH * HEIGHT], torn, vec![BLACK; WIDTH]] {
            assert!(number_in(&luma).is_err());
        }
    }

    #[test]
    fn clips_show_their_numbers_in_order() {
        let clip = numbered(7);
        for path in [&clip.flv, &clip.mp4] {
            let numbers = read_numbers_of(path).unwrap();
            assert_eq!(numbers.len(), 1200);
            check_contiguous(&numbers, 7).unwrap();
        }
    }

    #[test]
    fn order_is_checked() {
        assert!(check_contiguous(&[3, 4, 5], 3).is_ok());
        assert!(check_contiguous(&[3, 5], 3).is_err());
        assert!(check_contiguous(&[3, 3], 3).is_err());
        assert!(check_contiguous(&[4], 3).is_err());
        assert!(check_contiguous_to_a_cut(&[3, 4, 5], 3).is_ok());
        assert!(check_contiguous_to_a_cut(&[3, 4, 7], 3).is_ok());
        assert!(check_contiguous_to_a_cut(&[3, 4, 8], 3).is_err());
        assert!(check_contiguous_to_a_cut(&[3, 5, 6], 3).is_err());
        assert!(check_contiguous_to_a_cut(&[3, 4, 4], 3).is_err());
        assert!(check_contiguous_to_a_cut(&[2], 3).is_err());
    }

    #[test]
    fn every_variant_can_be_made() {
        let mut recipes = vec![
            Recipe::video_only(),
            Recipe::long_groups(),
            Recipe::at_rate((24, 1)),
            Recipe::at_rate((30_000, 1001)),
            Recipe::at_rate((60, 1)),
        ];
        if modern_ffmpeg().is_some() {
            recipes.extend([Recipe::hevc_aac(), Recipe::av1_opus()]);
        } else {
            eprintln!("SKIPPED: clips of HEVC and AV1, for want of a current ffmpeg");
        }
        for recipe in recipes {
            let numbers = read_numbers_of(&recipe.make().unwrap().mp4).unwrap();
            assert_eq!(numbers.len(), recipe.frames() as usize, "{recipe:?}");
            check_contiguous(&numbers, 0).unwrap();
        }
        Recipe::audio_only().make().unwrap();
    }
}
