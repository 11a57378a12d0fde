//! nginx with its RTMP module, compared in scenario `live`: the same publishers, HLS on, one process.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use sluice_testkit::{
    Failure,
    process::{Server, free_port},
    publisher::Target,
};

const START_DEADLINE: Duration = Duration::from_secs(10);

/// Folder in which `scripts/install.sh bench` unpacks nginx when the machine has none.
const UNPACKED: &str = "target/tools/nginx-rtmp";

/// Starts nginx with its files in `folder`. Returns it and `count` places to publish to.
pub(crate) async fn start(
    root: &Path,
    folder: &Path,
    count: usize,
) -> Result<(Server, Vec<Target>), Failure> {
    let (program, module) = installed(root)?;
    let port = free_port()?;
    let hls = folder.join("hls");
    std::fs::create_dir_all(&hls)?;
    let settings = folder.join("nginx.conf");
    std::fs::write(&settings, configuration(&module, folder, &hls, port))?;
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(&settings)
        .arg("-p")
        .arg(folder)
        .arg("-e")
        .arg(folder.join("error.log"));
    let server = Server::start("nginx", &mut command, &folder.join("nginx.log"))?;

    let address = format!("127.0.0.1:{port}");
    let started = Instant::now();
    while tokio::net::TcpStream::connect(&address).await.is_err() {
        if started.elapsed() > START_DEADLINE || server.figures().is_err() {
            let log = std::fs::read_to_string(folder.join("nginx.log")).unwrap_or_default();
            return Err(format!("nginx does not listen:\n{log}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let target = |number| Target {
        address: address.clone(),
        app: "live".into(),
        stream: format!("load{number}"),
    };
    Ok((server, (0..count).map(target).collect()))
}

/// The program and the module, installed or unpacked.
fn installed(root: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    [PathBuf::from("/"), root.join(UNPACKED)]
        .iter()
        .map(|place| {
            (
                place.join("usr/sbin/nginx"),
                place.join("usr/lib/nginx/modules/ngx_rtmp_module.so"),
            )
        })
        .find(|(program, module)| program.exists() && module.exists())
        .ok_or_else(|| "nginx with its RTMP module is missing: run scripts/install.sh bench".into())
}

/// Writes the configuration: one process, so that its figures are the whole server's; segments of 2 s and a list of 20
/// s, as Sluice's defaults.
fn configuration(module: &Path, folder: &Path, hls: &Path, port: u16) -> String {
    format!(
        "load_module {module};
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
rtmp {{
    server {{
        listen 127.0.0.1:{port};
        chunk_size 4096;
        max_message 8M;
        access_log off;
        application live {{
            live on;
            hls on;
            hls_path {hls};
            hls_fragment 2s;
            hls_playlist_length 20s;
        }}
    }}
}}
",
        module = module.display(),
        folder = folder.display(),
        hls = hls.display(),
    )
}
