//! Frames of videos, and pages of documents, by their address.

use reqwest::Method;

use crate::support::{
    Failure,
    images::{available, drawn, look},
    media::{Recipe, read_numbers},
    server::Server,
};

const SECONDS: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_is_delivered_as_its_frame_at_a_time() -> Result<(), Failure> {
    if !available("a_video_is_delivered_as_its_frame_at_a_time")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let key = api.delivery_key().await?;
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let video = api
        .upload_id("clip.mp4", &std::fs::read(&clip.mp4)?)
        .await?;

    // 30 frames a second.
    for (time, number) in [("t=7.5", 225), ("v=1", 30), ("t=0", 0), ("t=86400", 299)] {
        let query = format!("{time}&format=png");
        let answer = api.deliver(&key, &video, &query).await?.expect(200)?;
        assert_eq!(answer.header("x-cache"), "miss", "{query}");
        assert_eq!(read_numbers(&answer.bytes)?, [number], "{query}");
    }
    for (query, cached) in [
        ("format=png&t=7.50", "hit"),
        ("format=png&t=1&v=9", "hit"),
        ("format=webp&t=7.5&w=80", "miss"),
        ("w=80&t=7.5&f=webp", "hit"),
    ] {
        let answer = api.deliver(&key, &video, query).await?.expect(200)?;
        assert_eq!(answer.header("x-cache"), cached, "{query}");
    }
    let small = api.deliver(&key, &video, "w=80&t=7.5&f=webp").await?;
    assert_eq!(look(&small.bytes).await?.size(), (80, 48));
    let facts = api.deliver(&key, &video, "format=json&t=3").await?;
    let facts = facts.expect(200)?.json()?;
    assert_eq!(
        (&facts["width"], &facts["height"]),
        (&160.into(), &96.into())
    );
    assert_eq!(
        facts["duration"].as_f64().map(f64::round),
        Some(f64::from(SECONDS))
    );

    let path = format!("/api/files/{video}");
    let (status, _) = api.call(Method::DELETE, &path, None).await?;
    assert!(status.is_success(), "{status}");
    for query in ["format=png&t=7.5", "format=png&t=3"] {
        api.deliver(&key, &video, query).await?.expect(404)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_a_document_know_no_time() -> Result<(), Failure> {
    if !available("pages_of_a_document_know_no_time")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let key = api.delivery_key().await?;
    let document = api.upload_id("c.pdf", &drawn("pages.pdf")?).await?;
    let mut corners = Vec::new();
    for (query, cached) in [
        ("w=120&format=png", "miss"),
        ("w=120&format=png&page=1&t=5", "hit"),
        ("w=120&format=png&page=2", "miss"),
        ("w=120&format=png&page=2&t=0", "hit"),
    ] {
        let answer = api.deliver(&key, &document, query).await?.expect(200)?;
        assert_eq!(answer.header("x-cache"), cached, "{query}");
        corners.push(look(&answer.bytes).await?.corners());
    }
    assert_eq!((corners[0], corners[2]), (corners[1], corners[3]));
    assert_ne!(corners[0], corners[2], "pages differ in their colours");
    // A quarter of a second of silence, 8000 samples of 16 bits a second.
    let mut audio = b"RIFF\xc4\x0f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\xa0\x0f\0\0".to_vec();
    audio.resize(44 + 4000, 0);
    let audio = api.upload_id("a.wav", &audio).await?;
    api.deliver(&key, &audio, "w=9").await?.expect(415)?;
    Ok(())
}
