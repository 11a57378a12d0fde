//! Nodes, balancer, PostgreSQL and S3 of a scenario, of which one at a time is on the machine.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use super::{
    Failure,
    api::{Api, client},
    balancer::Balancer,
    eventually,
    node::Node,
    objects::{Kind, Objects},
    postgres::Postgres,
};

/// Two nodes and their servers fill the two cores of the machine that runs the tests.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// Longest time until a list of nodes shows who has come or gone: a lease, a beat, and a busy machine.
pub const NOTICED: Duration = Duration::from_secs(15);

/// All of it. The fields are dropped in this order.
pub struct Installation {
    pub balancer: Option<Balancer>,
    pub nodes: Vec<Node>,
    pub objects: Objects,
    pub postgres: Postgres,
    _machine: MutexGuard<'static, ()>,
}

impl Installation {
    /// Three nodes on SeaweedFS behind HAProxy, with further settings.
    pub async fn start(environment: &[(&str, &str)]) -> Result<Self, Failure> {
        Self::of(3, Kind::SeaweedFs, environment).await
    }

    /// That many nodes, started at once on an empty database.
    pub async fn of(
        count: usize,
        objects: Kind,
        environment: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let machine = MACHINE.lock().await;
        // The S3 server starts by itself while the files of the database are made, which blocks.
        let (objects, postgres) = tokio::try_join!(Objects::start(objects), Postgres::start())?;
        let mut nodes = Vec::new();
        for number in 1..=count {
            let node = Node::new(number, postgres.address(), objects.address(), environment);
            nodes.push(node.await?);
        }
        let mut installation = Self {
            balancer: None,
            nodes,
            objects,
            postgres,
            _machine: machine,
        };
        for node in &mut installation.nodes {
            node.launch()?;
        }
        for node in &mut installation.nodes {
            node.wait_ready().await?;
        }
        installation.wait_for_nodes(count).await?;
        let nodes = installation.nodes.iter();
        let addresses: Vec<_> = nodes.map(|node| (node.http, node.rtmp)).collect();
        installation.balancer = Some(Balancer::start(&addresses).await?);
        Ok(installation)
    }

    /// The service as clients see it, through the balancer.
    pub fn api(&self) -> Api {
        let balancer = self
            .balancer
            .as_ref()
            .expect("it is started with the nodes");
        Api::new(balancer.base_url())
    }

    /// Waits until each running node knows that many live ones.
    pub async fn wait_for_nodes(&mut self, count: usize) -> Result<(), Failure> {
        let client = client();
        for node in &mut self.nodes {
            if !node.is_running() {
                continue;
            }
            let url = format!("http://{}/metrics", node.http);
            let what = format!("{} knows {count} live nodes", node.name);
            eventually(&what, NOTICED, async || {
                let metrics = client.get(&url).send().await.ok()?.text().await.ok()?;
                (live_nodes(&metrics) == Some(count)).then_some(())
            })
            .await?;
        }
        Ok(())
    }
}

/// Reads the number of nodes that are up from `/metrics`.
fn live_nodes(metrics: &str) -> Option<usize> {
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix(r#"sluice_cluster_nodes{state="up"} "#))?;
    count.parse().ok()
}
