/** Endpoints, what was sent to them, and the feed of events. */
import { Page } from "../../parts/page";
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { Deliveries } from "./deliveries";
import { Endpoints, NewEndpoint } from "./endpoints";
import { Events } from "./events";
import { words } from "./words";

const PARTS = { endpoints: Endpoints, deliveries: Deliveries, events: Events };
type Part = keyof typeof PARTS;

export default function Webhooks({ params }: ScreenProps) {
  const part: Part = params.tab && params.tab in PARTS ? (params.tab as Part) : "endpoints";
  const Shown = PARTS[part];
  return (
    <Page title={words.title} actions={part === "endpoints" && <NewEndpoint />}>
      <Tabs
        label={words.tabs.label}
        items={(Object.keys(PARTS) as Part[]).map((name) => ({
          href: href(name === "endpoints" ? "/webhooks" : `/webhooks/${name}`),
          label: words.tabs[name],
          current: name === part,
        }))}
      />
      <Shown />
    </Page>
  );
}
