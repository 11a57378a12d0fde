/** Converting, and running a workflow, on stored files: the dialogs that begin them. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { allWorkflows } from "../../api/workflow_list";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Checkbox, Form, Select, TextField } from "../../parts/form";
import { capitalized } from "../../parts/format";
import { Loaded } from "../../parts/states";
import { href } from "../../router";
import { actWords } from "./act_words";
import { kindOf } from "./kinds";
import type { FileRecord } from "./types";
import { follow, runAll } from "./work_tray";

const words = actWords;

interface Catalogue {
  formats: { name: string; class: string; isWritten: boolean }[];
  resizePresets: { name: string; width: number | null; height: number | null; needs: string[] }[];
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
  `${capitalized(name)}${width || height ? ` (${[width, height].filter(Boolean).join(" × ")})` : ""}`;

export const runWorkflow = (files: FileRecord[]) =>
  openDialog((close) => (
    <Dialog title={words.run.title(files.length)} onClose={close}>
      <RunForm files={files} close={close} />
    </Dialog>
  ));

function RunForm({ files, close }: { files: FileRecord[]; close: () => void }) {
  const workflows = useResource(allWorkflows, []);
  const start = async (values: FormData) => {
    const id = String(values.get("workflow"));
    const name = workflows.data?.find((workflow) => workflow.id === id)?.name ?? "";
    runAll(id, name, files);
    close();
  };
  return (
    <Loaded of={workflows}>
      {(data) => {
        const active = data.filter(({ isActive }) => isActive);
        if (active.length === 0)
          return (
            <div class="prose">
              <p>{words.run.none}</p>
              <p class="soft">{words.run.noneBody}</p>
              <p>
                <a href={href("/workflows")} onClick={close}>
                  {words.run.all}
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
