//! Lists of files, folders and links, changes of many files, and archives of a selection, by their API.

use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{Answer, Site};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

fn each(list: &Value, field: &str) -> Vec<String> {
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| row[field].as_str().unwrap().to_owned())
        .collect()
}

impl Site {
    async fn folder_in(&self, name: &str, parent: Option<&str>) -> String {
        let body = json!({"name": name, "parentId": parent});
        let made = self.call("POST", "/api/folders", Some(body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        id(&made.json()["folder"])
    }

    /// Stores a file and moves it into the folder.
    async fn put_in(&self, name: &str, bytes: usize, folder: Option<&str>) -> String {
        let file = id(&self.stored(name, &vec![b'x'; bytes]).await);
        if folder.is_some() {
            let path = format!("/api/files/{file}");
            let moved = self
                .call("PATCH", &path, Some(json!({"folderId": folder})))
                .await;
            assert_eq!(moved.status, 200, "{moved:?}");
        }
        file
    }

    async fn list_at(&self, path: &str) -> Value {
        let answer = self.call("GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    async fn bulk(&self, body: Value) -> Answer {
        self.call("POST", "/api/files/bulk", Some(body)).await
    }
}

#[actix_web::test]
async fn files_are_sorted_filtered_and_found_below() {
    let site = Site::open().await;
    let outer = site.folder_in("outer", None).await;
    let inner = site.folder_in("inner", Some(&outer)).await;
    for (name, bytes, folder) in [
        ("b10.txt", 4, None),
        ("B2.txt", 9, Some(&outer)),
        ("a.mp3", 1, Some(&inner)),
        ("C.zip", 6, Some(&inner)),
    ] {
        site.put_in(name, bytes, folder.map(String::as_str)).await;
    }
    let below = format!("folderId={outer}&recursive=true");
    let names = async |query: &str| {
        let list = site.list_at(&format!("/api/files?{query}")).await;
        each(&list["files"], "filename")
    };
    for (query, expected) in [
        ("", &["C.zip", "a.mp3", "B2.txt", "b10.txt"][..]),
        (
            "sort=created&order=asc",
            &["b10.txt", "B2.txt", "a.mp3", "C.zip"],
        ),
        ("sort=name", &["a.mp3", "B2.txt", "b10.txt", "C.zip"]),
        (
            "sort=name&order=desc",
            &["C.zip", "b10.txt", "B2.txt", "a.mp3"],
        ),
        ("sort=size", &["B2.txt", "C.zip", "b10.txt", "a.mp3"]),
        ("sort=size&order=asc&limit=1&offset=3", &["B2.txt"]),
        (
            "type=document,audio&sort=name",
            &["a.mp3", "B2.txt", "b10.txt"],
        ),
        ("type=other", &["C.zip"]),
        ("folderId=null", &["b10.txt"]),
        (&format!("{below}&sort=name"), &["a.mp3", "B2.txt", "C.zip"]),
        (&format!("{below}&q=B"), &["B2.txt"]),
        (&format!("folderId={outer}&q=zip"), &[]),
        (
            "createdAfter=2000-01-01&createdBefore=2001-01-01T00:00:00Z",
            &[],
        ),
        ("tag=sea", &[]),
    ] {
        assert_eq!(names(query).await, expected, "{query}");
    }

    let mut path = "/api/files?sort=name&limit=1&total=false".to_owned();
    let mut paged = Vec::new();
    loop {
        let page = site.list_at(&path).await;
        assert_eq!(page["pagination"]["total"], Value::Null);
        paged.extend(each(&page["files"], "filename"));
        let Some(cursor) = page["nextCursor"].as_str() else {
            assert_eq!(page["pagination"]["hasMore"], false);
            break;
        };
        let other = format!("/api/files?sort=size&cursor={cursor}");
        assert_eq!(site.call("GET", &other, None).await.status, 400);
        path = format!("/api/files?sort=name&limit=1&total=false&cursor={cursor}");
    }
    assert_eq!(paged, ["a.mp3", "B2.txt", "b10.txt", "C.zip"]);
    let counted = site.list_at(&format!("/api/files?{below}&limit=1")).await;
    assert_eq!(
        counted["pagination"],
        json!({"limit": 1, "offset": 0, "total": 3, "hasMore": true})
    );
    for (query, named) in [
        ("sort=colour", "sort must be"),
        ("order=up", "order must be"),
        ("type=film", "type must be"),
        ("recursive=maybe", "recursive must be"),
        ("createdAfter=soon", "createdAfter must be"),
    ] {
        for path in ["/api/files?q=a", "/api/files/search?q=a"] {
            let rejected = site.call("GET", &format!("{path}&{query}"), None).await;
            assert_eq!(rejected.status, 400);
            assert!(rejected.error().contains(named), "{}", rejected.error());
        }
    }
}

#[actix_web::test]
async fn folders_show_their_path_and_what_is_in_them() {
    let site = Site::open().await;
    let outer = site.folder_in("Outer", None).await;
    let inner = site.folder_in("inner", Some(&outer)).await;
    let deep = site.folder_in("Ärmel", Some(&inner)).await;
    site.put_in("a", 3, Some(&inner)).await;
    site.put_in("b", 4, Some(&deep)).await;
    let share = format!("/api/folders/{inner}/share");
    assert_eq!(site.call("POST", &share, Some(json!({}))).await.status, 201);

    let shown = site.list_at(&format!("/api/folders/{inner}")).await["folder"].clone();
    for (field, expected) in [
        ("ancestors", json!([{"id": outer, "name": "Outer"}])),
        ("has_children", json!(true)),
        ("shared", json!(true)),
        ("file_count", json!(2)),
        ("bytes", json!(7)),
    ] {
        assert_eq!(shown[field], expected, "{field}");
    }
    let listed = site.list_at("/api/folders?sort=name").await["folders"].clone();
    assert_eq!(each(&listed, "name"), ["inner", "Outer", "Ärmel"]);
    assert_eq!(listed[0]["file_count"], Value::Null);
    assert_eq!(
        (&listed[2]["has_children"], &listed[1]["shared"]),
        (&json!(false), &json!(false))
    );
    let summed = site.list_at("/api/folders?parentId=null&totals=true").await["folders"].clone();
    assert_eq!(
        (&summed[0]["file_count"], &summed[0]["bytes"]),
        (&json!(2), &json!(7))
    );
    let found = site.list_at("/api/folders?q=%C3%A4RM").await["folders"].clone();
    let path = json!([{"id": outer, "name": "Outer"}, {"id": inner, "name": "inner"}]);
    assert_eq!(
        (each(&found, "name"), &found[0]["ancestors"]),
        (vec!["Ärmel".to_owned()], &path)
    );
    let page = site.list_at("/api/folders?sort=name&limit=2").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = site
        .list_at(&format!("/api/folders?sort=name&cursor={cursor}"))
        .await;
    assert_eq!(
        (each(&rest["folders"], "name"), &rest["nextCursor"]),
        (vec!["Ärmel".to_owned()], &Value::Null)
    );
    for (query, named) in [("sort=size", "sort must"), ("totals=2", "totals must")] {
        let rejected = site
            .call("GET", &format!("/api/folders?{query}"), None)
            .await;
        assert_eq!(rejected.status, 400);
        assert!(rejected.error().contains(named));
    }
}

#[actix_web::test]
async fn a_path_of_folders_is_made_once() {
    let site = Site::open().await;
    let path = "/api/folders/path";
    let made = site
        .call(
            "POST",
            path,
            Some(json!({"path": "Spring/Behind the scenes"})),
        )
        .await;
    assert_eq!((made.status, &made.json()["created"]), (201, &json!(2)));
    let folder = made.json()["folder"].clone();
    assert_eq!(
        (&folder["name"], &folder["ancestors"][0]["name"]),
        (&json!("Behind the scenes"), &json!("Spring"))
    );
    for again in [
        json!({"path": ["Spring", "Behind the scenes"], "parentId": null}),
        json!({"path": "/./Spring\\Behind the scenes/"}),
        json!({"path": "Behind the scenes", "parent_id": folder["parent_id"]}),
    ] {
        let found = site.call("POST", path, Some(again)).await;
        assert_eq!(
            (found.status, &found.json()["folder"]["id"]),
            (200, &folder["id"])
        );
    }
    for (body, status, named) in [
        (json!({}), 400, "path"),
        (json!({"path": 7}), 400, "path"),
        (
            json!({"path": "/"}),
            400,
            "path must have at least one name",
        ),
        (json!({"path": "a/../b"}), 400, "path[1] must be a name"),
        (
            json!({"path": "a", "parentId": UNKNOWN}),
            404,
            "folder not found",
        ),
        (
            json!({"path": vec!["x"; 100], "parentId": folder["id"]}),
            409,
            "folders lie at most",
        ),
    ] {
        let rejected = site.call("POST", path, Some(body)).await;
        assert_eq!(rejected.status, status, "{rejected:?}");
        assert!(rejected.error().contains(named), "{}", rejected.error());
    }
    let reader = site.key(Scope::Read).await;
    let rejected = site
        .call_as(&reader, "POST", path, Some(json!({"path": "x"})))
        .await;
    assert_eq!(rejected.status, 403);
}

#[actix_web::test]
async fn many_files_are_moved_tagged_and_deleted() {
    let site = Site::open().await;
    let folder = site.folder_in("in", None).await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(site.put_in(&format!("{number}"), 1, None).await);
    }
    let missing = UNKNOWN.to_owned();
    let wanted = [&ids[..], &[missing.clone(), ids[0].clone()]].concat();

    for _ in 0..2 {
        let moved = site
            .bulk(json!({"ids": wanted, "action": "move", "folderId": folder}))
            .await;
        assert_eq!(moved.status, 200, "{moved:?}");
        let moved = moved.json();
        assert_eq!(
            (&moved["done"], &moved["missing"], &moved["failed"]),
            (&json!(3), &json!(1), &json!(0))
        );
        assert_eq!(each(&moved["results"], "id"), wanted[..4]);
        assert_eq!(
            moved["results"][3],
            json!({"id": missing, "status": "missing", "error": null})
        );
    }
    let list = site.list_at(&format!("/api/files?folderId={folder}")).await;
    assert_eq!(list["pagination"]["total"], 3);

    let tagged = site
        .bulk(json!({"ids": wanted, "action": "tag", "tags": ["sea", " sky "]}))
        .await;
    assert_eq!(tagged.json()["done"], 3);
    let many: Vec<String> = (0..49).map(|number| format!("{number}")).collect();
    let full = site
        .bulk(json!({"ids": ids, "action": "tag", "tags": many}))
        .await
        .json();
    assert_eq!((&full["done"], &full["failed"]), (&json!(0), &json!(3)));
    assert!(
        full["results"][0]["error"]
            .as_str()
            .unwrap()
            .contains("50 tags")
    );
    let retagged = json!({"ids": ids, "action": "tag", "tags": ["sun"], "remove_tags": ["sea"]});
    assert_eq!(site.bulk(retagged).await.json()["done"], 3);
    let found = site.list_at("/api/files?tag=sky&tag=sun").await;
    assert_eq!(found["files"][0]["tags"], json!(["sky", "sun"]));
    assert_eq!(found["pagination"]["total"], 3);

    for (deleted, missing) in [(3, 1), (0, 4)] {
        let answer = site
            .bulk(json!({"ids": wanted, "action": "delete"}))
            .await
            .json();
        assert_eq!(
            (&answer["done"], &answer["missing"]),
            (&json!(deleted), &json!(missing))
        );
    }
    assert_eq!(site.list_at("/api/files").await["pagination"]["total"], 0);
}

#[actix_web::test]
async fn wrong_changes_of_many_files_change_nothing() {
    let site = Site::open().await;
    let file = site.put_in("x", 1, None).await;
    for (body, status, named) in [
        (json!({"action": "delete"}), 400, "ids"),
        (
            json!({"ids": [], "action": "delete"}),
            400,
            "ids must have 1 to 1000",
        ),
        (
            json!({"ids": vec![&file; 1001], "action": "delete"}),
            400,
            "ids must have at most 1000",
        ),
        (json!({"ids": ["x"], "action": "delete"}), 400, "ids"),
        (json!({"ids": [file]}), 400, "action"),
        (json!({"ids": [file], "action": "copy"}), 400, "action"),
        (
            json!({"ids": [file], "action": "move"}),
            400,
            "folderId is missing",
        ),
        (
            json!({"ids": [file], "action": "move", "folderId": UNKNOWN}),
            404,
            "folder not found",
        ),
        (
            json!({"ids": [file], "action": "tag", "tags": []}),
            400,
            "tags is missing",
        ),
    ] {
        let rejected = site.bulk(body.clone()).await;
        assert_eq!(rejected.status, status, "{body}: {rejected:?}");
        assert!(rejected.error().contains(named), "{}", rejected.error());
    }
    let delete = json!({"ids": [file], "action": "delete"});
    let reader = site.key(Scope::Read).await;
    let rejected = site
        .call_as(&reader, "POST", "/api/files/bulk", Some(delete.clone()))
        .await;
    assert_eq!(rejected.status, 403);
    let stranger = site.stranger().await;
    let foreign = site
        .call_as(&stranger, "POST", "/api/files/bulk", Some(delete))
        .await;
    assert_eq!(foreign.json()["missing"], 1);
    assert_eq!(site.list_at("/api/files").await["pagination"]["total"], 1);
}

#[actix_web::test]
async fn a_selection_has_an_address_for_its_archive() {
    let site = Site::open().await;
    let outer = site.folder_in("outer", None).await;
    let inner = site.folder_in("inner", Some(&outer)).await;
    let ids = [
        site.put_in("a.txt", 10, None).await,
        site.put_in("a.txt", 20, None).await,
        site.put_in("below.txt", 30, Some(&inner)).await,
    ];
    let reader = site.key(Scope::Read).await;
    let select = async |body: Value| {
        site.call_as(&reader, "POST", "/api/files/zip", Some(body))
            .await
    };
    let chosen = json!({
        "ids": [ids[0], UNKNOWN, ids[1], ids[2], ids[0]],
        "folderIds": [inner, outer],
        "name": "Spring & more.zip",
    });
    let made = select(chosen.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["files"], &made["missing"]),
        (&json!(3), &json!([UNKNOWN]))
    );
    assert_eq!(made["filename"], "Spring & more.zip");
    assert!(made["expiresAt"].is_string());
    let path = made["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://media.test:8080")
        .unwrap();

    let answer = site.send(super::request("GET", path)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(made["bytes"], answer.body.len());
    assert!(answer.header("content-disposition").contains("Spring"));
    let text = String::from_utf8_lossy(&answer.body);
    for name in ["a.txt", "a (2).txt", "outer/inner/below.txt"] {
        assert!(text.contains(name), "{name}");
    }
    assert_eq!(
        text.matches("below.txt").count(),
        2,
        "a header and an entry of the directory"
    );
    let tag = answer.header("etag").to_owned();
    let range = super::request("GET", path)
        .insert_header(("range", "bytes=5-9"))
        .insert_header(("if-range", tag.clone()));
    let part = site.send(range).await;
    assert_eq!((part.status, &part.body[..]), (206, &answer.body[5..10]));
    let known = super::request("GET", path).insert_header(("if-none-match", tag.clone()));
    assert_eq!(site.send(known).await.status, 304);

    // What is deleted is left out, and the archive is another one.
    let gone = format!("/api/files/{}", ids[1]);
    assert_eq!(site.call("DELETE", &gone, None).await.status, 200);
    let changed = site.send(super::request("GET", path)).await;
    assert_ne!(changed.header("etag"), tag);
    assert!(!String::from_utf8_lossy(&changed.body).contains("a (2).txt"));

    let stranger = site.stranger().await;
    let foreign = site
        .call_as(&stranger, "POST", "/api/files/zip", Some(chosen))
        .await;
    assert_eq!(foreign.status, 404, "{foreign:?}");
    for (body, status, named) in [
        (json!({}), 400, "ids is missing"),
        (
            json!({"ids": vec![UNKNOWN; 1001]}),
            400,
            "ids must have at most 1000",
        ),
        (
            json!({"ids": [ids[0]], "name": "a/b"}),
            400,
            "name must not hold",
        ),
        (json!({"ids": [UNKNOWN]}), 404, "file or folder not found"),
    ] {
        let rejected = select(body).await;
        assert_eq!(rejected.status, status, "{rejected:?}");
        assert!(rejected.error().contains(named), "{}", rejected.error());
    }
    let forged = path.replace("/api/downloads/", "/api/downloads/A");
    assert_eq!(site.send(super::request("GET", &forged)).await.status, 404);
}

#[actix_web::test]
async fn a_selection_has_the_bounds_of_archives() {
    let site = Site::open_with(|config| {
        config.archive.max_entries = 2;
        config.archive.max_selections = 1;
    })
    .await;
    let folder = site.folder_in("in", None).await;
    let file = site.put_in("a.txt", 1, Some(&folder)).await;
    let other = site.put_in("b.txt", 1, None).await;
    let select = async |body: Value| site.call("POST", "/api/files/zip", Some(body)).await;
    let large = select(json!({"ids": [other], "folderIds": [folder]})).await;
    assert_eq!(large.status, 413);
    assert!(large.error().contains("archive.max_entries"));
    let mut answers = Vec::new();
    for id in [file, other] {
        let made = select(json!({"ids": [id]})).await.json();
        answers.push(
            made["url"]
                .as_str()
                .unwrap()
                .strip_prefix("http://media.test:8080")
                .unwrap()
                .to_owned(),
        );
    }
    let statuses = [
        site.send(super::request("GET", &answers[0])).await.status,
        site.send(super::request("GET", &answers[1])).await.status,
    ];
    assert_eq!(statuses, [404, 200], "a further selection ended the oldest");
}

#[actix_web::test]
async fn all_links_are_listed_with_their_folders() {
    let site = Site::open().await;
    let outer = site.folder_in("outer", None).await;
    let inner = site.folder_in("inner", Some(&outer)).await;
    for (folder, terms) in [
        (&outer, json!({"expiresIn": null})),
        (
            &inner,
            json!({"downloadLimit": 3, "allowDownload": false, "password": "sesame 1"}),
        ),
    ] {
        let path = format!("/api/folders/{folder}/share");
        assert_eq!(site.call("POST", &path, Some(terms)).await.status, 201);
    }
    let list = site.list_at("/api/shares").await;
    assert_eq!(
        (each(&list["shares"], "folderId"), &list["nextCursor"]),
        (vec![inner.clone(), outer.clone()], &Value::Null)
    );
    let newest = &list["shares"][0];
    let path = json!([{"id": outer, "name": "outer"}, {"id": inner, "name": "inner"}]);
    assert_eq!(
        newest["folder"],
        json!({"id": inner, "name": "inner", "path": path})
    );
    for (field, expected) in [
        ("hasPassword", json!(true)),
        ("downloadLimit", json!(3)),
        ("allowDownload", json!(false)),
        ("viewCount", json!(0)),
    ] {
        assert_eq!(newest[field], expected, "{field}");
    }
    let one = site.list_at(&format!("/api/folders/{inner}/share")).await["share"].clone();
    assert_eq!(
        (&newest["url"], &newest["token"]),
        (&one["url"], &one["token"])
    );

    let first = site.list_at("/api/shares?limit=1").await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = site
        .list_at(&format!("/api/shares?limit=1&cursor={cursor}"))
        .await;
    assert_eq!(
        each(&rest["shares"], "folderId"),
        std::slice::from_ref(&outer)
    );
    for query in ["limit=0", "limit=101", "cursor=x"] {
        assert_eq!(
            site.call("GET", &format!("/api/shares?{query}"), None)
                .await
                .status,
            400
        );
    }
    let stranger = site.stranger().await;
    let foreign = site.call_as(&stranger, "GET", "/api/shares", None).await;
    assert_eq!(foreign.json()["shares"], json!([]));
    let path = format!("/api/folders/{inner}/share");
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(
        each(&site.list_at("/api/shares").await["shares"], "folderId"),
        [outer]
    );
}

#[actix_web::test]
async fn a_file_shows_its_place_and_its_hash() {
    let site = Site::open().await;
    let outer = site.folder_in("outer", None).await;
    let inner = site.folder_in("inner", Some(&outer)).await;
    let file = site.put_in("abc.txt", 1, Some(&inner)).await;
    let request = super::request("GET", &format!("/api/files/{file}"))
        .insert_header(("accept", "application/json"))
        .insert_header((
            "authorization",
            format!("Bearer {}", site.first.api_key.expose()),
        ));
    let shown = site.send(request).await.json()["file"].clone();
    // Of `x`.
    assert_eq!(
        shown["sha256"],
        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    );
    assert_eq!(each(&shown["folder_path"], "name"), ["outer", "inner"]);
    assert_eq!(
        shown["lineage_url"],
        format!("http://media.test:8080/api/files/{file}/lineage")
    );
    assert_eq!(
        (&shown["media"], &shown["preview_url"]),
        (&Value::Null, &Value::Null)
    );
    assert!(shown["updated_at"].is_string() && shown["download_url"].is_string());
    let preview = format!("/api/files/{file}/preview");
    let rejected = site.call("GET", &preview, None).await;
    assert_eq!(rejected.status, 415);
    assert!(rejected.error().contains("text/plain"));
    for (path, status) in [
        (format!("{preview}?w=0"), 400),
        (format!("{preview}?w=2561"), 400),
        (format!("/api/files/{UNKNOWN}/preview"), 404),
        ("/api/files/x/preview".to_owned(), 404),
    ] {
        assert_eq!(site.call("GET", &path, None).await.status, status, "{path}");
    }
    let stranger = site.stranger().await;
    assert_eq!(
        site.call_as(&stranger, "GET", &preview, None).await.status,
        404
    );
    let anonymous = site.send(super::request("GET", &preview)).await;
    assert_eq!(anonymous.status, 401);
}
