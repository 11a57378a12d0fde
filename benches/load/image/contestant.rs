//! Image servers that are compared (`cdn-hit`, `cdn-miss`): how each is started, and the form of its addresses.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use super::crops::Crops;
use sluice_testkit::{
    Failure,
    process::{Server, free_port},
};

use crate::{http::Client, service::Service, upload::upload};

const START_DEADLINE: Duration = Duration::from_secs(20);

/// A requested variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) width: u32,
    /// `jpeg` or `webp`.
    pub(crate) format: &'static str,
    pub(crate) quality: u8,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Sluice(Box<Sluice>),
    Oximg(Server),
    Ipx(Server),
    Thumbor(Server),
    /// Serves files as they are.
    Nginx(Server),
}

/// Ours, with the images stored in it.
#[derive(Debug)]
struct Sluice {
    service: Service,
    delivery_key: String,
    /// By file name.
    files: HashMap<String, String>,
}

impl Contestant {
    /// The path of an image of the crops.
    pub(crate) fn path(&self, name: &str, variant: Variant) -> Result<String, Failure> {
        let Variant {
            width,
            format,
            quality,
        } = variant;
        Ok(match &self.kind {
            Kind::Sluice(sluice) => {
                let file = sluice.files.get(name).ok_or("not stored")?;
                let key = &sluice.delivery_key;
                format!("/cdn/v1/{key}/{file}?w={width}&q={quality}&format={format}")
            }
            Kind::Oximg(_) if format == "webp" => format!("/resize/{width}/0/{name}@webp"),
            Kind::Oximg(_) => format!("/resize/{width}/0/{name}@jpg"),
            Kind::Ipx(_) => format!("/w_{width},f_{format},q_{quality}/{name}"),
            Kind::Thumbor(_) => {
                format!("/unsafe/{width}x0/filters:format({format}):quality({quality})/{name}")
            }
            Kind::Nginx(_) => format!("/{name}"),
        })
    }

    pub(crate) fn process_id(&self) -> u32 {
        match &self.kind {
            Kind::Sluice(sluice) => sluice.service.server.process_id(),
            Kind::Oximg(server)
            | Kind::Ipx(server)
            | Kind::Thumbor(server)
            | Kind::Nginx(server) => server.process_id(),
        }
    }

    /// Empties what it may have kept of earlier rounds; the peers keep nothing.
    pub(crate) async fn forget(&self) -> Result<(), Failure> {
        let Kind::Sluice(sluice) = &self.kind else {
            return Ok(());
        };
        let tags: Vec<String> = sluice
            .files
            .values()
            .map(|id| format!("asset:{id}"))
            .collect();
        let body = serde_json::json!({ "tags": tags }).to_string();
        sluice.service.post("/api/cdn-purge", &body).await?;
        Ok(())
    }
}

/// Ours, with `crops` stored and a delivery key made.
pub(crate) async fn sluice(
    program: &Path,
    folder: &Path,
    crops: &Crops,
) -> Result<Contestant, Failure> {
    let settings = [("SLUICE_CDN__NEW_VARIANTS_PER_MINUTE", "0")];
    let service = Service::start_with(program, folder, &settings).await?;
    let idle = service.server.figures()?;
    let all = service.server.tree_figures()?;
    println!(
        "sluice at rest: service {:.1} MiB, its image workers {:.1} MiB",
        idle.resident_kib as f64 / 1024.0,
        (all.proportional_kib.saturating_sub(idle.proportional_kib)) as f64 / 1024.0,
    );
    let answer = service
        .post("/api/delivery-keys", r#"{"name":"load"}"#)
        .await?;
    let delivery_key = answer["token"].as_str().ok_or("no token")?.to_owned();
    let mut files = HashMap::new();
    let mut client = Client::new(service.address());
    for name in &crops.names {
        let id = upload(&mut client, name, &crops.read(name)?).await?;
        files.insert(name.clone(), id);
    }
    Ok(Contestant {
        name: "sluice",
        address: service.address().to_owned(),
        kind: Kind::Sluice(Box::new(Sluice {
            service,
            delivery_key,
            files,
        })),
    })
}

/// Peers that are installed; says which are not.
pub(crate) async fn peers(
    root: &Path,
    folder: &Path,
    crops: &Crops,
) -> Result<Vec<Contestant>, Failure> {
    let tools = root.join("target/tools");
    let mut peers = Vec::new();
    for (name, program) in [
        ("oximg 0.18.1", tools.join("oximg/bin/oximg")),
        ("ipx 3.1.1", tools.join("ipx/node_modules/.bin/ipx")),
        ("thumbor 7.8.0", tools.join("thumbor/bin/thumbor")),
    ] {
        if program.exists() {
            peers.push(peer(name, &program, folder, crops).await?);
        } else {
            println!("NOT MEASURED: {name} is not installed (scripts/install.sh peers)");
        }
    }
    Ok(peers)
}

async fn peer(
    name: &'static str,
    program: &Path,
    folder: &Path,
    crops: &Crops,
) -> Result<Contestant, Failure> {
    let port = free_port()?.to_string();
    let mut command = Command::new(program);
    // Two of a kind: their own defaults but for the quality, which is ours, and threads, of which they choose.
    match name.split(' ').next() {
        Some("oximg") => command
            .env("PORT", &port)
            .env("OXIMG_BIND", "127.0.0.1")
            .env("IMAGES_DIR", &crops.folder)
            .env("QUALITY", "80")
            .env("OXIMG_WEBP_QUALITY", "80"),
        Some("ipx") => command
            .args(["serve", "--host", "127.0.0.1", "--port", &port, "--dir"])
            .arg(&crops.folder),
        _ => {
            let settings = folder.join("thumbor.conf");
            let text = format!(
                "LOADER = 'thumbor.loaders.file_loader'\nFILE_LOADER_ROOT_PATH = {:?}\n\
                 STORAGE = 'thumbor.storages.no_storage'\nALLOW_UNSAFE_URL = True\n",
                crops.folder
            );
            std::fs::write(&settings, text)?;
            command
                .args(["--ip", "127.0.0.1", "--port", &port, "--processes", "2"])
                .arg("--conf")
                .arg(settings)
        }
    };
    let log = folder.join(format!("{}.log", name.replace(' ', "-")));
    let server = Server::start(name, &mut command, &log)?;
    let address = format!("127.0.0.1:{port}");
    listening(&server, &address, &log).await?;
    let kind = match name.split(' ').next() {
        Some("oximg") => Kind::Oximg(server),
        Some("ipx") => Kind::Ipx(server),
        _ => Kind::Thumbor(server),
    };
    Ok(Contestant {
        name,
        address,
        kind,
    })
}

/// nginx that serves the files of a folder: as many workers as cores, no log, everything else as Debian sets it.
pub(crate) async fn nginx(root: &Path, folder: &Path, files: &Path) -> Result<Contestant, Failure> {
    let program = ["usr/sbin/nginx"]
        .iter()
        .flat_map(|it| {
            let unpacked = root.join("target/tools/nginx-rtmp").join(it);
            [Path::new("/").join(it), unpacked]
        })
        .find(|path: &PathBuf| path.exists())
        .ok_or("nginx is missing: run scripts/install.sh bench")?;
    let port = free_port()?;
    let settings = folder.join("nginx.conf");
    let here = folder.display();
    let text = format!(
        "daemon off;\nworker_processes auto;\npid {here}/nginx.pid;\nerror_log {here}/error.log warn;\n\
         events {{ worker_connections 1024; }}\nhttp {{\n  sendfile on;\n  tcp_nopush on;\n  access_log off;\n\
         keepalive_requests 100000000;\n  client_body_temp_path {here}/b;\n  proxy_temp_path {here}/p;\n\
         fastcgi_temp_path {here}/f;\n  uwsgi_temp_path {here}/u;\n  scgi_temp_path {here}/s;\n\
         types {{ image/jpeg jpg; image/webp webp; }}\n\
         server {{ listen 127.0.0.1:{port}; root {}; }}\n}}\n",
        files.display()
    );
    std::fs::write(&settings, text)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&settings).arg("-p").arg(folder);
    let log = folder.join("nginx.log");
    let server = Server::start(
        "nginx",
        command.arg("-e").arg(folder.join("error.log")),
        &log,
    )?;
    let address = format!("127.0.0.1:{port}");
    listening(&server, &address, &log).await?;
    Ok(Contestant {
        name: "nginx",
        address,
        kind: Kind::Nginx(server),
    })
}

async fn listening(server: &Server, address: &str, log: &Path) -> Result<(), Failure> {
    let started = Instant::now();
    while tokio::net::TcpStream::connect(address).await.is_err() {
        if started.elapsed() > START_DEADLINE || server.figures().is_err() {
            let log = std::fs::read_to_string(log).unwrap_or_default();
            return Err(format!("{} does not listen:\n{log}", server.name).into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
