//! Modification times in archives: MS-DOS date and time in UTC, from 1980.

use crate::calendar::civil_date;

const SECONDS_PER_DAY: u32 = 24 * 60 * 60;
/// 1980-01-01, the first day that MS-DOS knows.
const DOS_EPOCH: u32 = 315_532_800;

/// Time and date as MS-DOS counts them, of seconds since 1970; UTC, because no one knows the reader's zone. Two seconds
/// exact.
pub(super) fn dos(seconds: u32) -> (u16, u16) {
    let seconds = seconds.max(DOS_EPOCH);
    let (year, month, day) = civil_date(i64::from(seconds / SECONDS_PER_DAY));
    let of_day = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let time = (hour << 11) | (minute << 5) | (second / 2);
    let date = ((year - 1980) << 9) | (month << 5) | day;
    (time as u16, date as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_msdos() {
        let cases = [
            (0, (1980, 1, 1), (0, 0, 0)),
            (DOS_EPOCH, (1980, 1, 1), (0, 0, 0)),
            (951_782_399, (2000, 2, 28), (23, 59, 58)),
            (951_782_400, (2000, 2, 29), (0, 0, 0)),
            (1_795_000_001, (2026, 11, 18), (11, 6, 40)),
            (4_107_542_400, (2100, 3, 1), (0, 0, 0)),
            (u32::MAX, (2106, 2, 7), (6, 28, 14)),
        ];
        for (seconds, (year, month, day), (hour, minute, second)) in cases {
            let expected = (
                (hour << 11) | (minute << 5) | (second / 2),
                ((year - 1980) << 9) | (month << 5) | day,
            );
            assert_eq!(dos(seconds), expected, "{seconds}");
        }
    }
}
