//! The video guide's five minutes, pasted into a shell, on a machine that is too slow to answer any request with its
//! result.

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Failure,
    document::{blocks, section},
    media::Recipe,
    server::{API_KEY, Settings},
    shell::Shell,
};

const GUIDE: &str = include_str!("../../../docs/guide/video.md");
/// Longest time of all commands, with a small clip, in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_clip_becomes_everything_on_a_slow_machine() -> Result<(), Failure> {
    let section = section(GUIDE, "Video in five minutes").ok_or("no section about video")?;
    let commands = blocks(section, "sh").concat();
    let settings = Settings::new().env("SLUICE_CONVERT__INLINE_WAIT", "1ms");
    let server = settings.start().await?;
    let clip = std::fs::read(Recipe::numbered(0).lasting(6).make()?.mp4)?;

    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let mut shell = Shell::start_beside(&[("clip.mp4", &clip)], &commands, &environment)?;
    let said = shell.succeed(DEADLINE).await?;
    let made = std::fs::read_dir(shell.folder())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, Failure>>()?;
    for ending in [".gif", ".jpg", ".mp3", ".webm"] {
        let named = |name: &&String| name.ends_with(ending);
        assert_eq!(made.iter().filter(named).count(), 1, "{ending} of {made:?}");
    }
    // Each answer has a line of its own.
    let answers: Vec<Value> = said
        .lines()
        .filter(|line| line.contains("{\"") && !line.starts_with("data:"))
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{error} in {said}"))?;
    assert_eq!(answers.len(), 4 * 2 + 2, "{said}");

    let stream = serde_json::from_str::<Value>(&shell.read("stream.json"))?;
    let id = stream["stream"]["id"].as_str().ok_or("no stream")?;
    let path = format!("/api/video/streams/{id}");
    let stream = server
        .api()
        .expect(reqwest::StatusCode::OK, reqwest::Method::GET, &path, None)
        .await?;
    assert_eq!(stream["stream"]["status"], "ready", "{stream}");
    Ok(())
}
