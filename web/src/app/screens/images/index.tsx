/** Image delivery: the builder of addresses, presets, statistics and purging. */
import { Page } from "../../parts/page";
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { Builder } from "./builder";
import { draft, inQuery } from "./draft";
import { Presets } from "./presets";
import { Statistics } from "./statistics";
import { words } from "./words";

const PARTS = { builder: Builder, presets: Presets, statistics: Statistics };
type Part = keyof typeof PARTS;

export default function Images({ params }: ScreenProps) {
  const part: Part = params.tab && params.tab in PARTS ? (params.tab as Part) : "builder";
  const Shown = PARTS[part];
  return (
    <Page title={words.title}>
      <Tabs
        label={words.tabs.label}
        items={(Object.keys(PARTS) as Part[]).map((name) => ({
          href: name === "builder" ? href("/images", inQuery(draft.value)) : href(`/images/${name}`),
          label: words.tabs[name],
          current: name === part,
        }))}
      />
      <Shown />
    </Page>
  );
}
