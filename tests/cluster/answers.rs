//! Any node: the same records, bytes, ranges, archives, images, feeds and progress, wherever something was stored or is done.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    soak::load::{image, make_workflow},
    support::{
        Failure,
        api::{Api, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        json::text,
    },
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);
/// Longest time until each node knows what another one committed.
const EVERYWHERE: Duration = Duration::from_secs(2);
const LARGE_BYTES: usize = 9_000_000;

/// Each node answers the same, wherever something was stored or is done.
pub async fn compare_answers(installation: &Installation) -> Result<(), Failure> {
    let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
    let mut dice = Dice::new(1);
    let picture = image(0, &mut dice);
    let large: Vec<u8> = (0..LARGE_BYTES / 8)
        .flat_map(|_| dice.next().to_le_bytes())
        .collect();

    let picture_id = text(&apis[0].upload("picture.svg", &picture).await?["id"])?;
    let large_id = text(&apis[1].upload("large.bin", &large).await?["id"])?;
    let key = apis[2].delivery_key().await?;
    let cdn = format!("/cdn/v1/{key}/{picture_id}?w=48&format=webp");
    let mut known = None;
    for api in &apis {
        // Keys of other nodes are known soon, also to those whose directory is in memory.
        let answer = eventually("the image is delivered", SOON, async || {
            let answer = api.look(&cdn).await.ok()?;
            answer.status.is_success().then_some(answer)
        })
        .await?;
        let seen = (answer.bytes.clone(), answer.header("etag").to_owned());
        assert_eq!(*known.get_or_insert(seen.clone()), seen, "another image");

        let record = api.get(&format!("/api/files/{large_id}")).await?;
        let url = text(&record["file"]["download_url"])?;
        assert!(
            api.look(&url).await?.expect(200)?.bytes == large,
            "other bytes"
        );
        for (from, to) in [
            (0, 0),
            (8_388_600, 8_388_620),
            (LARGE_BYTES - 9, LARGE_BYTES - 1),
        ] {
            let range = api
                .anonymous(Method::GET, &url)
                .header("range", format!("bytes={from}-{to}"));
            let part = fetch(range).await?.expect(206)?;
            assert!(part.bytes == large[from..=to], "bytes {from} to {to}");
        }
        let selected = json!({"ids": [picture_id, large_id]});
        let selected = api
            .post("/api/files/zip", &selected)
            .await?
            .expect(201)?
            .json()?;
        let archive = api.look(&text(&selected["url"])?).await?.expect(200)?;
        assert!(
            archive.bytes.starts_with(b"PK"),
            "no archive: {}",
            archive.text()
        );
        assert!(
            archive.bytes.len() > LARGE_BYTES,
            "{} bytes",
            archive.bytes.len()
        );
    }

    let job = apis[0].convert("job.svg", &picture).await?;
    let workflow = make_workflow(&apis[1]).await?;
    let run = apis[2]
        .send(
            &format!("/api/workflows/{workflow}/run"),
            ("file", "run.svg", &picture),
            &[],
            &[],
        )
        .await?;
    let run = text(&run.json()?["runId"])?;
    for api in &apis {
        // The stream ends with the job, wherever it is done.
        let progress = api.request(Method::GET, &format!("/api/jobs/{job}/events"));
        let progress = fetch(progress).await?.expect(200)?;
        let progress = String::from_utf8(progress.bytes.into())?;
        assert!(progress.contains("completed"), "{progress}");
        let path = format!("/api/workflows/runs/{run}");
        let is_done = |answer: &Value| (answer["run"]["status"] == "completed").then_some(());
        api.wait(&path, "the run has completed", SOON, is_done)
            .await?;
    }
    let (feed, _) = apis[0].events(String::new()).await?;
    for api in &apis[1..] {
        assert_eq!(api.events(String::new()).await?.0, feed);
    }
    Ok(())
}

/// Keys that one node revokes are rejected by the others within two seconds.
pub async fn revoke_keys(installation: &Installation) -> Result<(), Failure> {
    let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
    let picture = image(0, &mut Dice::new(2));
    let file = text(&apis[0].upload("picture.svg", &picture).await?["id"])?;
    let made = apis[0]
        .post("/api/delivery-keys", &json!({"name": "test"}))
        .await?;
    let made = made.expect(201)?.json()?;
    let cdn = format!("/cdn/v1/{}/{file}?w=40", text(&made["token"])?);
    let wait_for_all = async |status: u16| -> Result<(), Failure> {
        for api in &apis {
            eventually(
                &format!("the image is answered {status}"),
                EVERYWHERE,
                async || {
                    let answer = api.look(&cdn).await.ok()?;
                    (answer.status == status).then_some(())
                },
            )
            .await?;
        }
        Ok(())
    };
    wait_for_all(200).await?;
    let id = text(&made["key"]["id"])?;
    let revoked = apis[1].delete(&format!("/api/delivery-keys/{id}")).await?;
    assert!(revoked.status.is_success(), "{}", revoked.text());
    wait_for_all(404).await?;

    let made = apis[2]
        .post("/api/keys", &json!({"name": "short", "scope": "read"}))
        .await?;
    let made = made.expect(201)?.json()?;
    let other = text(&made["token"])?;
    for api in &apis {
        api.clone().with_key(&other).get("/api/files").await?;
    }
    let revoked = apis[0]
        .delete(&format!("/api/keys/{}", text(&made["key"]["id"])?))
        .await?;
    assert!(revoked.status.is_success(), "{}", revoked.text());
    for api in &apis {
        let late = api.clone().with_key(&other);
        eventually("the key is revoked", EVERYWHERE, async || {
            let answer = fetch(late.request(Method::GET, "/api/files")).await.ok()?;
            (answer.status == 401).then_some(())
        })
        .await?;
    }
    Ok(())
}
