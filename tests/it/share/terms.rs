//! Terms of a link: its end, a password, a bound on downloads, looking only; and its counts.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Shared, make_folder, share};
use crate::support::{Failure, http::client, images::drawn, json::text, server::Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_makes_shows_and_revokes_a_link() -> Result<(), Failure> {
    let mut shared = Shared::open(json!({})).await?;
    let record = shared.record().await?;
    let base = shared.server.base_url();
    assert_eq!(record["token"], shared.token);
    assert_eq!(shared.token.len(), 43);
    assert_eq!(
        record["url"],
        format!("{base}/share/folder/{}", shared.token)
    );
    assert_eq!(record["zipUrl"], format!("{base}{}", shared.path("/zip")));
    for (field, value) in [
        ("folderId", json!(shared.folder)),
        ("hasPassword", json!(false)),
        ("downloadLimit", Value::Null),
        ("allowDownload", json!(true)),
        ("viewCount", json!(0)),
        ("downloadCount", json!(0)),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    let forever = share(&shared.api, &shared.folder, json!({"expires_in": null})).await?;
    assert!(forever["expiresAt"].is_null() && forever["token"] != shared.token.as_str());
    shared.api.fetch(&shared.path("")).await?.expect(404)?;
    shared.token = text(&forever["token"])?;

    // Only its hash is stored, and yet it can be shown again, also after a restart.
    shared.server.terminate().await?;
    let stored = std::fs::read(shared.server.data_dir().join("sluice.db"))?;
    let token = shared.token.as_bytes();
    assert!(!stored.windows(token.len()).any(|bytes| bytes == token));
    shared.server.restart().await?;
    assert_eq!(shared.record().await?["token"], shared.token);
    shared.list("").await?;

    for (terms, named) in [
        (json!({"expiresIn": 3599}), "expiresIn"),
        (json!({"expiresIn": "x"}), "expiresIn"),
        (json!({"expiresAt": "yesterday"}), "expiresAt"),
        (json!({"downloadLimit": 0}), "downloadLimit"),
        (json!({"allowDownload": 1}), "allowDownload"),
        (json!({"password": "x".repeat(2_000)}), "password"),
    ] {
        let path = format!("/api/folders/{}/share", shared.folder);
        let (status, rejection) = shared.api.call(Method::POST, &path, Some(&terms)).await?;
        assert_eq!(status, 400, "{terms}");
        assert!(text(&rejection["error"])?.contains(named), "{rejection}");
    }
    let unknown = format!("/api/folders/{}/share", uuid());
    for method in [Method::GET, Method::POST, Method::DELETE] {
        assert_eq!(shared.api.call(method, &unknown, None).await?.0, 404);
    }
    shared.revoke().await?;
    shared.revoke().await?;
    assert!(shared.record().await?.is_null());
    shared.api.fetch(&shared.path("")).await?.expect(404)?;
    Ok(())
}

fn uuid() -> &'static str {
    "00000000-0000-7000-8000-000000000000"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_and_downloads_are_counted_once() -> Result<(), Failure> {
    let mut shared = Shared::open(json!({})).await?;
    let inner = make_folder(&shared.api, "inner", Some(&shared.folder)).await?;
    let file = shared.put("a.mp3", &[9; 100]).await?;
    let path = shared.path(&format!("/files/{file}"));
    for rest in ["", "", "?cursor=f", &format!("?folderId={inner}")] {
        shared.list(rest).await?;
    }
    client()
        .head(format!("{}{path}", shared.server.base_url()))
        .send()
        .await?;
    for (range, status) in [
        ("bytes=0-", 206),
        ("bytes=0-9", 206),
        ("bytes=10-", 206),
        ("bytes=100-", 416),
        ("", 200),
    ] {
        let answer = shared.api.fetch_with(&path, &[("range", range)]).await?;
        answer.expect(status)?;
    }
    let counts = async |shared: &Shared| {
        let record = shared.record().await?;
        Ok::<_, Failure>((record["viewCount"].clone(), record["downloadCount"].clone()))
    };
    assert_eq!(counts(&shared).await?, (json!(2), json!(3)));
    shared.list("").await?;
    shared.server.terminate().await?;
    shared.server.restart().await?;
    assert_eq!(
        counts(&shared).await?,
        (json!(3), json!(3)),
        "also what was only noted"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_on_downloads_holds_and_lets_them_continue() -> Result<(), Failure> {
    let shared = Shared::open(json!({"downloadLimit": 2})).await?;
    let (one, other) = (
        shared.put("1.bin", &[1; 100]).await?,
        shared.put("2.bin", &[2; 100]).await?,
    );
    let get = async |file: &str, range: &str| {
        let path = shared.path(&format!("/files/{file}"));
        let answer = shared.api.fetch_with(&path, &[("range", range)]).await?;
        Ok::<_, Failure>((
            answer.status.as_u16(),
            answer.json().unwrap_or_default()["code"].clone(),
        ))
    };
    let none = Value::Null;
    assert_eq!(get(&one, "bytes=0-9").await?, (206, none.clone()));
    assert_eq!(get(&one, "bytes=10-").await?, (206, none.clone()));
    // Anyone who leaves out the first byte has downloaded it all the same.
    assert_eq!(get(&other, "bytes=1-").await?, (206, none.clone()));
    let refused = (410, json!("download_limit_reached"));
    assert_eq!(get(&one, "").await?, refused);
    assert_eq!(get(&one, "bytes=10-").await?, (206, none), "it continues");
    for (range, status) in [("", 410), ("bytes=10-", 206)] {
        let url = format!(
            "{}{}",
            shared.api.base(),
            shared.path(&format!("/files/{one}"))
        );
        let head = client().head(url).header("range", range).send().await?;
        assert_eq!(head.status(), status, "HEAD is answered as GET: {range}");
    }
    assert_eq!(shared.record().await?["downloadCount"], 2);
    shared.list("").await?;

    let image = shared.put("p.png", &drawn("hole.png")?).await?;
    let path = shared.path(&format!("/files/{image}?inline=1"));
    shared.api.fetch(&path).await?.expect(410)?;
    shared
        .api
        .fetch(&shared.path(&format!("/files/{image}/preview")))
        .await?
        .expect(200)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_bound_many_at_once_get_no_more_than_it() -> Result<(), Failure> {
    let shared = Shared::open(json!({"downloadLimit": 5})).await?;
    let file = shared.put("1.bin", &[1; 100]).await?;
    let path = shared.path(&format!("/files/{file}"));
    let asking = (0..30).map(|_| {
        let (api, path) = (shared.api.clone(), path.clone());
        tokio::spawn(async move { Ok::<_, Failure>(api.fetch(&path).await?.status.as_u16()) })
    });
    let mut got = 0;
    for answer in futures_util::future::join_all(asking).await {
        match answer?? {
            200 => got += 1,
            410 => {}
            status => return Err(format!("{status}").into()),
        }
    }
    assert_eq!(
        (got, &shared.record().await?["downloadCount"]),
        (5, &json!(5))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_for_looking_gives_no_originals_of_images() -> Result<(), Failure> {
    let shared = Shared::open(json!({"allowDownload": false})).await?;
    let image = shared.put("p.png", &drawn("hole.png")?).await?;
    let song = shared.put("s.mp3", b"ID3\x03\0\0\0\0\0\0").await?;
    let page = shared.list("").await?;
    assert_eq!(
        (&page["allowDownload"], &page["zipUrl"]),
        (&json!(false), &Value::Null)
    );
    let files = page["files"].as_array().ok_or("no files")?;
    assert!(files.iter().all(|file| file["downloadUrl"].is_null()));
    assert!(
        files[0]["inlineUrl"].is_string() && files[1]["inlineUrl"].is_null(),
        "{page}"
    );
    for rest in [
        format!("/files/{image}"),
        format!("/files/{image}?inline=1"),
        format!("/files/{song}"),
    ] {
        let refused = shared.api.fetch(&shared.path(&rest)).await?.expect(403)?;
        assert_eq!(refused.json()?["code"], "downloads_off", "{rest}");
    }
    for rest in [
        format!("/files/{image}/preview?w=2560"),
        format!("/files/{song}?inline=1"),
    ] {
        shared.api.fetch(&shared.path(&rest)).await?.expect(200)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_opens_its_link_alone_and_for_a_while() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_SHARES__PASSWORD_ATTEMPTS", "3");
    let shared = Shared::on(settings, json!({"password": "open sésame"})).await?;
    let file = shared.put("a.txt", b"a").await?;
    assert_eq!(shared.record().await?["hasPassword"], true);
    for rest in [
        "",
        &format!("/files/{file}"),
        &format!("/files/{file}/preview"),
    ] {
        let refused = shared.api.fetch(&shared.path(rest)).await?.expect(403)?;
        assert_eq!(refused.json()?["code"], "password_required", "{rest}");
        assert!(
            !refused.text().contains("Wedding"),
            "nothing is revealed of it"
        );
    }
    let client = client();
    let unlock = async |token: &str, body: Value| {
        let url = format!(
            "{}/api/share/folder/{token}/unlock",
            shared.server.base_url()
        );
        Ok::<_, Failure>(client.post(url).json(&body).send().await?)
    };
    assert_eq!(unlock(&shared.token, json!({})).await?.status(), 400);
    let wrong = unlock(&shared.token, json!({"password": "open sesame"})).await?;
    assert_eq!(
        (wrong.status(), wrong.headers().get("set-cookie")),
        (StatusCode::FORBIDDEN, None)
    );
    assert_eq!(wrong.json::<Value>().await?["code"], "wrong_password");
    let right = unlock(&shared.token, json!({"password": "open sésame"})).await?;
    assert_eq!(right.status(), 200);
    let cookies = right.headers().get_all("set-cookie").iter();
    let cookies: Vec<&str> = cookies.map(|it| it.to_str()).collect::<Result<_, _>>()?;
    assert_eq!(cookies.len(), 2, "for the API and for the page");
    let paths = [shared.path(""), format!("/share/folder/{}", shared.token)];
    for (cookie, path) in cookies.iter().zip(&paths) {
        assert!(cookie.contains(&format!("Path={path};")), "{cookie}");
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
            "{cookie}"
        );
        assert!(!cookie.contains("Secure"), "{cookie}");
    }
    let pair = cookies[0].split(';').next().unwrap_or_default();
    let shown = [("cookie", pair)];
    shared
        .api
        .fetch_with(&shared.path(""), &shown)
        .await?
        .expect(200)?;
    for odd in [
        format!("{pair}x"),
        "sluice_share=".to_owned(),
        "sluice_share=1.x".to_owned(),
    ] {
        let refused = shared
            .api
            .fetch_with(&shared.path(""), &[("cookie", &odd)])
            .await?;
        refused.expect(403)?;
    }
    // Another link with the same password, and this folder's next one, are not opened by it.
    let other = make_folder(&shared.api, "other", None).await?;
    for folder in [&other, &shared.folder] {
        let made = share(&shared.api, folder, json!({"password": "open sésame"})).await?;
        let path = format!("/api/share/folder/{}", text(&made["token"])?);
        shared.api.fetch_with(&path, &shown).await?.expect(403)?;
    }
    let token = text(&shared.record().await?["token"])?;
    for _ in 0..3 {
        let wrong = unlock(&token, json!({"password": "guess"})).await?;
        assert_eq!(wrong.status(), 403);
    }
    let locked_out = unlock(&token, json!({"password": "open sésame"})).await?;
    assert_eq!(locked_out.status(), 429);
    assert!(locked_out.headers().contains_key("retry-after"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_proxy_addresses_and_cookies_are_those_of_the_outside() -> Result<(), Failure> {
    let outside = "https://media.example.org/files";
    let settings = Settings::new().env("SLUICE_HTTP__BASE_URL", outside);
    let shared = Shared::on(settings, json!({"password": "x"})).await?;
    let (base, path) = (shared.server.base_url(), shared.path(""));
    let url = text(&shared.record().await?["url"])?;
    assert_eq!(url, format!("{outside}/share/folder/{}", shared.token));
    let unlock = client()
        .post(format!("{base}{path}/unlock"))
        .json(&json!({"password": "x"}));
    let unlocked = unlock.send().await?;
    assert_eq!(unlocked.status(), 200);
    for cookie in unlocked.headers().get_all("set-cookie") {
        let cookie = cookie.to_str()?;
        assert!(cookie.contains("Path=/files/"), "{cookie}");
        assert!(cookie.contains("Secure"), "{cookie}");
    }
    Ok(())
}
