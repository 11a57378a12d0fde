//! Chromium as viewer and publisher: pages of `tests/browser/webrtc.mjs`.

use serde_json::Value;

use super::SOON;
use crate::{
    browser::{Page, Turn},
    support::Failure,
};

/// Energy of audio that is not silence.
pub const HEARD: f64 = 1e-6;
/// Share of the source's frames that come at least: a browser decodes them, or leaves them out on a busy machine. The figure for a
/// quiet one is in docs/reference/performance.md.
const CAME: f64 = 0.8;

/// One browser with pages that have names. Ends when it is dropped.
pub struct Chromium(Page);

impl Chromium {
    /// `None`, said aloud, on a machine without a browser.
    pub async fn open() -> Result<Option<Self>, Failure> {
        let Some(turn) = Turn::alone().await? else {
            return Ok(None);
        };
        Ok(Some(Self(turn.drive("webrtc.mjs", &[]).await?)))
    }

    /// Opens the guide's player.
    pub async fn view(&mut self, name: &str, url: &str) -> Result<(), Failure> {
        self.0.command(&format!("view {name} {url}")).await?;
        Ok(())
    }

    /// Opens the guide's player, which is kept from using UDP.
    pub async fn view_by_tcp(&mut self, name: &str, url: &str) -> Result<(), Failure> {
        self.0.command(&format!("view {name} {url} tcp")).await?;
        Ok(())
    }

    /// Opens a page of the service.
    pub async fn page(&mut self, name: &str, url: &str) -> Result<(), Failure> {
        self.0.command(&format!("page {name} {url}")).await?;
        Ok(())
    }

    /// Opens a page of another site with the service's element, by WebRTC or by HLS.
    pub async fn embed(
        &mut self,
        name: &str,
        base: &str,
        playback_id: &str,
        transport: &str,
    ) -> Result<(), Failure> {
        let command = format!("embed {name} {base} {playback_id} {transport}");
        self.0.command(&command).await?;
        Ok(())
    }

    /// Opens the service's publish page and goes live with a made-up camera and microphone.
    pub async fn publish(&mut self, name: &str, url: &str) -> Result<(), Failure> {
        self.0.command(&format!("publish {name} {url}")).await?;
        Ok(())
    }

    pub async fn report(&mut self, name: &str) -> Result<Value, Failure> {
        self.0.command(&format!("report {name}")).await
    }

    /// Waits until a number of the report is at least this.
    pub async fn expect(&mut self, name: &str, field: &str, least: f64) -> Result<Value, Failure> {
        let command = format!("expect {name} {field} {least} {}", SOON.as_secs());
        self.0.command(&command).await
    }

    /// Waits until the other side has closed the connection.
    pub async fn expect_closed(&mut self, name: &str) -> Result<Value, Failure> {
        let command = format!("expect-closed {name} {}", SOON.as_secs());
        self.0.command(&command).await
    }

    /// Waits until a field of the service's own player has this value.
    pub async fn expect_player(
        &mut self,
        name: &str,
        field: &str,
        value: &str,
    ) -> Result<Value, Failure> {
        let command = format!("probe {name} {field} {value} {}", SOON.as_secs());
        self.0.command(&command).await
    }

    /// Waits until so many frames of a numbered clip have passed.
    pub async fn played(&mut self, name: &str, frames: u32) -> Result<Value, Failure> {
        // Of ten seconds, at most.
        let command = format!("played {name} {frames} {}", (SOON * 2).as_secs());
        self.0.command(&command).await
    }

    /// Leaves a page for an empty one.
    pub async fn leave(&mut self, name: &str) -> Result<(), Failure> {
        self.0.command(&format!("leave {name}")).await?;
        Ok(())
    }

    /// Ends a page's broadcast by its button.
    pub async fn stop(&mut self, name: &str) -> Result<(), Failure> {
        self.0.command(&format!("stop {name}")).await?;
        Ok(())
    }
}

/// The number in a field of a report.
pub fn number(report: &Value, field: &str) -> f64 {
    report[field].as_f64().unwrap_or_default()
}

/// Checks that nearly all frames of the clip that passed between two reports came and some were decoded, and that audio was heard.
pub fn check_played(name: &str, from: &Value, to: &Value) {
    let grown = |field: &str| number(to, field) - number(from, field);
    let (decoded, left_out, passed) = (grown("decoded"), grown("dropped"), grown("last"));
    assert!(passed > 0.0, "{name}: no frame has passed: {to}");
    assert!(decoded > 0.0, "{name}: no frame is decoded: {to}");
    assert!(
        decoded + left_out >= passed * CAME,
        "{name}: {decoded} of {passed} frames are decoded, {left_out} left out: {to}"
    );
    assert!(grown("audioEnergy") > 0.0, "{name}: no audio: {to}");
}
