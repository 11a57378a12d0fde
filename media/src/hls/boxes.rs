//! Writes ISO base media (MP4) boxes (ISO/IEC 14496-12 §4.2) of init sections and fragments.

/// Appends a box; its size is set once its body is written.
pub(super) fn write_box(out: &mut Vec<u8>, kind: &[u8; 4], body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(kind);
    body(out);
    let size = u32::try_from(out.len() - start).expect("headers are far smaller than 4 GiB");
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Appends a box that begins with version and flags.
pub(super) fn write_full_box(
    out: &mut Vec<u8>,
    kind: &[u8; 4],
    version: u8,
    flags: u32,
    body: impl FnOnce(&mut Vec<u8>),
) {
    write_box(out, kind, |out| {
        put_u32(out, u32::from(version) << 24 | flags);
        body(out);
    });
}

pub(super) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn put_zeros(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, 0);
}
