/** Texts of the drawn graph, for screens without the editor. */
import { formatNumber } from "../../parts/format";
import type { NodeStatistics } from "../shared/workflow_types";

const runs = (count: number) => (count === 1 ? "1 run" : `${formatNumber(count)} runs`);

export const graphWords = {
  result: { default: "then", true: "true", false: "false" },
  marks: {
    done: "done",
    failed: "failed",
    running: "running",
    waiting: "waiting",
    skipped: "skipped",
    unknown: "not known beforehand",
    branch: (result: string) => `result ${result}`,
  },
  counts: (of: NodeStatistics | undefined) =>
    [runs((of?.completed ?? 0) + (of?.failed ?? 0)), of?.failed && `${formatNumber(of.failed)} failed`]
      .filter(Boolean)
      .join(", "),
  taken: ({ tookTrue, tookFalse }: NodeStatistics) =>
    `${formatNumber(tookTrue)} true, ${formatNumber(tookFalse)} false`,
};
