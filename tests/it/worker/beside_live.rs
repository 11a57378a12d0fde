//! Processing concurrent with a live stream does not slow the stream: live has the higher priority.

use tokio::task::JoinSet;

use crate::support::{
    Failure,
    images::{available, photographs},
    media::Recipe,
    on_air::OnAir,
    server::Server,
};

const SECONDS: u32 = 14;
const ENCODES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_avif_encodes_cost_a_stream_no_part() -> Result<(), Failure> {
    if !available("four_avif_encodes_cost_a_stream_no_part")? {
        return Ok(());
    }
    let photograph = std::fs::read(photographs(1)?.first().ok_or("no photograph")?)?;
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let on_air = OnAir::start(&server, &clip).await?;

    let mut encodes = JoinSet::new();
    for _ in 0..ENCODES {
        let (api, photograph) = (server.api(), photograph.clone());
        encodes.spawn(async move {
            let fields = [("format", "avif"), ("compression", "60")];
            api.convert("photograph.jpg", &photograph, &fields).await
        });
    }
    while let Some(encoded) = encodes.join_next().await {
        let (record, bytes) = encoded??;
        assert_eq!(&bytes[4..12], b"ftypavif", "{record}");
    }

    on_air.check_whole().await
}
