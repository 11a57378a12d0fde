//! The list of runs over all workflows: filters, counts, order, pages.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PNG, Site, UNKNOWN_ID, id, path, run_path, storing};

impl Site {
    /// Names of the inputs of a list's runs, and the list.
    async fn listed(&self, query: &str) -> (Vec<String>, Value) {
        let answer = self
            .call("GET", &format!("/api/workflows/runs?{query}"), None)
            .await;
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        let list = answer.json();
        let runs = list["runs"].as_array().unwrap().iter();
        let names = runs.map(|run| run["inputFilename"].as_str().unwrap().to_owned());
        (names.collect(), list)
    }
}

#[actix_web::test]
async fn runs_of_all_workflows_are_listed_by_filters_with_counts() {
    let site = Site::open_with(|config| {
        config.workflows.inline_wait = Duration::from_millis(1);
    })
    .await;
    let (photos, other) = (
        site.workflow(storing()).await,
        site.workflow(storing()).await,
    );
    let renamed = json!({"id": id(&other), "name": "Scans"});
    assert_eq!(site.save(renamed).await.status, 200);
    let mut runs = Vec::new();
    for (workflow, name) in [
        (&photos, "a.png"),
        (&other, "b.png"),
        (&photos, "c_1.png"),
        (&photos, "cx1.png"),
    ] {
        runs.push(site.run(workflow, name, PNG).await.json());
    }
    let cancel = format!("{}/cancel", run_path(&runs[2]));
    assert_eq!(site.call("POST", &cancel, None).await.status, 200);

    let (names, list) = site.listed("").await;
    assert_eq!(names, ["cx1.png", "c_1.png", "b.png", "a.png"]);
    assert_eq!(
        list["counts"],
        json!({"queued": 3, "processing": 0, "completed": 0, "failed": 0, "cancelled": 1, "total": 4})
    );
    assert_eq!(list["nextCursor"], Value::Null);
    assert_eq!(list["runs"][2]["workflowName"], "Scans");
    let made = runs[1]["run"]["createdAt"].as_str().unwrap();
    let workflow = id(&photos);
    for (query, expected, total) in [
        (
            "order=asc".to_owned(),
            vec!["a.png", "b.png", "c_1.png", "cx1.png"],
            4,
        ),
        ("status=cancelled".to_owned(), vec!["c_1.png"], 4),
        ("status=failed".to_owned(), vec![], 4),
        (
            format!("workflowId={workflow}"),
            vec!["cx1.png", "c_1.png", "a.png"],
            3,
        ),
        (
            format!("workflow_id={workflow}&status=cancelled"),
            vec!["c_1.png"],
            3,
        ),
        ("trigger=folder".to_owned(), vec![], 0),
        ("q=C_1".to_owned(), vec!["c_1.png"], 1),
        ("q=scan".to_owned(), vec!["b.png"], 1),
        (
            "sort=duration&status=cancelled".to_owned(),
            vec!["c_1.png"],
            4,
        ),
        (format!("since={made}&until={made}"), vec![], 0),
    ] {
        let (names, list) = site.listed(&query).await;
        assert_eq!(names, expected, "{query}");
        assert_eq!(list["counts"]["total"], total, "{query}");
    }
    for query in ["order=desc", "order=asc", "sort=duration"] {
        let (whole, _) = site.listed(query).await;
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let (names, list) = site
                .listed(&format!("{query}&limit=3&cursor={cursor}"))
                .await;
            paged.extend(names);
            match list["nextCursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(paged, whole, "{query}");
    }

    for (query, status) in [
        (format!("workflowId={UNKNOWN_ID}"), 404),
        ("status=done".to_owned(), 400),
        ("cursor=x".to_owned(), 400),
    ] {
        let path = format!("/api/workflows/runs?{query}");
        assert_eq!(
            site.call("GET", &path, None).await.status,
            status,
            "{query}"
        );
    }
    let stranger = site.stranger().await;
    let theirs = site
        .call_as(&stranger, "GET", "/api/workflows/runs", None)
        .await;
    assert_eq!(theirs.json()["counts"]["total"], 0);
    assert_eq!(site.call("DELETE", &path(&photos), None).await.status, 200);
    let (names, list) = site.listed("").await;
    assert_eq!(names, ["b.png"], "runs go with their workflow");
    assert_eq!(list["counts"]["total"], 1);
}
