//! Image parameters in the OpenAPI document, from the table that their parser reads.

use sluice_media::variant;
use utoipa::openapi::{
    ObjectBuilder, OpenApi, RefOr, Required,
    path::{Parameter, ParameterBuilder, ParameterIn},
    schema::{SchemaType, Type},
};

/// Adds the parameters after those of the path.
pub(in crate::http) fn describe(document: &mut OpenApi) {
    let path = document
        .paths
        .paths
        .get_mut("/cdn/v1/{deliveryKey}/{fileId}");
    if let Some(operation) = path.and_then(|path| path.get.as_mut()) {
        let parameters = operation.parameters.get_or_insert_default();
        let is_of_path = |it: &RefOr<Parameter>| matches!(it, RefOr::T(it) if it.parameter_in == ParameterIn::Path);
        let behind = parameters.iter().take_while(|it| is_of_path(it)).count();
        parameters.splice(behind..behind, variant::parameters().map(described));
    }
}

fn described(parameter: variant::Parameter) -> RefOr<Parameter> {
    let names: Vec<String> = parameter
        .aliases
        .iter()
        .map(|alias| format!("or `{alias}`; "))
        .collect();
    let value = match parameter.control.type_name() {
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::String,
    };
    let described = ParameterBuilder::new()
        .name(parameter.name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(format!(
            "{}{}: {}",
            names.concat(),
            parameter.summary,
            parameter.allowed
        )))
        .schema(Some(
            ObjectBuilder::new().schema_type(SchemaType::new(value)),
        ))
        .build();
    RefOr::T(described)
}
