//! Entries and entity tag of a ZIP archive of a folder or of chosen files and folders, at one moment; `archive.max_entries`.

use std::{collections::HashMap, ops::ControlFlow};

use sha2::{Digest as _, Sha256};
use sluice_media::zip::{Builder, Contents, Folder, Layout};
use sluice_store::{
    Reader,
    archive::{self, Member, Subfolder},
    folders,
};
use uuid::Uuid;

use crate::application::{archive::limiter::Memory, context::FileContext, error::ApiError};

/// Version of an archive's layout: changes whenever the same list gives other bytes than before, so that no download continues
/// in another archive.
const LAYOUT_VERSION: &[u8] = b"3";
/// Entries between two checks of the memory that the list takes.
const ENTRIES_PER_MEMORY_CHECK: u32 = 1024;

/// The list of an archive; about 40 bytes and the name for each file.
#[derive(Debug)]
pub(crate) struct Listing {
    pub layout: Layout,
    /// File ids by the number of the file.
    pub ids: Vec<Uuid>,
    /// Entity tag: covers everything that the archive's bytes depend on.
    pub tag: String,
    _memory: Memory,
}

impl Listing {
    /// Lists a folder. 413 when there is too much for one archive, 503 when there are too many archives.
    pub(crate) async fn of(
        context: &FileContext,
        account_id: Uuid,
        folder_id: Uuid,
    ) -> Result<Self, ApiError> {
        let _turn = context.archives.turn().await?;
        let mut draft = Draft::new(context);
        draft.folders.insert(folder_id, Folder::ROOT);
        let mut db = context.store.read().await?;
        draft.add_subfolders(&mut db, folder_id).await?;
        draft.add_members(&mut db, account_id, folder_id).await?;
        draft.finish()
    }

    /// Lists chosen files and folders. What was deleted since is left out, and what is chosen with a folder above it is not listed
    /// twice. Else as [`Listing::of`].
    pub(crate) async fn of_chosen(
        context: &FileContext,
        account_id: Uuid,
        files: &[Uuid],
        folders: &[Uuid],
    ) -> Result<Self, ApiError> {
        let _turn = context.archives.turn().await?;
        let mut draft = Draft::new(context);
        let mut db = context.store.read().await?;
        let mut roots = Vec::new();
        for folder in outermost(&mut db, account_id, folders).await? {
            roots.push(folder.id);
            draft.add_root(folder)?;
        }
        // An archive has all its folders before its files.
        for root in &roots {
            draft.add_subfolders(&mut db, *root).await?;
        }
        for root in &roots {
            draft.add_members(&mut db, account_id, *root).await?;
        }
        for member in archive::chosen(&mut db, account_id, files).await? {
            let is_listed = member
                .folder_id
                .is_some_and(|folder| draft.folders.contains_key(&folder));
            if !is_listed {
                draft.add_file(Folder::ROOT, member)?;
            }
        }
        draft.finish()
    }
}

/// Returns the folders of the account among these that lie in no other of them, in their order.
async fn outermost(
    db: &mut Reader,
    account_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<folders::Folder>, ApiError> {
    let mut outermost = Vec::new();
    for id in ids {
        let folder = match folders::get(db, account_id, *id).await {
            Err(sluice_store::Error::NotFound(_)) => continue,
            found => found?,
        };
        let above = folders::ancestors(db, *id).await?;
        let lies_in_another = above.iter().any(|it| it != id && ids.contains(it));
        if !lies_in_another {
            outermost.push(folder);
        }
    }
    Ok(outermost)
}

fn until_rejected(added: Result<(), ApiError>) -> ControlFlow<ApiError> {
    match added {
        Ok(()) => ControlFlow::Continue(()),
        Err(rejection) => ControlFlow::Break(rejection),
    }
}

fn accepted(all: ControlFlow<ApiError>) -> Result<(), ApiError> {
    match all {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(rejection) => Err(rejection),
    }
}

/// List under construction.
struct Draft {
    builder: Builder,
    folders: HashMap<Uuid, Folder>,
    ids: Vec<Uuid>,
    digest: Sha256,
    entries: u32,
    max_entries: u32,
    memory: Memory,
}

impl Draft {
    fn new(context: &FileContext) -> Self {
        let mut digest = Sha256::new();
        digest.update(LAYOUT_VERSION);
        Self {
            builder: Builder::default(),
            folders: HashMap::new(),
            ids: Vec::new(),
            digest,
            entries: 0,
            max_entries: context.archives.max_entries(),
            memory: context.archives.memory(),
        }
    }

    async fn add_subfolders(&mut self, db: &mut Reader, root: Uuid) -> Result<(), ApiError> {
        // One more than the bound, to see that there are more.
        let most = self.max_entries.saturating_add(1);
        let folders = archive::each_subfolder(db, root, most, |folder| {
            until_rejected(self.add_folder(folder))
        });
        accepted(folders.await?)
    }

    async fn add_members(
        &mut self,
        db: &mut Reader,
        account_id: Uuid,
        root: Uuid,
    ) -> Result<(), ApiError> {
        let files = archive::each_member(db, account_id, root, |member| {
            // The folder was made or moved after the folders were listed: its files belong to a later moment.
            let folder = member
                .folder_id
                .and_then(|id| self.folders.get(&id))
                .copied();
            until_rejected(match folder {
                Some(folder) => self.add_file(folder, member),
                None => Ok(()),
            })
        });
        accepted(files.await?)
    }

    /// Adds a folder at the top of the archive.
    fn add_root(&mut self, folder: folders::Folder) -> Result<(), ApiError> {
        self.count()?;
        let added = self
            .builder
            .folder(Folder::ROOT, &folder.name, folder.created_at)
            .map_err(too_large)?;
        self.folders.insert(folder.id, added);
        self.digest.update(folder.id.as_bytes());
        self.digest_name(&folder.name, folder.created_at);
        Ok(())
    }

    fn add_folder(&mut self, folder: Subfolder) -> Result<(), ApiError> {
        let Some(parent) = self.folders.get(&folder.parent_id).copied() else {
            return Ok(());
        };
        self.count()?;
        let added = self
            .builder
            .folder(parent, &folder.name, folder.created_at)
            .map_err(too_large)?;
        self.folders.insert(folder.id, added);
        self.digest.update(folder.id.as_bytes());
        self.digest.update(folder.parent_id.as_bytes());
        self.digest_name(&folder.name, folder.created_at);
        Ok(())
    }

    fn add_file(&mut self, folder: Folder, member: Member) -> Result<(), ApiError> {
        self.count()?;
        let contents = Contents {
            size: member.size_bytes.unsigned_abs(),
            crc32: member.crc32,
        };
        self.builder
            .file(folder, &member.filename, contents, member.created_at)
            .map_err(too_large)?;
        self.ids.push(member.id);
        self.digest
            .update(member.folder_id.unwrap_or_default().as_bytes());
        self.digest.update(member.blob.as_bytes());
        self.digest_name(&member.filename, member.created_at);
        Ok(())
    }

    /// Hashes a name with its length, so that no two lists have the same digest input.
    fn digest_name(&mut self, name: &str, at: i64) {
        self.digest.update((name.len() as u64).to_le_bytes());
        self.digest.update(name);
        self.digest.update(at.to_le_bytes());
    }

    fn count(&mut self) -> Result<(), ApiError> {
        if self.entries == self.max_entries {
            return Err(ApiError::TooLarge(format!(
                "an archive holds at most {} files and folders (archive.max_entries): download its folders one by one",
                self.max_entries
            )));
        }
        self.entries += 1;
        match self.entries.is_multiple_of(ENTRIES_PER_MEMORY_CHECK) {
            true => self.memory.hold(self.bytes() + self.scratch_bytes()),
            false => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.builder.bytes() + size_of_val(self.ids.as_slice())
    }

    /// Bytes of memory until all files are open.
    fn scratch_bytes(&self) -> usize {
        self.folders.capacity() * size_of::<(Uuid, Folder)>()
    }

    fn finish(mut self) -> Result<Listing, ApiError> {
        self.memory.hold(self.bytes())?;
        self.ids.shrink_to_fit();
        let digest = self.digest.finalize();
        let number = u128::from_be_bytes(digest[..16].try_into().expect("a SHA-256 has 32 bytes"));
        Ok(Listing {
            layout: self.builder.finish(),
            ids: self.ids,
            tag: format!("\"{number:032x}\""),
            _memory: self.memory,
        })
    }
}

fn too_large(error: sluice_media::Error) -> ApiError {
    ApiError::TooLarge(format!("{error}: download its folders one by one"))
}
