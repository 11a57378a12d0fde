//! Tests of the roots of `sluice mcp`: paths, links, folders of clients.

use std::{
    collections::BTreeSet,
    io::Read as _,
    os::unix::{fs::symlink, net::UnixListener},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use tempfile::TempDir;

use super::*;

const BOTH: [Access; 2] = [Access::Kernel, Access::Walk];

/// A machine's folder: files may be sent from `pictures`, not from beside it.
struct Machine {
    folder: TempDir,
    _socket: UnixListener,
}

impl Machine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("pictures/sub")).unwrap();
        fs::create_dir_all(at("pictures-private")).unwrap();
        for (path, text) in [
            ("pictures/a.jpg", "inside"),
            ("pictures/sub/b.jpg", "below"),
            ("pictures/..c", "dots"),
            ("pictures/empty", ""),
            ("secret", "secret"),
            ("pictures-private/d.jpg", "secret"),
        ] {
            fs::write(at(path), text).unwrap();
        }
        for (target, link) in [
            (at("secret"), "pictures/link"),
            (at("pictures/a.jpg"), "pictures/inner"),
            ("../secret".into(), "pictures/climbing"),
            (at("pictures-private"), "pictures/folder"),
            ("sub".into(), "pictures/own"),
            ("loop".into(), "pictures/loop"),
            ("/proc/self/root".into(), "pictures/root"),
            (at("pictures"), "named"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        mkfifoat(CWD, at("pictures/pipe"), Mode::RUSR).unwrap();
        let socket = UnixListener::bind(at("pictures/socket")).unwrap();
        Self {
            folder,
            _socket: socket,
        }
    }

    fn path(&self, path: &str) -> String {
        self.folder.path().join(path).display().to_string()
    }

    fn roots(&self) -> Roots {
        roots(&[&self.path("pictures")])
    }
}

fn roots(folders: &[&str]) -> Roots {
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    Roots::new(&folders, None).unwrap()
}

fn text(mut opened: LocalFile) -> String {
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn paths_are_placed_before_anything_is_touched() {
    let two = roots(&["/srv/pictures", "/data"]);
    let placed = |root: &'static str, below: &str, name: &str| {
        Ok(Place {
            root: Path::new(root),
            below: below.into(),
            name: name.to_owned(),
        })
    };
    let climbs = |path: &str| Err(Rejection::Climbs(path.to_owned()));
    let outside = |path: &str| {
        Err(Rejection::Outside {
            path: path.to_owned(),
            folders: "/srv/pictures, /data".to_owned(),
        })
    };
    let folder = |path: &str| {
        Err(Rejection::NoFile {
            path: path.to_owned(),
            kind: "a folder",
        })
    };
    let long = "a".repeat(MAX_PATH_BYTES + 1);
    for (path, expected) in [
        ("", Err(Rejection::NoPath)),
        ("a\0.jpg", Err(Rejection::NoPath)),
        (&long, Err(Rejection::NoPath)),
        ("..", climbs("..")),
        ("sub/../../secret", climbs("sub/../../secret")),
        ("/srv/pictures/../secret", climbs("/srv/pictures/../secret")),
        ("/etc/passwd", outside("/etc/passwd")),
        (
            "/srv/pictures-private/a",
            outside("/srv/pictures-private/a"),
        ),
        ("/srv", outside("/srv")),
        ("/", outside("/")),
        (
            "/proc/self/root/srv/pictures/a",
            outside("/proc/self/root/srv/pictures/a"),
        ),
        (
            "file:///data/a",
            placed("/srv/pictures", "file:/data/a", "a"),
        ),
        (".", folder(".")),
        ("/data/", folder("/data/")),
        ("a.jpg", placed("/srv/pictures", "a.jpg", "a.jpg")),
        (
            "./sub//b c.jpg",
            placed("/srv/pictures", "sub/b c.jpg", "b c.jpg"),
        ),
        ("..a/b..", placed("/srv/pictures", "..a/b..", "b..")),
        ("~/a", placed("/srv/pictures", "~/a", "a")),
        ("//srv/./pictures/a", placed("/srv/pictures", "a", "a")),
        ("/data/x/y", placed("/data", "x/y", "y")),
    ] {
        assert_eq!(two.place(path), expected, "{path}");
        assert_eq!(roots(&[]).place(path), Err(Rejection::NoRoots), "{path}");
    }
}

#[test]
fn a_root_may_be_named_from_the_home_folder_or_through_a_link() {
    let machine = Machine::new();
    let home = PathBuf::from(machine.path(""));
    let folders = [PathBuf::from("~/named")];
    let roots = Roots::new(&folders, Some(&home)).unwrap();
    for path in ["named/a.jpg", "pictures/a.jpg"] {
        let opened = roots.open(&machine.path(path)).unwrap();
        assert_eq!(text(opened), "inside", "{path}");
    }
    assert_eq!(roots.missing().count(), 0);
    let gone = Roots::new(&["~/gone".into()], Some(&home)).unwrap();
    assert_eq!(gone.missing().count(), 1);
    assert_eq!(gone.open("a").unwrap_err(), Rejection::Missing("a".into()));
}

#[test]
fn only_regular_files_below_a_root_are_opened() {
    let machine = Machine::new();
    let roots = machine.roots();
    let missing = |path: &str| Err(Rejection::Missing(path.to_owned()));
    let link = |path: &str| Err(Rejection::Link(path.to_owned()));
    let no_file = |path: &str, kind| {
        Err(Rejection::NoFile {
            path: path.to_owned(),
            kind,
        })
    };
    let no_folder = |path: &str| {
        Err(Rejection::Unopened {
            path: path.to_owned(),
            reason: io::Error::from(Errno::NOTDIR).to_string(),
        })
    };
    for (path, expected) in [
        ("link", link("link")),
        ("inner", link("inner")),
        ("climbing", link("climbing")),
        ("loop", link("loop")),
        ("folder/d.jpg", link("folder/d.jpg")),
        ("own/b.jpg", link("own/b.jpg")),
        ("root/etc/passwd", link("root/etc/passwd")),
        ("root", link("root")),
        ("pipe", no_file("pipe", "a pipe")),
        ("socket", no_file("socket", "a socket")),
        ("sub", no_file("sub", "a folder")),
        ("empty", Err(Rejection::Empty("empty".to_owned()))),
        ("gone", missing("gone")),
        ("gone/b.jpg", missing("gone/b.jpg")),
        ("a.jpg/b.jpg", no_folder("a.jpg/b.jpg")),
        ("a.jpg", Ok(("a.jpg", 6, "inside"))),
        ("sub/b.jpg", Ok(("b.jpg", 5, "below"))),
        ("..c", Ok(("..c", 4, "dots"))),
    ] {
        for access in BOTH {
            let opened = roots.open_with(path, access, || {});
            let read = opened.map(|file| (file.name.clone(), file.length, text(file)));
            let expected = expected
                .clone()
                .map(|(name, length, text): (&str, u64, &str)| {
                    (name.to_owned(), length, text.to_owned())
                });
            assert_eq!(read, expected, "{path} by {access:?}");
        }
    }
}

#[test]
fn devices_and_the_links_of_proc_are_rejected() {
    let machine = roots(&["/dev", "/proc"]);
    for (path, is_device) in [
        ("/dev/null", true),
        ("/dev/tty", true),
        ("/proc/self/root/etc/passwd", false),
        ("/proc/thread-self/cwd/Cargo.toml", false),
        (
            &format!("/proc/{}/root/etc/passwd", std::process::id()),
            false,
        ),
        (&format!("/proc/{}/exe", std::process::id()), false),
    ] {
        for access in BOTH {
            let rejected = machine.open_with(path, access, || {}).unwrap_err();
            match rejected {
                Rejection::NoFile { kind, .. } => {
                    assert!(is_device && kind == "a device", "{path}")
                }
                Rejection::Link(_) => assert!(!is_device, "{path}"),
                other => panic!("{path} by {access:?}: {other}"),
            }
        }
    }
}

#[test]
fn what_is_exchanged_after_the_look_is_not_read() {
    for access in BOTH {
        for (other, rejection) in [
            ("link", "symbolic link"),
            ("pipe", "a pipe"),
            ("sub", "a folder"),
            ("..c", "exchanged"),
        ] {
            let machine = Machine::new();
            let at = |name: &str| machine.path(&format!("pictures/{name}"));
            let exchange = || {
                renameat_with(CWD, at("a.jpg"), CWD, at(other), RenameFlags::EXCHANGE).unwrap();
            };
            let rejected = machine.roots().open_with("a.jpg", access, exchange);
            let rejected = rejected.expect_err(other).to_string();
            assert!(rejected.contains(rejection), "{other}: {rejected}");
        }
        let machine = Machine::new();
        let at = |name: &str| machine.path(name);
        let exchange = || {
            let (inner, outer) = (at("pictures/sub"), at("pictures/folder"));
            renameat_with(CWD, inner, CWD, outer, RenameFlags::EXCHANGE).unwrap();
        };
        let rejected = machine.roots().open_with("sub/b.jpg", access, exchange);
        let rejected = rejected.expect_err("a link by now");
        assert_eq!(rejected, Rejection::Link("sub/b.jpg".to_owned()));
    }
}

#[test]
fn a_root_is_what_it_was_when_it_was_allowed() {
    for access in BOTH {
        let machine = Machine::new();
        let at = |name: &str| machine.path(name);
        let roots = roots(&[&at("pictures"), &at("named/later")]);
        let read = |path: &str| roots.open_with(path, access, || {});
        fs::rename(at("pictures"), at("before")).unwrap();
        symlink(at("pictures-private"), at("pictures")).unwrap();
        let rejected = read("d.jpg").map(text);
        assert!(
            matches!(
                rejected,
                Err(Rejection::Link(_) | Rejection::Unopened { .. })
            ),
            "{access:?}: {rejected:?}"
        );
        fs::remove_file(at("pictures")).unwrap();
        fs::rename(at("before"), at("pictures")).unwrap();
        assert_eq!(read("a.jpg").map(text), Ok("inside".to_owned()));
        // One that was not there yet is reached by the way that its name had.
        fs::create_dir(at("pictures/later")).unwrap();
        fs::write(at("pictures/later/e.jpg"), "later").unwrap();
        let later = read(&at("named/later/e.jpg"));
        assert_eq!(later.map(text), Ok("later".to_owned()));
    }
}

/// Someone exchanges the file, and a folder on its way, with links that lead out, again and again.
#[test]
fn no_race_leads_out() {
    let machine = Machine::new();
    fs::write(machine.path("pictures-private/b.jpg"), "secret").unwrap();
    let pairs = [("a.jpg", "link"), ("sub", "folder")];
    let pairs = pairs
        .map(|(ours, other)| [ours, other].map(|name| machine.path(&format!("pictures/{name}"))));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                for [ours, other] in &pairs {
                    renameat_with(CWD, ours, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let mut texts = BTreeSet::new();
        let mut rejections = 0;
        for turn in 0..4_000 {
            for path in ["a.jpg", "sub/b.jpg"] {
                match machine.roots().open_with(path, BOTH[turn % 2], || {}) {
                    Ok(file) => drop(texts.insert(text(file))),
                    Err(_) => rejections += 1,
                }
            }
        }
        is_over.store(true, SeqCst);
        assert_eq!(texts, ["below", "inside"].map(str::to_owned).into());
        assert!(rejections > 0, "there was no race");
    });
}
