//! Links libsrt into any binary that enables the gateway: the build that its development package names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "libsrt")]
    link();
}

#[cfg(feature = "libsrt")]
fn link() {
    let found = pkg_config::Config::new()
        .atleast_version("1.5.1")
        .probe("srt");
    if let Err(error) = found {
        panic!("libsrt is missing (Debian: libsrt-gnutls-dev): {error}");
    }
}
