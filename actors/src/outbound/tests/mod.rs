//! The connector against listeners on loopback: what must not be reached, and receivers that behave badly.

mod fetches;
mod posts;
mod receiver;
mod reuse;
mod spellings;
mod streams;
mod tls;

use std::{collections::HashMap, io, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;

use super::{Answer, Error, Outbound, OutboundSettings, Post, Resolve};

/// Far longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(30);
/// Short enough to wait for.
const SOON: Duration = Duration::from_millis(300);

/// Settings under which loopback may be reached.
fn open_settings() -> OutboundSettings {
    OutboundSettings {
        allow: ["127.0.0.0/8", "::1"]
            .map(|text| text.parse().unwrap())
            .into(),
        ..OutboundSettings::default()
    }
}

fn open() -> Outbound {
    Outbound::new(&open_settings()).expect("no ca_file")
}

fn post_to(url: &str) -> Post<'_> {
    Post {
        url,
        headers: Vec::new(),
        body: Bytes::from_static(b"{}"),
        timeout: PATIENCE,
        max_answer: 1 << 10,
    }
}

async fn post(outbound: &Outbound, url: &str) -> Result<Answer, Error> {
    outbound.post(post_to(url)).await
}

/// Names that resolve to one answer after the other; the last one stays. Others do not resolve.
#[derive(Default)]
struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Names {
    fn new<'a>(names: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Arc<Self> {
        let parsed = |answer: &str| {
            let addresses = answer.split_whitespace();
            addresses.map(|address| address.parse().unwrap()).collect()
        };
        let names = names.into_iter().map(|(name, answers)| {
            let answers = answers.into_iter().map(parsed).collect();
            (name.to_owned(), answers)
        });
        Arc::new(Self(Mutex::new(names.collect())))
    }
}

impl Resolve for Names {
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock();
        let found = names.get_mut(host).map(|answers| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.remove(0),
        });
        async move { found.ok_or_else(|| io::Error::other("no such name")) }.boxed()
    }
}
