//! Image caches after a restart and a kill.

use super::Gallery;
use crate::support::Failure;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_serves_from_disk() -> Result<(), Failure> {
    let mut gallery = Gallery::open().await?;
    let path = gallery.path("w=200&format=jpeg");
    let first = gallery.api.fetch(&path).await?.expect(200)?;
    gallery.wait_for_disk(1).await?;
    gallery.server.terminate().await?;
    gallery.server.restart().await?;
    let again = gallery.api.fetch(&path).await?.expect(200)?;
    assert_eq!(
        (again.header("x-cache"), &again.bytes),
        ("hit", &first.bytes)
    );
    assert_eq!(again.header("etag"), first.header("etag"));
    assert_eq!(gallery.renders().await?, 0);
    Ok(())
}

/// Killed in the middle of renders and writes: what is there is whole, and nothing unfinished stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_leaves_no_half_variant() -> Result<(), Failure> {
    let mut gallery = Gallery::open().await?;
    for round in 0..3 {
        let asking: Vec<_> = (0..20)
            .map(|number| {
                let path = gallery.path(&format!("w={}&format=jpeg", 100 + 20 * round + number));
                let api = gallery.api.clone();
                tokio::spawn(async move { api.fetch(&path).await })
            })
            .collect();
        // The first answer shows that others are on their way.
        let path = gallery.path(&format!("w={}&format=jpeg", 100 + 20 * round));
        gallery.api.fetch(&path).await?.expect(200)?;
        gallery.server.kill().await?;
        for asked in asking {
            drop(asked.await);
        }
        gallery.server.restart().await?;
        let unfinished = gallery.server.data_dir().join("cache/unfinished");
        assert_eq!(super::files_below(&unfinished), 0);
    }
    for width in 100..160 {
        let path = gallery.path(&format!("w={width}&format=jpeg"));
        let answer = gallery.api.fetch(&path).await?.expect(200)?;
        assert!(answer.bytes.starts_with(b"\xff\xd8") && answer.bytes.ends_with(b"\xff\xd9"));
    }
    Ok(())
}
