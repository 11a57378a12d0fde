//! GStreamer source of a clip's bytes (`sluice://`): an element that reads a descriptor at any place, and never a path.
//!
//! Reads name their offset (`pread`), so any number of elements may share one file. Nothing else in the process opens
//! an input: of all that GStreamer could read from, [`allow`](super::allow) leaves this alone.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};
use gstreamer as gst;
use gstreamer_base as gst_base;
use parking_lot::Mutex;

/// The element's name among the factories.
pub const FACTORY: &str = "sluicesrc";
/// Scheme before an input's number.
const SCHEME: &str = "sluice";

/// Files by the number in their URI, for as long as their [`Input`] lives.
static OPEN: LazyLock<Mutex<HashMap<u64, Arc<Content>>>> = LazyLock::new(Mutex::default);

fn open_files() -> parking_lot::MutexGuard<'static, HashMap<u64, Arc<Content>>> {
    OPEN.lock()
}

/// Makes the element known to this process.
pub(super) fn register() -> Result<(), glib::BoolError> {
    gst::Element::register(None, FACTORY, gst::Rank::PRIMARY, Source::static_type())
}

/// A file as far as it is read.
#[derive(Debug)]
struct Content {
    file: Arc<File>,
    length: u64,
    patch: Option<Patch>,
}

/// Bytes that are read in the place of those in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

impl Patch {
    /// Applies the changes of the patch to bytes that were read from an offset on.
    fn apply(&self, offset: u64, read: &mut [u8]) {
        for (index, byte) in (self.at..).zip(&self.bytes) {
            let place = index.checked_sub(offset);
            let place = place.and_then(|place| usize::try_from(place).ok());
            if let Some(target) = place.and_then(|place| read.get_mut(place)) {
                *target = *byte;
            }
        }
    }
}

impl Content {
    /// Returns how many of the bytes wanted from an offset on exist.
    fn there(&self, offset: u64, most: usize) -> usize {
        let there = self.length.saturating_sub(offset);
        usize::try_from(there).map_or(most, |there| there.min(most))
    }

    /// Reads until the buffer is full or the file ends; how much it was.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = self.there(offset, buffer.len());
        let read = fill(&self.file, offset, &mut buffer[..wanted])?;
        if let Some(patch) = &self.patch {
            patch.apply(offset, &mut buffer[..read]);
        }
        Ok(read)
    }
}

/// A file that a task reads, or its beginning.
#[derive(Debug)]
pub struct Input {
    number: u64,
    content: Arc<Content>,
}

impl Input {
    /// Takes a seekable file, whose length does not change any more.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let file = Arc::new(File::from(descriptor));
        let length = file.metadata()?.len();
        Ok(Self::of(Content {
            file,
            length,
            patch: None,
        }))
    }

    /// A file of these bytes.
    #[cfg(test)]
    pub(super) fn holding(bytes: &[u8]) -> Self {
        let mut file = tempfile::tempfile().expect("a file");
        io::Write::write_all(&mut file, bytes).expect("written");
        Self::new(file.into()).expect("an input")
    }

    fn of(content: Content) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let content = Arc::new(content);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        open_files().insert(number, content.clone());
        Self { number, content }
    }

    /// The same file, as though it ended after so many bytes.
    pub fn beginning(&self, bytes: u64) -> Self {
        Self::of(Content {
            file: self.content.file.clone(),
            length: bytes.min(self.content.length),
            patch: self.content.patch.clone(),
        })
    }

    /// The same file with other bytes at one place.
    pub(super) fn patched(&self, patch: Patch) -> Self {
        Self::of(Content {
            file: self.content.file.clone(),
            length: self.content.length,
            patch: Some(patch),
        })
    }

    /// A new source element that reads this file.
    pub fn element(&self) -> gst::Element {
        let source: Source = glib::Object::new();
        *source.imp().content() = Some(self.content.clone());
        source.upcast()
    }

    /// Returns the URI for elements that want one.
    pub fn uri(&self) -> String {
        format!("{SCHEME}://{}", self.number)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.content.length
    }

    pub fn is_empty(&self) -> bool {
        self.content.length == 0
    }

    /// The first bytes, at most so many.
    pub fn head(&self, most: usize) -> io::Result<Vec<u8>> {
        self.read_at(0, most)
    }

    /// The bytes from an offset on, at most so many.
    pub fn read_at(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.content.there(offset, most)];
        let read = self.content.fill(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        open_files().remove(&self.number);
    }
}

/// Reads until the buffer is full or the file ends; how much it was.
fn fill(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(some) => read += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

glib::wrapper! {
    /// The element.
    pub struct Source(ObjectSubclass<imp::Source>)
        @extends gst_base::BaseSrc, gst::Element, gst::Object,
        @implements gst::URIHandler;
}

mod imp {
    use parking_lot::MutexGuard;

    use super::*;

    #[derive(Debug, Default)]
    pub struct Source {
        content: Mutex<Option<Arc<Content>>>,
    }

    impl Source {
        pub(super) fn content(&self) -> MutexGuard<'_, Option<Arc<Content>>> {
            self.content.lock()
        }

        fn open(&self) -> Option<Arc<Content>> {
            self.content().clone()
        }
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Source {
        const NAME: &'static str = "SluiceSource";
        type Type = super::Source;
        type ParentType = gst_base::BaseSrc;
        type Interfaces = (gst::URIHandler,);
    }

    impl ObjectImpl for Source {
        fn constructed(&self) {
            self.parent_constructed();
            let source = self.obj();
            source.set_format(gst::Format::Bytes);
            // The length is asked for once: inputs do not grow.
            source.set_dynamic_size(false);
        }
    }

    impl GstObjectImpl for Source {}

    impl ElementImpl for Source {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                gst::subclass::ElementMetadata::new(
                    "Descriptor source",
                    "Source/File",
                    "Reads an input of a task at any place",
                    "Sluice",
                )
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                let source = gst::PadTemplate::new(
                    "src",
                    gst::PadDirection::Src,
                    gst::PadPresence::Always,
                    &gst::Caps::new_any(),
                );
                vec![source.expect("the template is well formed")]
            });
            &TEMPLATES
        }
    }

    impl BaseSrcImpl for Source {
        fn start(&self) -> Result<(), gst::ErrorMessage> {
            match self.open() {
                Some(_) => Ok(()),
                None => Err(gst::error_msg!(
                    gst::ResourceError::NotFound,
                    ["no input has this number"]
                )),
            }
        }

        fn is_seekable(&self) -> bool {
            true
        }

        fn size(&self) -> Option<u64> {
            Some(self.open()?.length)
        }

        fn fill(
            &self,
            offset: u64,
            length: u32,
            buffer: &mut gst::BufferRef,
        ) -> Result<gst::FlowSuccess, gst::FlowError> {
            let content = self.open().ok_or(gst::FlowError::Error)?;
            let read = {
                let mut bytes = buffer.map_writable().map_err(|_| gst::FlowError::Error)?;
                let wanted = bytes.len().min(length as usize);
                content.fill(offset, &mut bytes[..wanted])
            };
            match read {
                Ok(0) if length > 0 => Err(gst::FlowError::Eos),
                Ok(read) => {
                    buffer.set_size(read);
                    buffer.set_offset(offset);
                    buffer.set_offset_end(offset + read as u64);
                    Ok(gst::FlowSuccess::Ok)
                }
                Err(error) => {
                    gst::element_imp_error!(
                        self,
                        gst::ResourceError::Read,
                        ["an input cannot be read: {error}"]
                    );
                    Err(gst::FlowError::Error)
                }
            }
        }
    }

    impl URIHandlerImpl for Source {
        const URI_TYPE: gst::URIType = gst::URIType::Src;

        fn protocols() -> &'static [&'static str] {
            &[SCHEME]
        }

        fn uri(&self) -> Option<String> {
            let content = self.open()?;
            let files = open_files();
            let (number, _) = files.iter().find(|(_, open)| Arc::ptr_eq(open, &content))?;
            Some(format!("{SCHEME}://{number}"))
        }

        fn set_uri(&self, uri: &str) -> Result<(), glib::Error> {
            let number = uri
                .strip_prefix(SCHEME)
                .and_then(|rest| rest.strip_prefix("://"))
                .and_then(|number| number.parse::<u64>().ok());
            let content = number.and_then(|number| open_files().get(&number).cloned());
            match content {
                Some(content) => {
                    *self.content() = Some(content);
                    Ok(())
                }
                None => Err(glib::Error::new(
                    gst::URIError::BadUri,
                    "no input has this number",
                )),
            }
        }
    }
}
