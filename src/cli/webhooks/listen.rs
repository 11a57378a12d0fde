//! `sluice webhooks listen`: follows `GET /api/events/stream`, `--forward` to a receiver; pauses before reconnecting. Events come
//! one at a time and in their order; a break is bridged by the cursor of the last one. Nothing is stored and nothing is tried
//! twice: this is a look at the feed, not an endpoint.

use std::{io::ErrorKind, process::ExitCode, time::Duration};

use bytes::Bytes;
use jiff::tz::TimeZone;
use sluice_actors::{outbound, webhooks::signature};
use sluice_store::{Secret, credentials};
use tokio::time::sleep;

use super::{
    super::{
        Error, block_on,
        event_stream::Reader,
        service::{Access, Service, check_url},
    },
    envelope::Envelope,
    receiver::Receiver,
    screen::Screen,
    selection::{self, Pattern},
    service::Unfollowed,
};
use crate::config::Config;

/// First pause before looking for a service that went away; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause before looking for a service that went away.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Largest event; those of the service are far smaller.
const MAX_EVENT_BYTES: usize = 8 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address to which each event is posted; without it events are only shown
    #[arg(long, value_name = "URL")]
    forward: Option<String>,
    #[command(flatten)]
    access: Access,
    /// Types of events, and families such as conversion.* [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    events: Vec<Pattern>,
    /// The signing secret that the receiver knows [default: made up, and shown]
    #[arg(long, value_name = "whsec_…", value_parser = signing_secret)]
    secret: Option<Secret>,
    /// Start: now, or a cursor of the feed
    #[arg(long, value_name = "now|CURSOR", default_value = "now")]
    since: String,
    /// Show each event's body on standard output, and everything else on standard error
    #[arg(long)]
    print_json: bool,
}

/// Checks a secret, which a library of Standard Webhooks must be able to use too.
fn signing_secret(text: &str) -> Result<Secret, String> {
    let is_usable = text.starts_with(signature::SECRET_PREFIX)
        && signature::standard_key(text).is_some_and(|key| !key.is_empty());
    is_usable
        .then(|| Secret::new(text))
        .ok_or_else(|| "expected whsec_ and base64, such as the secret of an endpoint".to_owned())
}

pub(super) fn run(arguments: Arguments, config: &Config) -> Result<ExitCode, Error> {
    let session = ListenSession::new(arguments, config)?;
    match block_on(session.run()) {
        // Anyone who read it has had enough (`| head`).
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        ended => ended.map(|()| ExitCode::SUCCESS),
    }
}

/// A run of the command.
struct ListenSession {
    service: Service,
    receiver: Option<Receiver>,
    /// Value of the stream's `types`.
    types: String,
    /// Cursor of the last event seen; `None`: from now on.
    cursor: Option<String>,
    screen: Screen,
    zone: TimeZone,
}

impl ListenSession {
    fn new(arguments: Arguments, config: &Config) -> Result<Self, Error> {
        let service = arguments.access.open(config)?;
        let secret = arguments.secret.unwrap_or_else(credentials::webhook_secret);
        if let Some(forward) = &arguments.forward {
            check_url(&service.outbound, "--forward", forward)?;
        }
        let receiver = arguments
            .forward
            .map(|url| Receiver::new(url, secret, service.outbound.clone(), &config.webhooks));
        Ok(Self {
            service,
            receiver,
            types: selection::types(&arguments.events),
            cursor: (arguments.since != "now").then_some(arguments.since),
            screen: Screen {
                shows_bodies: arguments.print_json,
            },
            zone: TimeZone::system(),
        })
    }

    /// Ends only when the service rejects the request, or the terminal is gone.
    async fn run(mut self) -> Result<(), Error> {
        let mut stream = self.follow().await.map_err(rejected)?;
        self.greet()?;
        loop {
            let lost = self.take_all(stream).await?;
            self.screen
                .say(&format!("the service is gone ({lost}); waiting for it"))?;
            stream = self.resume().await?;
            self.screen
                .say("the service is back; continuing after the last event")?;
        }
    }

    async fn follow(&self) -> Result<outbound::Stream, Unfollowed> {
        self.service
            .follow(&self.types, self.cursor.as_deref())
            .await
    }

    fn greet(&self) -> Result<(), Error> {
        let service = &self.service.url;
        match &self.receiver {
            None => self.screen.say(&format!("following {service}")),
            Some(receiver) => self.screen.say(&format!(
                "the signing secret is {}\nfollowing {service}, forwarding to {}",
                receiver.secret.expose(),
                receiver.url
            )),
        }
    }

    /// Takes events until the stream breaks off; returns the reason.
    async fn take_all(&mut self, mut stream: outbound::Stream) -> Result<String, Error> {
        let mut reader = Reader::new(MAX_EVENT_BYTES);
        loop {
            let piece = match stream.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok("it has closed the connection".to_owned()),
                Err(error) => return Ok(error.to_string()),
            };
            let events = reader
                .push(&piece)
                .map_err(|error| Error::Rejected(error.to_string()))?;
            for body in events {
                self.take(body.into()).await?;
            }
            if let Some(cursor) = reader.last_id() {
                self.cursor = Some(cursor.to_owned());
            }
        }
    }

    async fn take(&self, body: Bytes) -> Result<(), Error> {
        let envelope = match Envelope::parse(&body) {
            Ok(envelope) => envelope,
            Err(error) => {
                let line = format!("an event of {} cannot be read: {error}", self.service.url);
                return self.screen.say(&line);
            }
        };
        self.screen.say(&envelope.line(&self.zone))?;
        self.screen.body(&body)?;
        match &self.receiver {
            None => Ok(()),
            Some(receiver) => {
                let outcome = receiver.deliver(&envelope, body).await;
                self.screen.say(&format!("  {outcome}"))
            }
        }
    }

    /// Looks for the service until it is there.
    async fn resume(&self) -> Result<outbound::Stream, Error> {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            match self.follow().await {
                Ok(stream) => return Ok(stream),
                Err(Unfollowed::Away(_)) => pause = (2 * pause).min(LONGEST_PAUSE),
                Err(rejection) => return Err(rejected(rejection)),
            }
        }
    }
}

fn rejected(error: Unfollowed) -> Error {
    let hint = match error {
        Unfollowed::Away(_) => "; start it, or say with --url where it is",
        Unfollowed::Rejected(_) => "",
    };
    Error::Rejected(format!("{error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signing_secret_must_serve_both_schemes() {
        for (text, is_usable) in [
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true),
            ("whsec_c2VjcmV0", true),
            ("whsec_", false),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", false),
            ("whsec_not base64", false),
            ("", false),
        ] {
            assert_eq!(signing_secret(text).is_ok(), is_usable, "{text}");
        }
    }
}
