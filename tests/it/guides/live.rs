//! The guides about live inputs, with Debian's ffmpeg as the encoder.

use std::time::Duration;

use serde_json::Value;

use super::{STRICT_CURL, document, run, script, written};
use crate::support::{
    Failure,
    document::{blocks, section},
    eventually,
    http::free_port,
    server::{API_KEY, Settings},
    shell::Shell,
};

/// Deadline for the encoder to be live, on a busy machine.
const ON_AIR: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_about_live_inputs_run() -> Result<(), Failure> {
    let guide = document("docs/guide/ffmpeg.md")?;
    let live = section(&guide, "Live by command line").ok_or("no section")?;
    let commands = blocks(live, "sh");
    let [create, send, meanwhile] = &commands[..] else {
        return Err(format!("{} blocks of commands", commands.len()).into());
    };
    let (ids, further) = meanwhile.split_once("\n\n").ok_or("no ids")?;
    let (recordings, restream) = (
        document("docs/guide/recordings.md")?,
        document("docs/guide/restream.md")?,
    );
    let target = format!("rtmp://127.0.0.1:{}/app/key", free_port()?);
    let restream = restream.replace("rtmps://live.example.com/app/abcd-efgh-1234", &target);

    let server = Settings::new().reaching_this_machine().start().await?;
    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let create = script(&format!("\n```sh\n{create}```\n"))?;
    let encoder = send.replace("1280x720", "320x180");
    let encoder = Shell::start(&format!("{create}{encoder}"), &environment)?;
    let input = eventually("an input was created", ON_AIR, async || {
        serde_json::from_str::<Value>(&encoder.read("input.json")).ok()
    });
    let input = input.await?;
    let playback = input["liveInput"]["playbackId"].as_str();
    let playlist = format!("/live/v1/{}/index.m3u8", playback.ok_or("no playback id")?);
    eventually("the stream plays", ON_AIR, async || {
        let (status, _) = server.get(&playlist).await.ok()?;
        status.is_success().then_some(())
    })
    .await
    .map_err(|late| format!("{late}: {}", encoder.read("output")))?;

    let settings = section(&recordings, "Recording").ok_or("no section about recording")?;
    let clips = section(&recordings, "Clips").ok_or("no section about clips")?;
    let playback = document("docs/guide/playback.md")?;
    let tokens = section(&playback, "Signed playback").ok_or("no section about tokens")?;
    let tokens = script(tokens)?.replace("https://live.example.org", &server.base_url());
    let tokens = format!("INPUT=$id API_KEY=$KEY ADMIN_KEY=$KEY\n{tokens}");
    let others = [
        script(settings)?,
        script(clips)?,
        script(&restream)?,
        tokens,
    ];
    let others = others.concat().replace(STRICT_CURL, "");
    let script = format!("{STRICT_CURL}{ids}\n{others}\necho\n{further}");
    let input_file = encoder.read("input.json");
    let shell = run(&server, &[("input.json", input_file.as_bytes())], &script).await?;

    let said = shell.read("output");
    for part in [
        "\"goal.mp4\"",
        "rtmp://127.0.0.1",
        "\"hlsUrl\"",
        "\"secret\"",
        "#EXTM3U",
        "\"advice\"",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let id = written(&shell, "input.json")?["liveInput"]["id"].clone();
    let record = server.api().get(id.as_str().ok_or("no id")?).await?;
    assert_eq!(record["recordMode"], "automatic", "{record}");
    assert_eq!(record["reconnectWindowSeconds"], 120, "{record}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_about_rtsp_runs() -> Result<(), Failure> {
    let guide = document("docs/guide/rtsp.md")?;
    let source = format!("127.0.0.1:{}", free_port()?);
    let script = script(&guide)?.replace("192.0.2.7:554", &source);
    let server = Settings::new().reaching_this_machine().start().await?;
    let shell = run(&server, &[], &script).await?;
    let made = &written(&shell, "output")?["liveInput"];
    assert_eq!(made["name"], "Yard", "{made}");
    let shown = made["pullUrl"].as_str().ok_or("no pullUrl")?;
    assert!(
        shown.contains(&source) && !shown.contains("secret"),
        "{shown}"
    );
    Ok(())
}
