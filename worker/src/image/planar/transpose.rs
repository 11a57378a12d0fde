//! Transposes a plane, rows to columns, in blocks of 8 × 8 samples that fit into eight registers.

const BLOCK: usize = 8;

/// Writes `plane`, which has rows of `width` samples and none between them, column by column.
pub fn transpose(plane: &[u8], width: usize, transposed: &mut Vec<u8>) {
    let height = plane.len().checked_div(width).unwrap_or(0);
    transposed.resize(width * height, 0);
    let (whole_columns, whole_rows) = (width / BLOCK * BLOCK, height / BLOCK * BLOCK);
    for top in (0..whole_rows).step_by(BLOCK) {
        for left in (0..whole_columns).step_by(BLOCK) {
            let block = transposed_block(load(&plane[top * width + left..], width));
            store(block, &mut transposed[left * height + top..], height);
        }
    }
    for row in 0..height {
        let first = if row < whole_rows { whole_columns } else { 0 };
        for column in first..width {
            transposed[column * height + row] = plane[row * width + column];
        }
    }
}

fn load(samples: &[u8], stride: usize) -> [u64; BLOCK] {
    std::array::from_fn(|row| {
        let bytes = &samples[row * stride..][..BLOCK];
        u64::from_le_bytes(bytes.try_into().expect("it is sliced to eight"))
    })
}

fn store(block: [u64; BLOCK], samples: &mut [u8], stride: usize) {
    for (row, bytes) in block.into_iter().enumerate() {
        samples[row * stride..][..BLOCK].copy_from_slice(&bytes.to_le_bytes());
    }
}

/// Swaps the halves across the diagonal, then the quarters, then the eighths.
fn transposed_block(mut block: [u64; BLOCK]) -> [u64; BLOCK] {
    const STEPS: [(usize, u64); 3] = [
        (4, 0x0000_0000_ffff_ffff),
        (2, 0x0000_ffff_0000_ffff),
        (1, 0x00ff_00ff_00ff_00ff),
    ];
    for (distance, low) in STEPS {
        let bits = 8 * distance;
        for row in (0..BLOCK).filter(|row| row & distance == 0) {
            let (upper, lower) = (block[row], block[row + distance]);
            block[row] = (upper & low) | ((lower & low) << bits);
            block[row + distance] = ((upper >> bits) & low) | (lower & !low);
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_changes_its_column_for_its_row() {
        for (width, height) in [(0, 0), (1, 1), (3, 9), (8, 8), (16, 24), (33, 17), (7, 100)] {
            let plane: Vec<u8> = (0..width * height).map(|place| place as u8).collect();
            let mut transposed = vec![1; 5];
            transpose(&plane, width, &mut transposed);
            assert_eq!(transposed.len(), plane.len());
            for row in 0..height {
                for column in 0..width {
                    assert_eq!(
                        transposed[column * height + row],
                        plane[row * width + column],
                        "{width} × {height}: {column}, {row}"
                    );
                }
            }
        }
    }
}
