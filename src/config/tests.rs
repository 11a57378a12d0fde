//! Tests of the settings: file, environment, documentation of each, secrets.

use std::{collections::HashSet, io::Write as _};

use super::*;

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let variables = variables
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    Config::load_with(Some(file.path()), variables)
}

#[test]
fn the_compiled_in_file_equals_the_defaults_in_code() {
    let file: toml::Table = DEFAULT_TOML.parse().unwrap();
    let parsed: Config = file.clone().try_into().unwrap();
    assert_eq!(parsed, Config::default());
    assert_eq!(
        leaves(&file, ""),
        leaves(&default_table(), ""),
        "settings missing from config/default.toml"
    );
}

fn leaves(table: &toml::Table, prefix: &str) -> HashSet<String> {
    table
        .iter()
        .flat_map(|(key, value)| match value {
            toml::Value::Table(inner) => leaves(inner, &format!("{prefix}{key}.")),
            _ => HashSet::from([format!("{prefix}{key}")]),
        })
        .collect()
}

/// A comment is above each key, or above the key before it; the plans after the first repeat its keys.
#[test]
fn every_setting_is_documented() {
    let mut documented = false;
    let mut section = "";
    for line in DEFAULT_TOML.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            documented = false;
        } else if line.starts_with('#') {
            documented = true;
        } else if line.is_empty() {
            documented = false;
        } else if !section.starts_with("plans.") || section == "plans.unlimited" {
            assert!(documented, "no comment for `{line}` in [{section}]");
        }
    }
}

#[test]
fn environment_overrides_file_overrides_defaults() {
    let file = "[http]\nlisten = \"127.0.0.1:1\"\nworkers = 3\n[plans.pro]\nrequests_per_minute = 7\n[plans.house]\nfiles_per_batch = 2";
    let variables = [
        ("SLUICE_HTTP__LISTEN", "127.0.0.1:2"),
        ("SLUICE_HTTP__TRUSTED_PROXIES", "10.0.0.0/8,::1"),
        ("SLUICE_OUTBOUND__ALLOW", ""),
        ("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", "1234"),
        ("SLUICE_NOPE__X", "1"),
    ];
    let loaded = load(file, &variables).unwrap();
    let config = loaded.config;
    assert_eq!(config.http.listen.port(), 2);
    assert_eq!(config.http.workers, 3);
    assert!(config.http.trusted_proxies[0].contains("10.1.2.3".parse().unwrap()));
    assert!(config.http.trusted_proxies[0].contains("::ffff:10.1.2.3".parse().unwrap()));
    assert!(config.outbound.allow.is_empty());
    assert_eq!(config.bootstrap.admin_password, "1234");
    assert_eq!(config.plan("pro").requests_per_minute, 7);
    assert_eq!(config.plan("pro").files_per_batch, 100);
    assert_eq!(config.plan("house").files_per_batch, 2);
    assert_eq!(config.plan("gone"), Plan::default());
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn a_wrong_file_is_rejected_with_the_key_and_what_is_allowed() {
    let cases: &[(&str, &[&str])] = &[
        ("[http]\nlisen = 'x'", &["http.lisen", "listen"]),
        ("[htp]\nlisten = 'x'", &["`htp`", "http"]),
        (
            "[plans.free]\nrequests = 1",
            &["plans.free.requests", "requests_per_minute"],
        ),
        (
            "[plans.house]\nrequests = 1",
            &["plans.house.requests", "requests_per_minute"],
        ),
        ("[http]\nworkers = 'many'", &["http.workers", "many"]),
        ("[http]\nlisten = 'everywhere'", &["http.listen"]),
        (
            "[http]\ntrusted_proxies = ['proxy']",
            &["http.trusted_proxies", "10.0.0.0/8"],
        ),
        (
            "[http]\nbase_url = 'media.example.org'",
            &["http.base_url", "https://"],
        ),
        (
            "[http]\ntls_cert = 'a.pem'",
            &["http.tls_cert", "http.tls_key"],
        ),
        ("[http]\nmax_json = '1'", &["http.max_json", "1 KiB"]),
        ("[http]\ndrain = '5'", &["http.drain"]),
        (
            "[http]\nsend_timeout = '500ms'",
            &["http.send_timeout", "1s", "24h"],
        ),
        (
            "[archive]\nmax_per_account = 0",
            &["archive.max_per_account", "1"],
        ),
        (
            "[archive]\nstall_timeout = '0s'",
            &["archive.stall_timeout", "1s"],
        ),
        (
            "[rtmp]\npublic_url = 'http://x'",
            &["rtmp.public_url", "rtmp://"],
        ),
        (
            "[live]\npart_target = '1ms'",
            &["live.part_target", "100ms"],
        ),
        ("[log]\nformat = 'xml'", &["log.format", "json"]),
        ("[log]\nfilter = 'a=b=c'", &["log.filter"]),
        ("[sign_in]\nattempts = 0", &["sign_in.attempts", "1"]),
        (
            "[sign_in]\nnetwork_attempts = 0",
            &["sign_in.network_attempts", "1"],
        ),
        ("[sign_in]\nmax_waiting = 0", &["sign_in.max_waiting", "1"]),
        (
            "[shares]\nnetwork_password_attempts = 0",
            &["shares.network_password_attempts", "1"],
        ),
        ("[http]\nmax_handshakes = 0", &["http.max_handshakes", "1"]),
        ("[http]\nmax_streams = 0", &["http.max_streams", "1000"]),
        (
            "[http]\nmax_header_list = \"1 KiB\"",
            &["http.max_header_list", "4 KiB"],
        ),
        ("[rtmp]\nmax_unadmitted = 0", &["rtmp.max_unadmitted", "1"]),
        (
            "[mcp]\nallowed_hosts = ['https://agents.example']",
            &["mcp.allowed_hosts", "media.example.org:8443"],
        ),
        (
            "[mcp]\nallowed_origins = ['agents.example']",
            &["mcp.allowed_origins", "https://"],
        ),
        (
            "[webrtc]\ntcp_listen = '8189'",
            &["webrtc.tcp_listen", "[::]:8189"],
        ),
        (
            "[webrtc]\nice_servers = ['stun.example.org']",
            &["webrtc.ice_servers", "stun:HOST:PORT"],
        ),
        (
            "[webrtc]\nplayout = 'late'",
            &["webrtc.playout", "adaptive"],
        ),
        (
            "[changes]\nmax_followers_per_account = 0",
            &["changes.max_followers_per_account", "between 1"],
        ),
        ("[mcp]\nmax_calls = 0", &["mcp.max_calls", "1"]),
        (
            "[account]\nplan = 'gold'",
            &["account.plan", "gold", "free", "unlimited"],
        ),
        (
            "[account]\nlook_every = '1ms'",
            &["account.look_every", "100ms"],
        ),
        ("[account]\nmax_users = 0", &["account.max_users", "1000"]),
        (
            "[account]\nmax_invitations = 1001",
            &["account.max_invitations", "1000"],
        ),
        ("[account]\nmax_audit = 10", &["account.max_audit", "1000"]),
        (
            "[account]\nkeep_audit = '1h'",
            &["account.keep_audit", "1d"],
        ),
        ("[http\n", &["line 1"]),
    ];
    for (text, parts) in cases {
        let message = load(text, &[]).unwrap_err().to_string();
        for part in *parts {
            assert!(
                message.contains(part),
                "{text:?}: `{message}` does not name {part}"
            );
        }
    }
    let variable = ("SLUICE_OUTBOUND__ALLOW", "localhost");
    let message = load("", &[variable]).unwrap_err().to_string();
    assert!(
        message.starts_with("environment variable SLUICE_OUTBOUND__ALLOW: setting `outbound.allow"),
        "{message}"
    );
    let missing = Config::load_with(Some(Path::new("/nowhere/sluice.toml")), []).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/sluice.toml"));
}

#[test]
fn the_printed_settings_can_be_read_again_and_hold_no_secret() {
    let mut config = Config::default();
    config.bootstrap.admin_password = "swordfish".to_owned();
    config.bootstrap.api_key = "svc_0123".to_owned();
    config.store.database_url = "postgres://sluice:swordfish@db/sluice".to_owned();
    config.store.objects_access_key = "swordfish".to_owned();
    config.store.objects_secret_key = "swordfish".to_owned();
    config.webrtc.ice_servers = vec!["turn:ann:swordfish@turn.example.org".parse().unwrap()];
    let printed = config.print();
    assert!(
        !printed.contains("swordfish") && !printed.contains("svc_0123"),
        "{printed}"
    );
    assert!(!format!("{config:?}").contains("svc_0123"));
    assert_eq!(
        load(&Config::default().print(), &[]).unwrap().config,
        Config::default()
    );
}

#[test]
fn the_address_of_a_database_is_shown_without_secrets() {
    for (address, kept) in [
        ("", ""),
        (
            "postgres://db.internal/sluice",
            "postgres://db.internal/sluice",
        ),
        ("postgres://ann:haddock@db:5433/sluice", "@db:5433/sluice"),
        ("postgres://ann:had%2Fdock@db/sluice", "postgres://ann:"),
        ("postgres://ann:had/dock@db/sluice", ""),
        ("postgres://ann:had?dock@db/sluice", ""),
        ("postgres://ann:12/haddock@db/sluice", ""),
        ("postgres://ann:12?haddock@db/sluice", ""),
        (
            "postgres://db/sluice?user=ann&password=haddock&sslmode=verify-full",
            "sslmode=verify-full",
        ),
        ("postgres://db/sluice?sslpassword=haddock", "sslpassword="),
        (
            "postgres://db/sluice?options[x]=haddock#haddock",
            "postgres://db",
        ),
        ("haddock", ""),
    ] {
        let shown = without_password(address);
        assert!(shown.contains(kept), "{address}: {shown}");
        assert!(!shown.contains("had"), "{address}: {shown}");
        assert!(!shown.contains("dock"), "{address}: {shown}");
    }
}

#[test]
fn messages_with_secrets_are_logged_only_when_they_are_asked_for() {
    for (filter, directives) in [
        ("debug", "debug,rmcp=off,srt_protocol=off,srt_tokio=off"),
        ("", ",rmcp=off,srt_protocol=off,srt_tokio=off"),
        (
            "info,rmcp=debug",
            "info,rmcp=debug,srt_protocol=off,srt_tokio=off",
        ),
        (
            "trace,rmcp::service=info,srt_tokio::socket=info",
            "trace,rmcp::service=info,srt_tokio::socket=info,srt_protocol=off",
        ),
    ] {
        let log = Log {
            filter: filter.to_owned(),
            ..Log::default()
        };
        assert_eq!(log.directives(), directives);
        assert_eq!(log.check(), Ok(()), "{filter}");
    }
}

/// A value without quotes may be a secret, and the doctor shows errors to operators.
#[test]
fn an_error_of_the_file_names_its_line_and_does_not_quote_it() {
    let text = "[http]\n\n[bootstrap]\nadmin_password = hunter2\n";
    let error = load(text, &[]).unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}
