//! Table of what the audit log has of each changing route: action and target, or why nothing.
//!
//! The middleware ([`crate::http::middleware::note_change`]) writes the entries, so that no handler can forget one. A route that is
//! not in the table is noted as [`UNLISTED`]; a test finds it.

use Noted::{InTransaction, Nothing};
use Target::{InAnswer, InPath, StoredFile};

/// The audit entries of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// An entry by the middleware, once the answer is a success.
    Entry {
        /// Resource and past participle.
        action: &'static str,
        target: Target,
    },
    /// An entry by the use case, in the transaction of the change.
    InTransaction,
    /// No entry; the reason is for people who read the table.
    Nothing(&'static str),
}

/// The resource that a route changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Kind, and the placeholder of the path that has its id.
    InPath(&'static str, &'static str),
    /// Kind; its id is in the answer.
    InAnswer(&'static str),
    /// The file that an upload became, whose id is a header of the answer; without one the upload is not complete and nothing is noted. A
    /// client that leaves before that answer leaves an upload like any that was interrupted: no entry is written for it.
    StoredFile,
    None,
}

/// Action of a route that is not in the table.
pub(crate) const UNLISTED: &str = "api.changed";

const fn entry(action: &'static str, target: Target) -> Noted {
    Noted::Entry { action, target }
}

/// A changing route that is added gets its line here.
pub(crate) const TABLE: &[(&str, &str, Noted)] = &[
    (
        "POST",
        "/api/session",
        Nothing("a sign-in changes nothing; the list of sessions has it"),
    ),
    (
        "DELETE",
        "/api/session",
        entry("session.ended", Target::None),
    ),
    ("POST", "/api/session/welcome", InTransaction),
    (
        "PATCH",
        "/api/session/password",
        entry("user.password_changed", Target::None),
    ),
    (
        "DELETE",
        "/api/sessions/{id}",
        entry("session.ended", InPath("session", "id")),
    ),
    (
        "POST",
        "/api/keys",
        entry("api_key.created", InAnswer("apiKey")),
    ),
    (
        "DELETE",
        "/api/keys/{id}",
        entry("api_key.revoked", InPath("apiKey", "id")),
    ),
    ("POST", "/api/system/accounts", InTransaction),
    ("PATCH", "/api/system/accounts/{id}", InTransaction),
    ("PATCH", "/api/users/{id}", InTransaction),
    ("DELETE", "/api/users/{id}", InTransaction),
    ("POST", "/api/users/{id}/reset-link", InTransaction),
    ("POST", "/api/invitations", InTransaction),
    ("POST", "/api/invitations/look", Nothing("changes nothing")),
    ("POST", "/api/invitations/redeem", InTransaction),
    ("DELETE", "/api/invitations/{id}", InTransaction),
    (
        "POST",
        "/api/live/inputs",
        entry("live.input.created", InAnswer("liveInput")),
    ),
    (
        "PATCH",
        "/api/live/inputs/{id}",
        entry("live.input.changed", InPath("liveInput", "id")),
    ),
    (
        "DELETE",
        "/api/live/inputs/{id}",
        entry("live.input.deleted", InPath("liveInput", "id")),
    ),
    ("POST", "/api/live/inputs/{id}/rotate-key", InTransaction),
    ("POST", "/api/live/inputs/{id}/reveal-key", InTransaction),
    (
        "POST",
        "/api/live/inputs/{id}/end",
        entry("live.input.ended", InPath("liveInput", "id")),
    ),
    (
        "POST",
        "/api/live/inputs/{id}/clips",
        entry("live.input.clip_made", InPath("liveInput", "id")),
    ),
    (
        "POST",
        "/api/live/inputs/{id}/outputs",
        entry("live.output.created", InAnswer("output")),
    ),
    (
        "PATCH",
        "/api/live/inputs/{id}/outputs/{outputId}",
        entry("live.output.changed", InPath("output", "outputId")),
    ),
    (
        "DELETE",
        "/api/live/inputs/{id}/outputs/{outputId}",
        entry("live.output.deleted", InPath("output", "outputId")),
    ),
    (
        "POST",
        "/api/live/inputs/{id}/playback-token",
        entry("live.input.token_made", InPath("liveInput", "id")),
    ),
    (
        "POST",
        "/api/playback-keys",
        entry("playback_key.created", InAnswer("playbackKey")),
    ),
    (
        "DELETE",
        "/api/playback-keys/{id}",
        entry("playback_key.revoked", InPath("playbackKey", "id")),
    ),
    ("POST", "/api/files", entry("file.stored", InAnswer("file"))),
    (
        "POST",
        "/api/files/bulk",
        entry("files.changed", Target::None),
    ),
    ("POST", "/api/files/zip", Nothing("an archive is read")),
    (
        "PATCH",
        "/api/files/{id}",
        entry("file.changed", InPath("file", "id")),
    ),
    (
        "DELETE",
        "/api/files/{id}",
        entry("file.deleted", InPath("file", "id")),
    ),
    (
        "POST",
        "/api/files/{id}/tools",
        entry("file.processed", InPath("file", "id")),
    ),
    (
        "POST",
        "/api/folders",
        entry("folder.created", InAnswer("folder")),
    ),
    (
        "POST",
        "/api/folders/path",
        entry("folder.ensured", InAnswer("folder")),
    ),
    (
        "PATCH",
        "/api/folders/{id}",
        entry("folder.changed", InPath("folder", "id")),
    ),
    (
        "DELETE",
        "/api/folders/{id}",
        entry("folder.deleted", InPath("folder", "id")),
    ),
    (
        "POST",
        "/api/folders/{id}/share",
        entry("share.created", InPath("folder", "id")),
    ),
    (
        "DELETE",
        "/api/folders/{id}/share",
        entry("share.revoked", InPath("folder", "id")),
    ),
    (
        "POST",
        "/api/share/folder/{token}/unlock",
        Nothing("readers of a link have no account"),
    ),
    (
        "POST",
        "/share/folder/{token}",
        Nothing("readers of a link have no account"),
    ),
    (
        "POST",
        "/api/uploads",
        Nothing("nothing is stored before the upload is completed"),
    ),
    (
        "POST",
        "/api/uploads/complete",
        entry("file.stored", InAnswer("file")),
    ),
    (
        "PUT",
        "/api/uploads/{id}/content",
        Nothing("bytes of an upload, whose completion is noted"),
    ),
    (
        "DELETE",
        "/api/uploads/{id}",
        entry("upload.cancelled", InPath("upload", "id")),
    ),
    ("POST", "/api/uploads/tus", entry("file.stored", StoredFile)),
    (
        "PATCH",
        "/api/uploads/tus/{id}",
        entry("file.stored", StoredFile),
    ),
    (
        "DELETE",
        "/api/uploads/tus/{id}",
        entry("upload.cancelled", InPath("upload", "id")),
    ),
    (
        "POST",
        "/api/uploads/tus/{id}",
        entry("file.stored", StoredFile),
    ),
    (
        "POST",
        "/api/delivery-keys",
        entry("delivery_key.created", InAnswer("deliveryKey")),
    ),
    (
        "PATCH",
        "/api/delivery-keys/{id}",
        entry("delivery_key.changed", InPath("deliveryKey", "id")),
    ),
    (
        "DELETE",
        "/api/delivery-keys/{id}",
        entry("delivery_key.revoked", InPath("deliveryKey", "id")),
    ),
    (
        "POST",
        "/api/cdn-presets",
        entry("preset.created", InAnswer("preset")),
    ),
    (
        "PATCH",
        "/api/cdn-presets/{id}",
        entry("preset.changed", InPath("preset", "id")),
    ),
    (
        "DELETE",
        "/api/cdn-presets/{id}",
        entry("preset.deleted", InPath("preset", "id")),
    ),
    ("POST", "/api/cdn-purge", entry("cdn.purged", Target::None)),
    (
        "POST",
        "/api/convert",
        entry("job.created", InAnswer("job")),
    ),
    (
        "POST",
        "/api/compress",
        entry("job.created", InAnswer("job")),
    ),
    (
        "POST",
        "/api/media/{tool}",
        entry("job.created", InAnswer("job")),
    ),
    ("POST", "/api/jobs", entry("job.created", InAnswer("job"))),
    (
        "DELETE",
        "/api/jobs/{id}",
        entry("job.cancelled", InPath("job", "id")),
    ),
    (
        "POST",
        "/api/workflows",
        entry("workflow.saved", InAnswer("workflow")),
    ),
    ("POST", "/api/workflows/lint", Nothing("changes nothing")),
    ("POST", "/api/workflows/dry-run", Nothing("changes nothing")),
    (
        "PATCH",
        "/api/workflows/{id}",
        entry("workflow.changed", InPath("workflow", "id")),
    ),
    (
        "DELETE",
        "/api/workflows/{id}",
        entry("workflow.deleted", InPath("workflow", "id")),
    ),
    (
        "POST",
        "/api/workflows/{id}/run",
        entry("run.started", InPath("workflow", "id")),
    ),
    (
        "POST",
        "/api/workflows/{id}/run-file",
        entry("run.started", InPath("workflow", "id")),
    ),
    (
        "POST",
        "/api/workflows/runs/{runId}/retry",
        entry("run.retried", InPath("run", "runId")),
    ),
    (
        "POST",
        "/api/workflows/runs/{runId}/cancel",
        entry("run.cancelled", InPath("run", "runId")),
    ),
    (
        "POST",
        "/api/workflows/{id}/runs/{runId}/rerun",
        entry("run.repeated", InPath("run", "runId")),
    ),
    (
        "POST",
        "/api/workflows/{id}/rotate-secret",
        entry("workflow.secret_rotated", InPath("workflow", "id")),
    ),
    (
        "POST",
        "/api/video/streams",
        entry("video.stream.created", InAnswer("videoStream")),
    ),
    (
        "PATCH",
        "/api/video/streams/{id}",
        entry("video.stream.changed", InPath("videoStream", "id")),
    ),
    (
        "DELETE",
        "/api/video/streams/{id}",
        entry("video.stream.deleted", InPath("videoStream", "id")),
    ),
    (
        "POST",
        "/api/video/streams/{id}/captions",
        entry("video.stream.captions_added", InPath("videoStream", "id")),
    ),
    (
        "DELETE",
        "/api/video/streams/{id}/captions/{language}",
        entry("video.stream.captions_removed", InPath("videoStream", "id")),
    ),
    (
        "POST",
        "/api/video/streams/{id}/playback-token",
        entry("video.stream.token_made", InPath("videoStream", "id")),
    ),
    (
        "POST",
        "/api/webhooks",
        entry("webhook.created", InAnswer("webhook")),
    ),
    (
        "PATCH",
        "/api/webhooks/{id}",
        entry("webhook.changed", InPath("webhook", "id")),
    ),
    (
        "DELETE",
        "/api/webhooks/{id}",
        entry("webhook.deleted", InPath("webhook", "id")),
    ),
    (
        "POST",
        "/api/webhooks/{id}/rotate-secret",
        entry("webhook.secret_rotated", InPath("webhook", "id")),
    ),
    (
        "POST",
        "/api/webhooks/{id}/test",
        entry("webhook.tested", InPath("webhook", "id")),
    ),
    (
        "POST",
        "/api/webhooks/{id}/recover",
        entry("webhook.recovered", InPath("webhook", "id")),
    ),
    (
        "POST",
        "/api/webhooks/{id}/probe",
        entry("webhook.probed", InPath("webhook", "id")),
    ),
    (
        "POST",
        "/api/webhooks/deliveries/{deliveryId}/retry",
        entry(
            "webhook.delivery_sent_again",
            InPath("delivery", "deliveryId"),
        ),
    ),
    (
        "POST",
        "/live/v1/{playback_id}/whep",
        Nothing("viewers have no account"),
    ),
    (
        "POST",
        "/live/whip",
        Nothing("an encoder shows its stream key"),
    ),
    (
        "POST",
        "/live/whip/{stream}",
        Nothing("an encoder shows its stream key"),
    ),
    (
        "PATCH",
        "/live/webrtc/{session}",
        Nothing("the session's address is the permission"),
    ),
    (
        "DELETE",
        "/live/webrtc/{session}",
        Nothing("the session's address is the permission"),
    ),
];

/// Returns what is noted of a route.
pub(crate) fn noted(method: &str, pattern: &str) -> Noted {
    let row = TABLE
        .iter()
        .find(|(listed, path, _)| *path == pattern && *listed == method);
    match row {
        Some((_, _, noted)) => *noted,
        None => entry(UNLISTED, Target::None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::ROUTES;

    #[test]
    fn every_changing_route_is_in_the_table_once() {
        let is_change = |method: &str| !["GET", "HEAD", "OPTIONS"].contains(&method);
        let routes = ROUTES.iter().flat_map(|(path, methods)| {
            let changing = methods.iter().filter(|method| is_change(method));
            changing.map(move |method| (*method, *path))
        });
        let routes: BTreeSet<_> = routes.collect();
        let listed: BTreeSet<_> = TABLE
            .iter()
            .map(|(method, path, _)| (*method, *path))
            .collect();
        assert_eq!(listed.len(), TABLE.len(), "a route is in the table twice");
        let missing: Vec<_> = routes.difference(&listed).collect();
        assert!(
            missing.is_empty(),
            "not in src/http/audit/actions.rs: {missing:?}"
        );
        let unknown: Vec<_> = listed.difference(&routes).collect();
        assert!(unknown.is_empty(), "no routes: {unknown:?}");
    }

    #[test]
    fn ids_of_targets_are_in_their_paths() {
        for (method, path, noted) in TABLE {
            if let Noted::Entry {
                target: InPath(_, placeholder),
                ..
            } = noted
            {
                assert!(
                    path.contains(&format!("{{{placeholder}}}")),
                    "{method} {path}: {placeholder}"
                );
            }
        }
    }

    #[test]
    fn a_route_that_is_not_listed_is_noted_all_the_same() {
        assert_eq!(noted("POST", "/api/new"), entry(UNLISTED, Target::None));
        assert_eq!(
            noted("DELETE", "/api/keys/{id}"),
            entry("api_key.revoked", InPath("apiKey", "id"))
        );
        assert_eq!(
            noted("POST", "/api/workflows/lint"),
            Nothing("changes nothing")
        );
    }
}
