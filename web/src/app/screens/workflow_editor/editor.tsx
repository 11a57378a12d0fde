/**
 * The editor of a workflow, loaded when it is opened: `import("../workflow_editor/editor")`. Outline and canvas are two views
 * of one model with one undo. It brings its own toolbar, and asks before changes are lost.
 */
import type { ComponentType } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { ApiError, asApiError, isAborted } from "../../api/error";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Callout, Skeleton } from "../../parts/states";
import { guardLeaving, query } from "../../router";
import { kept } from "../../shell/kept";
import { useKeyHelp } from "../../shell/shortcuts";
import { announce, toast } from "../../shell/toasts";
import {
  type Flow,
  isBranch,
  type Place,
  placesOf,
  readFlow,
  type Step,
  stepOf,
  targetAt,
  titleOf,
} from "../shared/flow";
import type { Workflow } from "../shared/workflow_types";
import { kindInWords } from "../shared/workflow_types";
import { type Linted, problemsOf, shownProblems } from "./check";
import { DryRunPanel, firstPremise, useDryRun } from "./dry_run";
import { freeId, MOST_STEPS, targetsFor } from "./edit";
import { WorkflowGraph } from "./graph";
import { begin, reduce } from "./history";
import { groupOfKind, KIND_GROUPS, kindIcon } from "./kinds";
import { marksOfDryRun } from "./marks";
import { oneAtATime } from "./one_at_a_time";
import { outlineOf } from "./order";
import { OutlineView } from "./outline_view";
import { Panel } from "./panel";
import { type Option, pick } from "./pick";
import { type Editor, EditorContext, type Side } from "./state";
import { Toolbar, type View } from "./toolbar";
import type { Catalogue, Problem, WorkflowEditorProps } from "./types";
import { words } from "./words";
import { isSameFlow, writeFlow } from "./write";

const HELP = [
  { keys: ["↑", "↓"], does: "Other steps, in the outline" },
  { keys: ["Enter"], does: "The fields of the step; Esc leads back" },
  { keys: ["A"], does: "Add a step after it" },
  { keys: ["Alt ↑", "Alt ↓"], does: "Move the step" },
  { keys: ["Delete"], does: "Remove the step" },
  { keys: ["Ctrl Z"], does: "Undo; with Shift: redo" },
  { keys: ["Ctrl S"], does: "Save" },
];

export default function WorkflowEditor(props: WorkflowEditorProps) {
  if (can("write")) return <Editing {...props} />;
  return (
    <div class="stack">
      <Callout tone="info">
        <p>{words.readOnly}</p>
      </Callout>
      <WorkflowGraph definition={props.workflow.definition} label={words.canvas.label} />
    </div>
  );
}

/** The view of the last time; on a phone the outline. */
const firstView = (): View =>
  kept("workflows.view") === "canvas" && !matchMedia("(max-width: 40rem)").matches ? "canvas" : "outline";

const flowOf = ({ name, definition }: Workflow) => readFlow(name, definition);

function Editing({ workflow, onSaved, unsaved }: WorkflowEditorProps) {
  const [history, dispatch] = useReducer(reduce, workflow, (first) => begin(flowOf(first)));
  const [saved, setSaved] = useState(() => ({ flow: history.present, version: workflow.version }));
  const flow = history.present;
  const isDirty = useMemo(() => !isSameFlow(flow, saved.flow), [flow, saved]);
  const catalogue = useResource((signal) => api.get<Catalogue>("/api/catalogue", { signal }), []).data;
  const outline = useMemo(() => outlineOf(flow), [flow]);

  // A link to a step opens with its fields: that of the step where a run failed.
  const [linked] = useState(() => stepOf(flow, query.peek().get("step"))?.id ?? null);
  const [selected, setSelected] = useState(linked);
  /** The panel; a dry run stays on the steps while their fields are shown, until it is closed. */
  const [side, setSide] = useState<Side>("fields");
  const [isDry, setDry] = useState(false);
  const [isOpen, setOpen] = useState(linked !== null);
  const [focus, setFocus] = useState(0);
  const [view, setView] = useState<View>(firstView);
  const [premise, setPremise] = useState(firstPremise);
  const panel = useRef<HTMLElement>(null);
  // Acts are called after dialogs, when this drawing is an old one.
  const latest = useRef({ flow, saved });
  latest.current = { flow, saved };

  const [linted, setLinted] = useLint(flow);
  const problems = useMemo(
    () => shownProblems(problemsOf(flow, catalogue), linted, flow),
    [flow, catalogue, linted],
  );
  const hasErrors = problems.some(({ severity }) => severity === "error");
  const foreseen = useDryRun(flow, premise, isDry && !hasErrors);
  const marks = useMemo(
    () => (isDry && foreseen.answer ? marksOfDryRun(foreseen.answer) : undefined),
    [isDry, foreseen.answer],
  );

  useEffect(() => guardLeaving(() => (isDirty ? words.leave : undefined)), [isDirty]);
  useKeyHelp(HELP);
  // Another version from outside: taken at once when nothing would be lost, before it is drawn as a question.
  const isNewer = workflow.version > saved.version;
  useLayoutEffect(() => {
    if (!isNewer || isDirty || history.future.length > 0) return;
    const next = flowOf(workflow);
    setSaved({ flow: next, version: workflow.version });
    dispatch({ type: "reset", flow: next });
  }, [workflow.version]);

  const select: Editor["select"] = useCallback((id, options = {}) => {
    setSelected(id);
    setSide("fields");
    if (options.open) setOpen(true);
    if (options.focus) setFocus((count) => count + 1);
  }, []);
  const say = (text: (title: string, number: number) => string, id: string, of: Flow) => {
    const step = stepOf(of, id);
    if (step) announce(text(titleOf(step), outlineOf(of).numbers.get(id) ?? 0));
  };

  const addAt: Editor["addAt"] = async (place) => {
    const kind = await pickKind(latest.current.flow, catalogue);
    if (!kind) return;
    const before = latest.current.flow;
    const id = freeId(before, kind);
    const action = { type: "add", kind, id, place } as const;
    dispatch(action);
    select(id, { focus: true });
    say(words.said.added, id, reduce(begin(before), action).present);
  };
  const remove: Editor["remove"] = async (step) => {
    if (step.kind === "upload") return;
    const keep = isBranch(step) ? await askWhichStays(step) : undefined;
    if (keep === null) return;
    const [before] = latest.current.flow.edges.filter((edge) => edge.target === step.id);
    const next = before?.source ?? targetAt(latest.current.flow, { source: step.id, result: "default" });
    dispatch({ type: "remove", id: step.id, ...(keep ? { keep } : {}) });
    select(next, { focus: true });
    setOpen(false);
    announce(words.said.removed(titleOf(step)));
  };
  const shift: Editor["shift"] = (step, direction) => {
    const before = latest.current.flow;
    const next = reduce(begin(before), { type: direction, id: step.id }).present;
    dispatch({ type: direction, id: step.id });
    select(step.id, { focus: true });
    say(next === before ? words.said.still : words.said.moved, step.id, next);
  };
  const continueAt: Editor["continueAt"] = async (place) => {
    const { flow } = latest.current;
    const target = await pick(words.pick.continueAt(titleOf(stepOf(flow, place.source) as Step)), [
      { value: null, label: words.pick.end, icon: "stop" as const },
      ...stepOptions(flow, targetsFor(flow, place)),
    ]);
    if (target !== undefined) dispatch({ type: "connect", place, target });
  };
  const moveTo: Editor["moveTo"] = async (step) => {
    const place = await pick(words.pick.moveTo(titleOf(step)), placeOptions(latest.current.flow, step));
    if (!place) return;
    dispatch({ type: "move", id: step.id, place });
    select(step.id, { focus: true });
  };
  // Once the fields of the step are drawn, and before the next key is pressed.
  const enterPanel = () =>
    queueMicrotask(() =>
      panel.current?.querySelector<HTMLElement>(":is(input, select, textarea):not([type=checkbox])")?.focus(),
    );

  const keepAsSaved = (flow: Flow, next: Workflow) => {
    // At once: another save may begin before this one is drawn.
    latest.current = { ...latest.current, saved: { flow, version: next.version } };
    setSaved(latest.current.saved);
    onSaved(next);
  };
  const send = async (version: number): Promise<void> => {
    const { flow } = latest.current;
    dispatch({ type: "endGroup" });
    try {
      const body = { id: workflow.id, name: flow.name, version, definition: writeFlow(flow) };
      const { workflow: next } = await api.post<{ workflow: Workflow }>("/api/workflows", body);
      keepAsSaved(flow, next);
      toast(words.toolbar.wasSaved(next.version));
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 409 && error.body?.version !== undefined) return resolve();
      if (Array.isArray(error.body?.detail)) setLinted({ flow, problems: error.body.detail as Problem[] });
      throw error;
    }
  };
  const resolve = async () => {
    const { workflow: theirs } = await api.get<{ workflow: Workflow }>(`/api/workflows/${workflow.id}`);
    const { resolveConflict } = await import("./conflict");
    const choice = await resolveConflict(theirs, writeFlow(latest.current.flow));
    if (choice === "keep") await send(theirs.version);
    else if (choice === "take") {
      const flow = flowOf(theirs);
      dispatch({ type: "replace", flow });
      keepAsSaved(flow, theirs);
      toast(words.conflict.taken(theirs.version));
    }
  };
  const latestSend = useRef(send);
  latestSend.current = send;
  const [save] = useState(() => oneAtATime(() => latestSend.current(latest.current.saved.version)));

  useEffect(() => {
    const saveAll = async () => {
      await save();
      return isSameFlow(latest.current.flow, latest.current.saved.flow);
    };
    unsaved.current = isDirty ? saveAll : undefined;
    return () => {
      unsaved.current = undefined;
    };
  }, [isDirty]);

  const travel = (type: "undo" | "redo") => {
    dispatch({ type });
    announce(type === "undo" ? words.said.undone : words.said.redone);
    // The step that had the focus may be gone; the next key is meant for the editor all the same.
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) setFocus((count) => count + 1);
    });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey;
    const key = event.key.toLowerCase();
    if (isCommand && (key === "z" || key === "y")) {
      event.preventDefault();
      travel(key === "y" || event.shiftKey ? "redo" : "undo");
    } else if (isCommand && key === "s") {
      event.preventDefault();
      if (isDirty && !event.repeat)
        save().catch((thrown) => isAborted(thrown) || toast(asApiError(thrown).message, "bad"));
    }
  };
  const leavePanel = () => {
    setOpen(false);
    setFocus((count) => count + 1);
  };
  const changeView = (next: View) => {
    kept("workflows.view", next);
    setView(next);
    setOpen(false);
  };

  const editor: Editor = {
    flow,
    outline,
    catalogue,
    problems,
    marks,
    selected: stepOf(flow, selected) ? selected : null,
    select,
    dispatch,
    addAt,
    remove,
    continueAt,
    moveTo,
    shift,
    enterPanel,
  };
  return (
    <EditorContext.Provider value={editor}>
      <div
        class="workflow-editor"
        role="group"
        aria-label={words.label}
        onKeyDown={onKeyDown}
        onFocusOut={() => dispatch({ type: "endGroup" })}
      >
        <Toolbar
          view={view}
          onView={changeView}
          history={history}
          onTravel={travel}
          isDirty={isDirty}
          version={saved.version}
          side={side}
          isDry={isDry}
          onSide={(next) => {
            if (next === "fields") setSelected(null);
            else setDry(true);
            setSide(next);
            setOpen(true);
          }}
          save={save}
        />
        {isNewer && (
          <Callout
            tone="warn"
            actions={
              <Button small action={resolve}>
                {words.conflict.show}
              </Button>
            }
          >
            <p>{words.conflict.newer(workflow.version)}</p>
          </Callout>
        )}
        <div class="workflow-body" data-open={isOpen || undefined}>
          <div class={`workflow-main ${view === "canvas" ? "workflow-main-canvas" : ""}`}>
            {view === "canvas" ? <CanvasView focus={focus} /> : <OutlineView focus={focus} />}
          </div>
          <aside
            class="workflow-panel"
            ref={panel}
            aria-label={side === "dryRun" ? words.dryRun.title : words.panel.settings}
            onKeyDown={(event) => {
              if (event.key !== "Escape" || event.defaultPrevented) return;
              event.stopPropagation();
              leavePanel();
            }}
          >
            <div class="workflow-back">
              <Button icon="left" look="quiet" onClick={leavePanel}>
                {words.panel.back}
              </Button>
            </div>
            {side === "dryRun" ? (
              <DryRunPanel
                premise={premise}
                onPremise={setPremise}
                foreseen={foreseen}
                onClose={() => {
                  setDry(false);
                  setSide("fields");
                  leavePanel();
                }}
              />
            ) : (
              <Panel />
            )}
          </aside>
        </div>
      </div>
    </EditorContext.Provider>
  );
}

/** The canvas with its library is loaded when it is first shown. */
function CanvasView({ focus }: { focus: number }) {
  const [Canvas, setCanvas] = useState<ComponentType<{ focus: number }>>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    import("./canvas").then(
      ({ Canvas }) => setCanvas(() => Canvas),
      () => setFailed(true),
    );
  }, []);
  if (failed)
    return (
      <Callout tone="bad">
        <p>{words.canvas.failed}</p>
      </Callout>
    );
  if (!Canvas)
    return (
      <div aria-busy="true">
        <Skeleton rows={5} height={64} />
        <p class="visually-hidden">{words.canvas.loading}</p>
      </div>
    );
  return <Canvas focus={focus} />;
}

const LINT_AFTER_MS = 350;

/** Asks for the service's findings a moment after the last change. Without an answer the model's own remain. */
function useLint(flow: Flow): [Linted | undefined, (linted: Linted) => void] {
  const [linted, setLinted] = useState<Linted>();
  useEffect(() => {
    if (linted?.flow === flow) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const body = { name: flow.name, definition: writeFlow(flow) };
      api.post<{ problems: Problem[] }>("/api/workflows/lint", body, { signal: abort.signal }).then(
        ({ problems }) => !abort.signal.aborted && setLinted({ flow, problems }),
        (thrown) => {
          if (!(thrown instanceof ApiError) && !isAborted(thrown)) throw thrown;
        },
      );
    }, LINT_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [flow]);
  return [linted, setLinted];
}

async function pickKind(flow: Flow, catalogue: Catalogue | undefined): Promise<string | undefined> {
  if (flow.steps.length >= MOST_STEPS) {
    toast(words.pick.full, "bad");
    return undefined;
  }
  const kinds = (catalogue?.kinds ?? []).filter(({ kind }) => kind !== "upload");
  const options: Option<string>[] = KIND_GROUPS.flatMap((group) =>
    kinds
      .filter((kind) => groupOfKind(kind) === group)
      .map(({ kind, summary }) => ({
        value: kind,
        label: kindInWords(kind),
        hint: summary,
        icon: kindIcon(kind),
        group: words.pick.groups[group],
      })),
  );
  return pick(words.pick.kind, options);
}

const byNumber = (flow: Flow, steps: Step[]) => {
  const { numbers } = outlineOf(flow);
  return steps
    .map((step) => ({ step, number: numbers.get(step.id) ?? 0 }))
    .sort((a, b) => a.number - b.number);
};

const stepOptions = (flow: Flow, steps: Step[]): Option<string | null>[] =>
  byNumber(flow, steps).map(({ step, number }) => ({
    value: step.id,
    label: `${number} ${titleOf(step)}`,
    icon: kindIcon(step.kind),
  }));

function placeOptions(flow: Flow, moved: Step): Option<Place>[] {
  const labels = { default: words.pick.after, true: words.pick.onTrue, false: words.pick.onFalse };
  const others = flow.steps.filter(({ id }) => id !== moved.id);
  return byNumber(flow, others).flatMap(({ step, number }) =>
    placesOf(step).map((place) => ({
      value: place,
      label: labels[place.result](number, titleOf(step)),
      icon: kindIcon(step.kind),
    })),
  );
}

/** Asks for the way of a removed branch that stays; null: it is not removed. */
async function askWhichStays(step: Step): Promise<"true" | "false" | null> {
  let keep: "true" | "false" | null = null;
  await openDialog((close) => {
    const end = (which: "true" | "false") => () => {
      keep = which;
      close();
    };
    return (
      <Dialog title={words.removeBranch.title(titleOf(step))} onClose={close}>
        <p>{words.removeBranch.body}</p>
        <div class="dialog-actions">
          <Button onClick={close}>{words.removeBranch.cancel}</Button>
          <Button onClick={end("true")}>{words.removeBranch.true}</Button>
          <Button onClick={end("false")}>{words.removeBranch.false}</Button>
        </div>
      </Dialog>
    );
  });
  return keep;
}
