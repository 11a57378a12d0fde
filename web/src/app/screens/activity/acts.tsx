/** Opening results, cancelling what is in progress, and trying again what failed. */
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { ask, Dialog, openDialog } from "../../parts/dialog";
import { go } from "../../router";
import { toast } from "../../shell/toasts";
import type { Entry } from "../shared/activity/types";
import { endStream } from "../shared/end_stream";
import { words } from "./words";

export const isCancellable = ({ kind, state }: Entry) =>
  can("write") && (state === "waiting" || state === "running") && kind !== "recording";

export const isRetryable = ({ kind, state }: Entry) =>
  can("write") && kind === "run" && (state === "failed" || state === "cancelled");

/** Opens the result. */
export function openEntry(entry: Entry) {
  if (entry.kind === "job") void import("./job").then(({ openJob }) => openJob(entry.id));
  else if (entry.to) {
    const [to = "/", search] = entry.to.split("?");
    go(to, { search: Object.fromEntries(new URLSearchParams(search)) });
  }
}

export async function cancel(entry: Entry) {
  try {
    if (entry.kind === "live")
      return await endStream({ id: entry.id, name: entry.title, viewers: entry.viewers ?? null });
    if (entry.kind === "stream") return await cancelStream(entry);
    if (entry.kind === "upload") return await cancelUpload(entry);
    if (entry.kind === "job") await api.delete(`/api/jobs/${entry.id}`);
    else await api.post(`/api/workflows/runs/${entry.id}/cancel`);
    toast(words.acts.cancelled);
  } catch (thrown) {
    toast(asApiError(thrown).message, "bad");
  }
}

/** A stream has no cancelling: what was made of it goes with it. */
const cancelStream = (entry: Entry) =>
  ask({
    title: <bdi>{words.acts.streamTitle(entry.title)}</bdi>,
    body: <p>{words.acts.streamBody}</p>,
    verb: words.acts.streamVerb,
    action: () => api.delete(`/api/video/streams/${entry.id}`),
  });

/** Discards what was received. */
async function cancelUpload({ id, upload }: Entry) {
  if (upload === "tus") await api.delete(`/api/uploads/tus/${id}`, { headers: { "tus-resumable": "1.0.0" } });
  else await api.delete(`/api/uploads/${id}`);
  toast(words.acts.uploadCancelled);
}

/** Asks by which version of the workflow. */
export function retry(entry: Entry): Promise<void> {
  return openDialog((close) => {
    const run = async (version: "ran" | "current") => {
      await api.post(`/api/workflows/runs/${entry.id}/retry`, { version });
      close();
      toast(words.acts.retried, "good");
    };
    return (
      <Dialog title={<bdi>{words.acts.retryTitle(entry.title)}</bdi>} onClose={close}>
        <p>{words.acts.retryBody}</p>
        <div class="dialog-actions">
          <Button onClick={close}>{words.acts.back}</Button>
          <Button action={() => run("ran")}>{words.acts.asItRan}</Button>
          <Button look="solid" action={() => run("current")}>
            {words.acts.asItIs}
          </Button>
        </div>
      </Dialog>
    );
  });
}
