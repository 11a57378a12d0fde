//! Owner of an object store: the object `owner/{id}` names the installation whose rows name the others. No other installation
//! starts on it, and none deletes objects as strays where it is not the only owner.
//!
//! - Each installation has a key of its own, so that two that start at once both find the other one.
//! - Without that object an installation becomes the owner only where it has objects, or where there are none and it has none
//!   elsewhere: neither rows name any, nor does a node of it run.

use bytes::Bytes;
use uuid::Uuid;

use super::Objects;
use crate::{Connection, Error, derived::DerivedTokens, statement::query_scalar};

const PREFIX: &str = "owner/";
/// Content for a person who looks into the bucket.
const NOTE: &str = "The objects beside this one belong to an installation of Sluice. See docs/guide/cluster.md before you delete it.\n";
/// Beginnings of the keys of stored bytes.
const STORED: [&str; 2] = ["b/", "v/"];
/// Newest rows of each kind whose objects are looked for: bytes of a few may be lost.
const LOOKED_FOR: i64 = 3;
/// Ids that rows have below a beginning of keys, newest first.
const NAMED: [(&str, &str); 4] = [
    (
        "b/",
        "SELECT base FROM blobs WHERE base IS NOT NULL AND length(piece_hashes) > 0 ORDER BY base DESC LIMIT $1",
    ),
    (
        "b/",
        "SELECT base FROM live_segments ORDER BY base DESC LIMIT $1",
    ),
    (
        "b/",
        "SELECT base FROM tus_uploads WHERE base IS NOT NULL AND (length(piece_hashes) > 0 OR tail > 0)
         ORDER BY base DESC LIMIT $1",
    ),
    (
        "v/",
        "SELECT v.id FROM video_streams v WHERE EXISTS (SELECT 1 FROM video_objects o WHERE o.stream_id = v.id)
         ORDER BY v.id DESC LIMIT $1",
    ),
];

/// Installation that wants to be the owner of an object store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claimant {
    /// Id of the installation; `None` before its first start.
    id: Option<String>,
    /// Beginnings of the keys of some objects that its rows name.
    named: Vec<String>,
    /// Name of a node that runs, whose object store this must be.
    node: Option<String>,
}

impl Claimant {
    /// Reads the rows. Of an installation that has not started yet there is nothing.
    pub(crate) async fn of(db: &mut impl Connection) -> Result<Self, Error> {
        let id = match DerivedTokens::of(db).await {
            Ok(derived) => derived.object_owner(),
            Err(Error::NotFound(_)) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut named = Vec::new();
        for (beginning, statement) in NAMED {
            let ids: Vec<Uuid> = query_scalar(statement)
                .bind(LOOKED_FOR)
                .fetch_all(db)
                .await?;
            named.extend(ids.iter().map(|id| format!("{beginning}{}/", id.simple())));
        }
        Ok(Self {
            id: Some(id),
            named,
            node: None,
        })
    }

    /// Adds the name of a node that runs.
    pub(crate) fn beside(self, node: Option<String>) -> Self {
        Self { node, ..self }
    }

    /// Returns the key of the object that makes it the owner.
    fn key(&self) -> Option<String> {
        self.id.as_deref().map(key)
    }
}

/// Owner of an object store from the view of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectOwner {
    /// The installation itself, by the object with this key.
    This(String),
    /// None yet: the first start makes the installation the owner.
    NotYet,
    /// Another one, or an unknown one: the reason why no service starts, and what to change.
    Rejected(String),
}

/// Objects that were found where there is no owner.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// True for one that a row of the installation names.
    has_named: bool,
    /// True for any with stored bytes.
    has_stored: bool,
}

impl Objects {
    /// Makes an installation the owner, unless it is. Nothing to do before its first start.
    ///
    /// `Error::Unsupported` when the object store is another one's, or is not the one that its rows or nodes have.
    pub(crate) async fn claim(&self, claimant: &Claimant) -> Result<(), Error> {
        let Some(own) = claimant.key() else {
            return Ok(());
        };
        match self.owner(claimant).await? {
            ObjectOwner::This(_) => return Ok(()),
            ObjectOwner::Rejected(reason) => return Err(Error::Unsupported(reason)),
            ObjectOwner::NotYet => {}
        }
        self.put(&own, Bytes::from_static(NOTE.as_bytes())).await?;
        match self.owner(claimant).await? {
            ObjectOwner::This(_) => Ok(()),
            ObjectOwner::Rejected(reason) => {
                self.delete(&own).await?;
                Err(Error::Unsupported(reason))
            }
            ObjectOwner::NotYet => Err(Error::Unsupported(format!(
                "store.objects_url: {} does not list the object {own}, which was written: use an object store that shows what was \
                 written at once",
                self.place()
            ))),
        }
    }

    /// Looks for the owner, and changes nothing.
    pub(crate) async fn owner(&self, claimant: &Claimant) -> Result<ObjectOwner, Error> {
        let owners = self.owners().await?;
        let found = match owners.is_empty() {
            true => Found {
                has_named: self.has_any(&claimant.named).await?,
                has_stored: self.has_any(&STORED).await?,
            },
            false => Found::default(),
        };
        Ok(judge(&self.place(), claimant, &owners, found))
    }

    /// Returns whether an installation is the owner, and the only one.
    pub(crate) async fn is_owned_by(&self, id: &str) -> Result<bool, Error> {
        Ok(self.owners().await? == [key(id)])
    }

    async fn owners(&self) -> Result<Vec<String>, Error> {
        let listed = self.list(PREFIX, None).await?;
        Ok(listed.into_iter().map(|entry| entry.key).collect())
    }

    /// Returns whether there is an object with one of these beginnings of its key.
    async fn has_any(&self, prefixes: &[impl AsRef<str>]) -> Result<bool, Error> {
        for prefix in prefixes {
            if !self.list(prefix.as_ref(), None).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

fn judge(place: &str, claimant: &Claimant, owners: &[String], found: Found) -> ObjectOwner {
    const ELSEWHERE: &str = "choose another bucket, or a prefix of its own";
    let rejected = |why: String| ObjectOwner::Rejected(format!("store.objects_url: {why}"));
    let own = claimant.key();
    // What makes this installation the owner all the same; nothing before it has an id.
    let only_when = |is_so: &str, then: &str| match &own {
        Some(own) => format!("; only when {is_so}, write an empty object {own} there{then}"),
        None => String::new(),
    };
    if let Some(other) = owners.iter().find(|owner| own.as_ref() != Some(*owner)) {
        return rejected(format!(
            "the objects at {place} belong to another installation, as {other} says: {ELSEWHERE}{}",
            only_when(
                "that installation is gone for good and no file of it is needed",
                &format!(" and delete {other}")
            )
        ));
    }
    if let Some(own) = owners.first() {
        return ObjectOwner::This(own.clone());
    }
    if found.has_named {
        return ObjectOwner::NotYet;
    }
    if let Some(node) = &claimant.node {
        return rejected(format!(
            "{place} is not the object store of the node {node}, which runs: there is no object {} that names the installation. Set \
             the same bucket and prefix on all nodes",
            own.as_deref().unwrap_or(PREFIX)
        ));
    }
    if !claimant.named.is_empty() {
        return rejected(format!(
            "{place} is not the object store that the rows name: there is neither an object {} nor one of the newest files. Set the \
             bucket and prefix in which the files are{}",
            own.as_deref().unwrap_or(PREFIX),
            only_when("these files are lost for good", "")
        ));
    }
    if found.has_stored {
        return rejected(format!(
            "{place} has objects, and none below {PREFIX} that says whose they are: {ELSEWHERE}{}",
            only_when("none of them is needed", "")
        ));
    }
    ObjectOwner::NotYet
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{Store, StoreSettings, stray_objects};

    /// Milliseconds by which everything is old.
    const LATER_MS: i64 = 1 << 41;

    fn settings(folder: &Path, name: &str) -> StoreSettings {
        let (data, bucket) = (folder.join(name), folder.join("bucket"));
        fs::create_dir_all(&bucket).unwrap();
        StoreSettings {
            objects_url: format!("file://{}", bucket.display()),
            ..StoreSettings::on_sqlite(&data)
        }
    }

    fn object_key(number: u8) -> String {
        let base = Uuid::from_u128(0x0100_0000_0000_7000_8000_0000_0000_0000);
        format!(
            "b/{}/0-{}",
            base.simple(),
            format!("{number:02x}").repeat(8)
        )
    }

    async fn id(store: &Store) -> String {
        let mut reader = store.read().await.unwrap();
        DerivedTokens::of(&mut reader).await.unwrap().object_owner()
    }

    async fn rejected(settings: &StoreSettings) -> String {
        let error = Store::open(settings).await.err().expect("it is rejected");
        assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
        error.to_string()
    }

    #[test]
    fn an_installation_owns_what_is_its_own_or_empty() {
        let claimant = |id: Option<&str>, named: &[&str], node: Option<&str>| Claimant {
            id: id.map(str::to_owned),
            named: named.iter().map(|key| (*key).to_owned()).collect(),
            node: node.map(str::to_owned),
        };
        let judged = |claimant: &Claimant, owners: &[&str], [has_named, has_stored]: [bool; 2]| {
            let owners: Vec<String> = owners.iter().map(|owner| (*owner).to_owned()).collect();
            let found = Found {
                has_named,
                has_stored,
            };
            judge("https://media.example.org/p/", claimant, &owners, found)
        };
        let (none, named) = ([false, false], [true, true]);
        let (new, full) = (
            claimant(Some("aa"), &[], None),
            claimant(Some("aa"), &["b/01/"], None),
        );
        let node = claimant(Some("aa"), &[], Some("n1"));
        let unknown = claimant(None, &[], None);
        for claimant in [&new, &full, &node] {
            let owner = judged(claimant, &["owner/aa"], none);
            assert_eq!(owner, ObjectOwner::This("owner/aa".into()));
        }
        for (claimant, found) in [(&new, none), (&unknown, none), (&full, named)] {
            assert_eq!(judged(claimant, &[], found), ObjectOwner::NotYet);
        }
        type Case<'c> = (&'c Claimant, &'c [&'c str], [bool; 2], &'c [&'c str]);
        let cases: [Case<'_>; 7] = [
            (
                &new,
                &["owner/bb"],
                none,
                &["as owner/bb", "empty object owner/aa", "delete owner/bb"],
            ),
            (&full, &["owner/aa", "owner/bb"], none, &["as owner/bb"]),
            (
                &unknown,
                &["owner/bb"],
                none,
                &["as owner/bb", "another bucket"],
            ),
            (
                &node,
                &[],
                none,
                &["the node n1", "owner/aa", "on all nodes"],
            ),
            (&full, &[], none, &["the rows", "empty object owner/aa"]),
            (
                &new,
                &[],
                [false, true],
                &["another bucket", "empty object owner/aa"],
            ),
            (&unknown, &[], [false, true], &["another bucket"]),
        ];
        for (claimant, owners, found, parts) in cases {
            let ObjectOwner::Rejected(reason) = judged(claimant, owners, found) else {
                panic!("{claimant:?} is not rejected");
            };
            assert!(reason.starts_with("store.objects_url: "), "{reason}");
            for part in parts.iter().chain(&["https://media.example.org/p/"]) {
                assert!(reason.contains(part), "{part}: {reason}");
            }
            let is_cured = claimant.id.is_some() && claimant.node.is_none();
            assert_eq!(reason.contains("empty object"), is_cured, "{reason}");
        }
    }

    #[tokio::test]
    async fn another_installation_neither_starts_nor_sweeps() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(&settings(folder.path(), "first"))
            .await
            .unwrap();
        let objects = first.blobs().objects().unwrap().clone();
        let own = id(&first).await;
        assert!(objects.is_owned_by(&own).await.unwrap());
        let text = rejected(&settings(folder.path(), "other")).await;
        assert!(
            text.contains("another installation") && text.contains("owner/"),
            "{text}"
        );
        assert!(objects.is_owned_by(&own).await.unwrap(), "it left nothing");

        // A stray is deleted by its owner alone.
        objects.put(&object_key(1), "stray".into()).await.unwrap();
        objects.put("owner/another", "also".into()).await.unwrap();
        stray_objects::sweep(&first, LATER_MS).await.unwrap();
        assert_eq!(&objects.get(&object_key(1)).await.unwrap()[..], b"stray");
        objects.delete("owner/another").await.unwrap();
        stray_objects::sweep(&first, LATER_MS).await.unwrap();
        assert!(objects.get(&object_key(1)).await.is_err());
        first.close().await;
        let again = Store::open(&settings(folder.path(), "first"))
            .await
            .unwrap();
        again.close().await;
    }

    /// Without the object of an owner an operator decides whose objects they are.
    #[tokio::test]
    async fn objects_without_an_owner_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), "first");
        let objects = Objects::of(&settings).unwrap().unwrap();
        objects.put(&object_key(1), "theirs".into()).await.unwrap();
        let text = rejected(&settings).await;
        let (_, cure) = text.split_once("write an empty object ").unwrap();
        let own = cure.split(' ').next().unwrap();
        assert!(objects.owners().await.unwrap().is_empty());
        objects.put(own, Bytes::new()).await.unwrap();
        Store::open(&settings).await.unwrap().close().await;
    }
}
