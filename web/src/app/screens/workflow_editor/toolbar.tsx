/** Toolbar of the editor: view, undo and redo, number of problems, dry run, save. */
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../parts/button";
import { Segmented } from "../../parts/tabs";
import { announce } from "../../shell/toasts";
import type { History } from "./history";
import { type Side, useEditor } from "./state";
import { words } from "./words";

const texts = words.toolbar;

export type View = "outline" | "canvas";

interface ToolbarProps {
  view: View;
  onView: (view: View) => void;
  history: History;
  onTravel: (type: "undo" | "redo") => void;
  isDirty: boolean;
  version: number;
  side: Side;
  /** A dry run is drawn on the steps. */
  isDry: boolean;
  onSide: (side: Side) => void;
  save: () => Promise<void>;
}

export function Toolbar(props: ToolbarProps) {
  const { view, onView, history, onTravel, isDirty, version, side, isDry, onSide, save } = props;
  const { selected } = useEditor();
  return (
    <div class="workflow-toolbar">
      <div class="workflow-views">
        <Segmented
          label={texts.view}
          value={view}
          choices={[
            { value: "outline", label: texts.outline },
            { value: "canvas", label: texts.canvas },
          ]}
          onChange={onView}
        />
      </div>
      <div class="actions">
        <Button
          look="quiet"
          icon="undo"
          label={texts.undo}
          disabled={history.past.length === 0}
          onClick={() => onTravel("undo")}
        />
        <Button
          look="quiet"
          icon="redo"
          label={texts.redo}
          disabled={history.future.length === 0}
          onClick={() => onTravel("redo")}
        />
        <Button
          look="quiet"
          icon="settings"
          label={texts.settings}
          aria-pressed={side === "fields" && selected === null}
          onClick={() => onSide("fields")}
        >
          <span class="wide-only">{texts.settings}</span>
        </Button>
      </div>
      <ProblemCount />
      <div class="actions workflow-save">
        <span class="soft small workflow-state">{isDirty ? texts.unsaved : texts.saved(version)}</span>
        <Button icon="eye" aria-pressed={isDry} onClick={() => onSide("dryRun")}>
          {texts.dryRun}
        </Button>
        <Button look="solid" disabled={!isDirty} action={save}>
          {texts.save}
        </Button>
      </div>
    </div>
  );
}

/** The number of problems; leads to the first of them. */
function ProblemCount() {
  const { problems, select } = useEditor();
  const errors = problems.filter(({ severity }) => severity === "error");
  const [first] = errors.length > 0 ? errors : problems;
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) announce(errors.length > 0 ? texts.errors(errors.length) : texts.noErrors);
    isFirst.current = false;
  }, [errors.length]);
  const count = errors.length > 0 ? texts.errors(errors.length) : texts.warnings(problems.length);
  return (
    <div class="workflow-problems">
      {first ? (
        <Button
          small
          look="quiet"
          icon={errors.length > 0 ? "error" : "warn"}
          class={errors.length > 0 ? "is-bad" : "is-warn"}
          onClick={() => select(first.nodeId ?? null, { open: true, focus: true })}
        >
          {count}
        </Button>
      ) : (
        <span class="soft small">{texts.noProblems}</span>
      )}
    </div>
  );
}
