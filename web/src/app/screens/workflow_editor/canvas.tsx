/**
 * The workflow as a graph that is drawn by hand: the second view of the model, loaded when it is shown. Everything that is done
 * here is an action of the same reducer as in the outline; the library only draws and reports.
 */
import {
  BaseEdge,
  type Connection,
  type Edge as DrawnEdge,
  type Node as DrawnNode,
  EdgeLabelRenderer,
  type EdgeProps,
  Handle,
  type NodeChange,
  type NodeProps,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from "@xyflow/react";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { toast } from "../../shell/toasts";
import {
  type Edge,
  type Flow,
  isBranch,
  type Place,
  type Point,
  placesOf,
  type Result,
  type Step,
  stepOf,
  targetAt,
  titleOf,
  uploadOf,
} from "../shared/flow";
import { whyNotConnected } from "./edit";
import { exitOf } from "./graph";
import { graphWords } from "./graph_words";
import { summaryOf } from "./kinds";
import { BOX, edgeKey, layoutOf, lineBetween, middleOf } from "./layout";
import { edgeState, type Mark } from "./marks";
import { type Editor, signOf, useEditor } from "./state";
import { StepBox } from "./step_box";
import { words } from "./words";

const texts = words.canvas;

interface StepData extends Record<string, unknown> {
  step: Step;
  summary: string;
  mark: Mark | undefined;
  sign: "error" | "warning" | undefined;
  /** Ways out that lead nowhere. */
  open: string;
  onAdd: (place: Place) => void;
}
type StepNode = DrawnNode<StepData, "step">;

interface WayData extends Record<string, unknown> {
  result: Result;
  /** Of the button that adds a step in between. */
  label: string;
  bend: number | undefined;
  state: ReturnType<typeof edgeState>;
  onAdd: (place: Place) => void;
}
type WayEdge = DrawnEdge<WayData, "way">;

const nodeTypes = { step: StepView };
const edgeTypes = { way: WayView };
const FIT = { padding: 0.12, maxZoom: 1 };
/** What is first shown of a large workflow is legible, though not all of it. */
const FIRST_FIT = { ...FIT, minZoom: 0.6 };
const ARIA = {
  "node.a11yDescription.default": texts.help,
  "node.a11yDescription.keyboardDisabled": texts.help,
};

/** `focus` grows when the chosen step is to have the focus. */
export function Canvas({ focus }: { focus: number }) {
  const editor = useEditor();
  const { flow, selected, select, dispatch } = editor;
  const place = useRef<HTMLElement>(null);
  const instance = useRef<ReactFlowInstance<StepNode, WayEdge>>(null);
  const [dragged, setDragged] = useState<ReadonlyMap<string, Point>>(new Map());
  const [edge, setEdge] = useState<string | null>(null);
  const latest = useRef(editor);
  latest.current = editor;
  const layout = useMemo(() => layoutOf(flow), [flow]);
  const nodes = useNodes(editor, layout.places, dragged, latest);
  const edges = useEdges(editor, layout.bends, edge, latest);

  const revealStep = (id: string | null | undefined) => {
    const at = layout.places.get(id ?? "");
    if (at && place.current && instance.current) reveal(instance.current, place.current, at);
  };
  useEffect(() => {
    if (focus === 0) return;
    revealStep(selected);
    focusNode(place.current, selected);
  }, [focus]);

  /** Each drag is a step of undo; moves by the arrow keys are one until something else is done. */
  const placeAt = (id: string, at: Point) => {
    const isDrag = dragged.has(id);
    if (isDrag) dispatch({ type: "endGroup" });
    dispatch({ type: "place", id, at });
    if (isDrag) dispatch({ type: "endGroup" });
  };
  const onNodesChange = (changes: NodeChange<StepNode>[]) => {
    let next = dragged;
    for (const change of changes) {
      if (change.type === "select" && change.selected) select(change.id);
      if (change.type !== "position" || !change.position) continue;
      const at = { x: Math.round(change.position.x), y: Math.round(change.position.y) };
      if (change.dragging) next = new Map(next).set(change.id, at);
      else placeAt(change.id, at);
    }
    if (changes.some((change) => change.type === "position" && !change.dragging)) next = new Map();
    if (next !== dragged) setDragged(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (target.closest("button, input")) return;
    const step = stepOf(flow, target.closest<HTMLElement>(".react-flow__node")?.dataset.id);
    const acts: Record<string, (() => void) | undefined> = {
      Delete: () => (step ? editor.remove(step) : removeEdge()),
      Backspace: () => (step ? editor.remove(step) : removeEdge()),
      a: step && (() => editor.addAt(placesOf(step)[0] as Place)),
      Enter:
        step &&
        (() => {
          select(step.id, { open: true });
          editor.enterPanel();
        }),
    };
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  const removeEdge = () => {
    const way = flow.edges.find((one) => edgeKey(one) === edge);
    if (way) dispatch({ type: "connect", place: way, target: null });
    setEdge(null);
  };
  return (
    <section class="canvas" ref={place} aria-label={texts.label} onKeyDownCapture={onKeyDown}>
      <ReactFlow<StepNode, WayEdge>
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        ariaLabelConfig={ARIA}
        proOptions={{ hideAttribution: true }}
        fitView
        fitViewOptions={FIRST_FIT}
        minZoom={0.05}
        maxZoom={1.5}
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        edgesFocusable={false}
        zoomOnDoubleClick={false}
        connectionRadius={28}
        onInit={(made) => {
          instance.current = made;
          revealStep(latest.current.selected ?? uploadOf(flow)?.id);
        }}
        onNodesChange={onNodesChange}
        onNodeClick={(_, { id }) => {
          setEdge(null);
          select(id, { open: true });
        }}
        onEdgeClick={(_, { id }) => setEdge(id)}
        onPaneClick={() => {
          setEdge(null);
          select(null);
        }}
        isValidConnection={(way) => isFree(flow, way)}
        onConnect={(way) => {
          const place = placeOf(way);
          dispatch({ type: "connect", place, target: way.target });
        }}
        onConnectEnd={(event, { isValid, fromHandle }) => {
          if (isValid || fromHandle?.type !== "source") return;
          const from = placeOf({ source: fromHandle.nodeId, sourceHandle: fromHandle.id ?? null });
          const below = elementAt(event);
          const target = below?.closest<HTMLElement>(".react-flow__node")?.dataset.id;
          if (target === undefined) below?.closest(".react-flow__pane") && editor.addAt(from);
          else if (target === from.source) return;
          else if (whyNotConnected(flow, from, target)) toast(texts.cycle, "bad");
          else dispatch({ type: "connect", place: from, target });
        }}
      />
      <Tools
        onFit={() => instance.current?.fitView(FIT)}
        onZoom={(isIn) => (isIn ? instance.current?.zoomIn() : instance.current?.zoomOut())}
      />
    </section>
  );
}

const placeOf = ({ source, sourceHandle }: { source: string; sourceHandle?: string | null }): Place => ({
  source,
  result: sourceHandle === "true" || sourceHandle === "false" ? sourceHandle : "default",
});

const isFree = (flow: Flow, way: Connection | WayEdge) =>
  way.source !== way.target && !whyNotConnected(flow, placeOf(way), way.target);

/** What is below the pointer where it was let go; a touch has the element on which it began as its target. */
function elementAt(event: MouseEvent | TouchEvent): Element | null {
  const point = "changedTouches" in event ? event.changedTouches[0] : event;
  return point ? document.elementFromPoint(point.clientX, point.clientY) : null;
}

/** Between a step and the edge of the canvas, in pixels of the screen: below it there is the button that adds another one. */
const AROUND = { start: 16, end: 56 };

/** Moves the view by as little as shows a step as a whole. */
function reveal(instance: ReactFlowInstance<StepNode, WayEdge>, place: HTMLElement, at: Point) {
  const { x, y, zoom } = instance.getViewport();
  const shift = (start: number, length: number, room: number) => {
    const most = Math.max(AROUND.start, room - AROUND.end - length);
    return Math.min(Math.max(start, AROUND.start), most) - start;
  };
  const right = shift(at.x * zoom + x, BOX.width * zoom, place.clientWidth);
  const down = shift(at.y * zoom + y, BOX.height * zoom, place.clientHeight);
  if (right !== 0 || down !== 0) instance.setViewport({ x: x + right, y: y + down, zoom });
}

/** Frames to wait for a step that was just added: the library draws it a little later. */
const FRAMES = 12;

function focusNode(place: HTMLElement | null, id: string | null, frames = FRAMES) {
  const all = [...(place?.querySelectorAll<HTMLElement>(".react-flow__node") ?? [])];
  const node = id === null ? all[0] : all.find((one) => one.dataset.id === id);
  if (node) node.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusNode(place, id, frames - 1));
}

type Latest = { current: Editor };

/** The drawn nodes; those of which nothing changed stay the same objects, so that only changed ones are drawn again. */
function useNodes(
  { flow, selected, marks, problems, outline }: Editor,
  places: Map<string, Point>,
  dragged: ReadonlyMap<string, Point>,
  latest: Latest,
): StepNode[] {
  const before = useRef(new Map<string, StepNode>());
  return useMemo(() => {
    const next = new Map<string, StepNode>();
    // In the order of the outline, which is then that of the Tab key.
    for (const id of outline.numbers.keys()) {
      const step = stepOf(flow, id);
      if (!step) continue;
      const at = dragged.get(step.id) ?? places.get(step.id) ?? { x: 0, y: 0 };
      const data = {
        step,
        summary: summaryOf(step, flow),
        mark: marks?.get(step.id),
        sign: signOf(problems, step.id),
        open: placesOf(step)
          .filter((way) => targetAt(flow, way) === null)
          .map(({ result }) => result)
          .join(),
      };
      const label = [
        `${outline.numbers.get(step.id) ?? ""} ${titleOf(step)}`,
        data.summary,
        data.mark && graphWords.marks[data.mark.state],
        data.sign && words.outline.problem[data.sign],
      ];
      const node: StepNode = {
        id: step.id,
        type: "step",
        position: at,
        selected: step.id === selected,
        data: { ...data, onAdd: (way) => latest.current.addAt(way) },
        ariaLabel: label.filter(Boolean).join(", "),
        ...sizes(step),
      };
      const old = before.current.get(step.id);
      next.set(step.id, old && isSameNode(old, node) ? old : node);
    }
    before.current = next;
    return [...next.values()];
  }, [flow, places, dragged, selected, marks, problems, outline]);
}

function isSameNode(a: StepNode, b: StepNode): boolean {
  const isSameData = (["step", "summary", "mark", "sign", "open"] as const).every(
    (key) => a.data[key] === b.data[key],
  );
  return (
    isSameData &&
    a.selected === b.selected &&
    a.ariaLabel === b.ariaLabel &&
    a.position.x === b.position.x &&
    a.position.y === b.position.y
  );
}

/** Known beforehand, so that nothing has to be measured before lines are drawn. */
function sizes(step: Step) {
  const handle = { width: 1, height: 1 };
  return {
    ...BOX,
    measured: BOX,
    handles: [
      ...(step.kind === "upload"
        ? []
        : [{ ...handle, id: null, type: "target" as const, position: Position.Top, x: BOX.width / 2, y: 0 }]),
      ...placesOf(step).map(({ result }) => ({
        ...handle,
        id: result,
        type: "source" as const,
        position: Position.Bottom,
        x: BOX.width * exitOf({ result }),
        y: BOX.height,
      })),
    ],
  };
}

/** The drawn edges, in the same way. */
function useEdges(
  editor: Editor,
  bends: Map<string, number>,
  selected: string | null,
  latest: Latest,
): WayEdge[] {
  const before = useRef(new Map<string, WayEdge>());
  return useMemo(() => {
    const next = editor.flow.edges.map((way) => {
      const edge = drawnEdge(way, editor, bends, selected, latest);
      const old = before.current.get(edge.id);
      return old && isSameEdge(old, edge) ? old : edge;
    });
    before.current = new Map(next.map((edge) => [edge.id, edge]));
    return next;
  }, [editor.flow, bends, selected, editor.marks]);
}

const isSameEdge = (a: WayEdge, b: WayEdge) =>
  a.target === b.target &&
  a.selected === b.selected &&
  (["label", "bend", "state"] as const).every((key) => a.data?.[key] === b.data?.[key]);

function drawnEdge(
  edge: Edge,
  { flow, marks }: Editor,
  bends: Map<string, number>,
  selected: string | null,
  latest: Latest,
): WayEdge {
  const id = edgeKey(edge);
  const source = stepOf(flow, edge.source);
  const isMoved = source?.at || stepOf(flow, edge.target)?.at;
  return {
    id,
    type: "way",
    source: edge.source,
    target: edge.target,
    sourceHandle: edge.result,
    selected: id === selected,
    data: {
      result: edge.result,
      label: source ? texts.insert[edge.result](titleOf(source)) : "",
      bend: isMoved ? undefined : bends.get(id),
      state: edgeState(edge, marks),
      onAdd: (place) => latest.current.addAt(place),
    },
  };
}

function StepView({ data }: NodeProps<StepNode>) {
  const { step, summary, mark, sign, open, onAdd } = data;
  const ways = placesOf(step);
  return (
    <>
      {step.kind !== "upload" && <Handle type="target" position={Position.Top} />}
      <StepBox step={step} summary={summary} mark={mark} problem={sign} />
      {ways.map((way) => (
        <Handle
          key={way.result}
          id={way.result}
          type="source"
          position={Position.Bottom}
          style={{ left: `${100 * exitOf(way)}%` }}
        />
      ))}
      {ways
        .filter(({ result }) => open.split(",").includes(result))
        .map((way) => (
          <span key={way.result} class="flow-open nodrag nopan" style={{ left: `${100 * exitOf(way)}%` }}>
            {isBranch(step) && <small>{graphWords.result[way.result]}</small>}
            <AddButton label={texts.insert[way.result](titleOf(step))} onClick={() => onAdd(way)} />
          </span>
        ))}
    </>
  );
}

/** Beside the keyboard's own way (A, or the fields of the step), so it is no stop of the Tab key. */
function AddButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button
      type="button"
      class="flow-add nodrag nopan"
      tabIndex={-1}
      aria-label={label}
      title={label}
      onClick={(event) => {
        event.stopPropagation();
        onClick();
      }}
    >
      <Icon name="plus" />
    </button>
  );
}

function WayView({ source, sourceX, sourceY, targetX, targetY, data, selected }: EdgeProps<WayEdge>) {
  if (!data) return null;
  const { result, label, bend, state, onAdd } = data;
  const from = { x: sourceX, y: sourceY };
  const to = { x: targetX, y: targetY };
  const path = lineBetween(from, to, bend);
  const middle = middleOf(from, to, bend, result !== "default");
  return (
    <>
      <BaseEdge
        path={path}
        interactionWidth={24}
        // A class as React names it
        className={`flow-line ${state ? `flow-line-${state}` : ""} ${selected ? "flow-line-selected" : ""}`}
      />
      {result !== "default" && (
        <text
          class="flow-line-label"
          x={sourceX + (result === "true" ? 8 : -8)}
          y={sourceY + 17}
          text-anchor={result === "true" ? "start" : "end"}
        >
          {graphWords.result[result]}
        </text>
      )}
      <EdgeLabelRenderer>
        <div
          class="flow-add-place nodrag nopan"
          style={{ transform: `translate(-50%, -50%) translate(${middle.x}px, ${middle.y}px)` }}
        >
          <AddButton label={label} onClick={() => onAdd({ source, result })} />
        </div>
      </EdgeLabelRenderer>
    </>
  );
}

function Tools({ onFit, onZoom }: { onFit: () => void; onZoom: (isIn: boolean) => void }) {
  const { flow, dispatch } = useEditor();
  return (
    <div class="canvas-tools">
      <Button small look="quiet" icon="plus" label={texts.zoomIn} onClick={() => onZoom(true)} />
      <Button small look="quiet" icon="skip" label={texts.zoomOut} onClick={() => onZoom(false)} />
      <Button small look="quiet" icon="fit" label={words.toolbar.fit} onClick={onFit} />
      {flow.steps.some(({ at }) => at) && (
        <Button small look="quiet" icon="grid" onClick={() => dispatch({ type: "tidy" })}>
          {words.toolbar.tidy}
        </Button>
      )}
    </div>
  );
}
