//! Earlier names of settings, still read with a warning that names the present one.

use toml::{Table, Value};

/// Sections and settings by their dotted paths: the earlier name and the present one, whose sections are the same but for
/// the renamed part.
const RENAMED: [(&str, &str); 6] = [
    ("worker", "image_workers"),
    ("video", "av_workers"),
    ("streams", "vod"),
    ("live.read_beat", "live.read_interval"),
    ("shares.guesses", "shares.failed_tokens"),
    ("shares.guess_window", "shares.failed_token_window"),
];

/// Returns the present name of a setting that is given under an earlier one; both are dotted paths.
pub(super) fn present(key: &str) -> Option<String> {
    RENAMED.iter().find_map(|(earlier, present)| {
        let rest = key.strip_prefix(earlier)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{present}{rest}"))
    })
}

/// Moves what a settings file sets under earlier names to the present ones; returns a warning for each. Fails with a sentence when
/// something is set under both names.
pub(super) fn rename(settings: &mut Table) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for (earlier, present) in RENAMED {
        let Some(value) = remove(settings, earlier) else {
            continue;
        };
        if !insert(settings, present, value) {
            return Err(format!(
                "`{earlier}` is the earlier name of `{present}`, and both are set: keep `{present}`"
            ));
        }
        warnings.push(format!(
            "`{earlier}` is called `{present}` now: rename it in the settings file"
        ));
    }
    Ok(warnings)
}

fn remove(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => table.remove(path),
        Some((section, rest)) => remove(table.get_mut(section)?.as_table_mut()?, rest),
    }
}

/// Inserts a value; `false` when there is a value already, or a value that is not a section on the path.
fn insert(table: &mut Table, path: &str, value: Value) -> bool {
    match path.split_once('.') {
        None => table.insert(path.to_owned(), value).is_none(),
        Some((section, rest)) => table
            .get_mut(section)
            .and_then(Value::as_table_mut)
            .is_some_and(|table| insert(table, rest, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_names_are_moved_and_named() {
        let mut settings: Table =
            "[worker]\nworkers = 2\n[live]\nread_beat = '0ms'\n[http]\nworkers = 1"
                .parse()
                .unwrap();
        let warnings = rename(&mut settings).unwrap();
        let expected: Table =
            "[image_workers]\nworkers = 2\n[live]\nread_interval = '0ms'\n[http]\nworkers = 1"
                .parse()
                .unwrap();
        assert_eq!(settings, expected);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("`worker`") && warnings[0].contains("`image_workers`"));
        assert_eq!(rename(&mut settings), Ok(Vec::new()), "nothing is left");
    }

    #[test]
    fn a_setting_under_both_names_is_rejected() {
        for text in [
            "[worker]\nworkers = 2\n[image_workers]\nworkers = 3",
            "[shares]\nguesses = 2\nfailed_tokens = 3",
        ] {
            let mut settings: Table = text.parse().unwrap();
            let reason = rename(&mut settings).unwrap_err();
            assert!(reason.contains("both are set"), "{reason}");
        }
    }

    #[test]
    fn a_path_has_its_present_name() {
        for (key, expected) in [
            ("worker.workers", Some("image_workers.workers")),
            ("streams.max_active", Some("vod.max_active")),
            ("live.read_beat", Some("live.read_interval")),
            ("workers.workers", None),
            ("live.read_beats", None),
            ("http.listen", None),
        ] {
            assert_eq!(present(key).as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn each_present_name_is_a_setting() {
        let known = crate::config::default_table();
        for (earlier, present) in RENAMED {
            let known = Value::Table(known.clone());
            let find = |path: &str| {
                let found = path
                    .split('.')
                    .try_fold(&known, |value, part| value.get(part));
                found.is_some()
            };
            assert!(find(present), "{present}");
            assert!(!find(earlier), "{earlier}");
        }
    }
}
