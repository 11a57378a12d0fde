//! Links libsrt into whoever asked for the gateway.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_LIBSRT").is_some() {
        println!("cargo::rustc-link-lib=srt");
    }
}
