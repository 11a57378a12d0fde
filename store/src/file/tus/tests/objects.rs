//! Tests of uploads whose bytes are in an object store: requests to several nodes, damaged bytes, what is left at the end.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::*;
use crate::{
    blob::{
        Partial,
        pieces::{Place, piece_hash},
    },
    objects::PIECE,
    write_tx,
};

fn with_objects(data_dir: &Path) -> StoreSettings {
    let objects = data_dir.join("objects");
    fs::create_dir_all(&objects).unwrap();
    StoreSettings {
        objects_url: format!("file://{}", objects.display()),
        ..StoreSettings::without_reserve(data_dir)
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|n| (n * 7 + n / 251 + n / 65_537) as u8)
        .collect()
}

/// A client with an upload.
struct Client {
    site: Site,
    id: Uuid,
    sent: Vec<u8>,
}

/// End of an upload.
struct Ended {
    hash: BlobHash,
    left: LeftObjects,
    was_whole: bool,
}

impl Client {
    async fn new() -> Self {
        Self::of(Site::open_with(with_objects).await).await
    }

    async fn of(site: Site) -> Self {
        let id = Self::create(&site).await;
        Self {
            site,
            id,
            sent: Vec::new(),
        }
    }

    async fn create(site: &Site) -> Uuid {
        let account = site.account;
        let new = NewTusUpload {
            folder_id: None,
            filename: "a.bin".to_owned(),
            metadata: String::new(),
            length_bytes: None,
            expires_at: DAY_MS,
        };
        let bounds = Bounds {
            unfinished: 9,
            storage_bytes: 0,
        };
        let created = write_tx!(site.store, |tx| create(tx, account, new, bounds, 0).await);
        created.unwrap().id
    }

    async fn another_upload(&mut self) {
        self.id = Self::create(&self.site).await;
        self.sent.clear();
    }

    async fn claim(&self) -> TusUpload {
        let (account, id) = (self.site.account, self.id);
        let wanted = Claim {
            offset: self.sent.len() as u64,
            brings_bytes: None,
            length_bytes: None,
            most_bytes: 1 << 30,
            expires_at: DAY_MS,
            storage_bytes: 0,
            owner: self.site.store.owner(),
        };
        write_tx!(self.site.store, |tx| claim(tx, account, id, wanted, 0)
            .await)
        .unwrap()
    }

    async fn write(&self, upload: &TusUpload, bytes: &[u8]) -> Result<Partial, Error> {
        let blobs = self.site.store.blobs();
        let mut partial = blobs.partial(upload.id, upload.progress()).await?;
        for bytes in bytes.chunks(1 << 20) {
            partial.write(&Bytes::copy_from_slice(bytes)).await?;
            partial.upload().await?;
        }
        Ok(partial)
    }

    async fn save(&self, upload: TusUpload, partial: &mut Partial) -> Result<(), Error> {
        let progress = partial.sync().await?;
        self.advance(upload, partial, progress).await
    }

    async fn advance(
        &self,
        upload: TusUpload,
        partial: &mut Partial,
        progress: PartialState,
    ) -> Result<(), Error> {
        let step = Step {
            is_last: true,
            expires_at: DAY_MS,
            storage_bytes: 0,
        };
        let saved = write_tx!(self.site.store, |tx| {
            advance(tx, &upload, &progress, step, 0).await
        });
        partial.settle(&saved);
        saved
    }

    /// Sends one request.
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let upload = self.claim().await;
        let mut partial = self.write(&upload, bytes).await?;
        self.save(upload, &mut partial).await?;
        self.sent.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends the last request.
    async fn end(&mut self, bytes: &[u8]) -> Ended {
        let upload = self.claim().await;
        let mut partial = self.write(&upload, bytes).await.unwrap();
        self.sent.extend_from_slice(bytes);
        let was_whole = partial.make_whole().await.unwrap();
        let sealed = partial.seal().await.unwrap();
        assert_eq!(sealed.head(), &self.sent[..self.sent.len().min(4096)]);
        let hash = sealed.blob().hash;
        let arrived = Completion {
            blob: hash,
            size_bytes: sealed.blob().size,
            mime_type: "application/octet-stream".to_owned(),
            facts: Facts::default(),
        };
        let (_, left) = write_tx!(self.site.store, |tx| {
            blobs::record(tx, &sealed, 0).await?;
            complete(tx, &upload, arrived, 0, 0).await
        })
        .unwrap();
        self.site.store.blobs().remove_objects(left);
        self.forget_file().await;
        Ended {
            hash,
            left,
            was_whole,
        }
    }

    /// Removes the file, as another node has none.
    async fn forget_file(&self) {
        let blobs = self.site.store.blobs();
        blobs.remove_partial(self.id).await.unwrap();
    }

    fn file(&self) -> PathBuf {
        let folder = self.site.folder.path();
        folder.join("partial").join(self.id.to_string())
    }

    /// Opens the data folder again, in which files stay as they are.
    async fn restart(&mut self, settings: fn(&Path) -> StoreSettings) {
        self.site.store.close().await;
        let settings = settings(self.site.folder.path());
        self.site.store = Store::open(&settings).await.unwrap();
    }

    async fn row(&self) -> TusUpload {
        self.site.get(self.id, 0).await.unwrap()
    }

    async fn stored(&self, hash: &BlobHash) -> Vec<u8> {
        let mut stored = Vec::new();
        let mut file = self.site.store.blobs().open(hash).await.unwrap();
        file.read_to_end(&mut stored).unwrap();
        stored
    }

    /// The objects, pieces by their number and tails by `t`, with their sizes.
    fn objects(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        let bases = fs::read_dir(self.site.folder.path().join("objects/b"));
        for base in bases.into_iter().flatten() {
            for object in fs::read_dir(base.unwrap().path()).into_iter().flatten() {
                let object = object.unwrap();
                let name = object.file_name().into_string().unwrap();
                let name = match name.split_once('-') {
                    Some((number, _)) => number,
                    None => &name[..1],
                };
                let size = object.metadata().map_or(0, |found| found.len());
                found.push((name.to_owned(), size));
            }
        }
        found.sort();
        found
    }

    /// Waits for what is deleted in the background.
    async fn comes_to(&self, expected: &[(&str, u64)]) {
        let mut found = Vec::new();
        for _ in 0..500 {
            found = self.objects();
            let names = found.iter().map(|(name, size)| (name.as_str(), *size));
            if names.eq(expected.iter().copied()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{found:?} instead of {expected:?}");
    }
}

#[tokio::test]
async fn requests_to_several_nodes_make_one_blob() {
    let piece = PIECE as u64;
    let mut client = Client::new().await;
    let whole = bytes(2 * PIECE + 600_000);
    let cuts = [
        1,
        2,
        300_000,
        PIECE - 1,
        PIECE,
        PIECE + 5,
        2 * PIECE + 400_000,
    ];
    for (request, cut) in cuts.into_iter().enumerate() {
        client.send(&whole[client.sent.len()..cut]).await.unwrap();
        let row = client.row().await;
        assert_eq!((row.offset(), row.has_objects()), (cut as u64, true));
        if request % 2 == 1 {
            client.forget_file().await;
        }
    }
    // All that counts is in the object store: the tail with a byte for its empty list.
    client
        .comes_to(&[("0", piece), ("1", piece), ("t", 400_001)])
        .await;
    let ended = client.end(&whole[client.sent.len()..]).await;
    assert!(ended.was_whole);
    let base = client.row().await.base.unwrap();
    assert_eq!(ended.left, LeftObjects::Tail(base));
    assert!(client.stored(&ended.hash).await == whole);
    client
        .comes_to(&[("0", piece), ("1", piece), ("2", 600_000)])
        .await;
    let row = blobs::get(&mut client.site.store.read().await.unwrap(), &ended.hash).await;
    assert_eq!(row.unwrap().base, Some(base));

    // The same bytes again, in one request: there is no tail, and the blob has its objects.
    client.another_upload().await;
    let again = client.end(&whole).await;
    assert_eq!((again.hash, again.left), (ended.hash, LeftObjects::None));
    // And in two: the upload's row names objects that are not the blob's.
    client.another_upload().await;
    client.send(&whole[..PIECE + 7]).await.unwrap();
    let again = client.end(&whole[PIECE + 7..]).await;
    let base = client.row().await.base.unwrap();
    assert_eq!(
        (again.hash, again.left),
        (ended.hash, LeftObjects::All(base))
    );
    client
        .comes_to(&[("0", piece), ("1", piece), ("2", 600_000)])
        .await;
    assert!(client.stored(&ended.hash).await == whole);
}

#[tokio::test]
async fn a_request_with_little_writes_little() {
    let mut client = Client::new().await;
    let whole = bytes((4 << 20) + 700_002);
    client.send(&whole[..4 << 20]).await.unwrap();
    client.comes_to(&[("t", (4 << 20) + 1)]).await;
    // 28 bytes name the object before it.
    for length in 1..4 {
        let sent = client.sent.len();
        client.send(&whole[sent..=sent]).await.unwrap();
        client
            .comes_to(&[("t", length + 29), ("t", (4 << 20) + 1)])
            .await;
        client.forget_file().await;
    }
    let sent = client.sent.len();
    client.send(&whole[sent..sent + 300_000]).await.unwrap();
    let sent = client.sent.len();
    client.send(&whole[sent..sent + 2]).await.unwrap();
    client
        .comes_to(&[("t", 2 + 57), ("t", 300_003 + 29), ("t", (4 << 20) + 1)])
        .await;
    client.forget_file().await;
    let ended = client.end(&whole[client.sent.len()..]).await;
    assert!(client.stored(&ended.hash).await == whole);
    client.comes_to(&[("0", whole.len() as u64)]).await;
}

#[tokio::test]
async fn a_local_file_with_other_bytes_is_not_used() {
    let mut client = Client::new().await;
    let whole = bytes(PIECE + 1000);
    client.send(&whole[..PIECE + 10]).await.unwrap();
    for length in [whole.len(), PIECE + 10, 5] {
        client.restart(with_objects).await;
        // As of a request that died here before another node received other bytes.
        fs::write(client.file(), vec![b'x'; length]).unwrap();
        let sent = client.sent.len();
        client.send(&whole[sent..sent + 10]).await.unwrap();
    }
    let ended = client.end(&whole[client.sent.len()..]).await;
    assert!(ended.was_whole);
    assert!(client.stored(&ended.hash).await == whole);
}

/// Other nodes received more than is read at the end; tests read two pieces.
#[tokio::test]
async fn a_long_upload_of_other_nodes_is_stored_without_being_read() {
    let mut client = Client::new().await;
    let whole = bytes(3 * PIECE + 10);
    client.send(&whole[..3 * PIECE]).await.unwrap();
    client.forget_file().await;
    let ended = client.end(&whole[3 * PIECE..]).await;
    assert!(!ended.was_whole);
    let row = blobs::get(&mut client.site.store.read().await.unwrap(), &ended.hash).await;
    assert_eq!(row.unwrap().size_bytes, whole.len() as i64);
    assert!(client.stored(&ended.hash).await == whole);
}

/// Fails at the second piece: the client goes on behind the first one.
#[tokio::test]
async fn pieces_before_one_that_could_not_be_stored_count() {
    let whole = bytes(2 * PIECE + 10);
    for is_last in [false, true] {
        let mut client = Client::new().await;
        client.send(&whole[..5]).await.unwrap();
        let pieces = whole.chunks_exact(PIECE);
        let place = Place {
            base: client.row().await.base.unwrap(),
            piece_hashes: pieces.flat_map(piece_hash).collect(),
        };
        let second = place.keys().nth(1).unwrap();
        let second = client.site.folder.path().join("objects").join(second);
        // A folder is in the way of the object.
        fs::create_dir_all(second.join("x")).unwrap();
        let upload = client.claim().await;
        let mut partial = client.write(&upload, &whole[5..]).await.unwrap();
        let error = match is_last {
            false => partial.sync().await.unwrap_err(),
            true => partial.seal().await.unwrap_err(),
        };
        assert!(matches!(error, Error::Objects(_)), "{error:?}");
        let progress = partial.salvage().await.unwrap().unwrap();
        assert_eq!(progress.length, PIECE as u64);
        let advanced = client.advance(upload, &mut partial, progress).await;
        advanced.unwrap();
        drop(partial);
        assert_eq!(client.row().await.offset(), PIECE as u64);

        // Nothing more can be kept while it lasts.
        client.sent = whole[..PIECE].to_vec();
        let upload = client.claim().await;
        let mut partial = client.write(&upload, &whole[PIECE..]).await.unwrap();
        partial.sync().await.unwrap_err();
        assert_eq!(partial.salvage().await.unwrap(), None);
        drop(partial);

        fs::remove_dir_all(&second).unwrap();
        let ended = client.end(&whole[PIECE..]).await;
        assert!(client.stored(&ended.hash).await == whole);
        let piece = PIECE as u64;
        client
            .comes_to(&[("0", piece), ("1", piece), ("2", 10)])
            .await;
    }
}

#[tokio::test]
async fn damaged_and_missing_tails_are_named_and_change_nothing() {
    let mut client = Client::new().await;
    client.send(b"first").await.unwrap();
    client.forget_file().await;
    let row = client.row().await;
    let (base, number) = (row.base.unwrap().simple(), row.tail);
    let key = format!("b/{base}/t{number}");
    let path = client.site.folder.path().join("objects").join(&key);
    let object = fs::read(&path).unwrap();
    let damages: [&[u8]; 3] = [b"fIrst\0", b"first", b""];
    for damaged in damages {
        fs::write(&path, damaged).unwrap();
        let error = client.send(b" second").await.unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{error:?}");
        assert!(error.to_string().contains(&key), "{error}");
        assert!(error.is_retryable());
    }
    // Nothing brings it back: the client has to begin again.
    fs::remove_file(&path).unwrap();
    let error = client.send(b" second").await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
    fs::write(&path, object).unwrap();
    client.send(b" second").await.unwrap();
    let ended = client.end(b" last").await;
    assert_eq!(client.stored(&ended.hash).await, b"first second last");
}

#[tokio::test]
async fn a_request_that_was_superseded_leaves_nothing() {
    let mut client = Client::new().await;
    client.send(b"first").await.unwrap();
    let old = client.claim().await;
    let mut partial = client.write(&old, b" old").await.unwrap();
    client.claim().await;
    is_conflict(client.save(old, &mut partial).await);
    drop(partial);
    client.comes_to(&[("t", 6)]).await;
    let ended = client.end(b" new").await;
    assert_eq!(client.stored(&ended.hash).await, b"first new");

    // What no row names is deleted with the request.
    client.another_upload().await;
    let claimed = client.claim().await;
    let whole = bytes(PIECE + 1);
    let partial = client.write(&claimed, &whole).await.unwrap();
    // Its last byte is in no piece.
    assert_eq!(partial.len(), whole.len() as u64);
    client.comes_to(&[("0", 9), ("0", PIECE as u64)]).await;
    drop(partial);
    client.comes_to(&[("0", 9)]).await;
}

#[tokio::test]
async fn deleted_and_expired_uploads_lose_their_objects() {
    let mut client = Client::new().await;
    client.send(&bytes(PIECE + 1)).await.unwrap();
    client.comes_to(&[("0", PIECE as u64), ("t", 2)]).await;
    let (account, id) = (client.site.account, client.id);
    let left = write_tx!(client.site.store, |tx| delete(tx, account, id).await).unwrap();
    client.site.store.blobs().remove_objects(left);
    client.comes_to(&[]).await;

    client.another_upload().await;
    client.send(b"some").await.unwrap();
    let store = client.site.store.clone();
    sweep(&store, DAY_MS + KEPT_AFTER_MS - 1).await.unwrap();
    client.comes_to(&[("t", 5)]).await;
    sweep(&store, DAY_MS + KEPT_AFTER_MS).await.unwrap();
    client.comes_to(&[]).await;
    assert!(!client.row().await.has_objects());
}

#[tokio::test]
async fn an_upload_that_began_as_a_file_stays_one() {
    let mut client = Client::of(Site::open().await).await;
    client.send(b"a file").await.unwrap();
    client.restart(with_objects).await;
    client.send(b" is a file").await.unwrap();
    assert!(!client.row().await.has_objects());
    let ended = client.end(b"!").await;
    assert_eq!((ended.left, ended.was_whole), (LeftObjects::None, true));
    let row = blobs::get(&mut client.site.store.read().await.unwrap(), &ended.hash).await;
    assert_eq!(row.unwrap().base, None);
    assert_eq!(client.stored(&ended.hash).await, b"a file is a file!");
    client.comes_to(&[]).await;
}
