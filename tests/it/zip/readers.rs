//! Archives read by other programs: Info-ZIP, 7-Zip, bsdtar and Python.

use std::collections::BTreeMap;

use super::{database, fetch, folder, python, store};
use crate::support::{Failure, server::Server, shell::Shell};

/// Names that no upload could bring in, as a database from elsewhere may have them.
const RENAME: &str = "
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    for name in ['../../evil.txt', '/abs.txt', 'inv\\u202egpj.exe', '..', 'C:\\\\x.txt']:
        db.execute('UPDATE files SET filename = ? WHERE id = (SELECT id FROM files WHERE filename = ?)', (name, 'odd.txt'))
";

/// Every reader opens it, finds it whole, and extracts the same tree, which stays where it is put.
const OPEN: &str = "
unzip -tqq a.zip
7z t a.zip
bsdtar -tf a.zip
mkdir by-unzip by-7z by-bsdtar
unzip -qq a.zip -d by-unzip
7z x -oby-7z a.zip
bsdtar -xf a.zip -C by-bsdtar
diff -r by-unzip by-7z
diff -r by-unzip by-bsdtar
test -d by-bsdtar/empty
test \"$(stat -c %Y by-bsdtar/plain.txt)\" = \"$MODIFIED\"
test ! -e ../evil.txt && test ! -e evil.txt
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_finds_the_same_whatever_the_names() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let root = folder(&api, "Ferien „26“", None).await?;
    let deep = folder(&api, "deep", Some(&root)).await?;
    let deeper = folder(&api, "er", Some(&deep)).await?;
    folder(&api, "empty", Some(&root)).await?;
    // A folder with the same name as a file.
    folder(&api, "A.txt", Some(&root)).await?;
    let plain = store(&api, &root, "plain.txt", b"plain").await?;
    let long = "ü".repeat(127);
    let given = [
        (&root, "a.txt", "one"),
        (&root, "été.txt", "two"),
        (&root, "e\u{301}te\u{301}.txt", "three"),
        (&root, "Été.txt", "four"),
        (&root, "CON.txt", "five"),
        (&root, long.as_str(), "six"),
        (&root, long.as_str(), "seven"),
        (&root, "写真 שלום 👩‍👧.txt", "eight"),
        (&deeper, "a.txt", "nine"),
        (&deep, "nothing", ""),
    ];
    for (place, name, contents) in given {
        store(&api, place, name, contents.as_bytes()).await?;
    }
    for number in 0..5 {
        store(&api, &deep, "odd.txt", format!("odd {number}").as_bytes()).await?;
    }
    python(RENAME, &[&database(server.data_dir())]).await?;

    // Cut where the longest number has room.
    let shortened = format!("{} (2)", "ü".repeat(121));
    let expected = BTreeMap::from([
        ("deep/", ""),
        ("empty/", ""),
        ("A.txt/", ""),
        ("deep/er/", ""),
        ("plain.txt", "plain"),
        ("a (2).txt", "one"),
        ("été.txt", "two"),
        ("été (2).txt", "three"),
        ("Été (3).txt", "four"),
        ("_CON.txt", "five"),
        (long.as_str(), "six"),
        (shortened.as_str(), "seven"),
        ("写真 שלום 👩‍👧.txt", "eight"),
        ("deep/er/a.txt", "nine"),
        ("deep/nothing", ""),
        ("deep/.._.._evil.txt", "odd 0"),
        ("deep/_abs.txt", "odd 1"),
        ("deep/invgpj.exe", "odd 2"),
        ("deep/._", "odd 3"),
        ("deep/C__x.txt", "odd 4"),
    ]);
    let archive = fetch(&api, &root, &[]).await?.expect(200)?;
    assert_eq!(archive.header("content-type"), "application/zip");
    assert_eq!(
        archive.header("content-disposition"),
        "attachment; filename=\"Ferien _26_.zip\"; filename*=UTF-8''Ferien%20%E2%80%9E26%E2%80%9C.zip"
    );
    let length = archive.header("content-length").parse::<usize>()?;
    assert_eq!(length, archive.bytes.len());

    let created_at = plain["created_at"].as_str().ok_or("no created_at")?;
    let modified = created_at.parse::<jiff::Timestamp>()?.as_second();
    let files = [("a.zip", archive.bytes.as_ref())];
    let environment = [("MODIFIED", modified.to_string())];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    // A locale in which these programs print any name.
    let environment = [environment[0], ("LC_ALL", "C.UTF-8")];
    let mut shell = Shell::start_beside(&files, OPEN, &environment)?;
    shell.succeed(super::PATIENCE).await?;
    let manifest = shell.folder().join("manifest.json");
    std::fs::write(&manifest, serde_json::to_vec(&expected)?)?;
    let archive = shell.folder().join("a.zip").display().to_string();
    python(
        include_str!("check.py"),
        &[&archive, &manifest.display().to_string()],
    )
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_with_nothing_in_it_is_an_archive_of_nothing() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let empty = folder(&api, "empty", None).await?;
    let archive = fetch(&api, &empty, &[]).await?.expect(200)?;
    assert_eq!(
        (archive.bytes.len(), &archive.bytes[..4]),
        (22, &b"PK\x05\x06"[..])
    );
    Ok(())
}
