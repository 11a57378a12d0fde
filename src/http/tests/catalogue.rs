//! The catalogue of operations, as forms get it.

use sluice_media::{operation::TABLE, variant, workflow::kinds};
use sluice_store::api_keys::Scope;

use super::{Site, request};

const PATH: &str = "/api/catalogue";

#[actix_web::test]
async fn it_holds_the_tables_and_is_asked_again_for_nothing() {
    let site = Site::open().await;
    let reader = site.key(Scope::Read).await;
    let first = site.call_as(&reader, "GET", PATH, None).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.header("cache-control"), "private, no-cache");
    let tables = first.json();
    for (list, rows) in [
        ("tools", TABLE.len()),
        ("kinds", kinds().count()),
        ("cdnParameters", variant::parameters().count()),
        ("plans", site.app.platform.config.plans.len()),
    ] {
        assert_eq!(tables[list].as_array().map(Vec::len), Some(rows), "{list}");
    }
    let etag = first.header("etag").to_owned();
    for (known, status) in [(etag.as_str(), 304), ("*", 304), ("\"other\"", 200)] {
        let asked = request("GET", PATH)
            .insert_header(("authorization", format!("Bearer {reader}")))
            .insert_header(("if-none-match", known));
        let answer = site.send(asked).await;
        assert_eq!(
            (answer.status, answer.header("etag")),
            (status, etag.as_str())
        );
        assert_eq!(answer.body.is_empty(), status == 304);
        assert_eq!(answer.header("cache-control"), "private, no-cache");
    }
    assert_eq!(site.send(request("GET", PATH)).await.status, 401);
}

/// A page takes its types from the description.
#[actix_web::test]
async fn the_description_has_its_fields() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let schemas = &document["components"]["schemas"];
    for (schema, field) in [
        ("Capabilities", "cdnParameters"),
        ("FieldRecord", "default"),
        ("ToolRecord", "minFiles"),
        ("CdnParameter", "group"),
        ("ConditionField", "operators"),
        ("PlanRecord", "storageBytes"),
    ] {
        assert!(
            schemas[schema]["properties"][field].is_object(),
            "{schema}.{field}: {}",
            schemas[schema]
        );
    }
}
