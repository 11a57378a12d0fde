//! `GET /cdn/v1/{key}/{file}`: what the URL asks for is what a decoder finds.

use crate::{
    images::{check_upright, expect},
    support::{
        Failure,
        images::{available, drawn, look},
        server::Server,
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivered_image_is_what_its_url_says() -> Result<(), Failure> {
    if !available("a_delivered_image_is_what_its_url_says")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let key = api.delivery_key().await?;
    let upright = api.upload_id("a.jpg", &drawn("plain.jpg")?).await?;
    let turned = api.upload_id("b.jpg", &drawn("orientation-8.jpg")?).await?;
    let page = api.upload_id("c.pdf", &drawn("pages.pdf")?).await?;
    let cases = [
        (&upright, "w=120&format=jpeg", "JPEG", (120, 80)),
        (&upright, "w=60&dpr=2&format=png", "PNG", (120, 80)),
        (&upright, "h=40&format=webp", "WEBP", (60, 40)),
        (&upright, "w=120&format=avif", "AVIF", (120, 80)),
        (&upright, "w=120&format=jxl", "JXL", (120, 80)),
        (&upright, "w=9000&h=1&fit=inside", "", (0, 0)),
        (&upright, "w=1000&format=png", "PNG", (240, 160)),
        (&upright, "w=480&enlarge=1&format=png", "PNG", (480, 320)),
        (
            &upright,
            "w=120&h=120&fit=inside&format=png",
            "PNG",
            (120, 80),
        ),
        (
            &upright,
            "w=120&h=120&fit=fill&format=png",
            "PNG",
            (120, 120),
        ),
        (
            &upright,
            "w=120&h=120&fit=outside&format=png",
            "PNG",
            (180, 120),
        ),
        (
            &upright,
            "w=120&h=120&fit=contain&format=png",
            "PNG",
            (120, 120),
        ),
        (&upright, "w=120&h=120&format=png", "PNG", (120, 120)),
        // Cover of a small source crops to the aspect and never grows.
        (&upright, "w=1000&h=1000&format=png", "PNG", (160, 160)),
        (&turned, "w=90&format=jpeg", "JPEG", (90, 60)),
        (&turned, "w=90&format=webp", "WEBP", (90, 60)),
        (&turned, "w=90&format=png", "PNG", (90, 60)),
        (&page, "page=1&w=120&format=png", "PNG", (120, 80)),
    ];
    for (file, query, format, size) in cases {
        let answer = api.deliver(&key, file, query).await?;
        if format.is_empty() {
            expect(query, answer.expect(400))?;
            continue;
        }
        let answer = expect(query, answer.expect(200))?;
        assert_eq!(
            answer.header("x-content-type-options"),
            "nosniff",
            "{query}"
        );
        let image = expect(query, look(&answer.bytes).await)?;
        assert_eq!(image.format, format, "{query}");
        assert_eq!(image.size(), size, "{query}");
        assert_eq!(image.exif_tags, 0, "{query}: metadata is stripped");
        if !query.contains("contain") {
            check_upright(query, &image)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_browser_gets_a_format_that_it_names() -> Result<(), Failure> {
    if !available("the_browser_gets_a_format_that_it_names")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let key = api.delivery_key().await?;
    let opaque = api.upload_id("a.jpg", &drawn("plain.jpg")?).await?;
    let hole = api.upload_id("b.png", &drawn("hole.png")?).await?;
    let chrome = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";
    for (file, accept, format, alpha) in [
        (&opaque, chrome, "WEBP", false),
        (&opaque, "image/webp", "WEBP", false),
        (&opaque, "*/*", "JPEG", false),
        (&opaque, "image/webp;q=0", "JPEG", false),
        (&hole, chrome, "WEBP", true),
        (&hole, "image/png,image/jpeg", "PNG", true),
    ] {
        let path = format!("/cdn/v1/{key}/{file}?w=100");
        let answer = api.fetch_with(&path, &[("accept", accept)]).await?;
        let answer = expect(accept, answer.expect(200))?;
        let varies = answer.header("vary").to_lowercase();
        assert!(varies.contains("accept"), "{accept}: {varies}");
        let image = expect(accept, look(&answer.bytes).await)?;
        assert_eq!(image.format, format, "{accept}");
        assert_eq!(image.has_alpha, alpha, "{accept}");
    }
    Ok(())
}
