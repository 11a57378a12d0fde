//! Fetches files that users name by address (`sourceUrl`): redirects (`outbound.max_redirects`), status, size, time-outs,
//! file name.
//!
//! A redirect is a new address: read, resolved and checked like the first. None leads from https to http, where the
//! file could be another's.

use std::{future::Future, io};

use bytes::Bytes;
use hyper::{
    Method,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
        USER_AGENT,
    },
};
use tokio::time::timeout;

use super::{Error, Outbound, Outgoing, Stream, Target, filename::filename};

/// Target of the bytes of a fetch.
pub trait Sink: Send {
    /// Keeps a piece; the next one is read when it is kept. An error ends the fetch as [`Error::Sink`].
    fn write(&mut self, piece: Bytes) -> impl Future<Output = io::Result<()>> + Send;
}

/// Result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Name that the server or the address gives (RFC 6266): for the caller to clean.
    pub filename: Option<String>,
    /// Media type that the server gives, unchecked.
    pub content_type: Option<String>,
    /// Bytes that the sink got.
    pub length: u64,
    /// The address after all redirects, its secrets included.
    pub url: String,
}

impl Outbound {
    /// Gets a file of at most `max_bytes`. Only an answer with status 200 is written to the sink; after an error the
    /// sink may have got a part of it. [`Error::Busy`] when no place becomes free within `outbound.fetch_idle_timeout`.
    pub async fn fetch<S: Sink>(
        &self,
        url: &str,
        sink: &mut S,
        max_bytes: u64,
    ) -> Result<Fetched, Error> {
        let target = self.check_url(url)?;
        let patience = self.settings().fetch_idle_timeout;
        let Ok(Ok(_place)) = timeout(patience, self.parts.fetches.acquire()).await else {
            return Err(Error::Busy("fetches of files"));
        };
        let after = self.settings().fetch_timeout;
        let fetched = timeout(after, self.follow(target, sink, max_bytes)).await;
        fetched.unwrap_or(Err(Error::Timeout {
            what: "fetching the file",
            after,
        }))
    }

    /// Follows redirects to the file.
    async fn follow<S: Sink>(
        &self,
        mut target: Target,
        sink: &mut S,
        max_bytes: u64,
    ) -> Result<Fetched, Error> {
        let most = self.settings().max_redirects;
        for _ in 0..=most {
            let answer = self.get(&target).await?;
            match redirect(&target, &answer)? {
                Some(next) => target = self.checked(next)?,
                None => return receive(&target, answer, sink, max_bytes).await,
            }
        }
        Err(Error::Redirect(format!("more than {most} times")))
    }

    async fn get(&self, target: &Target) -> Result<Stream, Error> {
        let headers = [
            (ACCEPT, "*/*"),
            (ACCEPT_ENCODING, "identity"),
            (USER_AGENT, "Service-Fetch/1.0"),
        ]
        .map(|(name, value)| (name, HeaderValue::from_static(value)));
        let settings = self.settings();
        let silence = settings.fetch_idle_timeout;
        let get = Outgoing {
            method: Method::GET,
            url: target.as_str(),
            headers: headers.into(),
            body: Bytes::new().into(),
            patience: settings.resolve_timeout + settings.connect_timeout + silence,
            silence,
        };
        self.open(target, get).await
    }
}

/// Writes the body to the sink, if it can become the file.
async fn receive<S: Sink>(
    target: &Target,
    mut answer: Stream,
    sink: &mut S,
    max_bytes: u64,
) -> Result<Fetched, Error> {
    check_head(&answer, max_bytes)?;
    let mut length = 0;
    while let Some(piece) = answer.next().await? {
        length += piece.len() as u64;
        if length > max_bytes {
            return Err(Error::TooLarge(max_bytes));
        }
        sink.write(piece).await.map_err(Error::Sink)?;
    }
    Ok(Fetched {
        filename: filename(answer.headers(), target.path()),
        content_type: text_of(&answer, CONTENT_TYPE).map(str::to_owned),
        length,
        url: target.as_str().to_owned(),
    })
}

/// Returns the target of a redirect (RFC 9110 §15.4), if the answer is one.
fn redirect(from: &Target, answer: &Stream) -> Result<Option<Target>, Error> {
    if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = text_of(answer, LOCATION)
        .ok_or_else(|| Error::Redirect("to nowhere that can be read".to_owned()))?;
    let next = from
        .join(location)
        .map_err(|error| Error::Redirect(error.to_string()))?;
    if from.is_tls() && !next.is_tls() {
        return Err(Error::Redirect(format!("from https to {next}")));
    }
    Ok(Some(next))
}

/// Rejects an answer that cannot become the file before a byte of it is read.
fn check_head(answer: &Stream, max_bytes: u64) -> Result<(), Error> {
    if answer.status() != 200 {
        return Err(Error::Status(answer.status()));
    }
    for encoding in answer.headers().get_all(CONTENT_ENCODING) {
        if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
            let shown = encoding.as_bytes().escape_ascii().take(64);
            return Err(Error::Encoded(shown.map(char::from).collect()));
        }
    }
    if (answer.declared_length()).is_some_and(|declared| declared > max_bytes) {
        return Err(Error::TooLarge(max_bytes));
    }
    Ok(())
}

fn text_of(answer: &Stream, name: HeaderName) -> Option<&str> {
    answer.headers().get(name)?.to_str().ok()
}
