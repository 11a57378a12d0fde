/** What is wrong and what to change: the encoder's settings, suspended webhooks, the plan, the service itself. */
import type { ComponentChildren } from "preact";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { Section } from "../../parts/page";
import { Callout } from "../../parts/states";
import { href } from "../../router";
import { problems } from "../../shell/readiness";
import { toast } from "../../shell/toasts";
import type { LiveInput } from "../shared/live_types";
import type { Health, Usage, Webhook } from "./types";
import { words } from "./words";

interface Need {
  key: string;
  tone: "warn" | "bad";
  title: ComponentChildren;
  text?: ComponentChildren;
  actions?: ComponentChildren;
}

/** From which share of a limit it is said. */
const NEARLY_FULL = 0.8;

export function NeedsYou({
  onAir,
  webhooks,
  usage,
  isKnown,
}: {
  onAir: LiveInput[];
  webhooks: Webhook[];
  usage: Usage | undefined;
  isKnown: boolean;
}) {
  const health = useHealth(onAir);
  const needs = [
    ...problems.value.map(
      ({ name, reason, blocking }): Need => ({
        key: `service/${name}`,
        tone: blocking ? "bad" : "warn",
        title: `${name}: ${reason}`,
      }),
    ),
    ...webhooks.filter((webhook) => webhook.status === "suspended").map(suspended),
    ...health.flatMap(advised),
    ...(usage ? nearlyFull(usage) : []),
  ];
  if (needs.length === 0 && !isKnown) return null;
  return (
    <Section title={words.needs.title}>
      {needs.length === 0 && <p class="soft">{words.needs.none}</p>}
      {needs.map((need) => (
        <Callout key={need.key} tone={need.tone} title={need.title} actions={need.actions}>
          {need.text}
        </Callout>
      ))}
    </Section>
  );
}

/** The health of those on air, asked for once more when one of them changes. */
function useHealth(onAir: LiveInput[]): Health[] {
  const ids = onAir.map(({ id, status }) => `${id}/${status}`).join();
  const health = useResource(
    async (signal) => {
      const asked = onAir.map(async ({ id, name }) => ({
        ...(await api.get<Health>(`/api/live/inputs/${id}/health`, { signal })),
        id,
        name,
      }));
      const answers = await Promise.allSettled(asked);
      return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    },
    [ids],
    { on: ["live_input"], keep: true, when: onAir.length > 0 },
  );
  return onAir.length > 0 ? (health.data ?? []) : [];
}

function advised({ id, name, advice, trouble }: Health): Need[] {
  const issues = Object.values(trouble).filter((issue): issue is string => issue !== null);
  return [...advice, ...issues].map((text, i) => ({
    key: `${id}/${i}`,
    tone: "warn",
    title: <bdi>{name}</bdi>,
    text: <p>{text}</p>,
    actions: (
      <ButtonLink small href={href(`/live/${id}`)}>
        {words.needs.open}
      </ButtonLink>
    ),
  }));
}

function suspended(webhook: Webhook): Need {
  const probe = async () => {
    await api.post(`/api/webhooks/${webhook.id}/probe`);
    toast(words.needs.tried);
  };
  return {
    key: webhook.id,
    tone: "bad",
    title: <bdi>{words.needs.suspended(webhook.url)}</bdi>,
    text: (
      <p>
        {webhook.statusReason} {webhook.waiting ? words.needs.waiting(webhook.waiting) : ""}
      </p>
    ),
    actions: (
      <>
        {can("write") && (
          <Button small action={probe}>
            {words.needs.tryNow}
          </Button>
        )}
        <ButtonLink small href={href("/webhooks", { id: webhook.id })}>
          {words.needs.open}
        </ButtonLink>
      </>
    ),
  };
}

function nearlyFull({ operations, deliveries, storage }: Usage): Need[] {
  const shares: [string, number, (percent: number) => string][] = [
    [
      "operations",
      share(operations.used, operations.limit),
      (percent) => words.needs.quota("operations", percent),
    ],
    [
      "deliveries",
      share(deliveries.used, deliveries.limit),
      (percent) => words.needs.quota("deliveries", percent),
    ],
    ["storage", share(storage.usedBytes, storage.limitBytes), words.needs.storage],
  ];
  return shares
    .filter(([, used]) => used >= NEARLY_FULL)
    .map(([key, used, say]) => ({
      key,
      tone: used >= 1 ? "bad" : "warn",
      title: say(Math.floor(used * 100)),
      actions: (
        <ButtonLink small href={href("/settings/usage")}>
          {words.needs.usage}
        </ButtonLink>
      ),
    }));
}

const share = (used: number, limit: number | null) => (limit ? used / limit : 0);
