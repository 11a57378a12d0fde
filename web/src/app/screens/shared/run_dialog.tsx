/** Runs a workflow on a file from this computer or on a stored one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { ErrorText } from "../../parts/states";
import { Name } from "../../parts/values";
import { go } from "../../router";
import { toast } from "../../shell/toasts";
import { chooseFile } from "./choose_file";
import type { RunAnswer, Workflow } from "./workflow_types";

const words = {
  title: (name: string) => `Run “${name}”`,
  drop: "Drop a file here",
  upload: "Choose a file of this computer",
  stored: "Choose a stored file",
  note: "A run counts as one media operation. An uploaded file belongs to the run: it is stored only by a storage step.",
  sending: (name: string) => `${name} is sent and processed…`,
  begun: (name: string) => `The run on ${name} has begun.`,
  follow: "Follow it",
  unsaved: (version: number) =>
    `The editor has changes that are not saved. A run uses what is saved: version ${version}.`,
  cancel: "Cancel",
  runSaved: (version: number) => `Run version ${version}`,
  saveAndRun: "Save and run",
  started: "Runs that take longer continue by themselves; their screen follows them.",
};

/** Saves what is not saved yet; whether that was done. */
export type Save = () => Promise<boolean>;

/** Opens the dialog; a run that began opens its screen. With `save` there are changes that it would not have. */
export async function runWorkflow(workflow: Pick<Workflow, "id" | "name" | "version">, save?: Save) {
  if (save && !(await isVersionChosen(workflow, save))) return;
  await openDialog((close) => (
    <Dialog title={words.title(workflow.name)} onClose={close}>
      <Choice workflow={workflow} close={close} />
    </Dialog>
  ));
}

/** Asks whether the saved version is run, or the changes are saved before that. */
async function isVersionChosen({ name, version }: Pick<Workflow, "name" | "version">, save: Save) {
  let isChosen = false;
  await openDialog((close) => (
    <Dialog title={words.title(name)} onClose={close}>
      <p>{words.unsaved(version)}</p>
      <div class="dialog-actions">
        <Button onClick={close}>{words.cancel}</Button>
        <Button
          onClick={() => {
            isChosen = true;
            close();
          }}
        >
          {words.runSaved(version)}
        </Button>
        <Button
          look="solid"
          action={async () => {
            isChosen = await save();
            if (isChosen) close();
          }}
        >
          {words.saveAndRun}
        </Button>
      </div>
    </Dialog>
  ));
  return isChosen;
}

function Choice({ workflow, close }: { workflow: Pick<Workflow, "id" | "name">; close: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [isOver, setOver] = useState(false);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const start = async (name: string, path: string, body: unknown) => {
    setBusy(name);
    setError(undefined);
    try {
      const { runId } = await api.post<RunAnswer>(`/api/workflows/${workflow.id}/${path}`, body);
      const open = () => go(`/runs/${runId}`);
      if (isGone.current) return toast(words.begun(name), "good", { label: words.follow, run: open });
      close();
      open();
    } catch (thrown) {
      if (isGone.current) return toast(asApiError(thrown).message, "bad");
      setError(thrown);
      setBusy(undefined);
    }
  };
  const upload = (file: File | undefined) => {
    if (!file || busy) return;
    const form = new FormData();
    form.append("file", file);
    start(file.name, "run", form);
  };
  const stored = async () => {
    const file = await chooseFile();
    if (file) start(file.filename, "run-file", { fileId: file.id });
  };
  return (
    <div class="stack">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same as a drop */}
      <div
        class={`drop run-drop ${isOver ? "drop-over" : ""}`}
        aria-busy={busy !== undefined || undefined}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          upload(event.dataTransfer?.files[0]);
        }}
      >
        {busy ? (
          <>
            <Name>{words.sending(busy)}</Name>
            <progress aria-label={words.sending(busy)} />
          </>
        ) : (
          <>
            <Icon name="upload" class="icon-l" />
            <p>{words.drop}</p>
            <div class="actions">
              <Button look="solid" onClick={() => input.current?.click()}>
                {words.upload}
              </Button>
              <Button onClick={stored}>{words.stored}</Button>
            </div>
          </>
        )}
        <input
          ref={input}
          type="file"
          class="visually-hidden"
          tabIndex={-1}
          aria-label={words.upload}
          onChange={(event) => {
            upload(event.currentTarget.files?.[0]);
            event.currentTarget.value = "";
          }}
        />
      </div>
      {error !== undefined && <ErrorText error={asApiError(error)} />}
      <p class="soft small">{busy ? words.started : words.note}</p>
    </div>
  );
}
