//! Downloads that break off and continue.

use reqwest::StatusCode;

use super::{fetch, folder, path, store};
use crate::support::{
    Failure,
    dice::Dice,
    http::client,
    server::{API_KEY, Server},
    shell::Shell,
};

/// Two thirds of it, then the rest, as a user does after the train has left the tunnel; and once more when all is
/// there.
const GO_ON: &str = "
curl -sS -f -H \"Authorization: Bearer $KEY\" -r 0-$((SIZE * 2 / 3)) -o part.zip \"$ADDRESS\"
curl -sS -f -H \"Authorization: Bearer $KEY\" -C - -o part.zip \"$ADDRESS\"
cmp whole.zip part.zip
unzip -tqq part.zip
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_range_is_that_part_of_the_whole_also_after_a_restart() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let root = folder(&api, "photos", None).await?;
    let inner = folder(&api, "inner", Some(&root)).await?;
    for number in 0..40_u64 {
        let place = if number % 3 == 0 { &inner } else { &root };
        let length = (number * number * 200) as usize;
        let bytes = crate::files::noise(number, length);
        store(&api, place, "photo.jpg", &bytes).await?;
    }
    let whole = fetch(&api, &root, &[]).await?.expect(200)?;
    let (tag, total) = (whole.header("etag").to_owned(), whole.bytes.len());
    assert_eq!(whole.header("accept-ranges"), "bytes");
    assert!(tag.starts_with('"'), "{tag}");

    server.terminate().await?;
    server.restart().await?;
    let api = server.api();
    let mut dice = Dice::new(8);
    for _ in 0..100 {
        let from = dice.below(total as u64) as usize;
        let to = (from + dice.below(300_000) as usize).min(total - 1);
        let range = format!("bytes={from}-{to}");
        let answer = fetch(&api, &root, &[("range", &range), ("if-range", &tag)]).await?;
        let answer = answer.expect(206)?;
        assert_eq!(
            answer.header("content-range"),
            format!("bytes {from}-{to}/{total}")
        );
        assert!(answer.bytes == whole.bytes[from..=to], "{range}");
    }
    for (range, status, length) in [
        ("bytes=-22", 206, 22),
        ("bytes=0-0,5-9", 200, total),
        ("bytes=9-3", 200, total),
        ("bytes=99999999999999999999-", 200, total),
        ("bytes=1-99999999999999999999", 200, total),
        ("bytes=0-18446744073709551615", 206, total),
        ("lines=1-2", 200, total),
    ] {
        let answer = fetch(&api, &root, &[("range", range)]).await?;
        assert_eq!(
            (answer.status.as_u16(), answer.bytes.len()),
            (status, length),
            "{range}"
        );
    }
    let outside = format!("bytes={total}-");
    let outside = fetch(&api, &root, &[("range", &outside)]).await?;
    assert_eq!(outside.status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(outside.header("content-range"), format!("bytes */{total}"));
    let known = fetch(&api, &root, &[("if-none-match", &tag)]).await?;
    assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0));
    let address = format!("{}{}", server.base_url(), path(&root));
    let head = client().head(&address).bearer_auth(API_KEY).send().await?;
    assert_eq!(head.headers()["content-length"], total.to_string().as_str());
    assert_eq!(head.bytes().await?.len(), 0);

    let files = [("whole.zip", whole.bytes.as_ref())];
    let size = total.to_string();
    let environment = [("KEY", API_KEY), ("ADDRESS", &address), ("SIZE", &size)];
    let mut shell = Shell::start_beside(&files, GO_ON, &environment)?;
    shell.succeed(super::PATIENCE).await?;

    // Another file, another archive: a download must not continue in it.
    store(&api, &root, "late.jpg", b"late").await?;
    let headers = [("range", "bytes=5-"), ("if-range", tag.as_str())];
    let changed = fetch(&api, &root, &headers).await?.expect(200)?;
    assert_ne!(changed.header("etag"), tag);
    Ok(())
}
