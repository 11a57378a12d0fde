//! Values of rows in the form that both engines share, and sums by which the rows of a table are compared.

use sha2::{Digest as _, Sha256};

/// Value of a column, as SQLite has it: flags are 0 and 1, ids are bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Datum {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Values of a row in the order of the table's columns, or of a key.
pub(super) type Row = Vec<Datum>;

impl Datum {
    /// Returns about how many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        let own = size_of::<Self>();
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => own,
            Self::Text(text) => own + text.len(),
            Self::Bytes(bytes) => own + bytes.len(),
        }
    }

    fn add_to(&self, digest: &mut Sha256) {
        match self {
            Self::Null => add_bytes(digest, 0, &[]),
            Self::Integer(number) => add_bytes(digest, 1, &number.to_be_bytes()),
            Self::Real(number) => add_bytes(digest, 2, &number.to_bits().to_be_bytes()),
            Self::Text(text) => add_bytes(digest, 3, text.as_bytes()),
            Self::Bytes(bytes) => add_bytes(digest, 4, bytes),
        }
    }
}

fn add_bytes(digest: &mut Sha256, tag: u8, bytes: &[u8]) {
    digest.update([tag]);
    digest.update((bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}

/// Number of rows, and a sum over them that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) rows: u64,
    hashes: u64,
}

impl Sum {
    pub(super) fn add(&mut self, row: &[Datum]) {
        let mut digest = Sha256::new();
        for datum in row {
            datum.add_to(&mut digest);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let hash = u64::from_be_bytes(*digest.first_chunk().expect("8 of 32 bytes"));
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[Row]) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            sum.add(row);
        }
        sum
    }

    #[test]
    fn sums_differ_when_a_value_does() {
        let rows = [
            vec![Datum::Text("a".into()), Datum::Text("bc".into())],
            vec![Datum::Text("ab".into()), Datum::Text("c".into())],
            vec![Datum::Bytes(b"ab".into()), Datum::Text("c".into())],
            vec![Datum::Null, Datum::Integer(0)],
            vec![Datum::Null, Datum::Real(0.0)],
            vec![Datum::Bytes(Vec::new()), Datum::Integer(0)],
        ];
        for (at, row) in rows.iter().enumerate() {
            for other in &rows[at + 1..] {
                assert_ne!(
                    sum(std::slice::from_ref(row)),
                    sum(std::slice::from_ref(other))
                );
            }
        }
        let mut turned = rows.to_vec();
        turned.reverse();
        assert_eq!(sum(&rows), sum(&turned));
        assert_eq!(sum(&rows).rows, 6);
        // Twice the same row is not none.
        assert_ne!(sum(&[rows[0].clone(), rows[0].clone()]), sum(&[]));
    }
}
