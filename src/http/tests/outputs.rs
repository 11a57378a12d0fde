//! Outputs of live inputs by REST.

use serde_json::{Value, json};

use super::Site;

const INPUTS: &str = "/api/live/inputs";
const SECRET: &str = "topsecretkey";

async fn input(site: &Site) -> String {
    let made = site.call("POST", INPUTS, Some(json!({}))).await.json();
    format!(
        "{INPUTS}/{}",
        made["liveInput"]["id"].as_str().expect("an id")
    )
}

/// Its path.
async fn output(site: &Site, input: &str) -> String {
    let url = format!("rtmp://192.0.2.1/live/{SECRET}");
    let path = format!("{input}/outputs");
    let answer = site.call("POST", &path, Some(json!({"url": url}))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["output"]["id"].clone();
    format!("{path}/{}", id.as_str().expect("an id"))
}

async fn open() -> Site {
    Site::open_with(|config| {
        config.outbound.allow = vec!["192.0.2.0/24".parse().unwrap()];
        config.restream.max_outputs_per_input = 3;
        config.restream.max_outputs = 4;
    })
    .await
}

#[actix_web::test]
async fn a_new_output_has_every_field() {
    let site = open().await;
    let input = input(&site).await;
    let url = format!("srt://192.0.2.1:8890?streamid={SECRET}&latency=200");
    let body = json!({"url": url, "enabled": false});
    let answer = site
        .call("POST", &format!("{input}/outputs"), Some(body))
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json()["output"].clone();
    let expected = json!({
        "id": made["id"], "liveInputId": input.rsplit('/').next(), "url": url, "enabled": false,
        "status": "idle", "since": made["since"], "lastError": null, "retries": 0, "sentBytes": 0,
        "droppedUnits": 0, "lagMs": 0, "createdAt": made["createdAt"], "updatedAt": made["createdAt"],
    });
    assert_eq!(made, expected);
    assert!(made["since"].is_string());
}

#[actix_web::test]
async fn secrets_are_shown_at_create_only() {
    let site = open().await;
    let input = input(&site).await;
    let path = output(&site, &input).await;
    let whole = site.call("GET", &path, None).await.json()["output"].clone();
    let answers = [
        site.call("GET", &path, None).await,
        site.call("GET", &format!("{input}/outputs"), None).await,
        // A record that is sent back whole changes nothing.
        site.call("PATCH", &path, Some(whole.clone())).await,
        site.call("PATCH", &path, Some(json!({"enabled": false})))
            .await,
    ];
    for answer in answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("rtmp://192.0.2.1/live/••••"), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
    let changed = site.call("GET", &path, None).await.json()["output"].clone();
    assert_eq!(
        (&whole["enabled"], &changed["enabled"]),
        (&json!(true), &json!(false))
    );
}

#[actix_web::test]
async fn addresses_that_cannot_be_targets_are_rejected() {
    let site = open().await;
    let input = input(&site).await;
    let made = output(&site, &input).await;
    for (url, message) in [
        (
            json!("http://192.0.2.1/live/key"),
            "url: it must begin with rtmp://, rtmps:// or srt://",
        ),
        (
            json!("rtmp://192.0.2.1/live"),
            "url: it must end in application and stream key",
        ),
        (json!("rtmp://127.0.0.1/live/key"), "outbound.allow"),
        (json!("srt://192.0.2.1:1?passphrase=short"), "passphrase"),
        (json!("rtmp://192.0.2.1/other/••••"), "url: it is masked"),
        (json!(7), "url: invalid type"),
    ] {
        let list = format!("{input}/outputs");
        for (method, path) in [("POST", &list), ("PATCH", &made)] {
            let answer = site.call(method, path, Some(json!({"url": url}))).await;
            assert_eq!(answer.status, 400, "{method} {url}");
            assert!(answer.error().contains(message), "{}", answer.error());
        }
    }
    let none = site
        .call("POST", &format!("{input}/outputs"), Some(json!({})))
        .await;
    assert_eq!(none.status, 400);
}

#[actix_web::test]
async fn there_are_only_so_many() {
    let site = open().await;
    let (one, other) = (input(&site).await, input(&site).await);
    for _ in 0..3 {
        output(&site, &one).await;
    }
    let last = output(&site, &other).await;
    let body = json!({"url": "rtmp://192.0.2.1/live/key"});
    for (input, setting) in [
        (&one, "restream.max_outputs_per_input"),
        (&other, "restream.max_outputs)"),
    ] {
        let path = format!("{input}/outputs");
        let rejected = site.call("POST", &path, Some(body.clone())).await;
        assert_eq!(rejected.status, 409);
        assert!(rejected.error().contains(setting), "{}", rejected.error());
    }
    // Whatever goes makes room: an output, or an input with its outputs.
    assert_eq!(site.call("DELETE", &last, None).await.status, 200);
    output(&site, &other).await;
    assert_eq!(site.call("DELETE", &one, None).await.status, 200);
    output(&site, &other).await;
}

#[actix_web::test]
async fn outputs_are_those_of_their_input_and_account() {
    let site = open().await;
    let (one, other) = (input(&site).await, input(&site).await);
    let (stranger, path) = (site.stranger().await, output(&site, &one).await);
    let id = path.rsplit('/').next().unwrap();
    let elsewhere = format!("{other}/outputs/{id}");
    let list = format!("{one}/outputs");
    let body = json!({"enabled": false, "url": "rtmp://192.0.2.1/live/key"});
    for method in ["GET", "PATCH", "DELETE"] {
        let answer = site
            .call_as(&stranger, method, &path, Some(body.clone()))
            .await;
        assert_eq!(
            (answer.status, answer.error()),
            (404, "live input not found".into())
        );
        let answer = site.call(method, &elsewhere, Some(body.clone())).await;
        assert_eq!(
            (answer.status, answer.error()),
            (404, "output not found".into())
        );
    }
    for method in ["GET", "POST"] {
        let answer = site
            .call_as(&stranger, method, &list, Some(body.clone()))
            .await;
        assert_eq!(answer.status, 404, "{method}");
    }
    let listed = site.call("GET", &list, None).await.json();
    assert_eq!(listed["outputs"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["outputs"][0]["enabled"], Value::Bool(true));
}
