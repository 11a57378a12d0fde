/** Texts of the drawn graph, for screens without the editor. */
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
};
