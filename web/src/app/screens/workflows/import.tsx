/** Importing a workflow from a JSON file or from pasted text. */
import { useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/error";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextArea, TextField } from "../../parts/form";
import { go } from "../../router";
import { LONGEST_NAME, make, shownOnce } from "../shared/workflow_acts";
import type { Workflow } from "../shared/workflow_types";
import { imported } from "./imported";
import { words } from "./words";

/** Opens the dialog; a workflow that was imported opens its screen. */
export async function importWorkflow() {
  let made: Workflow | undefined;
  await openDialog((close) => (
    <Dialog title={words.importTitle} onClose={close} wide>
      <Import
        close={close}
        onMade={(workflow) => {
          made = workflow;
        }}
      />
    </Dialog>
  ));
  if (!made) return;
  await shownOnce(made);
  go(`/workflows/${made.id}`);
}

function Import({ close, onMade }: { close: () => void; onMade: (workflow: Workflow) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const take = (next: string) => {
    setText(next);
    try {
      setName(imported(next).name?.slice(0, LONGEST_NAME) ?? name);
    } catch {
      // It is said when it is sent
    }
  };
  const send = async () => {
    let found: ReturnType<typeof imported>;
    try {
      found = imported(text);
    } catch (thrown) {
      throw new ApiError(400, (thrown as Error).message, undefined, undefined, "definition");
    }
    onMade(await make(name.trim() || words.imported, found.definition));
    close();
  };
  return (
    <Form action={send}>
      <div class="actions">
        <Button icon="upload" onClick={() => input.current?.click()}>
          {words.importFile}
        </Button>
        <input
          ref={input}
          type="file"
          class="visually-hidden"
          tabIndex={-1}
          accept=".json,application/json"
          aria-label={words.importFile}
          onChange={async (event) => {
            const file = event.currentTarget.files?.[0];
            event.currentTarget.value = "";
            if (file) take(await file.text());
          }}
        />
      </div>
      <TextArea
        label={words.importText}
        name="definition"
        hint={words.importHint}
        rows={8}
        value={text}
        spellcheck={false}
        onInput={(event) => take(event.currentTarget.value)}
        required
      />
      <TextField
        label={words.importName}
        name="name"
        value={name}
        maxLength={LONGEST_NAME}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <div class="dialog-actions">
        <Button onClick={close}>{words.cancel}</Button>
        <Submit>{words.importVerb}</Submit>
      </div>
    </Form>
  );
}
