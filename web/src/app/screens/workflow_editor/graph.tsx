/**
 * The graph of a workflow, drawn and not edited: of a version, of a run with the path it took and the other one, or with the
 * counts of many runs.
 *
 *     <WorkflowGraph definition={version.definition} marks={marksOfLog(run.log, noteOf)} label="Steps of the run"
 *       selected={nodeId} onSelect={setNodeId} />
 */
import { useMemo } from "preact/hooks";
import { formatNumber } from "../../parts/format";
import { type Edge, isBranch, readFlow } from "../shared/flow";
import type { NodeStatistics } from "../shared/workflow_types";
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
  /** Runs by step, in place of its fields; those of a branch also at its ways. */
  counts?: ReadonlyMap<string, NodeStatistics> | undefined;
  label: string;
  selected?: string | null | undefined;
  /** Steps become buttons. */
  onSelect?: ((nodeId: string) => void) | undefined;
}

/** Around the boxes, in pixels. */
const MARGIN = 16;

export function WorkflowGraph({ definition, marks, counts, label, selected, onSelect }: WorkflowGraphProps) {
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
              <Line
                key={edgeKey(edge)}
                edge={edge}
                layout={layout}
                state={edgeState(edge, marks)}
                count={counts?.get(edge.source)}
              />
            ))}
          </g>
        </svg>
        <ol class="flow-steps">
          {steps.map((step) => {
            const at = layout.places.get(step.id) ?? { x: 0, y: 0 };
            const count = counts?.get(step.id);
            const box = (
              <StepBox
                step={step}
                summary={counts ? graphWords.counts(count) : summaryOf(step, flow)}
                mark={marks?.get(step.id)}
                problem={count?.failed ? "error" : undefined}
              />
            );
            const meaning = (
              <>
                <MarkText mark={marks?.get(step.id)} />
                {count && isBranch(step) && <span class="visually-hidden">, {graphWords.taken(count)}</span>}
              </>
            );
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
                    {meaning}
                  </button>
                ) : (
                  <div class="flow-step">
                    {box}
                    {meaning}
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
  count: NodeStatistics | undefined;
}

function Line({ edge, layout, state, count }: LineProps) {
  const [from, to] = [layout.places.get(edge.source), layout.places.get(edge.target)];
  if (!from || !to) return null;
  const start = { x: from.x + BOX.width * exitOf(edge), y: from.y + BOX.height };
  const end = { x: to.x + BOX.width / 2, y: to.y };
  const labelX = start.x + (edge.result === "true" ? 8 : -8);
  return (
    <>
      <path
        class={`flow-line ${state ? `flow-line-${state}` : ""}`}
        d={lineBetween(start, end, layout.bends.get(edgeKey(edge)))}
      />
      {edge.result !== "default" && (
        <text
          class="flow-line-label"
          x={labelX}
          y={start.y + 17}
          text-anchor={edge.result === "true" ? "start" : "end"}
        >
          {graphWords.result[edge.result]}
          {count && (
            <tspan x={labelX} dy="1.2em">
              {formatNumber(edge.result === "true" ? count.tookTrue : count.tookFalse)}
            </tspan>
          )}
        </text>
      )}
    </>
  );
}

/** Place at which a line leaves its box, as a share of the width: the true one on the left. */
export const exitOf = ({ result }: Pick<Edge, "result">) => ({ default: 0.5, true: 0.3, false: 0.7 })[result];
