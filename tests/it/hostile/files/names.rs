//! File names of any script, with quotes, line ends and path tricks.

use crate::support::{
    Failure,
    images::{available, drawn},
    server::{Fetched, Form, Server},
};

/// Names as browsers would send them.
const NAMES: [&str; 22] = [
    "写真.png",
    "صورة.png",
    "фото.png",
    "e\u{301}te\u{301}.png",
    "😀 👩‍👩‍👧.png",
    "\u{202e}gnp.exe",
    "a\"b.png",
    "a'b`c$(id).png",
    "line\r\nSet-Cookie: owned=1.png",
    "tab\tbell\u{7}escape\u{1b}[31m.png",
    "../../../etc/passwd",
    "..\\..\\windows\\system.ini",
    "/etc/passwd",
    "C:\\boot.ini",
    ".",
    "..",
    ".htaccess",
    "a;b=c; filename*=x.png",
    "%2e%2e%2fx%00.png",
    "<script>alert(1)</script>.png",
    "CON.png",
    " leading and trailing .png ",
];

/// Parameters of the header, byte by byte.
const PARAMETERS: [&str; 9] = [
    "filename=unquoted.png",
    "filename=\"\"",
    "filename*=UTF-8''%e2%82%ac%20rates.png",
    "filename*=UTF-8''%ff%fe.png",
    "filename*=ISO-8859-1'en'%a3.png",
    "filename=\"a.png\"; filename=\"b.png\"",
    "filename=\"back\\\\slash\\\".png\"",
    "filename=\"nul\0byte.png\"",
    "filename=\"open.png",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_name_is_stored_safely_or_refused() -> Result<(), Failure> {
    if !available("any_name_is_stored_safely_or_refused")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let image = drawn("plain.png")?;
    let long = "x".repeat(5000) + ".png";
    let wide = "写".repeat(200) + ".png";
    let sent = NAMES.iter().copied().chain([long.as_str(), wide.as_str()]);
    let forms = sent
        .map(|name| (name, Form::new().file("file", name, &image)))
        .chain(PARAMETERS.map(|it| (it, Form::new().part("file", it, &image))));
    for (name, form) in forms {
        let case = name.escape_default().to_string();
        let case = &case[..case.len().min(60)];
        let answer = api.post_form("/api/files", form).await?;
        match answer.status.as_u16() {
            400 => assert!(answer.json()?["error"].is_string(), "{case}"),
            201 => {
                let file = &answer.json()?["file"];
                let stored = file["filename"].as_str().unwrap_or_default();
                check_name(case, stored);
                let url = file["download_url"].as_str().unwrap_or_default();
                check_download(case, &api.fetch(url).await?);
            }
            other => panic!("{case}: {other}"),
        }
    }
    Ok(())
}

fn check_name(case: &str, stored: &str) {
    assert!(
        !stored.is_empty() && stored.len() <= 255,
        "{case}: {stored:?}"
    );
    assert!(!stored.chars().any(char::is_control), "{case}: {stored:?}");
    assert!(!stored.contains(['/', '\\']), "{case}: {stored:?}");
    assert!(stored != "." && stored != "..", "{case}");
}

fn check_download(case: &str, answer: &Fetched) {
    assert_eq!(answer.status, 200, "{case}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{case}");
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("sandbox"), "{case}: {policy}");
    assert!(answer.headers.get("set-cookie").is_none(), "{case}");
    let disposition = answer.header("content-disposition");
    assert!(disposition.is_ascii(), "{case}: {disposition}");
    assert!(
        disposition.starts_with("inline") || disposition.starts_with("attachment"),
        "{case}: {disposition:?}"
    );
}
