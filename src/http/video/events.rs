//! `GET /api/video/streams/{id}/events`: progress of a video stream as server-sent events.

use actix_web::HttpResponse;
use serde_json::{Value, json};
use sluice_actors::video::Follower;
use sluice_store::video;
use uuid::Uuid;

use crate::{
    application::{context::VideoContext, error::ApiError, reached::Reached, video::record},
    http::event_stream::{FollowRequest, StreamedState, Work},
};

/// Follow a video stream
///
/// Server-sent events: `progress` with `{streamId, status, progress, playable, queuePlace}`, at once and at every change; then
/// `end` with `{stream}`, and the stream of events closes. Comments keep it open in between.
#[utoipa::path(get, path = "/api/video/streams/{id}/events", tag = "video",
    params(("id" = Uuid, Path, description = "The stream's id")),
    responses((status = 200, description = "Events until it is ready or has failed", content_type = "text/event-stream", body = String)))]
pub async fn events(asked: FollowRequest) -> Result<HttpResponse, ApiError> {
    asked.answer::<FollowedStream>().await
}

struct FollowedStream {
    follower: Follower,
    id: Uuid,
}

impl Work for FollowedStream {
    type Context = VideoContext;

    async fn follow(context: &VideoContext, account_id: Uuid, id: Uuid) -> Result<Self, ApiError> {
        let stream = video::get(&mut context.store.read().await?, account_id, id).await?;
        Ok(Self {
            follower: context.streams.follow(stream.id)?,
            id: stream.id,
        })
    }

    async fn next(&mut self) -> Result<StreamedState, ApiError> {
        let progress = self.follower.next().await?;
        Ok(StreamedState {
            has_ended: progress.status.has_ended(),
            progress: json!({
                "streamId": self.id,
                "status": progress.status.as_str(),
                "progress": progress.percent,
                "playable": progress.playable,
                "queuePlace": progress.queue_place,
            }),
        })
    }

    async fn end(&self, context: &VideoContext, reached: &Reached) -> Result<Value, ApiError> {
        let stream = video::by_id(&mut context.store.read().await?, self.id).await?;
        Ok(json!(record::answer(context, reached, stream).await?))
    }
}
