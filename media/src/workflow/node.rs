//! Reads workflow nodes: id, title, kind, config; `folderId`, `url`, `profile`, operation fields; lengths allowed.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    MAX_ID_CHARS,
    definition::{Kind, Node},
    json,
    kinds::{PROFILES, Sort},
    pattern::Pattern,
    problem::{Code, Place, Problems},
};
use crate::{
    av::ladder::Profile,
    format::Class,
    operation::{self, Operation, Params, Row, camel_case, shorten},
};

/// Characters of a node's title.
const MAX_TITLE_CHARS: usize = 200;

/// A node by its id and kind, before its config has been read.
pub struct Outline<'a> {
    /// Empty when it is missing.
    pub id: String,
    pub title: Option<String>,
    /// `None`: there is a problem with it.
    pub sort: Option<Sort>,
    pub config: Option<&'a Map<String, Value>>,
    pub place: Place,
}

impl<'a> Outline<'a> {
    /// Reads the node at `index`. Its fields are in `data`, or beside the id.
    pub fn read(index: usize, value: &'a Value, problems: &mut Problems) -> Option<Self> {
        let Some(object) = value.as_object() else {
            problems.push(Place::definition().problem(
                Code::InvalidShape,
                Some("nodes"),
                format!(
                    "nodes[{index}] must be an object {{id, data}}, got {}",
                    json::shown(value)
                ),
            ));
            return None;
        };
        let data = json::get(object, "data").and_then(Value::as_object);
        let given = |names: &[&str]| {
            data.and_then(|data| json::first(data, names))
                .or_else(|| json::first(object, names))
        };
        let title = given(&["title", "label"]);
        let shown_title = json::text(title).ok().flatten();
        let id = read_id(index, json::get(object, "id"), shown_title, problems);
        let place = match id.as_str() {
            "" => Place::node(&format!("nodes[{index}]"), shown_title),
            id => Place::node(id, shown_title),
        };
        let title = read_title(title, &place, problems);
        let sort = read_sort(given(&["kind", "type"]), &place, problems);
        let config = read_config(given(&["config"]), &place, problems);
        Some(Self {
            id,
            title,
            sort,
            config,
            place,
        })
    }

    pub fn is_branch(&self) -> bool {
        matches!(self.sort, Some(Sort::Branch))
    }

    /// The whole node, its kind read.
    pub fn finish(&self, kind: Kind) -> Node {
        Node {
            id: self.id.clone(),
            title: self.title.clone().unwrap_or_else(|| in_words(kind.name())),
            kind,
            config: Value::Object(self.config.cloned().unwrap_or_default()),
        }
    }

    /// Reads the action of the node, for all kinds but the branch, whose condition may be elsewhere. `default` is the
    /// pattern of the definition.
    pub fn kind(&self, default: Option<&Pattern>, problems: &mut Problems) -> Option<Kind> {
        match self.sort? {
            Sort::Upload => Some(Kind::Upload),
            Sort::Branch => None,
            Sort::Rename => self.rename(default, problems),
            Sort::Storage => self.storage(problems),
            Sort::Webhook => self.webhook(problems),
            Sort::Hls => self.hls(problems),
            Sort::Operation(row) => self.operation(row, problems).map(Kind::Operation),
        }
    }

    fn rename(&self, default: Option<&Pattern>, problems: &mut Problems) -> Option<Kind> {
        let pattern = match json::text(self.given("pattern")) {
            Ok(None) => Ok(default.cloned().unwrap_or_default()),
            Ok(Some(text)) => Pattern::parse(text).map_err(|error| error.message),
            Err(other) => Err(format!("pattern must be text, got {}", json::shown(other))),
        };
        self.accepted(pattern, Code::InvalidPattern, "pattern", problems)
            .map(Kind::Rename)
    }

    fn storage(&self, problems: &mut Problems) -> Option<Kind> {
        let folder_id = uuid(self.given("folderId")).map_err(|got| {
            format!("folderId must be the id of a folder, or null for the root, got {got}")
        });
        self.accepted(folder_id, Code::InvalidConfig, "folderId", problems)
            .map(|folder_id| Kind::Storage { folder_id })
    }

    fn webhook(&self, problems: &mut Problems) -> Option<Kind> {
        let url = url(self.given("url")).map_err(|what| format!("url {what}"));
        self.accepted(url, Code::InvalidUrl, "url", problems)
            .map(|url| Kind::Webhook { url })
    }

    fn hls(&self, problems: &mut Problems) -> Option<Kind> {
        let default = Profile::default().name();
        let read = json::text(self.given("profile")).map_err(json::shown);
        let named = read.map(|name| name.unwrap_or(default)).and_then(|name| {
            let is_known = PROFILES.contains(&name);
            let profile = is_known.then(|| Profile::parse(name, &[], 0).ok());
            profile
                .flatten()
                .ok_or_else(|| format!("`{}`", shorten(name)))
        });
        let profile = named
            .map_err(|got| format!("profile must be one of {}, got {got}", PROFILES.join(", ")));
        self.accepted(profile, Code::InvalidConfig, "profile", problems)
            .map(|profile| Kind::Hls { profile })
    }

    fn operation(&self, row: &'static Row, problems: &mut Problems) -> Option<Operation> {
        let mut params = self.config.map(Params::from_json).unwrap_or_default();
        for field in row.fields {
            if field.name == "format" && params.get("format").is_none() {
                let format = params.get("outputFormat").cloned();
                params.set("format", format.unwrap_or_default());
            }
            if field.kind == operation::Kind::File
                && let Err(got) = uuid(params.get(field.name))
            {
                let what = format!("{} must be the id of a stored file, got {got}", field.name);
                self.problem(Code::InvalidConfig, field.name, what, problems);
                return None;
            }
        }
        let read = operation::parse(row.tool, &params)
            .map_err(|error| (error.field, error.message))
            .and_then(|operation| match unavailable(&operation) {
                Some(why) => Err(("format".to_owned(), why)),
                None => Ok(operation),
            });
        read.map_err(|(field, what)| self.problem(Code::InvalidConfig, &field, what, problems))
            .ok()
    }

    /// Returns what was read; an error is a problem of the field.
    fn accepted<T>(
        &self,
        read: Result<T, String>,
        code: Code,
        field: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        read.map_err(|what| self.problem(code, field, what, problems))
            .ok()
    }

    /// Names the fields of the config that are not read.
    pub fn warn_of_unused(&self, problems: &mut Problems) {
        const NAMED: usize = 5;
        let (Some(sort), Some(config)) = (self.sort, self.config) else {
            return;
        };
        // A branch's config may be a condition group in several forms.
        if matches!(sort, Sort::Branch) {
            return;
        }
        let fields = sort.fields();
        let is_read = |name: &str| {
            let name = camel_case(name);
            fields
                .iter()
                .any(|field| field.name == name || field.alias == Some(&name))
        };
        let unused: Vec<String> = config
            .keys()
            .filter(|name| !is_read(name))
            .take(NAMED)
            .map(|name| format!("`{}`", shorten(name)))
            .collect();
        if unused.is_empty() {
            return;
        }
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let instead = match known.as_slice() {
            [] => "its config has no fields".to_owned(),
            known => format!("its config has {}", known.join(", ")),
        };
        let what = format!(
            "{} does not use {}: {instead}",
            sort.name(),
            unused.join(", ")
        );
        self.problem(Code::UnusedConfig, "config", what, problems);
    }

    pub fn given(&self, name: &str) -> Option<&'a Value> {
        self.config.and_then(|config| json::get(config, name))
    }

    pub fn problem(&self, code: Code, field: &str, what: impl AsRef<str>, problems: &mut Problems) {
        problems.push(self.place.problem(code, Some(field), what));
    }
}

/// Returns why a node can never work, whatever the file.
fn unavailable(operation: &Operation) -> Option<String> {
    let Operation::Convert(convert) = operation else {
        return None;
    };
    match convert.format.class() {
        Class::Archive => Some(format!(
            "a node cannot make {}: choose the format of an image, a document, video or audio",
            convert.format.name()
        )),
        _ => None,
    }
}

fn read_id(
    index: usize,
    given: Option<&Value>,
    title: Option<&str>,
    problems: &mut Problems,
) -> String {
    let id = given.and_then(json::id).unwrap_or_default();
    let is_of_length = (1..=MAX_ID_CHARS).contains(&id.chars().count());
    // A run's journal names nodes by their ids, and not every place carries control characters.
    if !is_of_length || id.chars().any(char::is_control) {
        let place = match id.as_str() {
            "" => Place::node(&format!("nodes[{index}]"), title),
            id => Place::node(id, title),
        };
        problems.push(place.problem(
            Code::InvalidId,
            Some("id"),
            format!(
                "id must be text of 1 to {MAX_ID_CHARS} characters, without control characters"
            ),
        ));
    }
    id
}

fn read_title(given: Option<&Value>, place: &Place, problems: &mut Problems) -> Option<String> {
    match json::text(given) {
        Ok(title) if title.is_none_or(|title| title.chars().count() <= MAX_TITLE_CHARS) => {
            title.map(str::to_owned)
        }
        _ => {
            problems.push(place.problem(
                Code::InvalidTitle,
                Some("title"),
                format!("title must be text of at most {MAX_TITLE_CHARS} characters"),
            ));
            None
        }
    }
}

fn read_sort(given: Option<&Value>, place: &Place, problems: &mut Problems) -> Option<Sort> {
    let known = || {
        let names: Vec<&str> = Sort::all().map(Sort::name).collect();
        names.join(", ")
    };
    let Ok(Some(word)) = json::text(given) else {
        problems.push(place.problem(
            Code::MissingKind,
            Some("kind"),
            format!("data.kind is missing: give one of {}", known()),
        ));
        return None;
    };
    if let Some(sort) = Sort::parse(word) {
        return Some(sort);
    }
    let what = format!("kind must be one of {}, got `{}`", known(), shorten(word));
    problems.push(place.problem(Code::UnknownKind, Some("kind"), what));
    None
}

fn read_config<'a>(
    given: Option<&'a Value>,
    place: &Place,
    problems: &mut Problems,
) -> Option<&'a Map<String, Value>> {
    match given {
        None => None,
        Some(Value::Object(config)) => Some(config),
        Some(other) => {
            problems.push(place.problem(
                Code::InvalidConfig,
                Some("config"),
                format!("config must be an object, got {}", json::shown(other)),
            ));
            None
        }
    }
}

/// Reads a UUID that may be absent; the error is what came, for a message.
pub fn uuid(value: Option<&Value>) -> Result<Option<Uuid>, String> {
    match json::text(value) {
        Ok(None) => Ok(None),
        Ok(Some(text)) => Uuid::try_parse(text)
            .map(Some)
            .map_err(|_| format!("`{}`", shorten(text))),
        Err(other) => Err(json::shown(other)),
    }
}

/// Reads an address by its form; the connector decides later whether its host is allowed. The error follows the field's
/// name.
pub fn url(value: Option<&Value>) -> Result<Option<String>, String> {
    const MAX_URL_BYTES: usize = 2_048;
    let text = match json::text(value) {
        Ok(None) => return Ok(None),
        Ok(Some(text)) => text,
        Err(other) => return Err(format!("must be text, got {}", json::shown(other))),
    };
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain =
        text.len() <= MAX_URL_BYTES && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if is_plain && is_http && !authority.is_empty() && !authority.contains('@') {
        return Ok(Some(text.to_owned()));
    }
    Err(format!(
        "must be an http or https address without user and password, got `{}`",
        shorten(text)
    ))
}

/// Makes a title of a kind's word: `Strip metadata` of `strip_metadata`.
fn in_words(kind: &str) -> String {
    let mut letters = kind.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first
        .into_iter()
        .chain(letters)
        .map(|letter| if letter == '_' { ' ' } else { letter })
        .collect()
}
