//! Workflow definitions and kinds of nodes in the OpenAPI document, from the table by which definitions are read.

use sluice_media::{
    operation::FieldInfo,
    workflow::{KindInfo, kinds},
};
use utoipa::openapi::OpenApi;

/// Description of the parts of a definition.
const SHAPE: &str = "A `definition` has `nodes[{id, data{kind, title?, config?}}]` and `edges[{source, target, kind?}]`, where an edge out of a \
    branch has the kind `true` or `false`; `uploadGate?`, a condition group that an upload must meet; `branchConditions{nodeId: group}`; \
    `renamePattern?` and `webhookUrl?` for nodes without their own; `trigger{folderId}?`, a folder whose uploads it runs on. A group is \
    `{logic, negate?, conditions[{field, operator, value?, negate?}], groups?}`.";

/// Writes the kinds of nodes into the description of the call that saves them.
pub(in crate::http) fn describe(document: &mut OpenApi) {
    let path = document.paths.paths.get_mut("/api/workflows");
    if let Some(operation) = path.and_then(|path| path.post.as_mut()) {
        let description = operation.description.get_or_insert_default();
        description.push_str(&format!(
            "\n\n{SHAPE} Kinds of nodes and their `config`:\n\n{}",
            described_kinds()
        ));
    }
}

/// Writes the kinds in the part of Markdown that `/docs` shows: a line and a list for each.
fn described_kinds() -> String {
    kinds().map(described).collect()
}

fn described(kind: KindInfo) -> String {
    let fields: String = kind.fields.iter().map(line).collect();
    format!("**{}**: {}\n\n{fields}\n", kind.kind, kind.summary)
}

fn line(field: &FieldInfo) -> String {
    let default = field
        .default
        .as_ref()
        .map(|default| format!(" ({default})"))
        .unwrap_or_default();
    format!(
        "- `{}`{default}: {}; {}\n",
        field.name, field.allowed, field.summary
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_described_with_its_fields() {
        let text = described_kinds();
        for kind in kinds() {
            assert!(
                text.contains(&format!("**{}**: ", kind.kind)),
                "{}",
                kind.kind
            );
            for field in kind.fields {
                assert!(
                    text.contains(&format!("\n- `{}`", field.name)),
                    "{}",
                    field.name
                );
            }
        }
    }
}
