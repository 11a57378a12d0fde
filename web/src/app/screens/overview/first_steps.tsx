/** The way from an empty installation to a running stream, a delivered image and a webhook, for users who may change things. */
import type { ComponentChildren } from "preact";
import { Button, ButtonLink } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { Section } from "../../parts/page";
import { Badge } from "../../parts/states";
import { Name } from "../../parts/values";
import { href } from "../../router";
import type { LiveInput } from "../shared/live_types";
import { DeliverImage } from "./deliver_image";
import { GoLive } from "./go_live";
import { words } from "./words";

interface FirstStepsProps {
  done: { live: boolean; image: boolean; webhook: boolean };
  input: LiveInput | undefined;
  onHide: () => void;
  onChange: () => void;
}

export function FirstSteps({ done, input, onHide, onChange }: FirstStepsProps) {
  const isOnAir = input?.status === "live";
  const count = 1 + [done.live, done.image, done.webhook].filter(Boolean).length;
  return (
    <Section
      title={words.steps.title}
      actions={
        <>
          <span class="soft small numeric">{words.steps.of(count, 4)}</span>
          <Button small look="quiet" onClick={onHide}>
            {words.steps.hide}
          </Button>
        </>
      }
    >
      <ol class="steps">
        <Step number={1} title={words.steps.signedIn} done />
        <Step
          number={2}
          title={words.steps.live.title}
          done={done.live}
          result={isOnAir && input && <OnAirNow input={input} />}
        >
          <GoLive input={input} onChange={onChange} />
        </Step>
        <Step number={3} title={words.steps.image.title} done={done.image}>
          <DeliverImage />
        </Step>
        <Step number={4} title={words.steps.webhook.title} done={done.webhook}>
          <p class="soft">{words.steps.webhook.lead}</p>
          <ButtonLink href={href("/webhooks", { new: 1 })} icon="plus">
            {words.steps.webhook.add}
          </ButtonLink>
        </Step>
      </ol>
      <p class="soft small">
        {words.steps.share} <a href={href("/files")}>{words.steps.files}</a>
      </p>
    </Section>
  );
}

function OnAirNow({ input }: { input: LiveInput }) {
  return (
    <p>
      <Badge tone="live" dot>
        {words.onAir.live}
      </Badge>{" "}
      <a href={href(`/live/${input.id}`)}>
        <Name>{input.name}</Name>
      </a>
    </p>
  );
}

function Step({
  number,
  title,
  done,
  result,
  children,
}: {
  number: number;
  title: string;
  done: boolean;
  /** Shown when it is done. */
  result?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <li class={done ? "step step-done" : "step"}>
      <span class="step-mark" aria-hidden="true">
        {done ? <Icon name="check" /> : number}
      </span>
      <div class="stack">
        <h3>
          {title}
          {done && <span class="visually-hidden"> ({words.steps.done})</span>}
        </h3>
        {done ? result : children}
      </div>
    </li>
  );
}
