//! Where the bytes of a clip come from: an element that reads a descriptor at any place, and never a path.
//!
//! Reads name their offset (`pread`), so any number of elements may stand on one file. Nothing else in the process opens
//! an input: of all that GStreamer could read from, [`allow`](super::allow) leaves this alone.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};
use gstreamer as gst;
use gstreamer_base as gst_base;

/// The element's name among the factories.
pub const FACTORY: &str = "sluicesrc";
/// What precedes an input's number.
const SCHEME: &str = "sluice";

/// Files by the number in their URI, for as long as their [`Input`] lives.
static OPEN: LazyLock<Mutex<HashMap<u64, Arc<File>>>> = LazyLock::new(Mutex::default);

fn open_files() -> std::sync::MutexGuard<'static, HashMap<u64, Arc<File>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the element known to this process.
pub(super) fn register() -> Result<(), glib::BoolError> {
    gst::Element::register(None, FACTORY, gst::Rank::PRIMARY, Source::static_type())
}

/// One file that a task reads.
#[derive(Debug)]
pub struct Input {
    number: u64,
    file: Arc<File>,
    length: u64,
}

impl Input {
    /// Takes a seekable file, whose length does not change any more.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let file = Arc::new(File::from(descriptor));
        let length = file.metadata()?.len();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        open_files().insert(number, file.clone());
        Ok(Self {
            number,
            file,
            length,
        })
    }

    /// A new source element that reads this file.
    pub fn element(&self) -> gst::Element {
        let source: Source = glib::Object::new();
        *source.imp().file() = Some(self.file.clone());
        source.upcast()
    }

    /// What elements that want a URI are given.
    pub fn uri(&self) -> String {
        format!("{SCHEME}://{}", self.number)
    }

    /// In bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The first bytes, at most so many.
    pub fn head(&self, most: usize) -> io::Result<Vec<u8>> {
        self.read_at(0, most)
    }

    /// The bytes from an offset on, at most so many.
    pub fn read_at(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let there = self.length.saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(there).map_or(most, |there| there.min(most))];
        let read = fill(&self.file, offset, &mut bytes)?;
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
    use std::sync::MutexGuard;

    use super::*;

    #[derive(Debug, Default)]
    pub struct Source {
        file: Mutex<Option<Arc<File>>>,
    }

    impl Source {
        pub(super) fn file(&self) -> MutexGuard<'_, Option<Arc<File>>> {
            self.file.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn open(&self) -> Option<Arc<File>> {
            self.file().clone()
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
            Some(self.open()?.metadata().ok()?.len())
        }

        fn fill(
            &self,
            offset: u64,
            length: u32,
            buffer: &mut gst::BufferRef,
        ) -> Result<gst::FlowSuccess, gst::FlowError> {
            let file = self.open().ok_or(gst::FlowError::Error)?;
            let read = {
                let mut bytes = buffer.map_writable().map_err(|_| gst::FlowError::Error)?;
                let wanted = bytes.len().min(length as usize);
                super::fill(&file, offset, &mut bytes[..wanted])
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
            let file = self.open()?;
            let files = open_files();
            let (number, _) = files.iter().find(|(_, open)| Arc::ptr_eq(open, &file))?;
            Some(format!("{SCHEME}://{number}"))
        }

        fn set_uri(&self, uri: &str) -> Result<(), glib::Error> {
            let number = uri
                .strip_prefix(SCHEME)
                .and_then(|rest| rest.strip_prefix("://"))
                .and_then(|number| number.parse::<u64>().ok());
            let file = number.and_then(|number| open_files().get(&number).cloned());
            match file {
                Some(file) => {
                    *self.file() = Some(file);
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
