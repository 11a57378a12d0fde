//! HAProxy with the configuration of `packaging/haproxy.cfg`, and the addresses of the nodes in it.

use std::{net::SocketAddr, path::PathBuf, process::Command, time::Duration};

use tempfile::TempDir;

use super::{
    Failure,
    api::client,
    eventually,
    process::{Process, free_address, program, root, show_end},
};

const START_DEADLINE: Duration = Duration::from_secs(10);

/// The balancer; it ends when this is dropped.
pub struct Balancer {
    folder: TempDir,
    address: SocketAddr,
    _process: Process,
}

impl Balancer {
    /// Starts it before nodes that are ready: their addresses of HTTP and RTMP.
    pub async fn start(nodes: &[(SocketAddr, SocketAddr)]) -> Result<Self, Failure> {
        let (address, rtmp) = (free_address()?, free_address()?);
        let mut text = std::fs::read_to_string(root().join("packaging/haproxy.cfg"))?;
        for (number, (http_of_node, rtmp_of_node)) in (1..).zip(nodes) {
            let (http_port, rtmp_port) = (http_of_node.port(), rtmp_of_node.port());
            text = text
                .replace(
                    &format!("10.0.0.{number}:8080"),
                    &format!("127.0.0.1:{http_port}"),
                )
                .replace(
                    &format!("10.0.0.{number}:1935 check port 8080"),
                    &format!("127.0.0.1:{rtmp_port} check port {http_port}"),
                );
        }
        let is_of_another = |line: &str| line.contains("10.0.0.");
        let lines = text.lines().filter(|line| !is_of_another(line));
        let text: String = lines
            .map(|line| match line.trim().split_once(' ') {
                Some(("bind", bound)) if bound.starts_with(":443") => format!("bind {address}\n"),
                Some(("bind", ":1935")) => format!("bind {rtmp}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let folder = TempDir::with_prefix("sluice-cluster-")?;
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, text)?;
        let mut command = Command::new(program("haproxy", "haproxy/haproxy")?);
        command.arg("-db").arg("-f").arg(file);
        let process = Process::start("HAProxy", &mut command, &folder.path().join("log"))?;
        let balancer = Self {
            folder,
            address,
            _process: process,
        };
        let (client, url) = (client(), format!("http://{address}/readyz"));
        eventually("a request passes HAProxy", START_DEADLINE, async || {
            let answer = client.get(&url).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await?;
        Ok(balancer)
    }

    /// Without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        show_end("HAProxy", &self.log());
    }
}
