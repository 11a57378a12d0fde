//! `--events` of `sluice webhooks listen`: types and families such as `conversion.*`.

use std::str::FromStr;

use sluice_actors::events::known_types;

/// A type's name, a family of them (`conversion.*`), or all (`*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    All,
    /// With the dot at its end.
    Family(String),
    Type(String),
}

impl Pattern {
    fn covers(&self, event_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Family(prefix) => event_type.starts_with(prefix),
            Self::Type(name) => event_type == name,
        }
    }
}

/// The types of all patterns as the stream's `types` names them; empty, like no pattern at all: every type.
pub(super) fn types(patterns: &[Pattern]) -> String {
    if patterns.contains(&Pattern::All) {
        return String::new();
    }
    let names = known_types().iter().map(|known| known.name);
    let wanted = names.filter(|name| patterns.iter().any(|pattern| pattern.covers(name)));
    wanted.collect::<Vec<_>>().join(",")
}

/// Rejects what no type of event fits: it would wait for ever.
impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = match text.strip_suffix('*') {
            Some("") => Self::All,
            Some(prefix) if prefix.ends_with('.') => Self::Family(prefix.to_owned()),
            _ => Self::Type(text.to_owned()),
        };
        if known_types().iter().any(|known| pattern.covers(known.name)) {
            return Ok(pattern);
        }
        let names: Vec<&str> = known_types().iter().map(|known| known.name).collect();
        Err(format!(
            "no event is of the type `{text}`; there are *, a beginning such as conversion.*, and {}",
            names.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_names_and_families() {
        for (pattern, covered, left) in [
            ("*", "file.uploaded", None),
            ("file.uploaded", "file.uploaded", Some("file.uploaded.x")),
            ("conversion.*", "conversion.failed", Some("file.uploaded")),
            (
                "live.input.*",
                "live.input.recording.ready",
                Some("live.inputs"),
            ),
            ("media.tool.*", "media.tool.failed", Some("media")),
            ("media.*", "media.tool.failed", Some("mediated.x")),
        ] {
            let pattern: Pattern = pattern.parse().unwrap();
            assert!(pattern.covers(covered), "{pattern:?} {covered}");
            assert!(
                left.is_none_or(|left| !pattern.covers(left)),
                "{pattern:?} {left:?}"
            );
        }
    }

    #[test]
    fn the_stream_is_asked_for_each_type_once() {
        for (patterns, names) in [
            (&[][..], ""),
            (&["file.uploaded", "*"], ""),
            (&["file.uploaded", "file.*"], "file.uploaded"),
            (
                &["workflow.*", "media.tool.failed"],
                "media.tool.failed,workflow.completed,workflow.failed",
            ),
        ] {
            let patterns: Vec<Pattern> = patterns.iter().map(|it| it.parse().unwrap()).collect();
            assert_eq!(types(&patterns), names);
        }
    }

    #[test]
    fn what_covers_nothing_is_rejected_with_what_there_is() {
        for text in [
            "",
            "file",
            "file*",
            "*.uploaded",
            "files.*",
            "file.uploaded.*",
            "File.uploaded",
            "**",
            ".*",
            "webhook.test",
        ] {
            let rejection = text.parse::<Pattern>().unwrap_err();
            assert!(rejection.contains(&format!("`{text}`")), "{rejection}");
            assert!(rejection.contains("conversion.completed"), "{rejection}");
        }
    }
}
