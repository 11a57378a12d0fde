//! Archives of folders that change, and of folders that the caller may not read.

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};

use super::{database, fetch, folder, path, python, store};
use crate::support::{
    Failure,
    http::client,
    server::{API_KEY, Api, Server, Settings},
};

pub(super) const MIB: usize = 1 << 20;
/// More than sockets and what is opened ahead can hold.
pub(super) const FILES: usize = 48;

/// A folder of [`FILES`] times the same MiB; its id, and that of its last file.
pub(super) async fn album(api: &Api) -> Result<(String, String), Failure> {
    let album = folder(api, "album", None).await?;
    let bytes = vec![7; MIB];
    let mut last = String::new();
    for number in 0..FILES {
        let file = store(api, &album, &format!("{number}.bin"), &bytes).await?;
        file["id"].as_str().ok_or("no id")?.clone_into(&mut last);
    }
    Ok((album, last))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_deleted_meanwhile_ends_the_archive_short() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (album, last) = album(&api).await?;
    let address = format!("{}{}", server.base_url(), path(&album));
    let answer = client().get(address).bearer_auth(API_KEY).send().await?;
    let promised = answer.content_length().ok_or("no length")?;
    let mut body = answer.bytes_stream();
    let mut received = body.next().await.ok_or("nothing")??.to_vec();
    let gone = format!("/api/files/{last}");
    api.expect(StatusCode::OK, Method::DELETE, &gone, None)
        .await?;
    let mut failure = None;
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => received.extend(piece),
            Err(error) => failure = Some(error),
        }
    }
    assert!(failure.is_some(), "the client sees the failure");
    let length = received.len();
    assert!((length as u64) < promised, "{length} of {promised}");
    // All before it was sent, and nothing of it.
    assert!(length > (FILES - 2) * MIB, "{length}");
    let name = format!("{}.bin", FILES - 1);
    let end = &received[length - 1000..];
    assert!(!end.windows(name.len()).any(|part| part == name.as_bytes()));

    let rest = fetch(&api, &album, &[]).await?.expect(200)?;
    assert!(rest.bytes.len() > (FILES - 1) * MIB && (rest.bytes.len() as u64) < promised);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_have_bounds_and_belong_to_someone() -> Result<(), Failure> {
    let settings = Settings::new()
        .env("SLUICE_ARCHIVE__MAX_ENTRIES", "49")
        .env("SLUICE_ARCHIVE__MAX_ACTIVE", "1");
    let server = settings.start().await?;
    let api = server.api();
    let (album, _) = album(&api).await?;

    let unknown = api.fetch(&path(&album)).await?;
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    for unknown in ["00000000-0000-4000-8000-000000000000", "x"] {
        let unknown = fetch(&api, unknown, &[]).await?;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    }
    let (status, rejection) = api.call(Method::POST, &path(&album), None).await?;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{rejection}");

    // An archive is in progress until its reader drops the answer.
    let address = format!("{}{}", server.base_url(), path(&album));
    let under_way = client().get(address).bearer_auth(API_KEY).send().await?;
    assert_eq!(under_way.status(), StatusCode::OK);
    let busy = fetch(&api, &album, &[]).await?;
    assert_eq!(busy.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(busy.header("retry-after"), "5");
    drop(under_way);
    let again = crate::support::eventually("its place is free", super::PATIENCE, async || {
        let answer = fetch(&api, &album, &[("range", "bytes=0-0")]).await.ok()?;
        (answer.status == StatusCode::PARTIAL_CONTENT).then_some(())
    });
    again.await?;

    for name in ["the 49th", "one too many"] {
        store(&api, &album, name, b"x").await?;
    }
    let too_much = fetch(&api, &album, &[]).await?;
    assert_eq!(too_much.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(too_much.text().contains("archive.max_entries"));
    Ok(())
}

/// Folders count as files do, also where there is nothing in them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_folders_have_the_same_bounds() -> Result<(), Failure> {
    let settings = Settings::new()
        .env("SLUICE_ARCHIVE__MEMORY", "1 MiB")
        .env("SLUICE_ARCHIVE__MAX_ENTRIES", "10000");
    let server = settings.start().await?;
    let api = server.api();
    for (count, name_bytes, named) in [
        (3000, "90", None),
        (9000, "90", Some("archive.memory")),
        (10_001, "0", Some("archive.max_entries")),
    ] {
        let root = folder(&api, "root", None).await?;
        let arguments: [&str; 4] = [
            &database(server.data_dir()),
            &root.replace('-', ""),
            &count.to_string(),
            name_bytes,
        ];
        python(include_str!("folders.py"), &arguments).await?;
        let answer = fetch(&api, &root, &[]).await?;
        match named {
            None => assert!(answer.expect(200)?.bytes.len() > count * 2 * 95),
            Some(setting) => {
                assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
                assert!(answer.text().contains(setting), "{}", answer.text());
            }
        }
    }
    Ok(())
}
