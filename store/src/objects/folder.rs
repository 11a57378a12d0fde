//! Object store in a folder that every node sees (`file:///…`): a temporary name, a flush, a rename, a flush of the folders.

use std::{
    collections::BinaryHeap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use uuid::Uuid;

use super::{MAX_OBJECT, MOST_LISTED, ObjectEntry, failure::Failure, limits::Limits};
use crate::StoreSettings;

/// Folder of objects that are being written.
const UNFINISHED: &str = "tmp";
/// Age from which an unfinished object has no writer any more.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Tries to make an object, since a deletion at the same time may remove its empty folder.
const TRIES: u32 = 100;

const CHECK_FOLDER: &str =
    "mount or make the folder of store.objects_url, and give it to the user that runs the service";

pub(super) struct Folder {
    root: PathBuf,
    /// A permit for each thread that may be stuck in the file system.
    permits: Arc<Semaphore>,
    patience: Duration,
}

impl Folder {
    pub(super) fn new(settings: &StoreSettings, root: PathBuf, limits: Limits) -> Self {
        Self {
            root,
            permits: Arc::new(Semaphore::new(settings.objects_connections)),
            patience: limits.patience,
        }
    }

    /// Returns the folder, for people.
    pub(super) fn place(&self) -> String {
        self.root.display().to_string()
    }

    /// Removes what killed services left unfinished.
    pub(super) async fn clean(&self) -> Result<(), Failure> {
        self.run(|root| clean(&root.join(UNFINISHED))).await
    }

    pub(super) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Failure> {
        let key = key.to_owned();
        self.run(move |root| put(root, &key, &bytes)).await
    }

    pub(super) async fn get(&self, key: &str) -> Result<Bytes, Failure> {
        let key = key.to_owned();
        self.run(move |root| get(&root.join(key))).await
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), Failure> {
        let key = key.to_owned();
        self.run(move |root| delete(root, &key)).await
    }

    pub(super) async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<ObjectEntry>, Failure> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.run(move |root| list(root, &prefix, after.as_deref()))
            .await
    }

    /// Runs work that blocks, for `store.objects_timeout` at most; a thread that is stuck keeps its permit.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (root, permits) = (self.root.clone(), self.permits.clone());
        let done = async move {
            let permit = permits.acquire_owned().await;
            let permit = permit.expect("the permits are never closed");
            let blocking = spawn_blocking(move || {
                let _permit = permit;
                work(&root)
            });
            blocking.await
        };
        match timeout(self.patience, done).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => Err(Failure::Transient(format!("failed: {error}"))),
            Err(_) => Err(Failure::Transient(format!(
                "did not answer within {:?} (store.objects_timeout)",
                self.patience
            ))),
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |error| {
        let reason = format!("cannot {action} {}: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => Failure::Missing,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::Full,
            ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory => Failure::rejected(reason, CHECK_FOLDER),
            _ => Failure::Transient(reason),
        }
    }
}

/// Fails when the root is missing: a folder made in its place would be on another disk than the one to be mounted there.
fn check_root(root: &Path) -> Result<(), Failure> {
    match root.is_dir() {
        true => Ok(()),
        false => Err(Failure::rejected(
            format!("is missing: there is no folder {}", root.display()),
            CHECK_FOLDER,
        )),
    }
}

fn put(root: &Path, key: &str, bytes: &[u8]) -> Result<(), Failure> {
    check_root(root)?;
    let unfinished = root.join(UNFINISHED);
    make_folder(&unfinished)?;
    let temporary = unfinished.join(Uuid::now_v7().simple().to_string());
    let written = write(&temporary, bytes).and_then(|()| place(root, key, &temporary));
    if written.is_err() {
        // Left for the next start if it fails too.
        let _removed = fs::remove_file(&temporary);
    }
    written
}

fn write(temporary: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary)
        .map_err(failed("make", temporary))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed("write", temporary))
}

/// Renames a complete object to its key, and makes that durable.
fn place(root: &Path, key: &str, temporary: &Path) -> Result<(), Failure> {
    let path = root.join(key);
    let folders = folders_of(root, &path);
    let mut number = 1;
    loop {
        match rename(temporary, &path, &folders) {
            Err(Failure::Missing) if number < TRIES => number += 1,
            Err(Failure::Missing) => {
                let reason = format!("cannot make {}: its folder disappears", path.display());
                return Err(Failure::Transient(reason));
            }
            renamed => break renamed?,
        }
    }
    // Each of them, since another writer may have made a folder and not flushed its name yet.
    for folder in folders.iter().map(PathBuf::as_path).chain([root]) {
        sync(folder)?;
    }
    Ok(())
}

fn rename(temporary: &Path, path: &Path, folders: &[PathBuf]) -> Result<(), Failure> {
    for folder in folders.iter().rev() {
        make_folder(folder)?;
    }
    fs::rename(temporary, path).map_err(failed("make", path))
}

/// Returns the folders between the root and a path in it, the innermost first.
fn folders_of(root: &Path, path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let above = above.take_while(|folder| *folder != root);
    above.map(Path::to_path_buf).collect()
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(failed("make the folder", folder)(error))
        }
        _ => Ok(()),
    }
}

fn sync(folder: &Path) -> Result<(), Failure> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("flush the folder", folder))
}

fn get(path: &Path) -> Result<Bytes, Failure> {
    let file = File::open(path).map_err(failed("open", path))?;
    let mut bytes = Vec::new();
    file.take(MAX_OBJECT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed("read", path))?;
    if bytes.len() > MAX_OBJECT {
        return Err(Failure::rejected(
            format!(
                "has an object of more than {MAX_OBJECT} bytes: {}",
                path.display()
            ),
            CHECK_FOLDER,
        ));
    }
    Ok(bytes.into())
}

/// Removes the folders that are empty after it, too.
fn delete(root: &Path, key: &str) -> Result<(), Failure> {
    check_root(root)?;
    let path = root.join(key);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(failed("remove", &path)(error));
        }
        _ => {}
    }
    for folder in folders_of(root, &path) {
        if fs::remove_dir(&folder).is_err() {
            break;
        }
    }
    Ok(())
}

fn clean(unfinished: &Path) -> Result<(), Failure> {
    let entries = match fs::read_dir(unfinished) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("list", unfinished))?,
    };
    let now = SystemTime::now();
    for entry in entries {
        let entry = entry.map_err(failed("list", unfinished))?;
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.map(|modified| now.duration_since(modified).unwrap_or_default());
        if age.is_ok_and(|age| age >= ABANDONED) {
            // Another node may have removed it.
            let _removed = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Lists two levels: files of the folder that the prefix names, and files of the folders in it.
fn list(root: &Path, prefix: &str, after: Option<&str>) -> Result<Vec<ObjectEntry>, Failure> {
    check_root(root)?;
    let (above, beginning) = match prefix.rfind('/') {
        Some(slash) => prefix.split_at(slash + 1),
        None => ("", prefix),
    };
    let after = after.unwrap_or_default();
    let mut entries = Vec::new();
    // The name in the upper level at which the list goes on.
    let mut from = match after.strip_prefix(above) {
        Some(rest) => rest.split('/').next().unwrap_or_default().to_owned(),
        None if after > above => return Ok(entries),
        None => String::new(),
    };
    loop {
        let is_wanted = |name: &str| name.starts_with(beginning) && name >= from.as_str();
        let names = first_names(&root.join(above), is_wanted)?;
        for name in &names {
            let upper = format!("{above}{name}");
            if let Some(entry) = entry_of(root, upper.clone())? {
                if entry.key.as_str() > after {
                    entries.push(entry);
                }
            } else if upper != UNFINISHED {
                let is_behind = |name: &str| format!("{upper}/{name}").as_str() > after;
                for name in first_names(&root.join(&upper), is_behind)? {
                    entries.extend(entry_of(root, format!("{upper}/{name}"))?);
                }
            }
            if entries.len() >= MOST_LISTED {
                entries.truncate(MOST_LISTED);
                return Ok(entries);
            }
        }
        match names.last() {
            // Further folders, all of these were empty.
            Some(last) if entries.is_empty() && names.len() == MOST_LISTED => {
                from = format!("{last}\0");
            }
            _ => return Ok(entries),
        }
    }
}

/// Returns the first names of a folder in their order, up to [`MOST_LISTED`]; none when it is missing.
fn first_names(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("list", folder))?,
    };
    let mut first = BinaryHeap::new();
    for entry in entries {
        let name = entry.map_err(failed("list", folder))?.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        if name.starts_with('.') || !is_wanted(name) {
            continue;
        }
        first.push(name.to_owned());
        if first.len() > MOST_LISTED {
            first.pop();
        }
    }
    Ok(first.into_sorted_vec())
}

/// Returns the entry of a file; `None` for a folder, and for what was removed.
fn entry_of(root: &Path, key: String) -> Result<Option<ObjectEntry>, Failure> {
    let path = root.join(&key);
    let metadata = match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(failed("look at", &path))?,
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    let modified = metadata.modified().unwrap_or_else(|_| SystemTime::now());
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(ObjectEntry {
        key,
        size: metadata.len(),
        modified_ms: crate::duration_ms(since),
    }))
}
