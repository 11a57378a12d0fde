//! The only module that speaks to libvips' C interface: operations by name, images, allowed loaders, start of the
//! library.
//!
//! Rules: an [`Image`] borrows the input that it may still be read from (libvips decodes lazily) and stays on its thread;
//! results are copied out and freed by the allocator that made them; a failure carries no text, because libvips' error
//! buffer is one for the whole process and names files. Operations get only the options that are set here, by their
//! names in libvips 8.14, so that the library's age does not matter (the crate's own calls pass options of 8.18).
//! Arguments go through `GValue`s, which check types: a wrong name or type is a rejection. Whatever may make, run or free an
//! operation holds the lock of [`alone`].
#![allow(
    unsafe_code,
    reason = "libvips is a C library; everything else calls it through this module"
)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt::Display,
    marker::PhantomData,
    mem::zeroed,
    ptr::{NonNull, null_mut},
    slice,
    sync::Once,
};

use libvips::bindings as c;
use parking_lot::{Mutex, MutexGuard};

/// libvips refused; the caller's step names the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Loaders that stay usable. By name, since libvips' own notion of trusted code leaves out SVG, PDF and JPEG XL.
const LOADERS: [&CStr; 9] = [
    c"VipsForeignLoadJpeg",
    c"VipsForeignLoadPng",
    c"VipsForeignLoadWebp",
    c"VipsForeignLoadHeif",
    c"VipsForeignLoadNsgif",
    c"VipsForeignLoadTiff",
    c"VipsForeignLoadSvg",
    c"VipsForeignLoadPdf",
    c"VipsForeignLoadJxl",
];

/// Starts libvips once: one thread per image, no cache of operations, no loader but [`LOADERS`], no words on stderr.
pub fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // SAFETY: runs once, before any other call; every argument is a constant.
        unsafe {
            c::g_log_set_default_handler(Some(discard_log), null_mut());
            assert_eq!(c::vips_init(c"sluice".as_ptr()), 0, "libvips starts");
            c::vips_concurrency_set(1);
            c::vips_cache_set_max(0);
            c::vips_cache_set_max_mem(0);
            c::vips_cache_set_max_files(0);
            c::vips_leak_set(0);
            c::vips_operation_block_set(c"VipsForeignLoad".as_ptr(), 1);
            for loader in LOADERS {
                c::vips_operation_block_set(loader.as_ptr(), 0);
            }
        }
    });
}

/// Keeps other threads out while libvips works. libvips compiles loops when an operation is built and frees them with the
/// last reference to it, and liborc before 0.4.34 (Debian 12 has 0.4.33) gives their memory back without its own lock:
/// a second thread then corrupts the heap. A worker has one thread that asks, which never waits here; tests have many.
fn alone() -> MutexGuard<'static, ()> {
    static AT_WORK: Mutex<()> = Mutex::new(());
    AT_WORK.lock()
}

unsafe extern "C" fn discard_log(
    _domain: *const c_char,
    _level: c::GLogLevelFlags,
    _message: *const c_char,
    _data: *mut c_void,
) {
}

/// An operation: arguments are set one by one, then it runs. A wrong argument fails when it runs.
pub struct Operation<'a> {
    object: *mut c::VipsOperation,
    refused: bool,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Operation<'a> {
    /// `name` as libvips' command line calls it.
    pub fn new(name: &CStr) -> Self {
        start();
        let _alone = alone();
        // SAFETY: the name is a C string; an unknown one gives null, which is checked before every use.
        let object = unsafe { c::vips_operation_new(name.as_ptr()) };
        Self {
            object,
            refused: object.is_null(),
            bytes: PhantomData,
        }
    }

    /// An operation on the image `in`.
    pub fn on(name: &CStr, image: &Image<'a>) -> Self {
        Self::new(name).image(c"in", image)
    }

    /// A loader that reads `bytes`.
    pub fn load(name: &CStr, bytes: &'a [u8]) -> Self {
        // SAFETY: the blob points into `bytes`, which outlive the operation and every image made from it ('a); without
        // a free function libvips never frees them. The operation takes its own reference, ours is given back.
        unsafe {
            let blob = c::vips_blob_new(None, bytes.as_ptr().cast(), bytes.len() as c::size_t);
            let operation = Self::new(name).set(c"buffer", c::vips_blob_get_type(), |value| {
                c::g_value_set_boxed(value, blob.cast());
            });
            c::vips_area_unref(blob.cast());
            operation
        }
    }

    /// An argument that is an image.
    pub fn image(self, name: &CStr, image: &Image<'a>) -> Self {
        // SAFETY: the image lives; the value takes a reference of its own.
        unsafe {
            self.set(name, c::vips_image_get_type(), |value| {
                c::g_value_set_object(value, image.pointer.as_ptr().cast());
            })
        }
    }

    /// An argument that is a list of images.
    pub fn images(self, name: &CStr, images: &[Image<'a>]) -> Self {
        let mut pointers: Vec<_> = images.iter().map(|image| image.pointer.as_ptr()).collect();
        // SAFETY: the array copies the pointers and takes references, the value one to the array; ours is given back.
        unsafe {
            let array = c::vips_array_image_new(pointers.as_mut_ptr(), pointers.len() as c_int);
            let operation = self.set(name, c::vips_array_image_get_type(), |value| {
                c::g_value_set_boxed(value, array.cast());
            });
            c::vips_area_unref(array.cast());
            operation
        }
    }

    /// Numbers, words of an enumeration, texts, `true`; lists are separated by blanks.
    pub fn option(mut self, name: &CStr, value: impl Display) -> Self {
        let Ok(value) = CString::new(value.to_string()) else {
            self.refused = true;
            return self;
        };
        if !self.refused {
            // SAFETY: object and both strings live; an unknown name or a bad value is an error code.
            let code = unsafe {
                c::vips_object_set_argument_from_string(
                    self.object.cast(),
                    name.as_ptr(),
                    value.as_ptr(),
                )
            };
            self.refused = code != 0;
        }
        self
    }

    /// The image that the operation makes, as its argument `out`.
    pub fn run(mut self) -> Result<Image<'a>, Refused> {
        self.build()?;
        // SAFETY: the value holds an image or null; the reference that is added becomes ours.
        unsafe {
            self.get(c"out", c::vips_image_get_type(), |value| {
                let image = c::g_value_get_object(value);
                if !image.is_null() {
                    c::g_object_ref(image);
                }
                Image::own(image.cast())
            })
        }
    }

    /// The bytes that a saver makes.
    pub fn encode(mut self) -> Result<Vec<u8>, Refused> {
        self.build()?;
        // SAFETY: the value holds a blob or null, and keeps it alive while it is copied.
        unsafe {
            self.get(c"buffer", c::vips_blob_get_type(), |value| {
                let blob = c::g_value_get_boxed(value);
                if blob.is_null() {
                    return Err(Refused);
                }
                let mut length = 0;
                let bytes = c::vips_blob_get(blob.cast(), &raw mut length);
                Ok(copied(bytes, length))
            })
        }
    }

    /// Whole numbers that the operation answers.
    pub fn numbers<const N: usize>(mut self, names: [&CStr; N]) -> Result<[i32; N], Refused> {
        self.build()?;
        // SAFETY: the value is one of an int.
        Ok(names
            .map(|name| unsafe { self.get(name, G_TYPE_INT, |value| c::g_value_get_int(value)) }))
    }

    fn build(&mut self) -> Result<(), Refused> {
        if self.refused {
            return refuse();
        }
        let _alone = alone();
        // SAFETY: the object lives; on success the pointer may become another object that is ours in its place.
        if unsafe { c::vips_cache_operation_buildp(&raw mut self.object) } != 0 {
            return refuse();
        }
        Ok(())
    }

    /// Sets an argument from a value of the GObject type `kind`, which `fill` fills.
    ///
    /// # Safety
    /// `fill` puts into the value what its type says.
    unsafe fn set(self, name: &CStr, kind: c::GType, fill: impl FnOnce(*mut c::GValue)) -> Self {
        if !self.refused {
            // SAFETY: object, name and value live; GObject checks the value's type against the argument's.
            unsafe {
                let mut value: c::GValue = zeroed();
                c::g_value_init(&raw mut value, kind);
                fill(&raw mut value);
                c::g_object_set_property(self.object.cast(), name.as_ptr(), &raw const value);
                c::g_value_unset(&raw mut value);
            }
        }
        self
    }

    /// Reads an argument as a value of the GObject type `kind`; of another type it stays null or zero.
    ///
    /// # Safety
    /// `read` takes from the value what its type says and keeps no pointer into it.
    unsafe fn get<T>(
        &self,
        name: &CStr,
        kind: c::GType,
        read: impl FnOnce(*const c::GValue) -> T,
    ) -> T {
        // SAFETY: the object lives, since `build` succeeded; the value is unset after `read`.
        unsafe {
            let mut value: c::GValue = zeroed();
            c::g_value_init(&raw mut value, kind);
            c::g_object_get_property(self.object.cast(), name.as_ptr(), &raw mut value);
            let result = read(&raw const value);
            c::g_value_unset(&raw mut value);
            result
        }
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if !self.object.is_null() {
            let _alone = alone();
            // SAFETY: the object is ours; outputs hold references that only this call gives back.
            unsafe {
                c::vips_object_unref_outputs(self.object.cast());
                c::g_object_unref(self.object.cast());
            }
        }
    }
}

/// GLib's type of a C int: the sixth fundamental type.
const G_TYPE_INT: c::GType = 6 << 2;

/// An image, or the recipe of one: pixels are computed when they are asked for.
pub struct Image<'a> {
    pointer: NonNull<c::VipsImage>,
    bytes: PhantomData<&'a [u8]>,
}

impl Image<'_> {
    /// Takes over a reference.
    fn own(pointer: *mut c::VipsImage) -> Result<Self, Refused> {
        match NonNull::new(pointer) {
            Some(pointer) => Ok(Self {
                pointer,
                bytes: PhantomData,
            }),
            None => refuse(),
        }
    }

    /// Copies 8-bit pixels, row by row without padding, into an image.
    pub fn from_pixels(
        pixels: &[u8],
        width: u32,
        height: u32,
        bands: u8,
    ) -> Result<Image<'static>, Refused> {
        start();
        let (width, height) = (int(width)?, int(height)?);
        // SAFETY: libvips compares length and dimensions, and copies the pixels.
        Image::own(unsafe {
            c::vips_image_new_from_memory_copy(
                pixels.as_ptr().cast(),
                pixels.len() as c::size_t,
                width,
                height,
                c_int::from(bands),
                c::VipsBandFormat_VIPS_FORMAT_UCHAR,
            )
        })
    }

    pub fn width(&self) -> u32 {
        // SAFETY: the image lives.
        unsafe { c::vips_image_get_width(self.pointer.as_ptr()) }.unsigned_abs()
    }

    pub fn height(&self) -> u32 {
        // SAFETY: the image lives.
        unsafe { c::vips_image_get_height(self.pointer.as_ptr()) }.unsigned_abs()
    }

    pub fn bands(&self) -> u32 {
        // SAFETY: the image lives.
        unsafe { c::vips_image_get_bands(self.pointer.as_ptr()) }.unsigned_abs()
    }

    /// Returns how far the last crop moved the origin, negative to the right.
    pub fn offset(&self) -> (i32, i32) {
        // SAFETY: the image lives.
        unsafe {
            (
                c::vips_image_get_xoffset(self.pointer.as_ptr()),
                c::vips_image_get_yoffset(self.pointer.as_ptr()),
            )
        }
    }

    /// Pixels per millimetre.
    pub fn density(&self) -> f64 {
        // SAFETY: the image lives.
        unsafe { c::vips_image_get_xres(self.pointer.as_ptr()) }
    }

    pub fn has_alpha(&self) -> bool {
        // SAFETY: the image lives.
        unsafe { c::vips_image_hasalpha(self.pointer.as_ptr()) != 0 }
    }

    /// Returns the meaning of the bands; unknown ones are [`Space::Other`].
    pub fn space(&self) -> Space {
        // SAFETY: the image lives.
        match unsafe { c::vips_image_get_interpretation(self.pointer.as_ptr()) } {
            c::VipsInterpretation_VIPS_INTERPRETATION_B_W => Space::Grey,
            c::VipsInterpretation_VIPS_INTERPRETATION_GREY16 => Space::Grey16,
            c::VipsInterpretation_VIPS_INTERPRETATION_sRGB
            | c::VipsInterpretation_VIPS_INTERPRETATION_RGB => Space::Srgb,
            c::VipsInterpretation_VIPS_INTERPRETATION_RGB16 => Space::Rgb16,
            c::VipsInterpretation_VIPS_INTERPRETATION_scRGB => Space::LinearRgb,
            c::VipsInterpretation_VIPS_INTERPRETATION_CMYK => Space::Cmyk,
            c::VipsInterpretation_VIPS_INTERPRETATION_LAB
            | c::VipsInterpretation_VIPS_INTERPRETATION_LABS
            | c::VipsInterpretation_VIPS_INTERPRETATION_LABQ => Space::Lab,
            _ => Space::Other,
        }
    }

    /// The type of one sample.
    pub fn samples(&self) -> Samples {
        // SAFETY: the image lives.
        match unsafe { c::vips_image_get_format(self.pointer.as_ptr()) } {
            c::VipsBandFormat_VIPS_FORMAT_UCHAR => Samples::U8,
            c::VipsBandFormat_VIPS_FORMAT_USHORT => Samples::U16,
            c::VipsBandFormat_VIPS_FORMAT_FLOAT | c::VipsBandFormat_VIPS_FORMAT_DOUBLE => {
                Samples::Float
            }
            _ => Samples::Other,
        }
    }

    /// The names of all fields that the header holds.
    pub fn fields(&self) -> Vec<CString> {
        let mut names = Vec::new();
        // SAFETY: the list is ours, ends with null and is freed with its strings after they are copied.
        unsafe {
            let list = c::vips_image_get_fields(self.pointer.as_ptr());
            let mut next = list;
            while !next.is_null() && !(*next).is_null() {
                names.push(CStr::from_ptr(*next).to_owned());
                next = next.add(1);
            }
            c::g_strfreev(list);
        }
        names
    }

    fn has(&self, name: &CStr) -> bool {
        // SAFETY: image and name live.
        unsafe { c::vips_image_get_typeof(self.pointer.as_ptr(), name.as_ptr()) != 0 }
    }

    /// A field that is a whole number.
    pub fn number(&self, name: &CStr) -> Option<i32> {
        let mut number = 0;
        let there = self.has(name)
            // SAFETY: image and name live; the number is written only when the field converts to one.
            && answered(unsafe {
                c::vips_image_get_int(self.pointer.as_ptr(), name.as_ptr(), &raw mut number)
            });
        there.then_some(number)
    }

    /// A field that is a list of whole numbers.
    pub fn numbers(&self, name: &CStr) -> Option<Vec<i32>> {
        let (mut list, mut length) = (null_mut(), 0);
        let there = self.has(name)
            // SAFETY: image and name live; the list stays the image's and is copied below.
            && answered(unsafe {
                c::vips_image_get_array_int(
                    self.pointer.as_ptr(),
                    name.as_ptr(),
                    &raw mut list,
                    &raw mut length,
                )
            });
        // SAFETY: the list holds `length` numbers as long as the image does not change.
        (there && !list.is_null() && length > 0)
            .then(|| unsafe { slice::from_raw_parts(list, length as usize) }.to_vec())
    }

    /// A field that is a block of bytes.
    pub fn blob(&self, name: &CStr) -> Option<Vec<u8>> {
        let (mut bytes, mut length) = (std::ptr::null(), 0);
        let there = self.has(name)
            // SAFETY: image and name live; the bytes stay the image's and are copied below.
            && answered(unsafe {
                c::vips_image_get_blob(
                    self.pointer.as_ptr(),
                    name.as_ptr(),
                    &raw mut bytes,
                    &raw mut length,
                )
            });
        // SAFETY: libvips gave both, and the image has not changed since.
        there.then(|| unsafe { copied(bytes, length) })
    }

    /// Any field, written as text.
    pub fn text(&self, name: &CStr) -> Option<String> {
        let mut text: *mut c_char = null_mut();
        let there = self.has(name)
            // SAFETY: image and name live.
            && answered(unsafe {
                c::vips_image_get_as_string(self.pointer.as_ptr(), name.as_ptr(), &raw mut text)
            });
        (there && !text.is_null()).then(|| {
            // SAFETY: the text is ours, and freed by the allocator that made it.
            unsafe {
                let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
                c::g_free(text.cast());
                copy
            }
        })
    }

    /// Drops a field; call it on a fresh copy, since recipes share their header.
    pub fn remove(&mut self, name: &CStr) {
        // SAFETY: image and name live.
        unsafe { c::vips_image_remove(self.pointer.as_ptr(), name.as_ptr()) };
    }

    /// Sets a field; call it on a fresh copy.
    pub fn set_number(&mut self, name: &CStr, number: i32) {
        // SAFETY: image and name live.
        unsafe { c::vips_image_set_int(self.pointer.as_ptr(), name.as_ptr(), number) };
    }

    /// Sets a field; call it on a fresh copy.
    pub fn set_numbers(&mut self, name: &CStr, numbers: &[i32]) {
        let length = c_int::try_from(numbers.len()).unwrap_or(c_int::MAX);
        // SAFETY: image and name live; libvips copies the numbers.
        unsafe {
            c::vips_image_set_array_int(
                self.pointer.as_ptr(),
                name.as_ptr(),
                numbers.as_ptr(),
                length,
            );
        }
    }

    /// All pixels, computed and copied: 8-bit rows without padding when the samples are [`Samples::U8`].
    pub fn pixels(&self) -> Result<Vec<u8>, Refused> {
        let mut length = 0;
        let _alone = alone();
        // SAFETY: the buffer is ours, and freed by the allocator that made it.
        unsafe {
            let buffer = c::vips_image_write_to_memory(self.pointer.as_ptr(), &raw mut length);
            if buffer.is_null() {
                return refuse();
            }
            let pixels = copied(buffer, length);
            c::g_free(buffer);
            Ok(pixels)
        }
    }
}

impl<'a> Image<'a> {
    /// The image with its pixels computed and kept, so that it can be read often and in any order.
    pub fn in_memory(&self) -> Result<Image<'a>, Refused> {
        let _alone = alone();
        // SAFETY: the image lives; the result is a reference of ours and may share what it was made from ('a).
        Image::own(unsafe { c::vips_image_copy_memory(self.pointer.as_ptr()) })
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        let _alone = alone();
        // SAFETY: the reference is ours.
        unsafe { c::g_object_unref(self.pointer.as_ptr().cast()) };
    }
}

/// Meaning of an image's bands, as far as we distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Grey,
    Grey16,
    Srgb,
    Rgb16,
    LinearRgb,
    Cmyk,
    Lab,
    Other,
}

/// The type of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    U8,
    U16,
    Float,
    Other,
}

fn int(number: u32) -> Result<c_int, Refused> {
    c_int::try_from(number).map_err(|_| Refused)
}

/// # Safety
/// `bytes` is null or the start of that many readable bytes.
unsafe fn copied(bytes: *const c_void, length: c::size_t) -> Vec<u8> {
    if bytes.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe { slice::from_raw_parts(bytes.cast::<u8>(), length as usize) }.to_vec()
}

/// Returns whether a call succeeded; forgets its message when not.
fn answered(code: c_int) -> bool {
    if code != 0 {
        // SAFETY: the buffer is behind libvips' own lock.
        unsafe { c::vips_error_clear() };
    }
    code == 0
}

/// Forgets libvips' message, so that the buffer never grows.
fn refuse<T>() -> Result<T, Refused> {
    // SAFETY: the buffer is behind libvips' own lock.
    unsafe { c::vips_error_clear() };
    Err(Refused)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Has loops compiled and frees them, again and again.
    fn shrink_often() {
        let image = Image::from_pixels(&[128; 8 * 8], 8, 8, 1).expect("an image");
        for turn in 0..500 {
            let shrink = Operation::on(c"reducev", &image);
            let shrunk = shrink.option(c"vshrink", 1.5 + f64::from(turn % 5) / 2.0);
            assert!(shrunk.run().is_ok());
        }
    }

    #[test]
    fn threads_may_compile_and_free_at_once() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(shrink_often);
            }
        });
    }
}
