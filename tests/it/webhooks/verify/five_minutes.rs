//! The webhook guide's five minutes, pasted into a shell.

use std::time::Duration;

use super::guide::GUIDE;
use crate::{
    support::{
        Failure,
        document::{blocks, section},
        eventually,
        http::free_port,
        server::API_KEY,
        shell::Shell,
    },
    webhooks::settings,
};

/// The commands sleep for some seconds themselves.
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_first_receiver_verifies_what_comes_and_what_is_replayed() -> Result<(), Failure>
{
    let section = section(GUIDE, "Webhooks in five minutes").ok_or("no section about webhooks")?;
    let commands = blocks(section, "sh");
    let [start, receive, replay] = &commands[..] else {
        return Err(format!("{} blocks of commands", commands.len()).into());
    };
    assert_eq!(start, "SLUICE_OUTBOUND__ALLOW=127.0.0.0/8 make run\n");
    let server = settings().start().await?;

    let port = free_port()?.to_string();
    // The reader ends the receiver when it has printed the first event.
    let printed = "until grep -q 'verified {' output; do sleep 0.1; done\n";
    let script = format!("{receive}{printed}{replay}").replace("9000", &port);
    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let shell = Shell::start(&script, &environment)?;
    let said = eventually("two verified events", DEADLINE, async || {
        Some(shell.read("output")).filter(|said| said.matches("verified {").count() == 2)
    });
    let said = said
        .await
        .map_err(|late| format!("{late}: {}", shell.read("output")))?;
    assert_eq!(said.matches("'type': 'file.uploaded'").count(), 2, "{said}");
    assert!(!said.contains("REFUSED"), "{said}");
    let failing: serde_json::Value = serde_json::from_str(&shell.read("deliveries.json"))?;
    let delivery = &failing["deliveries"][0];
    assert_eq!(delivery["status"], "retrying", "{delivery}");
    assert!(delivery["error"].is_string() && delivery["nextAttemptAt"].is_string());
    Ok(())
}
