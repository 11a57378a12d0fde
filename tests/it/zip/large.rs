//! An archive past the old limits of ZIP: over 4 GiB and over 65 535 entries.

use std::time::Duration;

use super::{database, fetch, folder, path, python, store};
use crate::support::{
    Failure,
    server::{API_KEY, Server},
    shell::Shell,
};

/// Bound on the growth of the service's memory, in KiB.
const ALLOWANCE_KIB: u64 = 64 * 1024;
/// Four programs read 4 GiB each.
const PATIENCE: Duration = Duration::from_secs(600);

/// The archive takes no more room on the disk than what is not zero in it. Half of it comes in a second request.
const OPEN: &str = "
curl -sS -f -H \"Authorization: Bearer $KEY\" -r 0-4294967000 \"$ADDRESS\" | cp --sparse=always /dev/stdin a.zip
test \"$(stat -c %s a.zip)\" = 4294967001
curl -sS -f -H \"Authorization: Bearer $KEY\" -C - -o a.zip \"$ADDRESS\"
test \"$(stat -c %s a.zip)\" = \"$SIZE\"
unzip -tqq a.zip
7z t a.zip
bsdtar -xOf a.zip | tail -c 5
python3 -c 'import zipfile
archive = zipfile.ZipFile(\"a.zip\")
assert len(archive.infolist()) == 70002, len(archive.infolist())
assert archive.testzip() is None'
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_open_what_is_past_the_old_limits() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let root = folder(&api, "large", None).await?;
    store(&api, &root, "small.txt", b"small").await?;
    fetch(&api, &root, &[]).await?.expect(200)?;
    let before_kib = server.peak_resident_kib()?;
    let blobs = server.data_dir().join("blobs").display().to_string();
    let id = root.replace('-', "");
    python(
        include_str!("large.py"),
        &[&database(server.data_dir()), &blobs, &id],
    )
    .await?;

    let end = fetch(&api, &root, &[("range", "bytes=-22")])
        .await?
        .expect(206)?;
    let size = end
        .header("content-range")
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let address = format!("{}{}", server.base_url(), path(&root));
    let environment = [("KEY", API_KEY), ("ADDRESS", &address), ("SIZE", size)];
    let mut shell = Shell::start(OPEN, &environment)?;
    let said = shell.succeed(PATIENCE).await?;
    assert!(said.contains("Everything is Ok"), "{said}");
    let more_kib = server.peak_resident_kib()? - before_kib;
    assert!(more_kib < ALLOWANCE_KIB, "{more_kib} KiB more");
    Ok(())
}
