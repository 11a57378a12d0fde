//! Files that no one should send: each costs its sender an error, at most one worker, and no other anything.

mod names;
mod references;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use reqwest::StatusCode;

use crate::{
    support::{
        Failure, eventually,
        images::{available, crafted, drawn, spoilt},
        neighbour::Neighbour,
        server::{Api, Fetched, Form, Server, Settings},
    },
    worker::workers,
};

/// A hanging worker is killed soon, and an intact image has its time on a busy machine: workers have the lowest
/// priority there.
const WORKER_TIMEOUT: &str = "15s";
const WORKERS: usize = 2;
/// Deadline for an answer: several times that of a killed task and its wait behind another one.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// Spoilt files sent at a time.
const AT_ONCE: usize = 4;

async fn guarded_server() -> Result<Server, Failure> {
    Settings::new()
        .env("SLUICE_IMAGE_WORKERS__TIMEOUT", WORKER_TIMEOUT)
        .env("SLUICE_IMAGE_WORKERS__WORKERS", &WORKERS.to_string())
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_ask_for_much_are_refused_in_seconds() -> Result<(), Failure> {
    if !available("files_that_ask_for_much_are_refused_in_seconds")? {
        return Ok(());
    }
    let server = guarded_server().await?;
    let neighbour = neighbour(&server)?;
    // A file that decodes in time may also be answered 200.
    let cases: [(&str, &[u16]); 40] = [
        ("giant.png", &[413]),
        ("giant.gif", &[413]),
        // Its first frame alone is an image of one pixel.
        ("frames.gif", &[200]),
        ("giant.jpg", &[413]),
        ("giant.webp", &[413, 415]),
        ("giant.bmp", &[413, 415]),
        ("giant.tga", &[413, 415]),
        ("giant.tiff", &[413, 415]),
        ("giant.pdf", &[200, 413, 415, 422]),
        ("giant.ico", &[413, 415]),
        ("negative.bmp", &[413, 415]),
        ("scans.jpg", &[200, 413, 415, 422]),
        ("data-bomb.png", &[200, 413, 422]),
        ("profile-bomb.png", &[200, 413, 415, 422]),
        ("loop.tiff", &[413, 415, 422]),
        ("loop.pdf", &[413, 415, 422]),
        ("svg-nested-use.svg", &[200, 413, 415, 422]),
        ("svg-filter.svg", &[200, 413, 415, 422]),
        ("svg-pattern.svg", &[200, 413, 415, 422]),
        ("svg-nested-pattern.svg", &[200, 413, 415, 422]),
        ("svg-laughs.svg", &[200, 413, 415, 422]),
        ("svg-deep.svg", &[200, 413, 415, 422]),
        ("svg-giant.svg", &[200, 413, 415, 422]),
        ("svg-endless-path.svg", &[200, 413, 415, 422]),
        ("svg-not-a-number.svg", &[200, 413, 415, 422]),
        ("zip-zeros.zip", &[413, 415, 422]),
        ("zip-many.zip", &[413]),
        ("zip-nested.zip", &[400, 413, 415, 422]),
        ("zip-lying.zip", &[413, 415, 422]),
        ("zip-cut.zip", &[413, 415, 422]),
        ("zip-empty.zip", &[400, 415, 422]),
        ("list.png", &[415]),
        ("list.jpg", &[415]),
        ("concat.png", &[415]),
        ("magick.png", &[415]),
        ("page.png", &[415]),
        ("script.jpg", &[415]),
        ("zeros.png", &[415]),
        ("noise.webp", &[415]),
        ("really-a-jpeg.png", &[200]),
    ];
    let mut wrong = Vec::new();
    for (name, allowed) in cases {
        let started = Instant::now();
        let answer = convert(&server.api(), name, &crafted(name)?).await?;
        let took = started.elapsed();
        if let Err(failure) = answer.check_typed() {
            wrong.push(format!("{name}: {failure}"));
        } else if !allowed.contains(&answer.status.as_u16()) || took > ANSWERED_WITHIN {
            let text = answer.text();
            wrong.push(format!(
                "{name}: {} after {took:.1?}: {text}",
                answer.status
            ));
        }
    }
    for name in ["empty.png", "byte.jpg", "head.jpg"] {
        let answer = convert(&server.api(), name, &crafted(name)?).await?;
        let refused = matches!(answer.status.as_u16(), 400 | 415 | 422);
        if !refused || answer.check_typed().is_err() {
            wrong.push(format!("{name}: {}", answer.status));
        }
    }
    let moving = convert_to(&server.api(), "webp", "frames.gif", &crafted("frames.gif")?).await?;
    if moving.status != StatusCode::PAYLOAD_TOO_LARGE {
        wrong.push(format!("frames.gif to webp: {}", moving.status));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!Path::new("/tmp/sluice-was-here.png").exists());
    neighbour.leave().await?;
    check_settled(server).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoilt_files_are_answered_in_kind() -> Result<(), Failure> {
    if !available("spoilt_files_are_answered_in_kind")? {
        return Ok(());
    }
    let server = guarded_server().await?;
    let neighbour = neighbour(&server)?;
    let key = server.api().delivery_key().await?;
    let files = spoilt()?;
    assert!(files.len() > 100, "{}", files.len());
    for few in files.chunks(AT_ONCE) {
        let sent = few.iter().map(|(name, bytes)| {
            let (api, key) = (server.api(), key.clone());
            async move {
                let answer = convert(&api, name, bytes).await?;
                check_answer(name, &answer)?;
                let id = api.upload_id(name, bytes).await?;
                let delivered = api.deliver(&key, &id, "w=64&format=webp").await?;
                check_answer(name, &delivered)
            }
        });
        for outcome in futures_util::future::join_all(sent).await {
            outcome?;
        }
    }
    neighbour.leave().await?;
    check_settled(server).await
}

async fn convert(api: &Api, name: &str, bytes: &[u8]) -> Result<Fetched, Failure> {
    convert_to(api, "png", name, bytes).await
}

async fn convert_to(api: &Api, format: &str, name: &str, bytes: &[u8]) -> Result<Fetched, Failure> {
    let form = Form::new()
        .file("files", name, bytes)
        .field("format", format);
    api.post_form("/api/convert", form).await
}

/// A result, or a rejection that says why.
fn check_answer(name: &str, answer: &Fetched) -> Result<(), Failure> {
    let status = answer.status.as_u16();
    if !matches!(status, 200 | 400 | 413 | 415 | 422) {
        return Err(format!("{name}: {status}: {}", answer.text()).into());
    }
    answer
        .check_typed()
        .map_err(|failure| format!("{name}: {failure}").into())
}

/// No one is left over: as many workers as there should be, no temporary file, and the service still serves.
async fn check_settled(mut server: Server) -> Result<(), Failure> {
    server.nothing_temporary_is_left(SETTLED_WITHIN).await?;
    let service = server.process_id().ok_or("the service has ended")?;
    let parent = format!("--parent {service} ");
    eventually("no worker too many", SETTLED_WITHIN, async || {
        let left = workers(|command| command.contains(&parent)).ok()?;
        (left.len() <= WORKERS).then_some(())
    })
    .await?;
    assert!(server.is_running());
    let answer = convert(&server.api(), "plain.jpg", &drawn("plain.jpg")?).await?;
    answer.expect(200)?;
    Ok(())
}

/// Returns a client that converts a valid image.
fn neighbour(server: &Server) -> Result<Neighbour, Failure> {
    let (api, image) = (server.api(), drawn("plain.jpg")?);
    Ok(Neighbour::start(move || {
        let (api, image) = (api.clone(), image.clone());
        async move {
            let answer = convert(&api, "plain.jpg", &image).await?;
            answer.expect(200).map(drop)
        }
    }))
}
