//! Settings from environment variables (`SLUICE_HTTP__LISTEN` for `http.listen`): names, types and lists of their values.
//!
//! A variable's text takes the type that its setting has by default, so that `SLUICE_HTTP__WORKERS=2` is a number and
//! `SLUICE_BOOTSTRAP__ADMIN_PASSWORD=12345678` stays text. Lists are separated by commas; empty is the empty list. Their items
//! take the type of the first one by default, and are text in a list that is empty by default.

use toml::{Table, Value};

use super::renamed;

/// Beginning of the names of all variables.
const PREFIX: &str = "SLUICE_";

/// Variables with the prefix that are no settings: the path of the settings file itself, and the key with which
/// `sluice webhooks` calls a service.
const NOT_SETTINGS: &[&str] = &["SLUICE_CONFIG", "SLUICE_API_KEY"];

#[derive(Debug, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Dotted: `http.listen`.
    pub(super) key: String,
    pub(super) value: Value,
}

#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) values: Vec<Variable>,
    pub(super) warnings: Vec<String>,
}

/// Picks the settings out of `variables`; `known` holds every setting with its default.
///
/// Fails with a sentence that names the variable when a number or a boolean cannot be read.
pub(super) fn read(
    variables: impl IntoIterator<Item = (String, String)>,
    known: &Table,
) -> Result<Environment, String> {
    let mut environment = Environment::default();
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if NOT_SETTINGS.contains(&name.as_str()) {
            continue;
        }
        let mut key = rest.replace("__", ".").to_ascii_lowercase();
        if let Some(present) = renamed::present(&key) {
            let variable = present.replace('.', "__").to_ascii_uppercase();
            environment.warnings.push(format!(
                "environment variable {name} is called {PREFIX}{variable} now"
            ));
            key = present;
        }
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        match default_of(known, &path) {
            Some(default) => environment.values.push(Variable {
                key,
                value: typed(&name, &text, default)?,
                name,
            }),
            None => environment.warnings.push(format!(
                "environment variable {name} is no setting and was ignored"
            )),
        }
    }
    environment.values.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(environment)
}

fn default_of<'a>(known: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (last, sections) = path.split_last()?;
    let mut table = known;
    for section in sections {
        table = table.get(section)?.as_table()?;
    }
    table.get(last).filter(|value| !value.is_table())
}

fn typed(name: &str, text: &str, default: &Value) -> Result<Value, String> {
    let wrong =
        |expected: &str| format!("environment variable {name}: expected {expected}, got `{text}`");
    Ok(match default {
        Value::Integer(_) => {
            Value::Integer(text.trim().parse().map_err(|_| wrong("a whole number"))?)
        }
        Value::Float(_) => Value::Float(text.trim().parse().map_err(|_| wrong("a number"))?),
        Value::Boolean(_) => {
            Value::Boolean(text.trim().parse().map_err(|_| wrong("true or false"))?)
        }
        Value::Array(items) => {
            let like = items.first().cloned().unwrap_or_else(|| "".into());
            let items = text.split(',').map(str::trim);
            let items = items.filter(|item| !item.is_empty());
            let items = items.map(|item| typed(name, item, &like));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        _ => Value::String(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Table {
        "[http]\nlisten = 'a'\nworkers = 0\ntrusted_proxies = []\nladder = [5, 30]\n[plans.free]\nstorage = '1 GB'\n[live]\non = true"
            .parse()
            .unwrap()
    }

    #[test]
    fn a_variable_takes_the_type_of_its_setting() {
        let cases: &[(&str, &str, &str, Value)] = &[
            (
                "SLUICE_HTTP__LISTEN",
                "1",
                "http.listen",
                Value::String("1".into()),
            ),
            (
                "SLUICE_HTTP__LISTEN",
                "",
                "http.listen",
                Value::String(String::new()),
            ),
            (
                "SLUICE_HTTP__WORKERS",
                " 3 ",
                "http.workers",
                Value::Integer(3),
            ),
            (
                "SLUICE_HTTP__TRUSTED_PROXIES",
                "",
                "http.trusted_proxies",
                Value::Array(vec![]),
            ),
            (
                "SLUICE_HTTP__TRUSTED_PROXIES",
                "10.0.0.0/8, ::1",
                "http.trusted_proxies",
                Value::Array(vec!["10.0.0.0/8".into(), "::1".into()]),
            ),
            (
                "SLUICE_HTTP__LADDER",
                "1, 2,3",
                "http.ladder",
                Value::Array(vec![1.into(), 2.into(), 3.into()]),
            ),
            ("SLUICE_LIVE__ON", "false", "live.on", Value::Boolean(false)),
            (
                "SLUICE_PLANS__FREE__STORAGE",
                "2 GB",
                "plans.free.storage",
                "2 GB".into(),
            ),
        ];
        for (name, text, key, value) in cases {
            let environment = read([(name.to_string(), text.to_string())], &known()).unwrap();
            let expected = Variable {
                name: name.to_string(),
                key: key.to_string(),
                value: value.clone(),
            };
            assert_eq!(environment.values, [expected], "{name}={text}");
        }
    }

    #[test]
    fn unknown_variables_warn_and_foreign_ones_are_ignored() {
        let names = [
            "SLUICE_HTTP__LISTN",
            "SLUICE_HTTP",
            "SLUICE_HTTP__LISTEN__X",
            "SLUICE_",
            "PATH",
            "SLUICE_CONFIG",
            "SLUICE_API_KEY",
        ];
        let environment = read(
            names.map(|name| (name.to_owned(), "x".to_owned())),
            &known(),
        )
        .unwrap();
        assert_eq!(environment.values, []);
        assert_eq!(environment.warnings.len(), 4, "{:?}", environment.warnings);
        assert!(environment.warnings[0].contains("SLUICE_HTTP__LISTN"));
    }

    #[test]
    fn a_number_that_is_none_names_the_variable() {
        let error = read(
            [("SLUICE_HTTP__WORKERS".to_owned(), "many".to_owned())],
            &known(),
        )
        .unwrap_err();
        assert_eq!(
            error,
            "environment variable SLUICE_HTTP__WORKERS: expected a whole number, got `many`"
        );
    }
}
