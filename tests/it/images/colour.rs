//! Sources whose numbers are not sRGB: wide gamuts, inks, deep samples. What comes out looks as what went in.

use crate::{
    images::{LOSSY, UPRIGHT, expect},
    support::{
        Failure,
        images::{available, difference, drawn, look},
        server::Server,
    },
};

const TARGETS: [&str; 5] = ["jpg", "png", "webp", "avif", "tiff"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_gamut_sources_keep_their_colours() -> Result<(), Failure> {
    if !available("wide_gamut_sources_keep_their_colours")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for source in [
        "display-p3.jpg",
        "display-p3.png",
        "adobe-rgb.jpg",
        "adobe-rgb.png",
        "deep.png",
    ] {
        for target in TARGETS {
            let case = format!("{source} → {target}");
            let sent = api
                .convert(source, &drawn(source)?, &[("format", target)])
                .await;
            let (_, bytes) = expect(&case, sent)?;
            let image = expect(&case, look(&bytes).await)?;
            expect(&case, image.check_corners(UPRIGHT, LOSSY))?;
            let profile = image.profile.unwrap_or_default().to_lowercase();
            assert!(
                profile.is_empty() || profile.contains("srgb"),
                "{case}: {profile}"
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inks_become_the_colours_that_they_print() -> Result<(), Failure> {
    if !available("inks_become_the_colours_that_they_print")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    // Without a profile no one knows the inks: any usual press will do. With one, its table says what they print.
    for (source, tolerance) in [("cmyk.jpg", 45.0), ("cmyk-profile.jpg", 9.0)] {
        let stored = drawn(source)?;
        for target in TARGETS {
            let case = format!("{source} → {target}");
            let sent = api.convert(source, &stored, &[("format", target)]).await;
            let (_, bytes) = expect(&case, sent)?;
            let image = expect(&case, look(&bytes).await)?;
            assert_ne!(image.mode, "CMYK", "{case}");
            let away = difference(&stored, &bytes).await?;
            assert!(away < tolerance, "{case}: {away} of 255 away");
        }
    }
    Ok(())
}
