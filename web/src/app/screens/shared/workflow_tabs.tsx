/** The two lists of workflows: what runs, and what ran. */
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";

const words = { label: "Workflows and their runs", workflows: "Workflows", runs: "All runs" };

export function WorkflowTabs({ current }: { current: "workflows" | "runs" }) {
  return (
    <Tabs
      label={words.label}
      items={(["workflows", "runs"] as const).map((name) => ({
        href: href(`/${name}`),
        label: words[name],
        current: name === current,
      }))}
    />
  );
}
