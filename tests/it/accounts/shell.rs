//! `sluice accounts`, `sluice keys` and `sluice users`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Tenant, beside, json_of};
use crate::support::{
    Failure,
    command::sluice,
    http::client,
    json::text,
    server::{Api, Server, Settings},
};

fn with_key(server: &Server, key: &str) -> Api {
    Api::new(server.base_url(), key, server.addresses().rtmp, None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_from_the_shell_are_in_force_and_revoked_at_once() -> Result<(), Failure> {
    let server = Server::start().await?;
    let shown = beside(&server, &["keys", "add", "--scope", "read", "--name", "CI"]);
    let shown = shown.succeed().await?;
    let key = shown
        .lines()
        .find_map(|line| line.strip_prefix("API key: "));
    let key = key.ok_or_else(|| shown.clone())?;
    let api = with_key(&server, key);
    assert_eq!(api.list().await?.len(), 1, "the first account's live input");
    let (status, _) = api
        .call(Method::POST, "/api/folders", Some(&json!({"name": "x"})))
        .await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "it may only read");

    let listed = beside(&server, &["keys", "list"]).succeed().await?;
    assert!(
        listed.contains("CI") && listed.contains(&key[..12]),
        "{listed}"
    );
    assert!(!listed.contains(key), "a list shows no key: {listed}");
    let records = json_of(beside(&server, &["keys", "list", "--json"])).await?;
    let record = &records[0];
    assert_eq!(
        [&record["name"], &record["scope"], &record["accountName"]],
        ["CI", "read", "Default"]
    );

    let revoked = beside(&server, &["keys", "revoke", &text(&record["id"])?]);
    revoked.succeed().await?;
    let (status, _) = api.call(Method::GET, "/api/live/inputs", None).await?;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let again = beside(&server, &["keys", "revoke", &key[..12]])
        .fail()
        .await?;
    assert!(again.contains("keys list"), "{again}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_account_has_its_own_users_keys_and_files() -> Result<(), Failure> {
    let server = Server::start().await?;
    let tenant = Tenant::on_plan(&server, "Studio Süd", "pro").await?;
    assert_eq!(tenant.usage().await?["plan"], "pro");
    assert_eq!(tenant.api.list().await?.len(), 0, "not the first account's");

    let add = [
        "users",
        "add",
        "ann",
        "--account",
        "studio süd",
        "--password-stdin",
    ];
    let added = beside(&server, &add).input("a long password\n");
    added.succeed().await?;
    let signed_in = client()
        .post(format!("{}/api/session", server.base_url()))
        .json(&json!({"username": "ann", "password": "a long password"}));
    let signed_in = signed_in.send().await?;
    assert_eq!(signed_in.status(), 201);
    let users = beside(&server, &["users", "list"]).succeed().await?;
    assert!(users.contains("Studio Süd"), "{users}");

    let accounts = beside(&server, &["accounts", "list"]).succeed().await?;
    let line = accounts.lines().find(|line| line.contains("Studio Süd"));
    let line = line.ok_or_else(|| accounts.clone())?;
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..6], ["Studio", "Süd", "pro", "active", "1", "1"]);
    let records = json_of(beside(&server, &["accounts", "list", "--json"])).await?;
    let names: Vec<&Value> = records
        .as_array()
        .ok_or("no list")?
        .iter()
        .map(|record| &record["name"])
        .collect();
    assert_eq!(names, ["Default", "Studio Süd"]);
    Ok(())
}

/// A user of a role, made and changed beside the running service, and a link at which they choose a password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_have_roles_and_welcome_links() -> Result<(), Failure> {
    let server = Server::start().await?;
    let url = |path: &str| format!("{}{path}", server.base_url());
    let run = async |arguments: &[&str]| {
        let arguments = [&["users"], arguments].concat();
        beside(&server, &arguments).succeed().await
    };
    let added = run(&["add", "vera", "--role", "viewer", "--operator"]).await?;
    assert!(added.contains("added vera (viewer, operator)"), "{added}");
    let made = run(&["welcome", "vera"]).await?;
    let link = made.lines().nth(1).ok_or_else(|| made.clone())?;
    let (page, code) = link.split_once('#').ok_or_else(|| made.clone())?;
    assert_eq!(page.split_once("/app/").map(|it| it.1), Some("welcome"));

    let body = json!({"code": code, "newPassword": "a password of my own"});
    let welcomed = client().post(url("/api/session/welcome")).json(&body);
    let welcomed = welcomed.send().await?;
    assert_eq!(welcomed.status(), 201);
    let cookie = welcomed.headers()["set-cookie"].to_str()?.to_owned();
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let welcomed: Value = welcomed.json().await?;
    assert_eq!(
        (&welcomed["user"]["role"], &welcomed["user"]["operator"]),
        (&json!("viewer"), &json!(true))
    );
    let token = text(&welcomed["csrfToken"])?;
    let status = async |method: Method, path: &str| {
        let call = client()
            .request(method, url(path))
            .json(&json!({"name": "x"}));
        // As by a proxy: from loopback itself metrics are for everyone.
        let call = call
            .header("cookie", &cookie)
            .header("x-csrf-token", &token);
        let answer = call.header("x-forwarded-for", "203.0.113.9").send().await?;
        Ok::<_, Failure>(answer.status().as_u16())
    };
    assert_eq!(status(Method::GET, "/api/folders").await?, 200);
    assert_eq!(status(Method::POST, "/api/folders").await?, 403);
    assert_eq!(status(Method::GET, "/metrics").await?, 200);
    let set = run(&["set-role", "vera", "admin", "--operator", "no"]).await?;
    assert!(set.contains("vera is admin now"), "{set}");
    assert_eq!(status(Method::POST, "/api/folders").await?, 201);
    assert_eq!(status(Method::GET, "/api/keys").await?, 200);
    assert_eq!(status(Method::GET, "/metrics").await?, 403);
    run(&["set-role", "vera", "viewer"]).await?;
    assert_eq!(status(Method::GET, "/api/keys").await?, 403);
    let listed = run(&["list"]).await?;
    assert!(listed.contains("admin, operator"), "{listed}");
    for command in ["welcome", "reset-password"] {
        let unknown = beside(&server, &["users", command, "unknown"])
            .fail()
            .await?;
        assert!(unknown.contains("sluice users list"), "{unknown}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_cannot_do_says_what_to_change() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_ACCOUNT__PLAN", "starter");
    let server = settings.start().await?;
    let usage = server.api().call(Method::GET, "/api/usage", None).await?.1;
    assert_eq!(
        usage["plan"], "starter",
        "account.plan is the first account's"
    );
    for (arguments, words) in [
        (
            &["accounts", "create", "Default"][..],
            &["an account Default already"][..],
        ),
        (&["accounts", "create", "a\u{7}b"], &["control characters"]),
        (
            &["accounts", "create", "x", "--plan", "gold"],
            &["`gold`", "free", "starter", "[plans.gold]"],
        ),
        (
            &["accounts", "set-plan", "Default", "gold"],
            &["`gold`", "business"],
        ),
        (
            &["accounts", "set-plan", "none", "free"],
            &["`none`", "accounts list"],
        ),
        (&["accounts", "suspend", "none"], &["`none`"]),
        (&["keys", "add", "--account", "none"], &["`none`"]),
        (&["keys", "add", "--name", ""], &["--name"]),
        (&["users", "add", "x", "--account", "none"], &["`none`"]),
    ] {
        let rejection = beside(&server, arguments).fail().await?;
        for word in words {
            assert!(rejection.contains(word), "{arguments:?}: {rejection}");
        }
    }
    let folder = tempfile::tempdir()?;
    let early = sluice(&["keys", "add"]).data_dir(&folder.path().join("data"));
    let rejection = early.fail().await?;
    assert!(rejection.contains("start the service once"), "{rejection}");
    Ok(())
}
