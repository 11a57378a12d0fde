//! Texts of statements for PostgreSQL, made of SQLite's by replacing what differs.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;

/// Spellings of SQLite and what PostgreSQL has in their place, in the order of the replacements. A comment such as `/*skip*/` marks
/// the place of a clause that only PostgreSQL has.
const REPLACED: &[(&str, &str)] = &[
    // Files of the folders of a tree. PostgreSQL expects a tenth of all folders of a walk, and would read all files of the account.
    (
        "FROM below b CROSS JOIN files f ON f.folder_id = b.id",
        "FROM (SELECT ARRAY(SELECT id FROM below) AS ids) b JOIN files f ON f.folder_id = ANY (b.ids)",
    ),
    (
        "f.folder_id IN (SELECT id FROM below)",
        "f.folder_id = ANY (ARRAY(SELECT id FROM below))",
    ),
    // SQLite's CROSS JOIN fixes the order of the loops, and may have ON.
    ("CROSS JOIN ", "JOIN "),
    // Rows that each row on the left names. PostgreSQL would run the select in IN for every row of the table.
    (
        "JOIN webhook_deliveries d ON d.seq IN (/*each*/",
        "CROSS JOIN LATERAL (",
    ),
    (
        "/*each*/)",
        ") picked JOIN webhook_deliveries d ON d.seq = picked.seq",
    ),
    (" IS NOT $", " IS DISTINCT FROM $"),
    (" IS $", " IS NOT DISTINCT FROM $"),
    // LIKE of SQLite has no regard to the case of ASCII letters.
    (" LIKE $", " ILIKE $"),
    // INTEGER of PostgreSQL has 32 bits.
    (" AS INTEGER)", " AS BIGINT)"),
    // The top's id in `folder_totals`: a column of UUIDs cannot hold an empty one.
    (", x'')", ", '00000000-0000-0000-0000-000000000000')"),
    (" = x''", " = ''"),
    ("LIMIT -1 OFFSET", "OFFSET"),
    // LIMIT is not allowed in the recursive part of a walk; the select that reads the walk has the same one.
    ("= b.id LIMIT $2 + 1)", "= b.id)"),
    ("= b.id LIMIT $3 + 1)", "= b.id)"),
    // `unhex` of the schema makes UUIDs; this hash is longer.
    (
        "unhex(value ->> 'sha256')",
        "decode(value ->> 'sha256', 'hex')",
    ),
    ("/*skip*/", "FOR UPDATE SKIP LOCKED"),
    ("/*lock*/", "FOR UPDATE"),
    // Rows that refer to the locked one can be inserted meanwhile.
    ("/*lock key*/", "FOR NO KEY UPDATE"),
    ("/*lock e*/", "FOR NO KEY UPDATE OF e"),
    ("/*lock d*/", "FOR UPDATE OF d"),
    // A plus keeps SQLite from choosing the column's index.
    (" +d.", " d."),
    (" +state", " state"),
    (" +expires_at", " expires_at"),
];

/// PostgreSQL's texts of fixed statements, of which a program has some hundreds.
static FIXED: RwLock<Option<HashMap<&'static str, Arc<str>>>> = RwLock::new(None);

/// Returns the text of a fixed statement, which is made once.
pub(crate) fn of_fixed(text: &'static str) -> Arc<str> {
    let known = FIXED.read();
    if let Some(made) = known.as_ref().and_then(|known| known.get(text)) {
        return made.clone();
    }
    drop(known);
    let made: Arc<str> = postgres(text).into();
    let mut known = FIXED.write();
    known.get_or_insert_default().insert(text, made.clone());
    made
}

/// Returns PostgreSQL's text of a statement.
pub(crate) fn postgres(text: &str) -> String {
    let mut text = with_booleans(&without_hints(text));
    for (spelling, replacement) in REPLACED {
        if text.contains(spelling) {
            text = text.replace(spelling, replacement);
        }
    }
    text
}

/// Drops ` INDEXED BY <name>`, which names an index to SQLite.
fn without_hints(text: &str) -> String {
    let mut pieces = text.split(" INDEXED BY ");
    let mut made = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        made.push_str(piece.trim_start_matches(is_of_name));
    }
    made
}

/// Replaces the numbers that flags are compared with or set to. SQLite finds a partial index only by the number that its
/// condition has.
fn with_booleans(text: &str) -> String {
    let mut pieces = text.split(" = ");
    let mut made = pieces.next().unwrap_or_default().to_owned();
    for right in pieces {
        let is_flag = is_flag(last_name(&made));
        made.push_str(" = ");
        match flag(right).filter(|_| is_flag) {
            Some((value, rest)) => made.extend([value, rest]),
            None => made.push_str(right),
        }
    }
    made
}

/// Returns the boolean for a 0 or 1 at the beginning of a text, and the rest of the text.
fn flag(text: &str) -> Option<(&'static str, &str)> {
    let (value, rest) = match text.strip_prefix('0') {
        Some(rest) => ("FALSE", rest),
        None => ("TRUE", text.strip_prefix('1')?),
    };
    (!rest.starts_with(is_of_name)).then_some((value, rest))
}

fn last_name(text: &str) -> &str {
    let before = text.trim_end_matches(is_of_name);
    &text[before.len()..]
}

fn is_flag(column: &str) -> bool {
    column.starts_with("is_")
        || column.starts_with("has_")
        || matches!(column, "playable" | "branch")
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_postgresql() {
        let texts = [
            ("SELECT 1", "SELECT 1"),
            (
                "SELECT f.* FROM files f INDEXED BY files_by_folder WHERE a = $1",
                "SELECT f.* FROM files f WHERE a = $1",
            ),
            (
                "FROM below b CROSS JOIN folders f INDEXED BY folders_by_parent\n ON f.parent_id = b.id",
                "FROM below b JOIN folders f\n ON f.parent_id = b.id",
            ),
            (
                "FROM below b CROSS JOIN files f INDEXED BY files_by_folder ON f.folder_id = b.id WHERE f.account_id = $2",
                "FROM (SELECT ARRAY(SELECT id FROM below) AS ids) b JOIN files f ON f.folder_id = ANY (b.ids) WHERE f.account_id = $2",
            ),
            (
                "AND f.folder_id IN (SELECT id FROM below) AND t.folder_id IN (SELECT id FROM below)",
                "AND f.folder_id = ANY (ARRAY(SELECT id FROM below)) AND t.folder_id IN (SELECT id FROM below)",
            ),
            (
                "SET is_begun = 0, begins = 0 WHERE e.is_active = 1 AND (playable = 1) OR branch = 0",
                "SET is_begun = FALSE, begins = 0 WHERE e.is_active = TRUE AND (playable = TRUE) OR branch = FALSE",
            ),
            // Neither flags nor numbers of flags.
            (
                "this_is_one = 1 AND is_begun = $1 AND has_poster = 10 AND 1 = 1",
                "this_is_one = 1 AND is_begun = $1 AND has_poster = 10 AND 1 = 1",
            ),
            ("is_begun = 1", "is_begun = TRUE"),
            (
                "FROM answers CROSS JOIN webhook_deliveries d ON d.seq IN (/*each*/ SELECT seq LIMIT $1/*each*/) WHERE",
                "FROM answers CROSS JOIN LATERAL ( SELECT seq LIMIT $1) picked JOIN webhook_deliveries d ON d.seq = picked.seq WHERE",
            ),
            (
                "parent_id IS $2 AND id IS NOT $3 AND a IS NULL AND b IS NOT NULL",
                "parent_id IS NOT DISTINCT FROM $2 AND id IS DISTINCT FROM $3 AND a IS NULL AND b IS NOT NULL",
            ),
            (
                "SELECT CAST(value ->> 0 AS INTEGER) ORDER BY due_at LIMIT $4 /*skip*/",
                "SELECT CAST(value ->> 0 AS BIGINT) ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED",
            ),
            (
                "WHERE folder_id = coalesce($2, x'') AND +d.status = $1 LIMIT -1 OFFSET $3",
                "WHERE folder_id = coalesce($2, '00000000-0000-0000-0000-000000000000') AND d.status = $1 OFFSET $3",
            ),
        ];
        for (text, expected) in texts {
            assert_eq!(postgres(text), expected);
        }
    }

    #[test]
    fn the_text_of_a_fixed_statement_is_made_once() {
        let text = "SELECT id FROM work WHERE is_begun = 1";
        assert_eq!(
            &*of_fixed(text),
            "SELECT id FROM work WHERE is_begun = TRUE"
        );
        assert!(Arc::ptr_eq(&of_fixed(text), &of_fixed(text)));
    }
}
