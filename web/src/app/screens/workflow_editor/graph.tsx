/**
 * The graph of a workflow, drawn and not edited: of a version, or of a run with the path it took and the other one.
 *
 *     <WorkflowGraph definition={version.definition} marks={marksOfLog(run.log, noteOf)} label="Steps of the run"
 *       selected={nodeId} onSelect={setNodeId} />
 */
import { useMemo } from "preact/hooks";
import { type Edge, readFlow } from "../shared/flow";
import { graphWords } from "./graph_words";
import { summaryOf } from "./kinds";
import { BOX, edgeKey, type Layout, layoutOf, lineBetween } from "./layout";
import { edgeState, type Mark, type Marks } from "./marks";
import { ordered } from "./order";
import { StepBox } from "./step_box";

interface WorkflowGraphProps {
  /** A definition as the API answers it. */
  definition: object;
  /** Results by step; without them the graph is drawn plainly. */
  marks?: Marks | undefined;
  label: string;
  selected?: string | null | undefined;
  /** Steps become buttons. */
  onSelect?: ((nodeId: string) => void) | undefined;
}

/** Around the boxes, in pixels. */
const MARGIN = 16;

export function WorkflowGraph({ definition, marks, label, selected, onSelect }: WorkflowGraphProps) {
  const { flow, layout, steps } = useMemo(() => {
    const flow = readFlow("", definition);
    return { flow, layout: layoutOf(flow), steps: ordered(flow) };
  }, [definition]);
  const { bounds } = layout;
  const size = { width: `${bounds.width + 2 * MARGIN}px`, height: `${bounds.height + 2 * MARGIN}px` };
  const left = MARGIN - bounds.left;
  const top = MARGIN - bounds.top;
  return (
    <div class="flow-graph" role="group" aria-label={label} tabIndex={onSelect ? undefined : 0}>
      <div class="flow-plane" style={size}>
        <svg aria-hidden="true" style={size}>
          <g transform={`translate(${left} ${top})`}>
            {flow.edges.map((edge) => (
              <Line key={edgeKey(edge)} edge={edge} layout={layout} state={edgeState(edge, marks)} />
            ))}
          </g>
        </svg>
        <ol class="flow-steps">
          {steps.map((step) => {
            const at = layout.places.get(step.id) ?? { x: 0, y: 0 };
            const box = <StepBox step={step} summary={summaryOf(step, flow)} mark={marks?.get(step.id)} />;
            return (
              <li key={step.id} style={{ left: `${at.x + left}px`, top: `${at.y + top}px` }}>
                {onSelect ? (
                  <button
                    type="button"
                    class="flow-step"
                    aria-pressed={selected === step.id}
                    onClick={() => onSelect(step.id)}
                  >
                    {box}
                    <MarkText mark={marks?.get(step.id)} />
                  </button>
                ) : (
                  <div class="flow-step">
                    {box}
                    <MarkText mark={marks?.get(step.id)} />
                  </div>
                )}
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

/** The meaning of the colours, for screen readers. */
function MarkText({ mark }: { mark: Mark | undefined }) {
  if (!mark) return null;
  const result = mark.branch === undefined ? "" : `, ${graphWords.marks.branch(String(mark.branch))}`;
  return <span class="visually-hidden">{`, ${graphWords.marks[mark.state]}${result}`}</span>;
}

interface LineProps {
  edge: Edge;
  layout: Layout;
  state: ReturnType<typeof edgeState>;
}

function Line({ edge, layout, state }: LineProps) {
  const [from, to] = [layout.places.get(edge.source), layout.places.get(edge.target)];
  if (!from || !to) return null;
  const start = { x: from.x + BOX.width * exitOf(edge), y: from.y + BOX.height };
  const end = { x: to.x + BOX.width / 2, y: to.y };
  return (
    <>
      <path
        class={`flow-line ${state ? `flow-line-${state}` : ""}`}
        d={lineBetween(start, end, layout.bends.get(edgeKey(edge)))}
      />
      {edge.result !== "default" && (
        <text
          class="flow-line-label"
          x={start.x + (edge.result === "true" ? 8 : -8)}
          y={start.y + 17}
          text-anchor={edge.result === "true" ? "start" : "end"}
        >
          {graphWords.result[edge.result]}
        </text>
      )}
    </>
  );
}

/** Place at which a line leaves its box, as a share of the width: the true one on the left. */
export const exitOf = ({ result }: Pick<Edge, "result">) => ({ default: 0.5, true: 0.3, false: 0.7 })[result];
