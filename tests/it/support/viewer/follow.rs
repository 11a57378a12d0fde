//! The viewer's loop: reload, check, fetch.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{Client, StatusCode};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{Collection, Outage, Piece, State, Viewer};
use crate::support::{
    Failure,
    checker::{Checker, MediaPlaylist, NewPart, Segment, Update, check_multivariant},
    fmp4,
    http::client,
};

/// Between two tries while the stream is not on air, or the service is away.
const NOT_YET: Duration = Duration::from_millis(20);
/// Longest tolerated outage.
const LONGEST_OUTAGE: Duration = Duration::from_secs(30);
/// A hinted part comes with, or just after, the playlist that lists it.
const HINT_GRACE: Duration = Duration::from_secs(5);

/// State of a viewer between reloads.
#[derive(Debug)]
pub struct Follower {
    options: Viewer,
    client: Client,
    /// Folder of the multivariant playlist, with its slash.
    folder: String,
    checker: Checker,
    collection: Collection,
    publish: watch::Sender<State>,
    hinted: Option<Hinted>,
}

/// A part that is asked for before it is listed.
#[derive(Debug)]
struct Hinted {
    uri: String,
    answer: JoinHandle<reqwest::Result<Answer>>,
}

impl Drop for Hinted {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Follower {
    pub fn new(options: Viewer, publish: watch::Sender<State>) -> Self {
        let (folder, _) = options
            .hls_url
            .rsplit_once('/')
            .unwrap_or((&options.hls_url, ""));
        let mut checker = Checker::new();
        if options.tolerate_outages {
            checker.allow_gaps();
        }
        Self {
            folder: format!("{folder}/"),
            client: client(),
            checker,
            collection: Collection::default(),
            publish,
            hinted: None,
            options,
        }
    }

    /// Follows the stream until ENDLIST, and fetches everything.
    pub async fn run(&mut self) -> Result<(), Failure> {
        let media_playlist = self.go_on_air().await?;
        let mut text = self.playlist(&media_playlist).await?;
        loop {
            let update = self.checker.observe(&text, Instant::now())?;
            if update.was_delta {
                self.compare_with_full(&media_playlist, &update).await?;
            }
            self.take(&update).await?;
            if update.is_ended() {
                return Ok(());
            }
            self.ask_for_hint(&update.playlist);
            text = self
                .playlist(&self.reload(&media_playlist, &update.playlist))
                .await?;
        }
    }

    /// Waits for the multivariant playlist; returns the URL of the media playlist.
    async fn go_on_air(&mut self) -> Result<String, Failure> {
        let url = self.options.hls_url.clone();
        let text = loop {
            let answer = self.get(&url).await?;
            match answer.status {
                StatusCode::OK => break String::from_utf8(answer.body.into())?,
                StatusCode::NOT_FOUND => sleep(NOT_YET).await,
                status => return Err(format!("{url}: {status}").into()),
            }
        };
        let multivariant = check_multivariant(&text)
            .map_err(|reason| format!("multivariant playlist: {reason}\n{text}"))?;
        let media_playlist = format!("{}{}", self.folder, multivariant.uri);
        self.collection.on_air_at = Some(Instant::now());
        self.collection.multivariant = Some(multivariant);
        self.show();
        Ok(media_playlist)
    }

    fn reload(&self, media_playlist: &str, list: &MediaPlaylist) -> String {
        let (msn, part) = list.next();
        // The multivariant playlist may have given out a play id.
        let join = match media_playlist.contains('?') {
            true => '&',
            false => '?',
        };
        if list.part_target_s.is_none() {
            return format!("{media_playlist}{join}_HLS_msn={msn}");
        }
        let skip = if self.options.delta_updates {
            "&_HLS_skip=YES"
        } else {
            ""
        };
        format!("{media_playlist}{join}_HLS_msn={msn}&_HLS_part={part}{skip}")
    }

    /// The delta must say what the full playlist says, unless that has moved on meanwhile.
    async fn compare_with_full(
        &mut self,
        media_playlist: &str,
        delta: &Update,
    ) -> Result<(), Failure> {
        let text = self.playlist(media_playlist).await?;
        let full = MediaPlaylist::parse(&text)?;
        let facts = |list: &MediaPlaylist| (list.next(), list.media_sequence, list.ended);
        if facts(&full) != facts(&delta.playlist) {
            return Ok(());
        }
        let expanded = MediaPlaylist {
            skipped: 0,
            ..delta.playlist.clone()
        };
        // Skipped segments come back without the parts that the full playlist may still list.
        let skipped = usize::try_from(delta.playlist.skipped)?;
        let without_parts = |mut list: MediaPlaylist| {
            list.segments
                .iter_mut()
                .take(skipped)
                .for_each(|segment| segment.parts.clear());
            list
        };
        if without_parts(full) != without_parts(expanded) {
            return Err(format!("a delta differs from the full playlist:\n{text}").into());
        }
        Ok(())
    }

    /// Fetches all that is new.
    async fn take(&mut self, update: &Update) -> Result<(), Failure> {
        self.collection.playlists = self.checker.observed();
        self.collection.deltas = self.checker.deltas();
        let listed = &update.playlist.segments;
        for segment in listed.iter().filter(|segment| !segment.gap) {
            self.list(segment).await?;
        }
        // Parts first: `add_whole` compares a whole segment with the parts that were fetched.
        for part in &update.parts {
            self.take_part(part).await?;
            self.show();
        }
        for segment in &update.segments {
            self.take_whole(segment).await?;
        }
        self.collection.ended = update.is_ended();
        let last = update.playlist.segments.last();
        self.collection.last_date_ms = last.and_then(|segment| segment.date_time_ms);
        self.show();
        Ok(())
    }

    /// Opens the piece of a segment, and fetches its init section.
    async fn list(&mut self, segment: &Segment) -> Result<(), Failure> {
        let map = segment.map.clone().ok_or("a segment without a map")?;
        if !self.collection.inits.contains_key(&map) {
            let init = self.media(&map).await?;
            self.collection
                .tracks
                .insert(map.clone(), fmp4::tracks(&init)?);
            self.collection.inits.insert(map.clone(), init);
        }
        self.collection
            .pieces
            .entry(segment.msn)
            .or_insert_with(|| Piece {
                msn: segment.msn,
                map,
                range: segment.range,
                ..Piece::default()
            });
        Ok(())
    }

    async fn take_part(&mut self, part: &NewPart) -> Result<(), Failure> {
        let bytes = match self.take_hinted(&part.part.uri).await {
            Some(bytes) => bytes,
            None => self.media(&part.part.uri).await?,
        };
        self.collection
            .add_part(part.msn, part.index, bytes)
            .map_err(|failure| format!("part {}: {failure}", part.part.uri).into())
    }

    async fn take_whole(&mut self, segment: &Segment) -> Result<(), Failure> {
        let whole = segment.whole.as_ref().ok_or("an open segment")?;
        let bytes = self.media(&whole.uri).await?;
        let known = self
            .checker
            .segments()
            .find(|known| known.msn == segment.msn);
        let parts = known.map_or(0, |known| known.parts.len());
        self.collection
            .add_whole(segment.msn, parts, bytes)
            .map_err(|failure| format!("segment {}: {failure}", whole.uri).into())
    }

    fn ask_for_hint(&mut self, list: &MediaPlaylist) {
        let Some(uri) = &list.hint else {
            return;
        };
        if self
            .hinted
            .as_ref()
            .is_some_and(|hinted| hinted.uri == *uri)
        {
            return;
        }
        let answer = tokio::spawn(get(self.client.clone(), format!("{}{uri}", self.folder)));
        self.hinted = Some(Hinted {
            uri: uri.clone(),
            answer,
        });
    }

    /// Returns the media of the hint, when it was about this part. A hint that broke is no fault: the part is listed
    /// now.
    async fn take_hinted(&mut self, uri: &str) -> Option<Bytes> {
        let mut hinted = self.hinted.take_if(|hinted| hinted.uri == uri)?;
        let answer = timeout(HINT_GRACE, &mut hinted.answer)
            .await
            .ok()?
            .ok()?
            .ok()?;
        if answer.status != StatusCode::OK {
            return None;
        }
        self.collection.hinted_parts += 1;
        Some(answer.body)
    }

    async fn playlist(&mut self, url: &str) -> Result<String, Failure> {
        let answer = self.get(url).await?;
        let body = String::from_utf8(answer.body.into())?;
        match answer.status {
            StatusCode::OK => Ok(body),
            status => Err(format!("{url}: {status} {body}").into()),
        }
    }

    /// Something that the playlist lists, and that therefore must be there.
    async fn media(&mut self, uri: &str) -> Result<Bytes, Failure> {
        let answer = self.get(&format!("{}{uri}", self.folder)).await?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            status => Err(format!("{uri} is listed, and answered with {status}").into()),
        }
    }

    /// An answer of any status. Broken connections, and 503 of a service that stops or starts, are outages.
    async fn get(&mut self, url: &str) -> Result<Answer, Failure> {
        let from = Instant::now();
        let mut broken = false;
        loop {
            let answer = get(self.client.clone(), url.to_owned()).await;
            let reason = match answer {
                Ok(answer) if answer.status != StatusCode::SERVICE_UNAVAILABLE => {
                    if broken {
                        let until = Instant::now();
                        self.collection.outages.push(Outage { from, until });
                    }
                    return Ok(answer);
                }
                Ok(answer) => answer.status.to_string(),
                Err(error) => format!("{error:?}"),
            };
            if !self.options.tolerate_outages || from.elapsed() > LONGEST_OUTAGE {
                return Err(format!("{url}: {reason}").into());
            }
            broken = true;
            sleep(NOT_YET).await;
        }
    }

    fn show(&self) {
        let collection = Arc::new(self.collection.clone());
        self.publish
            .send_modify(|state| state.collection = collection);
    }
}

async fn get(client: Client, url: String) -> reqwest::Result<Answer> {
    let response = client.get(url).send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    Ok(Answer { status, body })
}
