/** Dialog for a save that crosses another user's: the difference, keep mine or take theirs. */
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Ago, Name } from "../../parts/values";
import { Differences } from "../shared/definition_diff_view";
import type { Definition, Workflow } from "../shared/workflow_types";
import { type Saving, savingOf } from "./saved_by";
import { words } from "./words";

export type Choice = "keep" | "take" | "editOn";

export async function resolveConflict(theirs: Workflow, mine: object): Promise<Choice> {
  const saving = await savingOf(theirs);
  let choice: Choice = "editOn";
  await openDialog((close) => {
    const end = (chosen: Choice) => () => {
      choice = chosen;
      close();
    };
    return (
      <Dialog title={words.conflict.title} onClose={close} wide>
        <p>
          <SavedBy version={theirs.version} saving={saving} />
        </p>
        <p>{words.conflict.body}</p>
        <Differences before={theirs.definition} after={mine as Definition} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.conflict.cancel}</Button>
          <Button onClick={end("take")}>{words.conflict.take}</Button>
          <Button look="solid" onClick={end("keep")}>
            {words.conflict.keep}
          </Button>
        </div>
      </Dialog>
    );
  });
  return choice;
}

const SavedBy = ({ version, saving: { at, by } }: { version: number; saving: Saving }) => (
  <>
    {words.conflict.saved(version)} <Ago at={at} />
    {by && (
      <>
        {" "}
        {by.kind === "key" ? words.conflict.byKey : words.conflict.by} <Name>{by.name}</Name>
      </>
    )}
    .
  </>
);
