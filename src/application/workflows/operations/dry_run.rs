//! Dry run of a workflow on a stored file, or on facts of one (`facts`): nothing is stored or charged.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sluice_media::{
    format::Format,
    workflow::{self, Facts, Field, Premise},
};
use sluice_store::{
    file_facts::{self, FileFacts},
    files::{self, File},
    now_ms,
};

use super::{runs::checked_source, saving::reject_too_large};
use crate::application::{
    error::ApiError,
    field, filename, object,
    workflows::{
        dry_run_record::{DryRunAnswer, DryRunWorkflow, GivenFacts},
        operations::{RequestContext, find},
        record::parsed,
        review::Review,
    },
};

/// Longest media type, in characters.
const MAX_MIME: usize = 255;
/// Longest extension, in characters.
const MAX_EXTENSION: usize = 64;

/// Follows the definition as far as the facts of the file are known. 400 without a definition or a file, 404 for a workflow or a
/// file that the account does not have, 413 for a definition that could not be saved.
pub(crate) async fn dry_run(
    context: &RequestContext,
    request: DryRunWorkflow,
) -> Result<DryRunAnswer, ApiError> {
    let premise = premise(context, &request).await?;
    let definition = definition(context, request).await?;
    reject_too_large(context, &definition.to_string())?;
    let (definition, problems) = Review::of(context, &definition).await?.into_parts();
    Ok(match definition {
        Some(definition) => DryRunAnswer::of(workflow::dry_run(&definition, &premise), problems),
        None => DryRunAnswer::of_problems(problems),
    })
}

async fn definition(context: &RequestContext, request: DryRunWorkflow) -> Result<Value, ApiError> {
    match (request.definition, request.workflow_id) {
        (Some(definition), _) => Ok(Value::Object(definition)),
        (None, Some(id)) => parsed(&find(context, id).await?.definition),
        (None, None) => Err(invalid!(
            "definition is missing: {{nodes, edges}}, or workflowId with the id of a workflow"
        )),
    }
}

async fn premise(context: &RequestContext, request: &DryRunWorkflow) -> Result<Premise, ApiError> {
    let source = checked_source(request.upload_source.clone())?;
    let (facts, unknown, usual_source) = match (request.file_id, &request.facts) {
        (Some(file_id), _) => {
            let mut db = context.handles.store.read().await?;
            let file = files::get(&mut db, context.account_id, file_id).await?;
            let found = file_facts::of(&mut db, file_id).await?;
            let (facts, unknown) = of_file(&file, found);
            (facts, unknown, "storage")
        }
        (None, Some(given)) => {
            let (facts, unknown) = of_given(given.clone())?;
            (facts, unknown, context.client.source())
        }
        (None, None) => {
            return Err(invalid!(
                "fileId is missing: the id of a stored file, or facts with what is known of a file, such as {{\"mime\": \"image/jpeg\", \"width\": 4032}}"
            ));
        }
    };
    let source = source.or_else(|| facts.upload_source.clone());
    Ok(Premise {
        facts: Facts {
            upload_source: Some(source.unwrap_or_else(|| usual_source.to_owned())),
            ..facts
        },
        unknown,
        date: sluice_actors::workflow::day(now_ms()),
        clean: filename::clean,
    })
}

/// Returns the facts of a stored file, and those that a run has to find first.
fn of_file(file: &File, found: Option<FileFacts>) -> (Facts, BTreeSet<Field>) {
    let facts = Facts {
        mime: Some(file.mime_type.clone()),
        size_bytes: Some(file.size_bytes.unsigned_abs()),
        width: file.width,
        height: file.height,
        duration_s: file.duration_ms.map(|ms| ms as f64 / 1_000.0),
        ..Facts::named(&file.filename)
    };
    let is_measured = match Format::from_mime(&file.mime_type).map(Format::class) {
        // A run finds no dimensions of a file that no operation reads.
        None => true,
        Some(class) if class.is_timed() => file.duration_ms.is_some(),
        Some(_) => file.width.is_some(),
    };
    let cannot_be_measured = found.is_some_and(|found| found.facts.is_none());
    let unknown = match is_measured || cannot_be_measured {
        true => BTreeSet::new(),
        false => BTreeSet::from([Field::Width, Field::Height, Field::Duration]),
    };
    let missing = missing(&file.mime_type);
    let is_known = |field: &Field| missing.contains(field);
    (
        facts,
        unknown.into_iter().filter(|it| !is_known(it)).collect(),
    )
}

/// Dimensions that no run finds of a file of that type.
fn missing(mime: &str) -> &'static [Field] {
    match Format::from_mime(mime).map(Format::class) {
        Some(class) if class.is_timed() => &[],
        Some(_) => &[Field::Duration],
        None => &[Field::Width, Field::Height, Field::Duration],
    }
}

fn of_given(given: Map<String, Value>) -> Result<(Facts, BTreeSet<Field>), ApiError> {
    let given: GivenFacts =
        object::from_object(given).map_err(|error| invalid!("facts: {error}"))?;
    if given
        .duration
        .flatten()
        .is_some_and(|seconds| !seconds.is_finite() || seconds < 0.0)
    {
        return Err(invalid!("facts.duration must be seconds, 0 or more"));
    }
    let name = given.filename.map(|name| filename::clean(&name));
    let mime = field::words("facts.mime", given.mime, MAX_MIME)?;
    let extension = field::words("facts.extension", given.extension, MAX_EXTENSION)?;
    let mut unknown = BTreeSet::new();
    let mut note = |field, is_known: bool| {
        if !is_known {
            unknown.insert(field);
        }
    };
    note(Field::Mime, mime.is_some());
    note(Field::Filename, name.is_some());
    note(Field::Extension, name.is_some() || extension.is_some());
    note(Field::SizeBytes, given.size_bytes.is_some());
    note(Field::Width, given.width.is_some());
    note(Field::Height, given.height.is_some());
    note(Field::Duration, given.duration.is_some());
    let missing = mime.as_deref().map_or(&[][..], missing);
    let extension = extension.map(|text| text.trim_start_matches('.').to_lowercase());
    let named = match &name {
        Some(name) => Facts::named(name),
        None => Facts {
            extension,
            ..Facts::default()
        },
    };
    let mut facts = Facts {
        mime,
        size_bytes: given.size_bytes,
        width: given.width.flatten(),
        height: given.height.flatten(),
        duration_s: given.duration.flatten(),
        upload_source: checked_source(given.upload_source)?,
        ..named
    };
    for &field in missing {
        facts.clear(field);
        unknown.remove(&field);
    }
    Ok((facts, unknown))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(facts: Value) -> Result<(Facts, BTreeSet<Field>), ApiError> {
        let Value::Object(facts) = facts else {
            panic!("facts are an object");
        };
        of_given(facts)
    }

    #[test]
    fn what_is_left_out_is_unknown_and_null_is_missing() {
        let (facts, unknown) =
            given(json!({"mime": "image/png", "filename": "a/b.PNG", "width": 800})).unwrap();
        assert_eq!(facts.filename.as_deref(), Some("b.PNG"));
        assert_eq!(facts.extension.as_deref(), Some("png"));
        assert_eq!((facts.width, facts.duration_s), (Some(800), None));
        // An image has no duration, whether that is said or not.
        assert_eq!(unknown, BTreeSet::from([Field::SizeBytes, Field::Height]));
        let (_, unknown) = given(json!({"mime": "video/mp4", "width": null})).unwrap();
        assert!(!unknown.contains(&Field::Width) && unknown.contains(&Field::Duration));
        let (facts, _) = given(json!({"uploadSource": "folder"})).unwrap();
        assert_eq!(facts.upload_source.as_deref(), Some("folder"));
        let (_, unknown) = given(json!({})).unwrap();
        assert_eq!(
            unknown.len(),
            Field::ALL.len() - 1,
            "the source is always known"
        );
        let (facts, unknown) =
            given(json!({"extension": ".JPG", "size_bytes": 5, "mimeType": "image/jpeg"})).unwrap();
        assert_eq!(facts.extension.as_deref(), Some("jpg"));
        assert_eq!(
            (facts.size_bytes, facts.mime.as_deref()),
            (Some(5), Some("image/jpeg"))
        );
        assert!(unknown.contains(&Field::Filename) && !unknown.contains(&Field::Extension));
        for (facts, name) in [
            (json!({"width": "wide"}), "facts: width"),
            (json!({"duration": -1}), "facts.duration"),
            (json!({"mime": "x".repeat(300)}), "facts.mime"),
        ] {
            let error = given(facts).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
