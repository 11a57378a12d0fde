/** New flows, and the definition that a flow is saved as. Pure. */
import type { Edge, Fields, Flow, Step } from "../shared/flow";
import { writeGroup } from "./conditions";
import { ordered } from "./order";

/** A workflow with nothing but its beginning. */
export const emptyFlow = (name: string): Flow => ({
  name,
  steps: [newStep("upload", "upload")],
  edges: [],
  gate: null,
  renamePattern: "",
  webhookUrl: "",
  triggerFolder: "",
  rest: {},
});

export const newStep = (id: string, kind: string): Step => ({
  id,
  kind,
  title: "",
  config: {},
  condition: null,
  rest: {},
  dataRest: {},
});

/**
 * The definition as it is saved. Steps are in the order of the outline and edges in that of their steps, so that two
 * flows that do the same are written alike, however they were made.
 */
export function writeFlow(flow: Flow): Fields {
  const order = ordered(flow);
  const place = new Map(order.map((step, i) => [step.id, i]));
  const rank = (edge: Edge) => (place.get(edge.source) ?? 0) * 3 + (edge.result === "true" ? 0 : 1);
  const edges = [...flow.edges].sort((a, b) => rank(a) - rank(b));
  const conditions = order.flatMap(({ id, kind, condition }) =>
    kind === "branch" && condition ? [[id, writeGroup(condition)] as const] : [],
  );
  return {
    ...flow.rest,
    nodes: order.map(writeStep),
    edges: edges.map(({ source, target, result, rest }) => ({
      ...rest,
      source,
      target,
      ...(result === "default" ? {} : { kind: result }),
    })),
    ...(flow.gate ? { uploadGate: writeGroup(flow.gate) } : {}),
    ...(conditions.length > 0 ? { branchConditions: Object.fromEntries(conditions) } : {}),
    ...(flow.renamePattern ? { renamePattern: flow.renamePattern } : {}),
    ...(flow.webhookUrl ? { webhookUrl: flow.webhookUrl } : {}),
    ...(flow.triggerFolder ? { trigger: { folderId: flow.triggerFolder } } : {}),
  };
}

const writeStep = ({ id, kind, title, config, at, rest, dataRest }: Step): Fields => ({
  ...rest,
  id,
  ...(at ? { x: at.x, y: at.y } : {}),
  data: {
    ...dataRest,
    kind,
    // An empty one is written where another would be read in its place.
    ...(title.trim() || [dataRest, rest].some(hasTitle) ? { title } : {}),
    ...(Object.keys(config).length > 0 || rest.config != null ? { config } : {}),
  },
});

const hasTitle = ({ title, label }: Fields) => title != null || label != null;

/** Whether two flows are saved as the same; the order of fields in an object does not count. */
export const isSameFlow = (a: Flow, b: Flow) =>
  a === b || (a.name === b.name && canonical(writeFlow(a)) === canonical(writeFlow(b)));

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    inner && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
