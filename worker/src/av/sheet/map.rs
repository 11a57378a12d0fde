//! Map of a storyboard: WebVTT whose cues name a part of the image, `#xywh=` (W3C Media Fragments §4.2.2).

use std::fmt::Write as _;

use sluice_media::captions::Time;

use super::grid::Grid;

/// Writes a cue for each frame; together they cover the whole clip.
pub fn write(grid: &Grid, duration_s: f64, image_name: &str) -> String {
    let mut text = "WEBVTT\n".to_owned();
    let duration_ms = (duration_s * 1_000.0).round() as u64;
    // A cue must end after its start, so a clip has at least a millisecond for each.
    let duration_ms = duration_ms.max(u64::from(grid.cells));
    let boundary = |index: u32| Time(duration_ms * u64::from(index) / u64::from(grid.cells));
    let (width, height) = grid.cell;
    for index in 0..grid.cells {
        let (start, end) = (boundary(index), boundary(index + 1));
        let (left, top) = grid.place(index);
        write!(
            text,
            "\n{start} --> {end}\n{image_name}#xywh={left},{top},{width},{height}\n"
        )
        .expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::av::sheet::grid::tests::{NO_LIMITS, sheet};

    #[test]
    fn cues_cover_the_clip_and_name_places() {
        let grid = Grid::new(&sheet(3, 2, 16), (32, 18), &NO_LIMITS).expect("small");
        let expected = "WEBVTT\n\
            \n00:00:00.000 --> 00:20:00.033\nboard.jpg#xywh=0,0,16,9\n\
            \n00:20:00.033 --> 00:40:00.066\nboard.jpg#xywh=16,0,16,9\n\
            \n00:40:00.066 --> 01:00:00.100\nboard.jpg#xywh=0,9,16,9\n";
        assert_eq!(write(&grid, 3600.1, "board.jpg"), expected);
        assert!(sluice_media::captions::to_webvtt(expected.as_bytes()).is_ok());
    }

    #[test]
    fn no_cue_of_a_moment_is_empty() {
        let grid = Grid::new(&sheet(3, 2, 16), (32, 18), &NO_LIMITS).expect("small");
        let map = write(&grid, 0.0, "a.jpg");
        assert!(
            sluice_media::captions::to_webvtt(map.as_bytes()).is_ok(),
            "{map}"
        );
    }
}
