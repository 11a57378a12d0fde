/** Acts on a workflow as a whole, from the list and from its own screen. */
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { ask, Dialog, openDialog, showSecret } from "../../parts/dialog";
import { downloadBytes } from "../../parts/download";
import { Form, TextField } from "../../parts/form";
import { formatNumber } from "../../parts/format";
import { Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { readFlow } from "./flow";
import type { Definition, Workflow } from "./workflow_types";

/** The texts of these acts. */
export const actWords = {
  duplicate: "Duplicate",
  remove: "Delete",
  cancel: "Cancel",
  copyTitle: "Duplicate the workflow",
  copyName: "Name of the copy",
  copyOf: (name: string) => `${name} (copy)`,
  copyNote: "The copy is paused and has no folder that starts it.",
  removeTitle: "Delete this workflow?",
  removeBody: (runs: number) =>
    runs === 0
      ? "Its versions go with it. It has not run yet."
      : `Its versions and the history of ${runs === 1 ? "1 run" : `${formatNumber(runs)} runs`} go with it; runs in progress are cancelled. Files that it stored stay.`,
  removed: "The workflow is deleted.",
  paused: "The workflow is paused: no run begins.",
  resumed: "The workflow is active.",
  secretTitle: "Signing secret of the workflow",
  secretNote:
    "This is the only time that the secret is shown. The receiver of this workflow's webhooks checks every request's signature with it.",
  secret: "Secret",
};

export const LONGEST_NAME = 80;

export const showWorkflowSecret = (secret: string) =>
  showSecret({
    title: actWords.secretTitle,
    note: actWords.secretNote,
    fields: [{ label: actWords.secret, value: secret }],
  });

/** Whether runs post to an address of the workflow's own, whose receiver needs its secret. */
export function posts(definition: Definition): boolean {
  const { webhookUrl, steps } = readFlow("", definition);
  return webhookUrl !== "" || steps.some(({ kind }) => kind === "webhook");
}

/** Makes a workflow; `shownOnce` shows its secret. */
export async function make(name: string, definition: Definition, isActive = true): Promise<Workflow> {
  const body = { name, definition, isActive };
  const { workflow } = await api.post<{ workflow: Workflow }>("/api/workflows", body);
  return workflow;
}

/** Shows the secret of a workflow that was just made, where it is needed. */
export async function shownOnce(workflow: Workflow) {
  if (workflow.webhookSecret && posts(workflow.definition)) await showWorkflowSecret(workflow.webhookSecret);
}

/** Resolves with the copy, or undefined. */
export async function duplicate(workflow: Workflow): Promise<Workflow | undefined> {
  let made: Workflow | undefined;
  await openDialog((close) => (
    <Dialog title={actWords.copyTitle} onClose={close}>
      <Form
        action={async (values) => {
          const { trigger: _, ...definition } = workflow.definition;
          made = await make(String(values.get("name")), definition, false);
          close();
        }}
      >
        <TextField
          label={actWords.copyName}
          name="name"
          hint={actWords.copyNote}
          defaultValue={actWords.copyOf(workflow.name).slice(0, LONGEST_NAME)}
          maxLength={LONGEST_NAME}
          required
        />
        <div class="dialog-actions">
          <Button onClick={close}>{actWords.cancel}</Button>
          <Submit>{actWords.duplicate}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
  if (made) await shownOnce(made);
  return made;
}

/** Saves the name and the definition as a file of this computer. */
export function exportJson({ name, definition }: Workflow) {
  const text = `${JSON.stringify({ name, definition }, null, 2)}\n`;
  downloadBytes(text, "application/json", `${fileName(name)}.json`);
}

/** A name that every system takes for a file. */
const fileName = (name: string) =>
  name
    .normalize("NFC")
    .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 60)
    .toLowerCase() || "workflow";

/** Resolves with whether it is deleted. */
export async function remove(workflow: Workflow): Promise<boolean> {
  const done = await ask({
    title: actWords.removeTitle,
    body: (
      <>
        <p>
          <Name>{workflow.name}</Name>
        </p>
        <p>{actWords.removeBody(workflow.runCount)}</p>
      </>
    ),
    verb: actWords.remove,
    ...(workflow.runCount > 20 ? { typed: workflow.name } : {}),
    action: () => api.delete(`/api/workflows/${workflow.id}`),
  });
  if (done) toast(actWords.removed);
  return done;
}

export async function setActive(workflow: Workflow, isActive: boolean): Promise<Workflow> {
  const answer = await api.patch<{ workflow: Workflow }>(`/api/workflows/${workflow.id}`, { isActive });
  toast(isActive ? actWords.resumed : actWords.paused, "good");
  return answer.workflow;
}
