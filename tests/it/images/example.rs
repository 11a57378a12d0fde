//! The example of `CONTRIBUTING.md`, an operation in one file and one line of the table: everything else knows it.

use serde_json::Value;

use crate::{
    images::{LOSSY, UPRIGHT, expect},
    support::{
        Failure,
        images::{DecodedImage, available, drawn, look},
        server::Server,
    },
};

fn is_grey(image: &DecodedImage) -> bool {
    let corners = image.corners();
    let is_grey = |[red, green, blue, _]: &[u8; 4]| {
        red.abs_diff(*green) <= LOSSY && green.abs_diff(*blue) <= LOSSY
    };
    corners.iter().all(is_grey)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_of_one_file_and_one_row_is_everywhere() -> Result<(), Failure> {
    if !available("an_operation_of_one_file_and_one_row_is_everywhere")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();

    let photo = drawn("plain.jpg")?;
    let full = [("amount", "100")];
    let (_, faded) = api.tool("fade", "plain.jpg", &photo, &full).await?;
    assert!(is_grey(&look(&faded).await?));

    // The planar path renders the first; it knows no effects and must leave the second to libvips. An AVIF is delivered
    // from its mezzanine, which must not lose them either.
    let key = api.delivery_key().await?;
    for name in ["plain.jpg", "plain.avif"] {
        let file = api.upload_id(name, &drawn(name)?).await?;
        let plain = api.deliver(&key, &file, "w=60&format=jpeg").await?;
        let image = look(&expect(name, plain.expect(200))?.bytes).await?;
        expect(name, image.check_corners(UPRIGHT, 2 * LOSSY))?;
        let faded = api
            .deliver(&key, &file, "fade=100&w=60&format=jpeg")
            .await?;
        let image = look(&expect(name, faded.expect(200))?.bytes).await?;
        assert!(is_grey(&image), "{name}: {:?}", image.corners());
        let refused = api.deliver(&key, &file, "w=60&fade=101").await?;
        let refused = expect(name, refused.expect(400))?;
        let message = String::from_utf8_lossy(&refused.bytes).into_owned();
        assert!(
            message.contains("fade must be a whole number from 0 to 100"),
            "{message}"
        );
    }

    let (_, document) = server.get("/openapi.json").await?;
    let document: Value = serde_json::from_slice(&document)?;
    let paths = &document["paths"];
    let parameters = &paths["/cdn/v1/{deliveryKey}/{fileId}"]["get"]["parameters"];
    let parameters = parameters.as_array().ok_or("no parameters")?;
    let fade = parameters.iter().find(|it| it["name"] == "fade");
    assert_eq!(
        fade.map(|it| &it["schema"]["type"]),
        Some(&Value::from("integer"))
    );
    let tools = paths["/api/media/{tool}"]["post"]["description"].to_string();
    assert!(tools.contains("**fade**: ") && tools.contains("- `amount` (50): "));
    // A tool, and a kind of a workflow's nodes.
    assert_eq!(document.to_string().matches("**fade**: ").count(), 2);
    Ok(())
}
