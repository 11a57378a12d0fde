//! Create, replace and lint a workflow: short form (`template`), version conflicts (409), `workflows.max_definition`.

use serde_json::Value;
use sluice_media::workflow::{Problem, Short, Template, generate};
use sluice_store::{
    now_ms,
    workflows::{self as stored, NewWorkflow, Replaced, Workflow},
    write_tx,
};
use uuid::Uuid;

use crate::application::{
    error::ApiError,
    workflows::{
        operations::{RequestContext, find},
        record::{WorkflowRecord, parsed},
        request::{LintWorkflow, SaveWorkflow},
        review::{LintAnswer, Review, receivers, rejection_of},
    },
};

/// Saved workflow.
pub(crate) struct Saved {
    /// Record of the workflow, with the secret when it is new.
    pub workflow: WorkflowRecord,
    /// Made rather than replaced.
    pub is_new: bool,
}

/// Makes a workflow, or replaces the one that the request names by its `id`; fields missing in a replacement stay.
///
/// 400 with every problem of its definition, 404 for an unknown id, 409 with the present `version` when the request names
/// another one, 413 for a definition beyond `workflows.max_definition`.
pub(crate) async fn create_or_replace(
    context: &RequestContext,
    request: SaveWorkflow,
) -> Result<Saved, ApiError> {
    match request.id {
        Some(id) => replace(context, id, request).await,
        None => create(context, request).await,
    }
}

async fn create(context: &RequestContext, request: SaveWorkflow) -> Result<Saved, ApiError> {
    let name = request
        .checked_name()?
        .ok_or_else(|| invalid!("name is missing: 1 to 80 characters"))?;
    let is_active = request.is_active.unwrap_or(true);
    let draft = draft(request)?.ok_or_else(|| rejection_of(nothing()))?;
    let new = draft.reviewed(context, name, is_active).await?;
    let (account_id, most) = (
        context.account_id,
        context.handles.config.workflows.max_workflows,
    );
    let made = write_tx!(context.handles.store, account_id, |tx| {
        stored::create(tx, account_id, new, most, now_ms()).await
    })?;
    Ok(Saved {
        workflow: WorkflowRecord::with_secret(made)?,
        is_new: true,
    })
}

async fn replace(
    context: &RequestContext,
    id: Uuid,
    request: SaveWorkflow,
) -> Result<Saved, ApiError> {
    let present = find(context, id).await?;
    let name = request
        .checked_name()?
        .unwrap_or_else(|| present.name.clone());
    let is_active = request.is_active.unwrap_or(present.is_active);
    let known = request.version.or_else(|| {
        // A partial save changes what was read: it must not undo another save in between.
        let is_part = request.definition.is_none() && !request.has_short_form();
        is_part.then_some(present.version)
    });
    reject_crossing(known, present.version)?;
    let draft = match draft(request)? {
        Some(draft) => draft,
        None => Draft::of_present(&present)?,
    };
    let new = draft.reviewed(context, name, is_active).await?;
    let account_id = context.account_id;
    let keep = context.handles.config.workflows.keep_versions;
    let replaced = write_tx!(context.handles.store, |tx| {
        stored::replace(tx, account_id, id, new, known, keep, now_ms()).await
    })?;
    let replaced = match replaced {
        Replaced::Saved(workflow) => workflow,
        Replaced::Crossed { version } => return Err(ApiError::Crossed { version }),
    };
    // A save reactivates a receiver that was given up.
    context.handles.webhooks.nudge();
    Ok(Saved {
        workflow: WorkflowRecord::of(*replaced)?,
        is_new: false,
    })
}

fn draft(request: SaveWorkflow) -> Result<Option<Draft>, ApiError> {
    Draft::of(request).map_err(rejection_of)
}

fn reject_crossing(known: Option<i64>, present: i64) -> Result<(), ApiError> {
    match known.is_none_or(|known| known == present) {
        true => Ok(()),
        false => Err(ApiError::Crossed { version: present }),
    }
}

/// The problems of what a save of the request would store, warnings among them; nothing is stored. 413 as for a save.
pub(crate) async fn lint(
    context: &RequestContext,
    request: LintWorkflow,
) -> Result<LintAnswer, ApiError> {
    let review = match Draft::of(request.into_save()) {
        Ok(Some(draft)) => {
            let review = Review::of(context, &draft.definition).await?;
            if review.is_accepted() {
                reject_too_large(context, &draft.definition.to_string())?;
            }
            review
        }
        Ok(None) => Review::rejecting(nothing()),
        Err(problem) => Review::rejecting(problem),
    };
    Ok(review.into())
}

/// The content of a save, as the client wants it.
#[derive(Debug, PartialEq)]
struct Draft {
    definition: Value,
    /// The short form of the definition, as it was given.
    short: Option<ShortForm>,
}

/// A short form as it is stored and answered back.
#[derive(Clone, Debug, Default, PartialEq)]
struct ShortForm {
    template: Option<String>,
    output_format: Option<String>,
    compression_mode: Option<Value>,
}

impl Draft {
    /// Returns the definition of the request, or that of its short form; `None` when it has neither. A short form
    /// beside a definition is kept only when it still gives that definition.
    fn of(request: SaveWorkflow) -> Result<Option<Self>, Problem> {
        let short = ShortForm {
            template: request.template,
            output_format: request.output_format,
            compression_mode: request.compression_mode,
        };
        match request.definition {
            Some(definition) => {
                let definition = Value::Object(definition);
                let is_equal = short.generate().is_ok_and(|made| made == definition);
                Ok(Some(Self {
                    definition,
                    short: is_equal.then_some(short),
                }))
            }
            None if short.is_empty() => Ok(None),
            None => Ok(Some(Self {
                definition: short.generate()?,
                short: Some(short),
            })),
        }
    }

    fn of_present(present: &Workflow) -> Result<Self, ApiError> {
        let compression_mode = present
            .compression_mode
            .as_deref()
            .map(parsed)
            .transpose()?;
        let short = ShortForm {
            template: present.template.clone(),
            output_format: present.output_format.clone(),
            compression_mode,
        };
        Ok(Self {
            definition: parsed(&present.definition)?,
            short: (!short.is_empty()).then_some(short),
        })
    }

    /// Returns the row to store, once nothing forbids it.
    async fn reviewed(
        self,
        context: &RequestContext,
        name: String,
        is_active: bool,
    ) -> Result<NewWorkflow, ApiError> {
        let text = self.definition.to_string();
        let checked = Review::of(context, &self.definition).await?.accepted()?;
        reject_too_large(context, &text)?;
        let short = self.short.unwrap_or_default();
        Ok(NewWorkflow {
            name,
            is_active,
            definition: text,
            template: short.template,
            output_format: short.output_format,
            compression_mode: short.compression_mode.map(|mode| mode.to_string()),
            trigger_folder_id: checked.trigger_folder,
            webhook_urls: receivers(&checked),
        })
    }
}

impl ShortForm {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn generate(&self) -> Result<Value, Problem> {
        let template = self.template.as_deref().map(Template::parse);
        generate(&Short {
            template: template.transpose()?,
            output_format: self.output_format.clone(),
            compression_mode: self.compression_mode.clone(),
        })
    }
}

/// Problem of an empty short form: the fields to give.
fn nothing() -> Problem {
    generate(&Short::default()).expect_err("an empty short form is replaced by nothing")
}

pub(super) fn reject_too_large(context: &RequestContext, definition: &str) -> Result<(), ApiError> {
    let most = context.handles.config.workflows.max_definition.as_u64();
    let length = definition.len() as u64;
    match length <= most {
        true => Ok(()),
        false => Err(ApiError::TooLarge(format!(
            "the definition has {length} bytes, at most {most} are kept (workflows.max_definition)"
        ))),
    }
}
