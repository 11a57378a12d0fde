//! Photographs from 8 KB to 2 MB for scenario `workflows`, made of the crops by the service itself, once per machine.

use std::path::{Path, PathBuf};

use sluice_testkit::Failure;

use crate::{
    http::Client,
    image::Crops,
    upload::{form, form_headers},
};

/// Width and quality of each size, from about 8 KB to about 2 MB.
const SIZES: [(u32, u32); 10] = [
    (320, 80),
    (320, 92),
    (480, 82),
    (640, 85),
    (800, 88),
    (1024, 90),
    (1280, 92),
    (1600, 94),
    (2040, 96),
    (2040, 100),
];
/// Changes when images of the same name would look different.
const GENERATION: u32 = 2;
/// A few come out smaller or larger, as skies and forests do; those are left out.
const BYTES: std::ops::RangeInclusive<u64> = 8_000..=2_000_000;

/// A JPEG file.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// The crops in all sizes, the sizes of one crop after another.
pub(super) async fn obtain(root: &Path, address: &str) -> Result<Vec<Image>, Failure> {
    let folder = root.join(format!("target/load/sizes-{GENERATION}"));
    let crops = Crops::obtain(root, ".jpg")?;
    if !folder.exists() {
        make(root, &folder, &crops, address).await?;
    }
    let mut images = Vec::new();
    for crop in &crops.names {
        for (width, quality) in SIZES {
            let name = name(crop, width, quality);
            let path = folder.join(&name);
            let bytes = std::fs::metadata(&path)?.len();
            if BYTES.contains(&bytes) {
                images.push(Image { name, path, bytes });
            }
        }
    }
    Ok(images)
}

/// For a person: how many there are, and how large.
pub(super) fn sizes(images: &[Image]) -> String {
    let mut bytes: Vec<u64> = images.iter().map(|image| image.bytes).collect();
    bytes.sort_unstable();
    let kb = |at: usize| bytes.get(at).copied().unwrap_or_default() as f64 / 1e3;
    let mean = bytes.iter().sum::<u64>() as f64 / bytes.len().max(1) as f64 / 1e3;
    format!(
        "{} images of {:.0} KB to {:.0} KB, mean {mean:.0} KB",
        images.len(),
        kb(0),
        kb(bytes.len().saturating_sub(1))
    )
}

fn name(crop: &str, width: u32, quality: u32) -> String {
    format!("{}-{width}-{quality}.jpg", crop.trim_end_matches(".jpg"))
}

async fn make(root: &Path, folder: &Path, crops: &Crops, address: &str) -> Result<(), Failure> {
    println!("making {} images", crops.names.len() * SIZES.len());
    let unfinished = tempfile::TempDir::new_in(root.join("target/load"))?;
    let mut client = Client::new(address);
    for crop in &crops.names {
        let bytes = crops.read(crop)?;
        for (width, quality) in SIZES {
            let image = convert(&mut client, crop, &bytes, width, quality).await?;
            std::fs::write(unfinished.path().join(name(crop, width, quality)), image)?;
        }
    }
    Ok(std::fs::rename(unfinished.keep(), folder)?)
}

async fn convert(
    client: &mut Client,
    name: &str,
    bytes: &[u8],
    width: u32,
    quality: u32,
) -> Result<Vec<u8>, Failure> {
    let (width, quality) = (width.to_string(), quality.to_string());
    let fields = [
        ("format", "jpg"),
        ("resizeWidth", width.as_str()),
        ("compression", quality.as_str()),
    ];
    let body = form("files", name, bytes, &fields);
    let answer = client.post("/api/convert", &form_headers(), &body).await?;
    let record: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let url = record["files"][0]["downloadUrl"].as_str();
    let url = url.ok_or_else(|| format!("converting {name}: {} {record}", answer.status))?;
    let path = url.find("/api/").map(|at| &url[at..]);
    let path = path.ok_or_else(|| format!("{url} is no address of the service"))?;
    Ok(client.get(path).await?.body)
}
