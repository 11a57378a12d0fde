/** Dialog for a save that crosses another user's: the difference, keep mine or take theirs. */
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Differences } from "../shared/definition_diff_view";
import type { Definition, Workflow } from "../shared/workflow_types";
import { words } from "./words";

export type Choice = "keep" | "take" | "editOn";

export async function resolveConflict(theirs: Workflow, mine: object): Promise<Choice> {
  let choice: Choice = "editOn";
  await openDialog((close) => {
    const end = (chosen: Choice) => () => {
      choice = chosen;
      close();
    };
    return (
      <Dialog title={words.conflict.title} onClose={close} wide>
        <p>{words.conflict.body(theirs.version)}</p>
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
