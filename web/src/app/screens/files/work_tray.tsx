/** Jobs and runs in the tray: how far they are, and what came of them. */
import { signal } from "@preact/signals";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { Button } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { go, href } from "../../router";
import { showInTray } from "../../shell/tray";
import { followJob } from "../shared/follow_job";
import { actWords as words } from "./act_words";
import type { FileRecord } from "./types";

interface Job {
  status: string;
  progress: number;
  completedFiles: number;
  queuePlace: number | null;
  errorMessage: string | null;
  errors: { filename: string; error: string }[] | null;
}

interface Work {
  id: string;
  label: string;
  folder?: string | null;
  percent: number;
  queuePlace: number | null;
  isEnded: boolean;
  note?: string;
  error?: string | undefined;
  cancel?: (() => void) | undefined;
}

const works = signal<Work[]>([]);
let removeTray: (() => void) | undefined;

function update(id: string, change: Partial<Work>) {
  works.value = works.value.map((work) => (work.id === id ? { ...work, ...change } : work));
}

function enter(work: Omit<Work, "percent" | "queuePlace" | "isEnded">) {
  works.value = [...works.value, { ...work, percent: 0, queuePlace: null, isEnded: false }];
  removeTray ??= showInTray("work", WorkTray);
}

function leave(id: string) {
  works.value = works.value.filter((work) => work.id !== id);
  if (works.value.length > 0) return;
  removeTray?.();
  removeTray = undefined;
}

/** Follows a job to its end. */
export function follow({ id, label, folder }: { id: string; label: string; folder: string | null }) {
  enter({ id, label, folder, cancel: () => api.delete(`/api/jobs/${id}`).catch(() => {}) });
  followJob<Job>(
    id,
    (progress) => update(id, progress),
    ({ status, progress, queuePlace, completedFiles, errors, errorMessage }) => {
      const [first] = errors ?? [];
      update(id, {
        percent: progress,
        queuePlace,
        isEnded: true,
        note: status === "cancelled" ? words.work.cancelled : words.work.done(completedFiles),
        error: first ? `${first.filename}: ${first.error}` : (errorMessage ?? undefined),
        cancel: undefined,
      });
    },
  );
}

/** Two runs at a time; a run that is accepted ends by itself. */
export async function runAll(id: string, name: string, files: FileRecord[]) {
  const key = `${id} ${Date.now()}`;
  const waiting = [...files];
  let [begun, failed] = [0, 0];
  let error: string | undefined;
  let isCancelled = false;
  enter({
    id: key,
    label: words.work.run(files.length, name),
    cancel: () => {
      isCancelled = true;
    },
  });
  const one = async () => {
    for (let file = waiting.shift(); file && !isCancelled; file = waiting.shift()) {
      try {
        const { run } = await api.post<{ run: { status: string; error: string | null } }>(
          `/api/workflows/${id}/run-file`,
          { fileId: file.id },
        );
        if (run.status === "failed") throw new Error(run.error ?? "");
      } catch (thrown) {
        failed += 1;
        error ??= `${file.filename}: ${asApiError(thrown).message}`;
      }
      begun += 1;
      update(key, { percent: (100 * begun) / files.length });
    }
  };
  await Promise.all([one(), one()]);
  update(key, {
    isEnded: true,
    note: words.work.ran(begun - failed, files.length),
    error,
    cancel: undefined,
  });
}

function WorkTray() {
  return (
    <section class="uploads" aria-label={words.work.title}>
      <ul class="uploads-list">
        {works.value.map(({ id, label, percent, queuePlace, isEnded, note, error, folder, cancel }) => (
          <li key={id}>
            <span class="uploads-name">
              <bdi class="one-line">{label}</bdi>
              {isEnded ? (
                <span class={error ? "uploads-error" : "soft"}>
                  {[note, error].filter(Boolean).join(" · ")}
                </span>
              ) : queuePlace !== null ? (
                <span class="soft">{words.work.queued(queuePlace)}</span>
              ) : (
                <progress aria-label={label} max={100} value={percent} />
              )}
            </span>
            {isEnded && folder !== undefined && (
              <Button small look="quiet" onClick={() => go(folder ? `/files/${folder}` : "/files")}>
                {words.work.show}
              </Button>
            )}
            {cancel && !isEnded ? (
              <Button small look="quiet" icon="close" label={words.work.cancel} onClick={cancel} />
            ) : (
              isEnded && (
                <Button small look="quiet" icon="close" label={words.work.close} onClick={() => leave(id)} />
              )
            )}
            {isEnded && <Icon name={error ? "error" : "check"} />}
          </li>
        ))}
      </ul>
      <a class="small" href={href("/activity")}>
        {words.work.all}
      </a>
    </section>
  );
}
