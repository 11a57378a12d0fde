//! Operation of the service: start, stop, doctor, backup, and wrong settings.

use std::{net::TcpListener, path::Path, time::Duration};

use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::{
    Failure,
    command::sluice,
    encoder::Publish,
    eventually,
    http::client,
    media::Recipe,
    receiver::{Behaviour, Receiver},
    server::{ADMIN_PASSWORD, API_KEY, Api, Form, Server, Settings},
    viewer::Viewer,
};

/// Longest time of a stop with waiting viewers: far below `http.drain` and the bounds of the tree.
const STOP_BOUND: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_serves_one_service() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let announced = server.data_dir().join("addresses.json");
    let before = std::fs::read_to_string(&announced)?;
    let addresses: Value = serde_json::from_str(&before)?;
    let shown = server.addresses();
    assert_eq!(
        addresses,
        json!({
            "http": shown.http, "https": false, "rtmp": shown.rtmp, "rtmps": null, "srt": shown.srt,
            "webrtc": shown.webrtc, "webrtc_tcp": shown.webrtc_tcp,
        })
    );

    let rejection = sluice(&["serve"])
        .data_dir(server.data_dir())
        .fail()
        .await?;
    let holder = server.process_id().expect("it runs").to_string();
    assert!(rejection.contains(&holder), "{rejection}");
    assert!(rejection.contains("in use"), "{rejection}");
    assert!(server.is_running());
    assert_eq!(std::fs::read_to_string(&announced)?, before);
    server.wait_ready(Duration::from_secs(1)).await
}

/// Returns the warnings of the log from the beginning of the stop on.
fn warned_at_stop(server: &Server) -> Vec<String> {
    let log = server.log();
    log.lines()
        .skip_while(|line| !line.contains("stopping: no new work"))
        .filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\""))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_stop_logs_no_warning() -> Result<(), Failure> {
    // Idle: the tree ends at once, and the store behind it.
    for _ in 0..3 {
        let mut server = Server::start().await?;
        assert!(server.terminate().await?.success());
        assert_eq!(warned_at_stop(&server), [""; 0]);
        assert!(server.log().contains("stopping: no new work"));
    }

    // With a broadcast that is recorded, a viewer, a job, a delivery in progress and a listener of events.
    let clip = Recipe::numbered(0).lasting(30).make()?;
    let receiver = Receiver::start(Behaviour::after(
        Duration::from_secs(5),
        Behaviour::status(204),
    ))
    .await?;
    let mut server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let hook = json!({"url": receiver.url("/"), "eventTypes": ["*", "live.input.connected"]});
    api.expect(
        StatusCode::CREATED,
        Method::POST,
        "/api/webhooks",
        Some(&hook),
    )
    .await?;
    let input = api.create(json!({"recordMode": "automatic"})).await?;
    let pasted = format!("{}/{}", input.obs_server, input.obs_stream_key);
    let _encoder = Publish::new(&clip, &pasted)?.start()?;
    api.wait_status(&input.id, "live", Duration::from_secs(15))
        .await?;
    let mut viewing = Viewer::new(&input.hls_url).tolerate_outages().start();
    viewing.until_frames(10, Duration::from_secs(30)).await?;
    let listening = client()
        .get(format!("{}/api/events/stream", server.base_url()))
        .bearer_auth(API_KEY)
        .send()
        .await?;
    let form = Form::new()
        .file("files", "clip.flv", &std::fs::read(&clip.flv)?)
        .field("format", "webm");
    api.post_form("/api/jobs", form).await?.expect(202)?;
    receiver.wait_for(1, Duration::from_secs(15)).await?;
    assert!(server.terminate().await?.success());
    assert_eq!(warned_at_stop(&server), [""; 0]);
    drop(listening);
    Ok(())
}

/// No server is asked: the settings decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_backup_is_made_by_its_own_tools() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let backup = folder.path().join("backup");
    for (command, tool) in [("backup", "pg_dump"), ("restore", "pg_restore")] {
        let said = sluice(&[command, &backup.display().to_string()])
            .data_dir(folder.path())
            .env(
                "SLUICE_STORE__DATABASE_URL",
                "postgres://sluice:swordfish@127.0.0.1:1/sluice",
            )
            .fail()
            .await?;
        assert!(said.contains(tool) && said.contains("cluster.md"), "{said}");
        assert!(!said.contains("swordfish"), "{said}");
        assert!(!backup.exists());
    }
    Ok(())
}

/// Every failed start names the system's reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_names_the_systems_reason() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let data_dir = |name: &str| folder.path().join(name);
    let in_the_way = |path: &str| -> Result<(), Failure> {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one"))?;
        Ok(std::fs::write(path, b"in the way")?)
    };
    in_the_way("file")?;
    in_the_way("garbage/sluice.db")?;
    in_the_way("live/live")?;
    in_the_way("blobs/blobs")?;
    in_the_way("addresses/addresses.json.new/file")?;
    std::fs::create_dir_all(data_dir("database/sluice.db"))?;
    let cases = [
        ("file/data", "cannot create the folder", "Not a directory"),
        ("blobs", "cannot create the folder", "File exists"),
        ("database", "cannot open", "Is a directory"),
        (
            "garbage",
            "the database cannot be read or written",
            "file is not a database",
        ),
        ("live", "live folder", "File exists"),
        ("addresses", "addresses.json", "Is a directory"),
    ];
    for (name, action, reason) in cases {
        let said = sluice(&["serve"]).data_dir(&data_dir(name)).fail().await?;
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.contains(action) && last.contains(reason),
            "{name}: {said}"
        );
    }

    let settings = [
        (
            "SLUICE_HTTP__LISTEN",
            "192.0.2.1:0",
            "Cannot assign requested address",
        ),
        (
            "SLUICE_RTMP__LISTEN",
            "192.0.2.1:0",
            "Cannot assign requested address",
        ),
        (
            "SLUICE_SRT__LISTEN",
            "192.0.2.1:0",
            "Cannot assign requested address",
        ),
        (
            "SLUICE_WEBRTC__LISTEN",
            "192.0.2.1:0",
            "Cannot assign requested address",
        ),
    ];
    for (name, value, reason) in settings {
        let start = sluice(&["serve"])
            .data_dir(&data_dir("sockets"))
            .env(name, value);
        let said = start.fail().await?;
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.contains(value) && last.contains(reason),
            "{name}: {said}"
        );
        assert_eq!(last.matches(reason).count(), 1, "{last}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_stop_the_start_and_say_where() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (file, data) = (
        folder.path().join("sluice.toml"),
        folder.path().join("data"),
    );
    let path = file.display().to_string();
    for (text, words) in [
        (
            "[http]\nlistn = '127.0.0.1:0'\n",
            &["http.listn", "allowed here", "listen"][..],
        ),
        (
            "[htp]\nlisten = '127.0.0.1:0'\n",
            &["htp", "allowed here", "http"],
        ),
        ("[live]\npart_target = 'soon'\n", &["live.part_target"]),
        ("[http]\nworkers = 'two'\n", &["http.workers"]),
        ("[http\n", &["sluice.toml"]),
    ] {
        std::fs::write(&file, text)?;
        for command in ["serve", "config"] {
            let rejection = sluice(&[command, "--config", &path]).data_dir(&data);
            let rejection = rejection.fail().await?;
            for word in words {
                assert!(rejection.contains(word), "{word} in {rejection}");
            }
            assert!(rejection.contains(&path), "{rejection}");
        }
    }
    let missing = folder.path().join("none.toml").display().to_string();
    let rejection = sluice(&["serve", "--config", &missing]).fail().await?;
    assert!(rejection.contains(&missing), "{rejection}");
    let wrong = sluice(&["serve"]).env("SLUICE_HTTP__WORKERS", "two");
    let rejection = wrong.fail().await?;
    assert!(rejection.contains("SLUICE_HTTP__WORKERS"), "{rejection}");
    assert!(
        !data.exists(),
        "nothing was made before the settings were right"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_in_force_are_shown_without_secrets() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("sluice.toml");
    std::fs::write(&file, "[live]\nwindow = '33s'\n")?;
    let path = file.display().to_string();
    let printed = sluice(&["config", "--print", "--config", &path])
        .env("SLUICE_BOOTSTRAP__API_KEY", API_KEY)
        .env("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", ADMIN_PASSWORD)
        .env("SLUICE_LIVE__LINGER", "44s")
        .env("SLUICE_LIVE__LINGR", "55s")
        .run()
        .await?;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let settings: toml::Table = printed.stdout.parse()?;
    assert_eq!(settings["live"]["window"].as_str(), Some("33s"));
    assert_eq!(settings["live"]["linger"].as_str(), Some("44s"));
    assert_eq!(settings["bootstrap"]["api_key"].as_str(), Some("••••"));
    for secret in [API_KEY, ADMIN_PASSWORD] {
        assert!(!printed.stdout.contains(secret) && !printed.stderr.contains(secret));
    }
    assert!(printed.stderr.contains("SLUICE_LIVE__LINGR"), "{printed:?}");
    // The printed configuration can be used as a file.
    std::fs::write(&file, printed.stdout.replace("••••", ""))?;
    sluice(&["config", "--config", &path]).succeed().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_what_is_wrong() -> Result<(), Failure> {
    let server = Server::start().await?;
    let well = sluice(&["doctor"])
        .data_dir(server.data_dir())
        .env("SLUICE_HTTP__LISTEN", &server.addresses().http.to_string())
        .env("SLUICE_RTMP__LISTEN", &server.addresses().rtmp.to_string())
        .env(
            "SLUICE_SRT__LISTEN",
            &server.addresses().srt.ok_or("no SRT")?.to_string(),
        );
    let report = well.succeed().await?;
    assert!(report.contains("held by the running service"), "{report}");
    assert!(report.contains("0 failed"), "{report}");

    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let ill = sluice(&["doctor", "--json"])
        .data_dir(server.data_dir())
        .env("SLUICE_RTMP__LISTEN", &address)
        .env("SLUICE_SRT__LISTEN", "127.0.0.1:0")
        .run()
        .await?;
    assert_eq!(ill.code, Some(1), "{ill:?}");
    let report: Value = serde_json::from_str(&ill.stdout)?;
    assert_eq!(report["ok"], false);
    let checks = report["checks"].as_array().ok_or("no checks")?;
    let failed: Vec<&Value> = checks
        .iter()
        .filter(|check| check["level"] == "fail")
        .collect();
    assert_eq!(failed.len(), 1, "{report}");
    assert_eq!(failed[0]["check"], "rtmp port");
    let said = |field: &str| failed[0][field].as_str().unwrap_or_default().to_owned();
    let holder = std::process::id().to_string();
    assert!(said("message").contains(&address), "{report}");
    assert!(said("message").contains(&holder), "{report}");
    assert!(said("advice").contains("rtmp.listen"), "{report}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_looked_after_beside_the_service() -> Result<(), Failure> {
    let server = Server::start().await?;
    let users = |arguments: &[&str]| {
        let arguments = [&["users"], arguments].concat();
        sluice(&arguments).data_dir(server.data_dir())
    };
    let added = users(&["add", "anna", "--role", "admin"]).succeed().await?;
    let made_up = password_in(&added)?;
    assert_eq!(sign_in(&server, "anna", &made_up).await?, 201);

    let typed = users(&["add", "bo", "--password-stdin"]).input("a typed password\n");
    let added = typed.succeed().await?;
    assert!(!added.contains("password:"), "{added}");
    assert_eq!(sign_in(&server, "bo", "a typed password").await?, 201);
    let twice = users(&["add", "bo"]).fail().await?;
    assert!(twice.contains("bo"), "{twice}");

    let reset = users(&["reset-password", "admin"]).succeed().await?;
    assert_eq!(sign_in(&server, "admin", ADMIN_PASSWORD).await?, 401);
    assert_eq!(sign_in(&server, "admin", &password_in(&reset)?).await?, 201);
    let unknown = users(&["reset-password", "missing"]).fail().await?;
    assert!(unknown.contains("there is no user `missing`"), "{unknown}");

    let list = users(&["list"]).succeed().await?;
    let names: Vec<_> = list
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names.len(), 3, "{list}");
    for name in ["admin", "anna", "bo"] {
        assert!(names.contains(&Some(name)), "{list}");
    }
    Ok(())
}

fn password_in(shown: &str) -> Result<String, Failure> {
    let line = shown
        .lines()
        .find_map(|line| line.strip_prefix("password: "));
    Ok(line
        .ok_or_else(|| format!("no password in {shown}"))?
        .to_owned())
}

async fn sign_in(server: &Server, username: &str, password: &str) -> Result<u16, Failure> {
    let answer = client()
        .post(format!("{}/api/session", server.base_url()))
        .json(&json!({"username": username, "password": password}))
        .send()
        .await?;
    Ok(answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_taken_on_air_is_a_service_elsewhere() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({"name": "kept"})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_frames(1, Duration::from_secs(15)).await?;

    let folder = tempfile::tempdir()?;
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    let backup_path = backup.display().to_string();
    let taken = sluice(&["backup", &backup_path]).data_dir(server.data_dir());
    taken.succeed().await?;
    let again = sluice(&["backup", &backup_path]).data_dir(server.data_dir());
    again.succeed().await?;
    let elsewhere = folder.path().display().to_string();
    let of_another = sluice(&["backup", &elsewhere]).data_dir(server.data_dir());
    assert!(of_another.fail().await?.contains("not empty"));
    let seen = viewing.collected().video_frames();
    viewing
        .until_frames(seen + 30, Duration::from_secs(10))
        .await?;
    encoder.stop().await?;
    viewing.until_ended(Duration::from_secs(10)).await?;

    let in_use = sluice(&["restore", &backup_path, "--force"]).data_dir(server.data_dir());
    let holder = server.process_id().expect("it runs").to_string();
    assert!(in_use.fail().await?.contains(&holder));
    sluice(&["restore", &backup_path])
        .data_dir(&data)
        .succeed()
        .await?;
    let twice = sluice(&["restore", &backup_path]).data_dir(&data);
    assert!(twice.fail().await?.contains("--force"));

    let elsewhere = Settings::new().data_dir(&data);
    // Bootstrap variables mean nothing to a database that is there.
    let elsewhere = elsewhere
        .env("SLUICE_BOOTSTRAP__API_KEY", "")
        .start()
        .await?;
    let restored = elsewhere.api().get(&input.id).await?;
    assert_eq!(restored["name"], "kept");
    // The same stream key publishes there.
    let target = format!(
        "rtmp://{}/live/{}",
        elsewhere.addresses().rtmp,
        input.obs_stream_key
    );
    let _encoder = Publish::new(&clip, &target)?.start()?;
    let api = elsewhere.api();
    api.wait_status(&input.id, "live", Duration::from_secs(15))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_in_time_with_viewers_that_wait() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let seen = viewing.until_frames(30, Duration::from_secs(15)).await?;
    let far = seen.last_msn().ok_or("nothing listed")? + 2;
    let base = format!("{}{}", server.base_url(), input.playback_path(""));
    let mut reload = tokio::spawn(
        client()
            .get(format!("{base}media.m3u8?_HLS_msn={far}"))
            .send(),
    );
    let early = timeout(Duration::from_millis(300), &mut reload).await;
    assert!(
        early.is_err(),
        "a reload for a later segment waits: {early:?}"
    );

    let began = Instant::now();
    let status = server.terminate().await?;
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() < STOP_BOUND, "{:?}", began.elapsed());
    let answer = reload.await??;
    assert_eq!(
        answer.status(),
        StatusCode::OK,
        "a viewer that waits is answered"
    );
    encoder.wait(Duration::from_secs(10)).await?;

    server.restart().await?;
    let api = server.api();
    api.wait_status(&input.id, "reconnecting", Duration::from_secs(1))
        .await?;
    server.signal(Signal::INT)?;
    let status = server.wait(STOP_BOUND).await?;
    assert_eq!(status.code(), Some(0), "Ctrl-C is as good");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_shows_credentials_once() -> Result<(), Failure> {
    let unset = Settings::new()
        .env("SLUICE_BOOTSTRAP__API_KEY", "")
        .env("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", "")
        .env("SLUICE_LOG__FORMAT", "json")
        .env("SLUICE_HTTP__LISTN", "x");
    let mut server = unset.start().await?;
    let greeting = eventually("a greeting", Duration::from_secs(5), async || {
        Some(server.greeting()).filter(|text| text.contains("Watch at"))
    })
    .await?;
    let shown = |label: &str| {
        let line = greeting
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        line.map(|rest| rest.trim().to_owned())
            .ok_or_else(|| format!("no {label} in {greeting}"))
    };
    let (key, password) = (shown("API key")?, shown("password")?);
    let addresses = server.addresses();
    let api = Api::new(server.base_url(), &key, addresses.rtmp, None);
    let inputs = api.list().await?;
    assert_eq!(inputs.len(), 1, "a live input to begin with");
    assert_eq!(sign_in(&server, &shown("user")?, &password).await?, 201);

    let clip = Recipe::numbered(0).make()?;
    let target = format!("{}/{}", shown("Server")?, shown("Stream Key")?);
    let _encoder = Publish::new(&clip, &target)?.start()?;
    let id = inputs[0]["id"].as_str().ok_or("no id")?;
    api.wait_status(id, "live", Duration::from_secs(15)).await?;
    let page = client().get(shown("Watch at")?).send().await?;
    assert_eq!(page.status(), 200);

    server.terminate().await?;
    server.restart().await?;
    let both = eventually("a second greeting", Duration::from_secs(5), async || {
        Some(server.greeting()).filter(|text| text.matches("Sluice is running").count() == 2)
    })
    .await?;
    assert_eq!(both.matches("shown once").count(), 1, "{both}");
    assert_eq!(both.matches(&key).count(), 1, "{both}");

    let log = server.log();
    assert!(
        log.contains("SLUICE_HTTP__LISTN"),
        "an unknown variable is reported"
    );
    for line in log.lines() {
        let record: Value = serde_json::from_str(line).map_err(|_| format!("no JSON: {line}"))?;
        assert!(
            record["timestamp"].is_string() && record["level"].is_string(),
            "{line}"
        );
        assert!(!line.contains(&key) && !line.contains(&password), "{line}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_version_is_left_alone() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    server.terminate().await?;
    let database = database_in(server.data_dir())?;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
        VALUES (99999999999999, 'of tomorrow', 1, x'00', 0)";
    let program =
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(sys.argv[2]); d.commit()";
    let changed = std::process::Command::new("python3")
        .args(["-c", program, &database, newer])
        .output()?;
    assert!(changed.status.success(), "{changed:?}");
    let before = std::fs::read(&database)?;
    for command in [&["serve"][..], &["users", "add", "x"]] {
        let rejection = sluice(command).data_dir(server.data_dir()).fail().await?;
        assert!(rejection.contains("99999999999999"), "{rejection}");
        assert!(rejection.contains("newer"), "{rejection}");
    }
    assert!(std::fs::read(&database)? == before, "nothing was changed");
    Ok(())
}

fn database_in(folder: &Path) -> Result<String, Failure> {
    let names = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut databases = names.filter(|path| path.extension().is_some_and(|end| end == "db"));
    let database = databases.next().ok_or("no database")?;
    Ok(database.display().to_string())
}
