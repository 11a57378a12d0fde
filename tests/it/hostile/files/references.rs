//! Drawings that point at other files and at other machines: nothing is read, no one is asked.

use std::{sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::Notify, time::timeout};

use super::{convert, guarded_server};
use crate::support::{
    Failure,
    images::{available, crafted, drawn, look},
    media::target_folder,
};

/// After the last conversion: a connection on loopback would long be there.
const NOBODY_CAME: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drawing_reaches_no_file_and_no_port() -> Result<(), Failure> {
    if !available("a_drawing_reaches_no_file_and_no_port")? {
        return Ok(());
    }
    let server = guarded_server().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let visited = Arc::new(Notify::new());
    let visitor = Arc::clone(&visited);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            visitor.notify_one();
        }
    });
    // An image in plain magenta that any user on this machine may read.
    let folder = tempfile::TempDir::new_in(target_folder())?;
    let secret = folder.path().join("secret.svg");
    std::fs::write(&secret, filled("#ff00ff"))?;
    let raster = folder.path().join("secret.png");
    std::fs::write(&raster, drawn("plain.png")?)?;

    let [secret, raster] = [secret, raster].map(|path| path.display().to_string());
    for (number, drawing) in drawings(&secret, &raster, port).iter().enumerate() {
        for name in ["a.svg", "a.png"] {
            let answer = convert(&server.api(), name, drawing.as_bytes()).await?;
            let status = answer.status.as_u16();
            assert!(
                matches!(status, 200 | 413 | 415 | 422),
                "{number}: {status}"
            );
            if status == 200 {
                let record = answer.json()?["files"][0].clone();
                let url = record["downloadUrl"].as_str().ok_or("no downloadUrl")?;
                let result = server.api().fetch(url).await?;
                check_white(number, &look(&result.bytes).await?.corners());
            }
        }
    }
    for name in ["list.jpg", "list.png"] {
        let answer = convert(&server.api(), name, &crafted(name)?).await?;
        assert_eq!(answer.status, 415, "{name}");
    }
    let came = timeout(NOBODY_CAME, visited.notified()).await;
    assert!(came.is_err(), "there was a connection to port {port}");
    Ok(())
}

fn filled(colour: &str) -> String {
    svg(
        "",
        &format!(r#"<rect width="100" height="100" fill="{colour}"/>"#),
    )
}

fn svg(prologue: &str, content: &str) -> String {
    let spaces = r#"xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink""#;
    format!(r#"{prologue}<svg {spaces} width="100" height="100">{content}</svg>"#)
}

/// Each draws a white ground, and over it something from outside if it can.
fn drawings(secret: &str, raster: &str, port: u16) -> Vec<String> {
    let ground = r#"<rect width="100" height="100" style="fill: white"/>"#;
    let remote = format!("http://127.0.0.1:{port}/x");
    let local = format!("file://{secret}");
    let images = [
        local.clone(),
        secret.to_owned(),
        format!("file://{raster}"),
        raster.to_owned(),
        format!("{remote}.svg"),
        format!("{remote}.png"),
        format!("//127.0.0.1:{port}/x.png"),
    ];
    let inside = images.iter().flat_map(|address| references(address));
    let mut drawings: Vec<String> = inside
        .map(|content| svg("", &format!("{ground}{content}")))
        .collect();
    for address in [local, "file:///etc/passwd".to_owned(), remote] {
        let entity = format!(r#"<!DOCTYPE svg [<!ENTITY x SYSTEM "{address}">]>"#);
        drawings.push(svg(&entity, &format!("{ground}&x;")));
        let outside =
            format!(r#"<!DOCTYPE svg SYSTEM "{address}" [<!ENTITY % x SYSTEM "{address}"> %x;]>"#);
        drawings.push(svg(&outside, ground));
        let sheet = format!(r#"<?xml-stylesheet href="{address}" type="text/css"?>"#);
        drawings.push(svg(&sheet, ground));
    }
    drawings
}

/// The ways in which a drawing may name another resource.
fn references(address: &str) -> [String; 6] {
    let size = r#"width="100" height="100""#;
    [
        format!(r#"<image xlink:href="{address}" {size}/>"#),
        format!(r#"<image href="{address}" {size}/>"#),
        format!(r#"<use xlink:href="{address}#a"/>"#),
        format!(
            r#"<filter id="f"><feImage xlink:href="{address}"/></filter><rect {size} filter="url(#f)"/>"#
        ),
        format!(
            r#"<style>@import url("{address}"); @font-face {{ font-family: f; src: url("{address}") }}
               text {{ font-family: f; fill: url("{address}#a") }}</style><text x="40" y="50">x</text>"#
        ),
        format!(r#"<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{address}"/>"#),
    ]
}

fn check_white(number: usize, corners: &[[u8; 4]; 4]) {
    for corner in corners {
        let white = corner[..3].iter().all(|&channel| channel > 200);
        assert!(white, "drawing {number} shows {corners:?}");
    }
}
