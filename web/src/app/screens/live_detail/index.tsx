/** One live input: watching it, its health, and everything that can be set. */
import { useEffect, useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { onHealth } from "../../api/changes";
import { api } from "../../api/client";
import { type Resource, useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { Page } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { endStream, endWords } from "../shared/end_stream";
import { LiveStatus } from "../shared/live_parts";
import type { LiveInput, LiveInputAnswer } from "../shared/live_types";
import { Access } from "./access";
import { Connect } from "./connect";
import { Outputs } from "./outputs";
import { makeClip, Recordings } from "./recordings";
import { InputSettings } from "./settings";
import type { Health } from "./types";
import { Watch } from "./watch";
import { words } from "./words";

const PARTS = ["watch", "connect", "outputs", "recordings", "access", "settings"] as const;
type Part = (typeof PARTS)[number];

export interface InputProps {
  input: LiveInput;
  /** Shows what a change answered with. */
  set: (input: LiveInput) => void;
}

export default function LiveDetail({ params }: ScreenProps) {
  const id = params.id ?? "";
  const loaded = useResource(
    async (signal) => (await api.get<LiveInputAnswer>(`/api/live/inputs/${id}`, { signal })).liveInput,
    [id],
    { on: ["live_input"], id },
  );
  const input = loaded.data;
  return (
    <Page
      title={input?.name ?? words.loading}
      crumbs={[{ label: words.live, to: "/live" }]}
      aside={input && <Facts key={input.id} input={input} />}
      actions={input && <Actions input={input} loaded={loaded} />}
    >
      <Loaded of={loaded} skeleton={<Skeleton rows={3} height={160} />}>
        {(data) => <Parts input={data} set={loaded.set} asked={params.tab} />}
      </Loaded>
    </Page>
  );
}

/** State and viewers; the record is read again when the state changes, while health comes each second. */
function Facts({ input }: { input: LiveInput }) {
  const [health, setHealth] = useState<Health>();
  useEffect(() => onHealth<Health>(input.id, setHealth), [input.id]);
  const viewers = health ? health.viewers : input.viewers;
  return (
    <>
      <LiveStatus input={input} />
      {input.status !== "idle" && viewers !== null && <span class="numeric">{words.viewers(viewers)}</span>}
    </>
  );
}

function Actions({ input, loaded }: { input: LiveInput; loaded: Resource<LiveInput> }) {
  const end = async () => {
    const ended = await endStream(input);
    if (ended) loaded.set(ended);
  };
  const isOnAir = input.status !== "idle";
  return (
    <>
      {isOnAir && can("write") && (
        <>
          <Button icon="scissors" onClick={() => makeClip(input)}>
            {words.clip}
          </Button>
          <Button look="danger" icon="stop" onClick={end}>
            {endWords.end}
          </Button>
        </>
      )}
      <ButtonLink icon="out" href={onThisOrigin(input.playback.watchUrl)} target="_blank">
        {words.watchPage}
      </ButtonLink>
    </>
  );
}

function Parts({ input, set, asked }: InputProps & { asked: string | undefined }) {
  // Without anything on air, what one needs is how to connect
  const usual: Part = input.status === "idle" && !input.lastStartedAt ? "connect" : "watch";
  const part = PARTS.find((name) => name === asked) ?? usual;
  return (
    <>
      <Tabs
        label={words.tabs.label}
        items={PARTS.map((name) => ({
          href: href(`/live/${input.id}/${name}`),
          label: words.tabs[name],
          current: name === part,
        }))}
      />
      <Shown part={part} input={input} set={set} />
    </>
  );
}

function Shown({ part, ...props }: InputProps & { part: Part }) {
  switch (part) {
    case "watch":
      return <Watch {...props} />;
    case "connect":
      return <Connect {...props} />;
    case "outputs":
      return <Outputs input={props.input} />;
    case "recordings":
      return <Recordings {...props} />;
    case "access":
      return <Access {...props} />;
    case "settings":
      return <InputSettings {...props} />;
  }
}
