/** The editor, in its place below the tabs. */
import { lazily } from "../../parts/lazily";
import type { PartProps } from ".";

/** Of the editor before it is loaded. */
const HEIGHT = 480;
const Editor = lazily(() => import("../workflow_editor/editor").then((editor) => editor.default), HEIGHT);

export function Edit({ workflow, of, unsaved }: PartProps) {
  return <Editor workflow={workflow} onSaved={of.set} unsaved={unsaved} />;
}
