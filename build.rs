//! Makes sure that the folder of the front end exists, so that `cargo build` works before `make web` has filled it; and
//! keeps the codecs that are linked into the program to themselves.

use std::{fs, path::Path};

const PLACEHOLDER: &str = "<!doctype html><meta charset=\"utf-8\"><title>Sluice</title>\
    <p>The front end was not built into this program. Run <code>make build</code>.</p>\n";

/// Pages that the service fills.
const FRAME: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title><!--title--></title><main><!--main--></main>\n";

fn main() {
    let folder = Path::new("web/dist");
    let pages = [
        ("player.html", PLACEHOLDER),
        ("watch.html", PLACEHOLDER),
        ("publish.html", PLACEHOLDER),
        ("docs.html", PLACEHOLDER),
        ("share.html", FRAME),
        ("notice.html", FRAME),
        ("plans.html", FRAME),
        ("missing.html", PLACEHOLDER),
        ("app.html", PLACEHOLDER),
    ];
    for (page, placeholder) in pages {
        let path = folder.join(page);
        if !path.exists() {
            fs::create_dir_all(folder).expect("web/dist can be made");
            fs::write(&path, placeholder).expect("web/dist can be written");
        }
    }
    println!("cargo::rerun-if-changed=web/dist");
    // The program holds libjpeg-turbo 3 and libwebp; Debian's libvips loads its own libjpeg and libwebp. The linker exports
    // a static library's symbols when a shared one asks for their names, and libvips would call ours.
    println!("cargo::rustc-link-arg=-Wl,--exclude-libs,ALL");
}
