/** Texts of the editor of workflows. */
export const words = {
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
