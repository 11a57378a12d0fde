//! `GET /api/catalogue`: operations, formats, conditions, event types, image parameters and plans, from which pages draw their
//! forms.
//!
//! Nothing here names an operation, a format, a field or a plan: every part is a view of a table, so that a new row of a table
//! is in every form.

mod addresses;
mod conditions;
mod fields;
mod files;
mod plans;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sluice_actors::events::{EventType, known_types};
use sluice_media::{
    format::Format,
    operation::{PRESETS, TABLE},
    variant,
    workflow::kinds,
};
use utoipa::ToSchema;

use self::{
    addresses::CdnParameter,
    conditions::Conditions,
    fields::{KindRecord, ToolRecord},
    files::{FormatRecord, ResizePresetRecord},
    plans::PlanRecord,
};
use crate::{application::signing, config::Config};

/// Everything that forms are drawn from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Kinds of the nodes of workflows.
    kinds: Vec<KindRecord>,
    /// Operations on files.
    tools: Vec<ToolRecord>,
    formats: Vec<FormatRecord>,
    resize_presets: Vec<ResizePresetRecord>,
    conditions: Conditions,
    event_types: Vec<EventTypeRecord>,
    /// Parameters of delivery URLs.
    cdn_parameters: Vec<CdnParameter>,
    /// The smallest first.
    plans: Vec<PlanRecord>,
}

/// A type of event to which webhooks can subscribe.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeRecord {
    name: &'static str,
    /// Occasion of the event.
    summary: &'static str,
    /// True when only webhooks that name it get it; `*` does not include it.
    is_opt_in: bool,
}

impl From<&EventType> for EventTypeRecord {
    fn from(known: &EventType) -> Self {
        Self {
            name: known.name,
            summary: known.summary,
            is_opt_in: known.is_opt_in,
        }
    }
}

impl Capabilities {
    /// The tables, with the plans of the settings.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            kinds: kinds().map(KindRecord::from).collect(),
            tools: TABLE.iter().map(ToolRecord::from).collect(),
            formats: Format::ALL
                .iter()
                .copied()
                .map(FormatRecord::from)
                .collect(),
            resize_presets: PRESETS.iter().map(ResizePresetRecord::from).collect(),
            conditions: Conditions::all(),
            event_types: known_types().iter().map(EventTypeRecord::from).collect(),
            cdn_parameters: variant::parameters().map(CdnParameter::from).collect(),
            plans: config
                .plans_by_size()
                .into_iter()
                .map(PlanRecord::from)
                .collect(),
        }
    }
}

/// The answer to all clients, with its entity tag; the same until the service ends.
#[derive(Debug)]
pub struct CapabilitiesDocument {
    pub json: Bytes,
    pub etag: String,
}

impl CapabilitiesDocument {
    pub(crate) fn of(config: &Config) -> Self {
        let json = serde_json::to_vec(&Capabilities::of(config));
        let json = json.expect("the tables are plain values");
        let hash = Sha256::digest(&json);
        Self {
            etag: format!("\"{}\"", signing::encode(&hash[..16])),
            json: json.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use sluice_media::workflow::{Field, Operator};

    use super::*;

    fn shown() -> Value {
        serde_json::to_value(Capabilities::of(&Config::default())).unwrap()
    }

    /// The names in a list of records.
    fn names<'a>(shown: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
        let list = shown.pointer(list).and_then(Value::as_array);
        let list = list.unwrap_or_else(|| panic!("no list"));
        list.iter().map(|row| row[key].as_str().unwrap()).collect()
    }

    #[test]
    fn every_row_of_every_table_appears() {
        let shown = shown();
        let tools: Vec<&str> = TABLE.iter().map(|row| row.tool).collect();
        assert_eq!(names(&shown, "/tools", "name"), tools);
        let known: Vec<&str> = kinds().map(|info| info.kind).collect();
        assert_eq!(names(&shown, "/kinds", "kind"), known);
        let formats: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        assert_eq!(names(&shown, "/formats", "name"), formats);
        let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names(&shown, "/resizePresets", "name"), presets);
        let fields: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
        assert_eq!(names(&shown, "/conditions/fields", "name"), fields);
        let operators: Vec<&str> = Operator::all().map(Operator::name).collect();
        assert_eq!(names(&shown, "/conditions/operators", "name"), operators);
        let types: Vec<&str> = known_types().iter().map(|known| known.name).collect();
        assert_eq!(names(&shown, "/eventTypes", "name"), types);
        let parameters: Vec<&str> = variant::parameters().map(|it| it.name).collect();
        assert_eq!(names(&shown, "/cdnParameters", "name"), parameters);
        let plans: BTreeSet<&str> = names(&shown, "/plans", "name").into_iter().collect();
        let config = Config::default();
        assert_eq!(plans, config.plans.keys().map(String::as_str).collect());
    }

    #[test]
    fn every_field_of_every_operation_appears_with_its_bounds() {
        let shown = shown();
        for (row, shown) in TABLE.iter().zip(shown["tools"].as_array().unwrap()) {
            let fields = shown["fields"].as_array().unwrap();
            assert_eq!(fields.len(), row.fields.len(), "{}", row.tool);
            for (field, shown) in row.fields.iter().zip(fields) {
                assert_eq!(shown["name"], field.name);
                assert_eq!(shown["allowed"], field.allowed());
                let is_number = ["integer", "number"].contains(&shown["type"].as_str().unwrap());
                assert_eq!(shown["minimum"].is_null(), !is_number, "{}", field.name);
                assert_eq!(shown["default"].is_null(), field.default.is_none());
            }
        }
    }

    /// A definition that names any field and operator of the list is read without a problem.
    #[test]
    fn conditions_that_are_offered_are_accepted() {
        let shown = shown();
        for field in shown["conditions"]["fields"].as_array().unwrap() {
            let name = field["name"].as_str().unwrap();
            assert_eq!(Field::parse(name).map(Field::name), Some(name));
            for alias in field["aliases"].as_array().unwrap() {
                assert_eq!(
                    Field::parse(alias.as_str().unwrap()).map(Field::name),
                    Some(name)
                );
            }
            let offered = field["operators"].as_array().unwrap();
            let offers = |word: &str| offered.iter().any(|operator| operator == word);
            assert!(offers("equals") && offers("is_empty"), "{name}");
            assert_eq!(offers("gt"), field["isNumber"] == true, "{name}");
            assert_eq!(offers("contains"), field["isNumber"] == false, "{name}");
        }
    }

    #[test]
    fn plans_begin_with_the_smallest() {
        let shown = shown();
        let plans = names(&shown, "/plans", "name");
        assert_eq!(plans.first(), Some(&"free"));
        assert_eq!(plans.last(), Some(&"unlimited"));
        let unlimited = shown["plans"].as_array().unwrap().last().unwrap().clone();
        assert!(unlimited["operationsPerMonth"].is_null());
        assert!(unlimited["storageBytes"].is_null());
    }
}
