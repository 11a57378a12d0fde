/** The first screen: what to do first, what is on air, what needs attention, what was used and what happened. */
import { useMemo } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Page } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { chooseFirstSteps, firstSteps } from "../../shell/first_steps";
import type { LiveInputs } from "../shared/live_types";
import { Activity } from "./activity";
import { FirstSteps } from "./first_steps";
import { Month } from "./month";
import { NeedsYou } from "./needs_you";
import { OnAir } from "./on_air";
import type { Usage, Webhook } from "./types";
import { words } from "./words";

/** Inputs that are asked for; those on air come first. */
const INPUTS_SHOWN = 6;

export default function Overview() {
  const inputs = useResource(
    (signal) =>
      api.get<LiveInputs>("/api/live/inputs", { query: { sort: "lastLive", limit: INPUTS_SHOWN }, signal }),
    [],
    { on: ["live_input"] },
  );
  const webhooks = useResource(
    (signal) => api.get<{ webhooks: Webhook[] }>("/api/webhooks", { signal }),
    [],
    {
      on: ["webhook"],
    },
  );
  const usage = useResource((signal) => api.get<Usage>("/api/usage", { signal }), [], { on: ["usage"] });

  const onAir = useMemo(
    () => (inputs.data?.liveInputs ?? []).filter((input) => input.status !== "idle"),
    [inputs.data],
  );
  const done = {
    live: Boolean(inputs.data?.liveInputs.some((input) => input.lastStartedAt || input.status !== "idle")),
    image: (usage.data?.deliveries.used ?? 0) > 0,
    webhook: (webhooks.data?.webhooks.length ?? 0) > 0,
  };
  const isKnown = inputs.data && usage.data && webhooks.data;
  const isAllDone = done.live && done.image && done.webhook;
  const isBegun = firstSteps.value === "asked" || (firstSteps.value === "" && !isAllDone);
  return (
    <Page title={words.title}>
      <div class="overview">
        <div class="stack">
          {isKnown && isBegun && can("write") && (
            <FirstSteps
              done={done}
              input={inputs.data?.liveInputs[0]}
              onHide={() => chooseFirstSteps("hidden")}
              onChange={inputs.reload}
            />
          )}
          <NeedsYou
            onAir={onAir}
            webhooks={webhooks.data?.webhooks ?? []}
            usage={usage.data}
            isKnown={Boolean(isKnown)}
          />
          <Activity />
        </div>
        <div class="stack">
          <Loaded of={inputs} skeleton={<Skeleton rows={1} height={148} />}>
            {(data) => <OnAir onAir={onAir} counts={data.counts} />}
          </Loaded>
          <Loaded of={usage} skeleton={<Skeleton rows={1} height={190} />}>
            {(data) => <Month usage={data} />}
          </Loaded>
        </div>
      </div>
    </Page>
  );
}
