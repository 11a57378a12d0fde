//! A suspended account: its rejected requests, no effect on other accounts, and everything back after resuming.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{DRAWING, SOON, Tenant};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    http::client,
    media::{Clip, Recipe},
    server::{Input, Server},
};

/// Everything of an account that is served without its key.
struct Public {
    addresses: Vec<(&'static str, String)>,
    input: Input,
}

impl Public {
    async fn of(tenant: &Tenant<'_>) -> Result<Self, Failure> {
        let api = &tenant.api;
        let folder = json!({"name": "shared"});
        let post = async |path: &str, body: &Value| -> Result<Value, Failure> {
            api.expect(StatusCode::CREATED, Method::POST, path, Some(body))
                .await
        };
        let folder = post("/api/folders", &folder).await?;
        let folder = folder["folder"]["id"].as_str().ok_or("no folder")?;
        let share = post(&format!("/api/folders/{folder}/share"), &json!({})).await?;
        let token = share["share"]["token"].as_str().ok_or("no token")?;
        let file = api.upload("drawing.svg", DRAWING).await?;
        let (id, download) = (file["id"].as_str(), file["download_url"].as_str());
        let key = api.delivery_key().await?;
        let input = api.create(json!({"name": "studio"})).await?;
        let image = format!(
            "/cdn/v1/{key}/{}?w=8&format=png",
            id.ok_or("a file without id")?
        );
        Ok(Self {
            addresses: vec![
                ("image", image),
                ("download", download.ok_or("no download_url")?.to_owned()),
                ("share", format!("/api/share/folder/{token}")),
                ("playback", input.playback_path("index.m3u8")),
            ],
            input,
        })
    }

    /// Waits until each address answers with its status.
    async fn answer(
        &self,
        tenant: &Tenant<'_>,
        expected: impl Fn(&str) -> u16,
    ) -> Result<(), Failure> {
        for (what, address) in &self.addresses {
            let status = expected(what);
            eventually(&format!("{what} answers {status}"), SOON, async || {
                let answer = tenant.api.fetch(address).await.ok()?;
                (answer.status == status).then_some(())
            })
            .await?;
        }
        Ok(())
    }
}

/// Returns the expected status: a link is not available, as for any other reason; everything else is forbidden.
fn when_suspended(what: &str) -> u16 {
    match what {
        "share" => 404,
        _ => 403,
    }
}

/// Checks that a new publish is rejected.
async fn check_refused(clip: &Clip, input: &Input) -> Result<(), Failure> {
    let mut encoder = Publish::new(clip, &input.rtmp_url())?.looped().start()?;
    let status = encoder.wait(SOON).await?;
    assert!(!status.success(), "{}", encoder.complaints());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_suspended_account_is_served() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = Server::start().await?;
    let (public, resumed_key) = {
        let tenant = Tenant::on_plan(&server, "tenant", "unlimited").await?;
        let public = Public::of(&tenant).await?;
        let target = public.input.rtmp_url();
        let mut encoder = Publish::new(&clip, &target)?.looped().start()?;
        let api = &tenant.api;
        api.wait_status(&public.input.id, "live", SOON).await?;
        public.answer(&tenant, |_| 200).await?;

        tenant.command("suspend", &[]).await?;
        for (method, path) in [
            (Method::GET, "/api/usage"),
            (Method::POST, "/api/folders"),
            (Method::GET, "/api/session"),
            (Method::POST, "/mcp"),
        ] {
            let (status, rejection) = api.call(method, path, Some(&json!({"name": "x"}))).await?;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {rejection}");
            assert_eq!(rejection["code"], "account_suspended", "{path}");
        }
        public.answer(&tenant, when_suspended).await?;
        let ended = encoder.wait(SOON).await?;
        assert!(!ended.success(), "the encoder is disconnected: {ended}");
        check_refused(&clip, &public.input).await?;
        let others = server.api().list().await?;
        assert_eq!(others.len(), 1, "other accounts are not concerned");
        (public, tenant.api.key().to_owned())
    };

    // The same after a start, from its first request on.
    server.kill().await?;
    server.restart().await?;
    for (what, address) in &public.addresses {
        if let Some(path) = address.strip_prefix('/') {
            let (status, _) = server.get(&format!("/{path}")).await?;
            assert_eq!(status.as_u16(), when_suspended(what), "{what}");
        }
    }
    check_refused(&clip, &public.input).await?;

    let tenant = Tenant {
        server: &server,
        name: "tenant".to_owned(),
        api: server.api().with_key(&resumed_key),
    };
    tenant.command("resume", &[]).await?;
    let (status, _) = tenant.api.call(Method::GET, "/api/usage", None).await?;
    assert_eq!(status, StatusCode::OK, "nothing of it is gone");
    let _encoder = eventually("an encoder is taken again", SOON, async || {
        let target = public.input.rtmp_url();
        let encoder = Publish::new(&clip, &target).ok()?.looped().start().ok()?;
        let live = tenant.api.wait_status(&public.input.id, "live", SOON / 3);
        live.await.ok().map(|_| encoder)
    })
    .await?;
    public.answer(&tenant, |_| 200).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_a_suspended_account_cannot_sign_in() -> Result<(), Failure> {
    let server = Server::start().await?;
    let tenant = Tenant::on_plan(&server, "tenant", "free").await?;
    let add = [
        "users",
        "add",
        "ann",
        "--account",
        "tenant",
        "--password-stdin",
    ];
    let added = super::beside(&server, &add).input("a long password\n");
    added.succeed().await?;
    let sign_in = async |password: &str| {
        let asked = client()
            .post(format!("{}/api/session", server.base_url()))
            .json(&json!({"username": "ann", "password": password}));
        asked.send().await.map(|answer| answer.status().as_u16())
    };
    assert_eq!(sign_in("a long password").await?, 201);
    tenant.command("suspend", &[]).await?;
    assert_eq!(sign_in("a long password").await?, 403);
    assert_eq!(
        sign_in("another password").await?,
        401,
        "only who knows the password learns of it"
    );
    tenant.command("resume", &[]).await?;
    assert_eq!(sign_in("a long password").await?, 201);
    Ok(())
}
