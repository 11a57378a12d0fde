/** Making a workflow: by a template, or from nothing. */
import { useState } from "preact/hooks";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { go } from "../../router";
import { LONGEST_NAME, make, shownOnce } from "../shared/workflow_acts";
import type { Workflow } from "../shared/workflow_types";
import { BLANK, TEMPLATES } from "./templates";
import { words } from "./words";

const CHOICES = [
  ...TEMPLATES,
  { id: "blank", name: words.blank, text: words.blankText, steps: [], definition: BLANK },
];

/** Opens the dialog; a workflow that was made opens its screen. */
export async function newWorkflow(template = TEMPLATES[0]?.id) {
  let made: Workflow | undefined;
  await openDialog((close) => (
    <Dialog title={words.newTitle} onClose={close}>
      <Choice
        first={template ?? "blank"}
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

interface ChoiceProps {
  first: string;
  close: () => void;
  onMade: (workflow: Workflow) => void;
}

function Choice({ first, close, onMade }: ChoiceProps) {
  const [id, setId] = useState(first);
  const [typed, setTyped] = useState<string>();
  const chosen = CHOICES.find((choice) => choice.id === id);
  const suggested = id === "blank" ? "" : (chosen?.name ?? "");
  const create = async (values: FormData) => {
    if (!chosen) return;
    onMade(await make(String(values.get("name")).trim(), chosen.definition));
    close();
  };
  return (
    <Form action={create}>
      <TextField
        label={words.nameLabel}
        name="name"
        value={typed ?? suggested}
        onInput={(event) => setTyped(event.currentTarget.value)}
        maxLength={LONGEST_NAME}
        required
      />
      <fieldset class="plain-fieldset template-choices">
        <legend>{words.begin}</legend>
        {CHOICES.map((choice) => (
          <label key={choice.id} class="template-choice">
            <input
              type="radio"
              name="template"
              value={choice.id}
              checked={choice.id === id}
              onChange={() => setId(choice.id)}
            />
            <span class="grow">
              <span class="template-name">{choice.name}</span>
              <span class="soft small">{choice.text}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="dialog-actions">
        <Button onClick={close}>{words.cancel}</Button>
        <Submit>{words.create}</Submit>
      </div>
    </Form>
  );
}
