//! `[http]`, `[uploads]`, `[sign_in]`, `[bootstrap]`, `[log]`, `[mcp]`: defaults and checks; other sections are beside the code
//! that uses them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_actors::outbound::Cidr;
use sluice_media::setting::{duration, size};
use url::Url;

use super::at_least;

fn any_address(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
}

/// `[http]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    pub listen: SocketAddr,
    /// Empty: public addresses follow each request's own scheme and Host.
    pub base_url: String,
    /// Address at which a larger plan can be had; empty: the dashboard's page of usage.
    pub upgrade_url: String,
    /// PEM files; both empty: plain HTTP.
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    pub trusted_proxies: Vec<Cidr>,
    pub cors_origins: Vec<String>,
    /// 0: one for each core.
    pub workers: usize,
    #[serde(with = "size")]
    pub max_json: ByteSize,
    pub max_connections: usize,
    /// Open streams of an HTTP/2 connection.
    pub max_streams: u32,
    /// Size of an HTTP/2 request, counted as in RFC 9113 §6.5.2.
    #[serde(with = "size")]
    pub max_header_list: ByteSize,
    /// TLS handshakes of one client network that are unfinished at a time; a further connection is closed.
    pub max_handshakes: usize,
    #[serde(with = "duration")]
    pub handshake_timeout: Duration,
    #[serde(with = "duration")]
    pub header_timeout: Duration,
    #[serde(with = "duration")]
    pub body_timeout: Duration,
    #[serde(with = "duration")]
    pub keep_alive: Duration,
    /// Time without progress in sending after which a client's connection is ended.
    #[serde(with = "duration")]
    pub send_timeout: Duration,
    #[serde(with = "duration")]
    pub drain: Duration,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: any_address(8080),
            base_url: String::new(),
            upgrade_url: String::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            workers: 0,
            max_json: ByteSize::mib(1),
            max_connections: 25_000,
            max_streams: 100,
            max_header_list: ByteSize::kib(64),
            max_handshakes: 1024,
            handshake_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            send_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(20),
        }
    }
}

impl Http {
    /// The files for HTTPS, when it is configured.
    pub fn tls(&self) -> Option<(&std::path::Path, &std::path::Path)> {
        (!self.tls_cert.as_os_str().is_empty())
            .then_some((self.tls_cert.as_path(), self.tls_key.as_path()))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_url("http.base_url", &self.base_url, &["http", "https"])?;
        check_url("http.upgrade_url", &self.upgrade_url, &["http", "https"])?;
        for origin in &self.cors_origins {
            check_url("http.cors_origins", origin, &["http", "https"])?;
        }
        if self.tls_cert.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            return Err("http.tls_cert and http.tls_key go together: set both or none".into());
        }
        if !(1024..=64 << 20).contains(&self.max_json.as_u64()) {
            return Err("http.max_json must be between 1 KiB and 64 MiB".into());
        }
        at_least("http.max_connections", self.max_connections > 0, "1")?;
        if !(1..=1_000).contains(&self.max_streams) {
            return Err("http.max_streams must be between 1 and 1000".into());
        }
        if !(4 << 10..=1 << 20).contains(&self.max_header_list.as_u64()) {
            return Err("http.max_header_list must be between 4 KiB and 1 MiB".into());
        }
        at_least("http.max_handshakes", self.max_handshakes > 0, "1")?;
        for (key, value) in [
            ("http.handshake_timeout", self.handshake_timeout),
            ("http.header_timeout", self.header_timeout),
            ("http.body_timeout", self.body_timeout),
        ] {
            if value.is_zero() {
                return Err(format!("{key} must be longer than 0s"));
            }
        }
        if !(1..=24 * 3600).contains(&self.send_timeout.as_secs()) {
            return Err("http.send_timeout must be between 1s and 24h".into());
        }
        Ok(())
    }
}

/// `[uploads]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Uploads {
    #[serde(with = "size")]
    pub max_file: ByteSize,
    /// Requests that receive files at a time; each takes about half a MiB of memory.
    pub max_active: usize,
    /// Silence of a client in the midst of a file or form.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    pub max_fields: usize,
    /// All text fields of a form together.
    #[serde(with = "size")]
    pub max_text: ByteSize,
    /// Longest time of a direct upload from its creation to its completion.
    #[serde(with = "duration")]
    pub keep_unfinished: Duration,
    /// Unfinished resumable uploads of an account.
    pub max_unfinished: u64,
    /// Bytes of a resumable upload that a crash may cost: the amount between two flushes to the disk.
    #[serde(with = "size")]
    pub checkpoint: ByteSize,
    /// Lifetime of the `download_url` of a stored file.
    #[serde(with = "duration")]
    pub link_lifetime: Duration,
}

impl Default for Uploads {
    fn default() -> Self {
        Self {
            max_file: ByteSize::gb(100),
            max_active: 256,
            idle_timeout: Duration::from_secs(30),
            max_fields: 100,
            max_text: ByteSize::kib(64),
            keep_unfinished: Duration::from_secs(24 * 3600),
            max_unfinished: 1000,
            checkpoint: ByteSize::mib(16),
            link_lifetime: Duration::from_secs(5 * 60),
        }
    }
}

impl Uploads {
    pub(super) fn check(&self) -> Result<(), String> {
        at_least("uploads.max_active", self.max_active > 0, "1")?;
        if !(1..=10_000).contains(&self.max_fields) {
            return Err("uploads.max_fields must be between 1 and 10000".into());
        }
        if !(1024..=16 << 20).contains(&self.max_text.as_u64()) {
            return Err("uploads.max_text must be between 1 KiB and 16 MiB".into());
        }
        at_least("uploads.max_unfinished", self.max_unfinished > 0, "1")?;
        if self.checkpoint.as_u64() < 256 << 10 {
            return Err("uploads.checkpoint must be at least 256 KiB".into());
        }
        for (key, value) in [
            ("uploads.idle_timeout", self.idle_timeout),
            ("uploads.keep_unfinished", self.keep_unfinished),
            ("uploads.link_lifetime", self.link_lifetime),
        ] {
            at_least(key, value.as_secs() > 0, "1s")?;
        }
        Ok(())
    }
}

/// `[sign_in]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// Wrong passwords for one user from one network inside `window`, then 429.
    pub attempts: u32,
    /// Wrong passwords for all users from one network inside `window`, then 429.
    pub network_attempts: u32,
    /// Password checks of one network that wait or run, links' among them; 429 for further ones.
    pub max_waiting: usize,
    #[serde(with = "duration")]
    pub window: Duration,
    #[serde(with = "duration")]
    pub session_lifetime: Duration,
    /// Sessions of one user; with a further one the one that was not used for longest ends.
    pub max_sessions: u32,
    /// Requests of one session; 0: no bound. Keys have the bound of their account's plan.
    pub requests_per_minute: u32,
    /// Requests of one session's resumable uploads, which do not count as its others; 0: no bound.
    pub upload_requests_per_minute: u32,
}

impl Default for SignIn {
    fn default() -> Self {
        Self {
            attempts: 5,
            network_attempts: 50,
            max_waiting: 32,
            window: Duration::from_secs(15 * 60),
            session_lifetime: Duration::from_secs(7 * 24 * 3600),
            max_sessions: 50,
            requests_per_minute: 600,
            upload_requests_per_minute: 6_000,
        }
    }
}

impl SignIn {
    pub(super) fn check(&self) -> Result<(), String> {
        at_least("sign_in.attempts", self.attempts > 0, "1")?;
        at_least("sign_in.network_attempts", self.network_attempts > 0, "1")?;
        at_least("sign_in.max_waiting", self.max_waiting > 0, "1")?;
        at_least("sign_in.window", self.window.as_secs() > 0, "1s")?;
        if self.session_lifetime.as_secs() < 60 {
            return Err("sign_in.session_lifetime must be at least 1m".into());
        }
        if !(1..=1_000).contains(&self.max_sessions) {
            return Err("sign_in.max_sessions must be between 1 and 1000".into());
        }
        Ok(())
    }
}

/// `[bootstrap]`: the first credentials of an empty database; empty means made at random and printed once.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bootstrap {
    pub admin_password: String,
    pub api_key: String,
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap").finish_non_exhaustive()
    }
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    pub format: LogFormat,
    /// Directives of `tracing_subscriber::EnvFilter`.
    pub filter: String,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            filter: "info,kameo=warn,actix_server=warn,actix_http=off,rmcp=off".to_owned(),
        }
    }
}

impl Log {
    /// Returns the filter, with crates off that it does not name: at `debug` the transport of agents' tools and the
    /// handshake of SRT write whole messages, secrets among them.
    pub fn directives(&self) -> String {
        let mut directives = self.filter.clone();
        for crate_name in ["rmcp", "srt_protocol", "srt_tokio"] {
            if !self.filter.contains(crate_name) {
                directives.push_str(&format!(",{crate_name}=off"));
            }
        }
        directives
    }

    pub(super) fn check(&self) -> Result<(), String> {
        tracing_subscriber::EnvFilter::try_new(self.directives())
            .map(drop)
            .map_err(|error| format!("log.filter: {error}"))
    }
}

/// Checks an address: empty, or one of `schemes` with a host and without query, fragment and user information.
pub(super) fn check_url(key: &str, text: &str, schemes: &[&str]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let plain = |url: &Url| {
        schemes.contains(&url.scheme())
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.username().is_empty()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    match Url::parse(text) {
        Ok(url) if plain(&url) => Ok(()),
        _ => Err(format!(
            "{key} must be an address such as {}://media.example.org, without query and user, got `{text}`",
            schemes[schemes.len() - 1]
        )),
    }
}

/// `[mcp]`: the tools for agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// True when `/mcp` answers.
    pub enabled: bool,
    /// Names, beside those that the service knows of itself, under which `/mcp` may be reached (`Host`).
    pub allowed_hosts: Vec<String>,
    /// Origins of pages, beside the service's own, that may call `/mcp`.
    pub allowed_origins: Vec<String>,
    /// A call that takes longer returns the id of its run, which continues.
    #[serde(with = "duration")]
    pub wait: Duration,
    /// Calls in progress at a time; one account has at most three quarters of them.
    pub max_calls: usize,
    /// Folders whose files `sluice mcp` may upload.
    pub roots: Vec<PathBuf>,
    /// Requests of its client that `sluice mcp` has in flight at a time.
    pub stdio_calls: usize,
    /// The longest message that `sluice mcp` takes from its client or from the service.
    #[serde(with = "size")]
    pub stdio_message: ByteSize,
    /// Longest wait of `sluice mcp` for an answer, and for each further piece of one.
    #[serde(with = "duration")]
    pub stdio_patience: Duration,
    /// Longest wait of `sluice mcp` for open answers once its input has ended.
    #[serde(with = "duration")]
    pub stdio_linger: Duration,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            enabled: true,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            wait: Duration::from_secs(45),
            max_calls: 64,
            roots: Vec::new(),
            stdio_calls: 32,
            stdio_message: ByteSize::mib(4),
            stdio_patience: Duration::from_secs(5 * 60),
            stdio_linger: Duration::from_secs(60),
        }
    }
}

impl Mcp {
    pub(super) fn check(&self) -> Result<(), String> {
        at_least("mcp.max_calls", self.max_calls > 0, "1")?;
        for host in &self.allowed_hosts {
            let is_host = Url::parse(&format!("http://{host}")).is_ok_and(|url| {
                url.path() == "/" && url.username().is_empty() && url.query().is_none()
            });
            if !is_host {
                return Err(format!(
                    "mcp.allowed_hosts must hold names such as media.example.org or media.example.org:8443, got `{host}`"
                ));
            }
        }
        for origin in &self.allowed_origins {
            check_url("mcp.allowed_origins", origin, &["http", "https"])?;
        }
        if !(1..=1024).contains(&self.stdio_calls) {
            return Err("mcp.stdio_calls must be between 1 and 1024".into());
        }
        if !(64 << 10..=64 << 20).contains(&self.stdio_message.as_u64()) {
            return Err("mcp.stdio_message must be between 64 KiB and 64 MiB".into());
        }
        if self.stdio_patience.is_zero() {
            return Err("mcp.stdio_patience must be longer than 0s".into());
        }
        Ok(())
    }
}
