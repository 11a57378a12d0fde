//! Reads video usability information (VUI) of H.264 and HEVC (Annex E of both): pixel aspect, frame rate.
//!
//! All of it is advice to a player, and encoders get it wrong more often than anything else in a parameter set.
//! Unreadable fields count as absent; they never make a stream unusable.

use super::bits::BitReader;
use crate::Error;

/// The fields up to the first one that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Vui {
    pub(super) pixel_aspect: Option<(u32, u32)>,
    /// Clock: (`num_units_in_tick`, `time_scale`).
    pub(super) clock: Option<(u32, u32)>,
    /// `max_num_reorder_frames`, H.264 only; HEVC has it in the sequence parameter set.
    pub(super) max_num_reorder_frames: Option<u32>,
}

/// Table E-1 of both standards: `aspect_ratio_idc` 1 to 16.
const PIXEL_ASPECTS: [(u32, u32); 16] = [
    (1, 1),
    (12, 11),
    (10, 11),
    (16, 11),
    (40, 33),
    (24, 11),
    (20, 11),
    (32, 11),
    (80, 33),
    (18, 11),
    (15, 11),
    (64, 33),
    (160, 99),
    (4, 3),
    (3, 2),
    (2, 1),
];

const EXTENDED_SAR: u32 = 255;

/// Reads the fields up to and including the chroma location, which both standards share.
pub(super) fn read_video_frame_fields(
    bits: &mut BitReader<'_>,
    vui: &mut Vui,
) -> Result<(), Error> {
    if bits.flag()? {
        vui.pixel_aspect = match bits.bits(8)? {
            EXTENDED_SAR => {
                Some((bits.bits(16)?, bits.bits(16)?)).filter(|(w, h)| *w > 0 && *h > 0)
            }
            idc => PIXEL_ASPECTS.get((idc as usize).wrapping_sub(1)).copied(),
        };
    }
    let overscan_info_present = bits.flag()?;
    if overscan_info_present {
        bits.skip(1)?;
    }
    let video_signal_type_present = bits.flag()?;
    if video_signal_type_present {
        bits.skip(4)?;
        let colour_description_present = bits.flag()?;
        if colour_description_present {
            bits.skip(24)?;
        }
    }
    let chroma_location_present = bits.flag()?;
    if chroma_location_present {
        bits.ue()?;
        bits.ue()?;
    }
    Ok(())
}

/// Reads `num_units_in_tick` and `time_scale`.
pub(super) fn read_clock(bits: &mut BitReader<'_>, vui: &mut Vui) -> Result<(), Error> {
    let units_in_tick = bits.bits(32)?;
    let time_scale = bits.bits(32)?;
    vui.clock = Some((units_in_tick, time_scale));
    Ok(())
}

/// Frames per second of a clock with `ticks_per_frame`; `None` for rates no camera has.
pub(super) fn frame_rate(clock: Option<(u32, u32)>, ticks_per_frame: u32) -> Option<f64> {
    let (units_in_tick, time_scale) = clock?;
    let rate = f64::from(time_scale) / (f64::from(units_in_tick) * f64::from(ticks_per_frame));
    (rate.is_finite() && (0.1..=1000.0).contains(&rate)).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_rates_that_make_no_sense_are_not_said() {
        for (clock, ticks, expected) in [
            (None, 1, None),
            (Some((0, 0)), 2, None),
            (Some((0, 60)), 2, None),
            (Some((1, 0)), 2, None),
            (Some((1, u32::MAX)), 2, None),
            (Some((1, 60)), 2, Some(30.0)),
            (Some((1001, 30000)), 1, Some(30000.0 / 1001.0)),
        ] {
            assert_eq!(frame_rate(clock, ticks), expected, "{clock:?}");
        }
    }

    #[test]
    fn aspect_ratio_forms() {
        // aspect_ratio_info_present, idc, then three absent flags.
        for (data, expected) in [
            (vec![0x00], None),
            (vec![0x80, 0x00], None),
            (vec![0x80, 0x80], Some((1, 1))),
            (vec![0x88, 0x00], Some((2, 1))),
            (vec![0x88, 0x80], None),
            (vec![0xff, 0x80, 0x00, 0x00, 0x00, 0x80], None),
            (vec![0xff, 0x80, 0x08, 0x00, 0x07, 0x80], Some((16, 15))),
        ] {
            let mut data = data;
            data.push(0);
            let mut vui = Vui::default();
            read_video_frame_fields(&mut BitReader::new("test", &data), &mut vui).unwrap();
            assert_eq!(vui.pixel_aspect, expected, "{data:02x?}");
        }
    }
}
