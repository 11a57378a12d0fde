//! Compiles the C side of the planar path, and keeps the codecs that are linked into it to themselves.

fn main() {
    println!("cargo::rerun-if-changed=src/image/planar/codec/avif.c");
    if std::env::var_os("CARGO_FEATURE_CODECS").is_none() {
        return;
    }
    // libjpeg-turbo 3 and libwebp come in static archives; Debian's libvips brings its own libjpeg and libwebp. Without
    // this the linker would export ours and libvips would call them. The binary's build.rs says it for the binary.
    println!("cargo::rustc-link-arg=-Wl,--exclude-libs,ALL");
    #[cfg(feature = "codecs")]
    compile_avif();
}

#[cfg(feature = "codecs")]
fn compile_avif() {
    cc::Build::new()
        .file("src/image/planar/codec/avif.c")
        .warnings_into_errors(true)
        .compile("sluice_avif");
    println!("cargo::rustc-link-lib=avif");
}
