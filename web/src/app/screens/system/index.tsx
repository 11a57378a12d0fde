/** The installation, for its operators: health, workers, storage, log, doctor, settings, accounts, backup, nodes. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { session } from "../../api/session";
import { Page } from "../../parts/page";
import { Callout, Skeleton } from "../../parts/states";
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { Backup } from "./backup";
import { Health } from "./health";
import { Nodes } from "./nodes";
import { Storage } from "./storage";
import { words } from "./words";
import { Workers } from "./workers";

type Part = Exclude<keyof typeof words.tabs, "label">;

const PARTS: Record<Part, ComponentType | (() => Promise<ComponentType>)> = {
  health: Health,
  workers: Workers,
  storage: Storage,
  log: () => import("./log").then(({ Log }) => Log),
  doctor: () => import("./doctor").then(({ Doctor }) => Doctor),
  settings: () => import("./settings").then(({ Settings }) => Settings),
  accounts: () => import("./accounts").then(({ Accounts }) => Accounts),
  backup: Backup,
  nodes: Nodes,
};
const LAZY: Part[] = ["log", "doctor", "settings", "accounts"];

export default function System({ params }: ScreenProps) {
  const part: Part = params.tab && params.tab in PARTS ? (params.tab as Part) : "health";
  if (!session.value?.user.operator)
    return (
      <Page title={words.title}>
        <Callout title={words.notFound} />
      </Page>
    );
  return (
    <Page title={words.title}>
      <Tabs
        label={words.tabs.label}
        items={(Object.keys(PARTS) as Part[]).map((name) => ({
          href: href(name === "health" ? "/system" : `/system/${name}`),
          label: words.tabs[name],
          current: name === part,
        }))}
      />
      <Shown key={part} part={part} />
    </Page>
  );
}

/** A part; one that not every visit needs is loaded when it is shown. */
function Shown({ part }: { part: Part }) {
  const [Loaded, setLoaded] = useState<ComponentType | null>(() =>
    LAZY.includes(part) ? null : (PARTS[part] as ComponentType),
  );
  const [failure, setFailure] = useState<Error>();
  useEffect(() => {
    let isGone = false;
    if (LAZY.includes(part))
      (PARTS[part] as () => Promise<ComponentType>)().then(
        (loaded) => isGone || setLoaded(() => loaded),
        (thrown) => isGone || setFailure(thrown),
      );
    return () => {
      isGone = true;
    };
  }, [part]);
  // The outlet says what to do when a part of the page does not load.
  if (failure) throw failure;
  return Loaded ? <Loaded /> : <Skeleton rows={6} />;
}
