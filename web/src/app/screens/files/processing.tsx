/** Converting, and running a workflow, on stored files; the tray shows how far they are. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { onChanges } from "../../api/changes";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Checkbox, Form, Select, TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { Loaded } from "../../parts/states";
import { go } from "../../router";
import { showInTray } from "../../shell/tray";
import { actWords } from "./act_words";
import { kindOf } from "./kinds";
import type { FileRecord } from "./types";

const words = actWords;

interface Catalogue {
  formats: { name: string; class: string; isWritten: boolean }[];
  resizePresets: { name: string; width: number | null; height: number | null; needs: string[] }[];
}

interface Workflow {
  id: string;
  name: string;
  isActive: boolean;
}

interface Job {
  jobId: string;
  status: string;
  progress: number;
  completedFiles: number;
  failedFiles: number;
  queuePlace: number | null;
  errorMessage: string | null;
  errors: { filename: string; error: string }[];
}

export const convert = (files: FileRecord[], folder: string | null) =>
  openDialog((close) => (
    <Dialog title={words.convert.title(files.length)} onClose={close}>
      <ConvertForm files={files} folder={folder} close={close} />
    </Dialog>
  ));

interface ProcessProps {
  files: FileRecord[];
  folder: string | null;
  close: () => void;
}

function ConvertForm({ files, folder, close }: ProcessProps) {
  const catalogue = useResource((signal) => api.get<Catalogue>("/api/catalogue", { signal }), []);
  const [preset, setPreset] = useState("original");
  const [format, setFormat] = useState("");
  const kinds = new Set(files.map(({ mime_type }) => kindOf(mime_type)));
  const isMedia = kinds.has("video") || kinds.has("audio");
  const start = async (values: FormData) => {
    const text = (name: string) => String(values.get(name) ?? "").trim() || undefined;
    const number = (name: string) => (text(name) ? Number(text(name)) : undefined);
    const { jobId } = await api.post<{ jobId: string }>("/api/jobs", {
      jobType: "convert",
      fileIds: files.map(({ id }) => id),
      format: text("format"),
      resizePreset: preset === "original" ? undefined : preset,
      resizeWidth: number("resizeWidth"),
      resizeHeight: number("resizeHeight"),
      compression: number("compression"),
      createArchive: values.get("createArchive") === "on" || undefined,
      saveToStorage: true,
      folderId: folder ?? undefined,
    });
    follow({ id: jobId, label: words.work.convert(files.length), folder });
    close();
  };
  return (
    <Loaded of={catalogue}>
      {({ formats, resizePresets }) => {
        const wanted = isMedia ? ["video", "audio", "raster"] : ["raster", "vector", "document"];
        const choices = formats.filter(({ class: kind, isWritten }) => isWritten && wanted.includes(kind));
        const needs = resizePresets.find(({ name }) => name === preset)?.needs ?? [];
        return (
          <Form action={start}>
            <p class="soft">{words.convert.note}</p>
            <div class="form-row">
              <Select
                label={words.convert.format}
                name="format"
                value={format || (isMedia ? "mp4" : "webp")}
                onChange={(event) => setFormat(event.currentTarget.value)}
                choices={choices.map(({ name }) => ({ value: name, label: name.toUpperCase() }))}
              />
              <Select
                label={words.convert.resize}
                name="resizePreset"
                value={preset}
                onChange={(event) => setPreset(event.currentTarget.value)}
                choices={resizePresets.map(({ name, width, height }) => ({
                  value: name,
                  label: name === "original" ? words.convert.keepSize : sized(name, width, height),
                }))}
              />
            </div>
            {needs.length > 0 && (
              <div class="form-row">
                {needs.map((name) => (
                  <TextField
                    key={name}
                    label={name === "resizeWidth" ? words.convert.width : words.convert.height}
                    name={name}
                    type="number"
                    min={1}
                    required
                  />
                ))}
              </div>
            )}
            <TextField
              label={words.convert.quality}
              name="compression"
              type="number"
              min={1}
              max={100}
              hint={words.convert.qualityHint}
            />
            {files.length > 1 && <Checkbox name="createArchive" label={words.convert.archive} />}
            <div class="dialog-actions">
              <Button onClick={close}>{words.cancel}</Button>
              <Submit>{words.convert.start}</Submit>
            </div>
          </Form>
        );
      }}
    </Loaded>
  );
}

const sized = (name: string, width: number | null, height: number | null) =>
  `${name[0]?.toUpperCase()}${name.slice(1)}${width || height ? ` (${[width, height].filter(Boolean).join(" × ")})` : ""}`;

export const runWorkflow = (files: FileRecord[]) =>
  openDialog((close) => (
    <Dialog title={words.run.title(files.length)} onClose={close}>
      <RunForm files={files} close={close} />
    </Dialog>
  ));

function RunForm({ files, close }: { files: FileRecord[]; close: () => void }) {
  const workflows = useResource(
    (signal) => api.get<{ workflows: Workflow[] }>("/api/workflows", { query: { limit: 100 }, signal }),
    [],
  );
  const start = async (values: FormData) => {
    const id = String(values.get("workflow"));
    const name = workflows.data?.workflows.find((workflow) => workflow.id === id)?.name ?? "";
    runAll(id, name, files);
    close();
  };
  return (
    <Loaded of={workflows}>
      {(data) => {
        const active = data.workflows.filter(({ isActive }) => isActive);
        if (active.length === 0)
          return (
            <div class="prose">
              <p>{words.run.none}</p>
              <p class="soft">{words.run.noneBody}</p>
              <p>
                <a href="/docs" target="_blank" rel="noopener">
                  {words.run.guide}
                </a>
              </p>
            </div>
          );
        return (
          <Form action={start}>
            <Select
              label={words.run.workflow}
              name="workflow"
              choices={active.map(({ id, name }) => ({ value: id, label: name }))}
            />
            <div class="dialog-actions">
              <Button onClick={close}>{words.cancel}</Button>
              <Submit icon="play">{words.run.start}</Submit>
            </div>
          </Form>
        );
      }}
    </Loaded>
  );
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
function follow({ id, label, folder }: { id: string; label: string; folder: string | null }) {
  enter({ id, label, folder, cancel: () => api.delete(`/api/jobs/${id}`).catch(() => {}) });
  const ask = async () => {
    const job = await api.get<Job>(`/api/jobs/${id}`).catch(() => null);
    if (!job) return;
    const isEnded = !["pending", "processing"].includes(job.status);
    update(id, { percent: job.progress, queuePlace: job.queuePlace, isEnded });
    if (!isEnded) return;
    end();
    const [first] = job.errors ?? [];
    update(id, {
      note: job.status === "cancelled" ? words.work.cancelled : words.work.done(job.completedFiles),
      error: first ? `${first.filename}: ${first.error}` : (job.errorMessage ?? undefined),
      cancel: undefined,
    });
  };
  const end = onChanges(
    ["job"],
    (message) => {
      if (message.event === "progress") update(id, message);
      else void ask();
    },
    id,
  );
  void ask();
}

/** Two runs at a time; a run that is accepted ends by itself. */
async function runAll(id: string, name: string, files: FileRecord[]) {
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
    </section>
  );
}
