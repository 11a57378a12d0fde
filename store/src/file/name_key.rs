//! Key of the order by name: names are sorted as people read them, without regard to case and with numbers by their value, so that
//! `img2` comes before `img10`.
//!
//! Keys are compared byte by byte, which is how an index compares them. A number is written with its length before it, and
//! the length as digits, so that numbers keep their place among letters and signs.

use uuid::Uuid;

use crate::{
    Error, Store, Tx,
    statement::{query, query_as},
    turns::in_turns,
};

/// Bytes of the longest key. Names that differ only after it are equal in the order.
const MAX_BYTES: usize = 256;
/// Digits up to which numbers are sorted by their value.
const MAX_DIGITS: usize = 99;
/// Returns the key of a name; equal for names that differ only in case, in zeros before numbers, or behind [`MAX_BYTES`].
/// A change needs a migration that empties the columns of keys.
pub(crate) fn name_key(name: &str) -> String {
    let name = name.to_lowercase();
    let mut key = String::with_capacity(name.len() + 8);
    let mut rest = name.as_str();
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let (text, from_number) = rest.split_at(begin);
        let end = from_number.find(|c: char| !c.is_ascii_digit());
        let (number, behind) = from_number.split_at(end.unwrap_or(from_number.len()));
        key.push_str(text);
        push_number(&mut key, number);
        rest = behind;
    }
    key.push_str(rest);
    key.truncate(key.floor_char_boundary(MAX_BYTES));
    key
}

/// Adds a number with its length before it: `1` to `8`, or `9` and two digits.
fn push_number(key: &mut String, digits: &str) {
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        significant => significant,
    };
    let length = match digits.len() {
        length @ ..=8 => length.to_string(),
        length => format!("9{:02}", length.min(MAX_DIGITS)),
    };
    key.push_str(&length);
    key.push_str(digits);
}

/// Writes keys of files and folders from before there were any; at the start.
pub(crate) async fn fill(store: &Store) -> Result<(), Error> {
    let files = in_turns(store, |tx, most| Box::pin(fill_files(tx, most))).await?;
    let folders = in_turns(store, |tx, most| Box::pin(fill_folders(tx, most))).await?;
    if files + folders > 0 {
        tracing::info!(files, folders, "names were prepared for sorting");
    }
    Ok(())
}

async fn fill_files(tx: &mut Tx<'_>, most: u32) -> Result<u64, Error> {
    let unfilled: Vec<(Uuid, String)> =
        query_as("SELECT id, filename FROM files WHERE name_key = '' AND filename <> '' LIMIT $1")
            .bind(most)
            .fetch_all(tx)
            .await?;
    for (id, name) in &unfilled {
        query("UPDATE files SET name_key = $2 WHERE id = $1")
            .bind(id)
            .bind(name_key(name))
            .execute(tx)
            .await?;
    }
    Ok(unfilled.len() as u64)
}

/// Writes the names for searching as well: SQLite folds ASCII only.
async fn fill_folders(tx: &mut Tx<'_>, most: u32) -> Result<u64, Error> {
    let unfilled: Vec<(Uuid, String)> =
        query_as("SELECT id, name FROM folders WHERE name_key = '' AND name <> '' LIMIT $1")
            .bind(most)
            .fetch_all(tx)
            .await?;
    for (id, name) in &unfilled {
        query("UPDATE folders SET search_name = $2, name_key = $3 WHERE id = $1")
            .bind(id)
            .bind(name.to_lowercase())
            .bind(name_key(name))
            .execute(tx)
            .await?;
    }
    Ok(unfilled.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_people_read_them() {
        let long = |digit: char, count: usize| digit.to_string().repeat(count);
        let sorted = [
            "(1)".to_owned(),
            "0".to_owned(),
            "1".to_owned(),
            "2 b".to_owned(),
            "10 a".to_owned(),
            "99999999".to_owned(),
            "100000000".to_owned(),
            format!("9{}", long('0', 40)),
            format!("1{}", long('0', 41)),
            long('9', 98),
            long('1', 99),
            long('2', 200),
            "A".to_owned(),
            "a-1".to_owned(),
            "a1".to_owned(),
            "a1b".to_owned(),
            "a2".to_owned(),
            "A10".to_owned(),
            "a10.2".to_owned(),
            "a10.10".to_owned(),
            "aa".to_owned(),
            "img2.jpg".to_owned(),
            "IMG10.jpg".to_owned(),
            "z".to_owned(),
            "Über 9".to_owned(),
            "über 10".to_owned(),
        ];
        let keys: Vec<String> = sorted.iter().map(|name| name_key(name)).collect();
        for (at, pair) in keys.windows(2).enumerate() {
            assert!(pair[0] < pair[1], "{} {}", sorted[at], sorted[at + 1]);
        }
    }

    #[test]
    fn equal_names_have_one_key_and_no_key_is_empty_or_long() {
        for (name, other) in [
            ("IMG_7", "img_007"),
            ("0", "000"),
            ("ÄÖ", "äö"),
            ("x00", "X0"),
        ] {
            assert_eq!(name_key(name), name_key(other), "{name} {other}");
        }
        for name in ["0", "a", "é"] {
            for count in [1, 127, 128, 255] {
                let key = name_key(&name.repeat(count));
                assert!((1..=MAX_BYTES).contains(&key.len()), "{name} {count}");
            }
        }
        let mixed = "a1".repeat(127);
        assert_eq!(name_key(&mixed).len(), MAX_BYTES);
    }
}
