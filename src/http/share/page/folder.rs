//! HTML of a shared folder: head, breadcrumb, grid or list of files, image widths. Pure.
//!
//! Every address is relative to the page's own, `/share/folder/{token}`, so that it holds under whatever name and path a reader has
//! reached the service.

use std::fmt::{self, Display};

use uuid::Uuid;

use super::words;
use crate::http::{
    html::Html,
    share::listing::{Listing, SharedFileRecord},
};

/// Widths of the list's images, for screens of one dot to a pixel and of two.
const TILE_WIDTHS: [u32; 2] = [320, 640];
/// Width of an image that is looked at by itself.
const LARGE_WIDTH: u32 = 2560;
/// Beginning of the paths of videos' playlists.
const PLAYBACK: &str = "/video/v1/";

/// Presentation of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    #[default]
    Grid,
    List,
}

impl View {
    pub fn parse(word: &str) -> Self {
        match word {
            "list" => Self::List,
            _ => Self::Grid,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::List => "list",
        }
    }
}

/// The requested page, and its link.
pub(super) struct PageRequest<'a> {
    pub token: &'a str,
    /// True when it is not the first page.
    pub is_continuation: bool,
    pub view: View,
}

/// The inside of `<main>`.
pub(super) fn main(listing: &Listing, asked: &PageRequest<'_>) -> Html {
    let mut html = Html::default();
    head(&mut html, listing, asked);
    if !listing.folders.is_empty() {
        folders(&mut html, listing, asked);
    }
    if !listing.files.is_empty() {
        files(&mut html, listing, asked);
    } else if listing.folders.is_empty() {
        html.put(
            "<p class=\"empty\"><svg class=\"icon icon-l\" aria-hidden=\"true\"><use href=\"#icon-folder\"/></svg> \
             <span>There is nothing in this folder.</span></p>",
            &[],
        );
    }
    more(&mut html, listing, asked);
    html
}

fn head(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    html.put("<div class=\"share-head\"><div class=\"share-title\">", &[]);
    breadcrumb(html, listing, asked);
    html.put("<h1><bdi>{}</bdi></h1>", &[&listing.folder.name]);
    facts(html, listing);
    html.put("</div>", &[]);
    if place(listing).is_none() {
        download_all(html, listing, asked);
    }
    html.put("</div>", &[]);
}

/// Writes the link to the archive of the whole share, beside the sums of the whole.
fn download_all(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    if listing.zip_url.is_none() || listing.totals.files == 0 {
        return;
    }
    html.put(
        "<a class=\"button button-solid download-all\" href=\"{}\" data-download>\
         <svg aria-hidden=\"true\"><use href=\"#icon-download\"/></svg> \
         <span>Download all <small>{}{}, one ZIP file</small></span></a>",
        &[
            &format!("../../api/share/folder/{}/zip", asked.token),
            &at_least(listing),
            &words::size(listing.totals.bytes),
        ],
    );
}

/// Words for a folder that is too large to be counted to its end.
fn at_least(listing: &Listing) -> &'static str {
    match listing.totals.is_exact {
        true => "",
        false => "more than ",
    }
}

/// The folders above, the shared one first.
fn breadcrumb(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    let Some((_, above)) = listing
        .breadcrumb
        .split_last()
        .filter(|(_, above)| !above.is_empty())
    else {
        return;
    };
    html.put(
        "<nav class=\"breadcrumb\" aria-label=\"Folders above\"><ol>",
        &[],
    );
    for (depth, folder) in above.iter().enumerate() {
        let address = Address::new(asked).folder((depth > 0).then_some(folder.id));
        html.put(
            "<li><a href=\"{}\"><bdi>{}</bdi></a></li>",
            &[&address, &folder.name],
        );
    }
    html.put("</ol></nav>", &[]);
}

fn facts(html: &mut Html, listing: &Listing) {
    let totals = &listing.totals;
    html.put(
        "<p class=\"share-facts\"><span>{}{}</span> <span>{}</span>",
        &[
            &at_least(listing),
            &words::counted(totals.files, "file", "files"),
            &words::size(totals.bytes),
        ],
    );
    if totals.folders > 0 {
        let folders = words::counted(totals.folders, "folder", "folders");
        html.put(" <span>{}</span>", &[&folders]);
    }
    if let Some(expires_at) = listing.expires_at {
        html.put(
            " <span>available until <time datetime=\"{}\">{}</time></span>",
            &[&expires_at, &words::moment(expires_at)],
        );
    }
    if !listing.allow_download {
        html.put(" <span>for looking only</span>", &[]);
    }
    html.put("</p>", &[]);
}

fn folders(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    html.put(
        "<h2 class=\"section-title\">Folders</h2><ul class=\"folders\" role=\"list\">",
        &[],
    );
    for folder in &listing.folders {
        html.put(
            "<li><a class=\"folder\" href=\"{}\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-folder\"/></svg>\
             <bdi>{}</bdi></a></li>",
            &[&Address::new(asked).folder(Some(folder.id)), &folder.name],
        );
    }
    html.put("</ul>", &[]);
}

fn files(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    let here = Address::new(asked).folder(place(listing));
    html.put(
        "<div class=\"share-tools\"><h2 class=\"section-title\">Files</h2>",
        &[],
    );
    if asked.is_continuation {
        html.put("<a href=\"{}\">Back to the first files</a>", &[&here]);
    }
    html.put("<nav class=\"segmented\" aria-label=\"View\">", &[]);
    for (view, name) in [(View::Grid, "Grid"), (View::List, "List")] {
        let address = Address {
            view,
            ..here.clone()
        };
        html.put("<a href=\"{}\"", &[&address]);
        if view == asked.view {
            html.put(" aria-current=\"true\"", &[]);
        }
        html.put(
            "><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-{}\"/></svg><span>{}</span></a>",
            &[&view.as_str(), &name],
        );
    }
    html.put(
        "</nav></div><ul class=\"files\" id=\"files\" role=\"list\" data-view=\"{}\">",
        &[&asked.view.as_str()],
    );
    for listed in &listing.files {
        file(html, listed, asked);
    }
    html.put("</ul>", &[]);
}

/// Writes the link to the next page, which scripts follow by themselves.
fn more(html: &mut Html, listing: &Listing, asked: &PageRequest<'_>) {
    if let Some(cursor) = &listing.next_cursor {
        let next = Address::new(asked).folder(place(listing)).after(cursor);
        html.put(
            "<p class=\"share-more\" id=\"more\"><a class=\"button button-plain\" href=\"{}\">Show more</a></p>",
            &[&next],
        );
    }
}

/// The folder that is listed, unless it is the shared one.
fn place(listing: &Listing) -> Option<Uuid> {
    (listing.breadcrumb.len() > 1).then_some(listing.folder.id)
}

/// Writes an entry of the list. Its attributes hold the data of the viewer.
fn file(html: &mut Html, file: &SharedFileRecord, asked: &PageRequest<'_>) {
    let kind = Kind::of(&file.mime_type);
    let bytes = format!("../../api/share/folder/{}/files/{}", asked.token, file.id);
    let inline = file
        .inline_url
        .as_ref()
        .map(|_| format!("{bytes}?inline=1"));
    let download = file.download_url.as_ref().map(|_| &bytes);
    let preview = file
        .preview_url
        .as_ref()
        .map(|_| format!("{bytes}/preview"));

    html.put(
        "<li class=\"file\" data-id=\"{}\" data-kind=\"{}\"",
        &[&file.id, &kind.as_str()],
    );
    if let Some(inline) = &inline {
        html.put(" data-inline=\"{}\"", &[inline]);
    }
    if let Some(preview) = &preview {
        html.put(" data-preview=\"{}\"", &[preview]);
    }
    if let Some(stream) = file.stream_url.as_deref().and_then(from_here) {
        html.put(" data-stream=\"{}\"", &[&stream]);
    }
    if let (Some(width), Some(height)) = (file.width, file.height) {
        html.put(" data-pixels=\"{}\u{a0}×\u{a0}{}\"", &[&width, &height]);
    }
    html.put(">", &[]);
    // Without scripts, a browser shows what it can and keeps the rest.
    let large = preview.as_ref().map(|it| format!("{it}?w={LARGE_WIDTH}"));
    let opens = inline.as_ref().or(large.as_ref()).or(download);
    match (opens, kind) {
        (Some(address), Kind::Other) => html.put(
            "<a class=\"file-open\" href=\"{}\" data-download>",
            &[address],
        ),
        (Some(address), _) => html.put("<a class=\"file-open\" href=\"{}\">", &[address]),
        (None, _) => html.put("<span class=\"file-open\">", &[]),
    };
    thumb(html, kind, preview.as_deref());
    said_of(html, file);
    html.put(if opens.is_some() { "</a>" } else { "</span>" }, &[]);
    if let Some(download) = download {
        html.put(
            "<a class=\"icon-button file-download\" href=\"{}\" data-download aria-label=\"Download {}\" title=\"Download\">\
             <svg aria-hidden=\"true\"><use href=\"#icon-download\"/></svg></a>",
            &[download, &file.filename],
        );
    }
    html.put("</li>", &[]);
}

/// Writes a symbol, and over it the image once that is there.
fn thumb(html: &mut Html, kind: Kind, preview: Option<&str>) {
    html.put(
        "<span class=\"thumb\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-{}\"/></svg>",
        &[&kind.as_str()],
    );
    if let Some(preview) = preview {
        let [small, large] = TILE_WIDTHS;
        html.put(
            "<img src=\"{}?w={}\" srcset=\"{}?w={} 2x\" alt=\"\" loading=\"lazy\" decoding=\"async\">",
            &[&preview, &small, &preview, &large],
        );
    }
    if kind == Kind::Video {
        html.put(
            "<span class=\"thumb-mark\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-play\"/></svg></span>",
            &[],
        );
    }
    html.put("</span>", &[]);
}

fn said_of(html: &mut Html, file: &SharedFileRecord) {
    html.put(
        " <span class=\"file-words\"><span class=\"file-name\"><bdi>{}</bdi></span> <span class=\"file-facts\">{}",
        &[&file.filename, &words::kind(&file.filename, &file.mime_type)],
    );
    if let Some(seconds) = file.duration {
        html.put(" · {}", &[&words::duration(seconds)]);
    }
    html.put(
        " · {}</span> <time class=\"file-date\" datetime=\"{}\">{}</time></span>",
        &[
            &words::size(file.size_bytes),
            &file.created_at,
            &words::date(file.created_at),
        ],
    );
}

/// An address of this service, relative to the page.
fn from_here(url: &str) -> Option<String> {
    let path = url.find(PLAYBACK).and_then(|at| url.get(at..))?;
    Some(format!("../..{path}"))
}

/// Kind of a file in the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Video,
    Audio,
    Pdf,
    Other,
}

impl Kind {
    fn of(mime_type: &str) -> Self {
        match mime_type.split_once('/') {
            Some(("image", _)) => Self::Image,
            Some(("video", _)) => Self::Video,
            Some(("audio", _)) => Self::Audio,
            _ if mime_type == "application/pdf" => Self::Pdf,
            _ => Self::Other,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Pdf => "pdf",
            Self::Other => "other",
        }
    }
}

/// An address of this page.
#[derive(Clone)]
struct Address<'a> {
    token: &'a str,
    folder: Option<Uuid>,
    cursor: Option<&'a str>,
    view: View,
}

impl<'a> Address<'a> {
    fn new(asked: &PageRequest<'a>) -> Self {
        Self {
            token: asked.token,
            folder: None,
            cursor: None,
            view: asked.view,
        }
    }

    fn folder(self, folder: Option<Uuid>) -> Self {
        Self { folder, ..self }
    }

    fn after(self, cursor: &'a str) -> Self {
        let cursor = Some(cursor);
        Self { cursor, ..self }
    }
}

impl Display for Address<'_> {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(self.token)?;
        let mut separator = '?';
        let mut put = |name: &str, value: &dyn Display| {
            let put = write!(text, "{separator}{name}={value}");
            separator = '&';
            put
        };
        if let Some(folder) = self.folder {
            put("folderId", &folder)?;
        }
        if let Some(cursor) = self.cursor {
            put("cursor", &cursor)?;
        }
        if self.view != View::default() {
            put("view", &self.view.as_str())?;
        }
        Ok(())
    }
}
