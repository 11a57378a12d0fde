/** The endpoints: status, what waits, and what can be done with each. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask, Dialog, openDialog } from "../../parts/dialog";
import { Form, Select } from "../../parts/form";
import { Menu } from "../../parts/menu";
import { Badge, Callout, EmptyState, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { go, href, query, setQuery } from "../../router";
import { toast } from "../../shell/toasts";
import { editEndpoint, showSigningSecret } from "./edit";
import type { Delivery, Webhook } from "./types";
import { words } from "./words";

interface Webhooks {
  webhooks: Webhook[];
}

const TONES: Record<Webhook["status"], Tone> = { active: "good", suspended: "bad", paused: "calm" };

export const NewEndpoint = () =>
  can("write") ? (
    <Button look="solid" icon="plus" onClick={() => editEndpoint(null)}>
      {words.endpoints.new}
    </Button>
  ) : null;

export function Endpoints() {
  const list = useResource(
    (signal) => api.get<Webhooks>("/api/webhooks", { query: { limit: 100 }, signal }),
    [],
    { on: ["webhook", "delivery"] },
  );
  const isAsked = query.value.get("new") !== null;
  useEffect(() => {
    if (!isAsked) return;
    setQuery({ new: undefined });
    if (can("write")) editEndpoint(null);
  }, [isAsked]);
  return (
    <Loaded of={list} skeleton={<Skeleton rows={3} height={88} />}>
      {({ webhooks }) =>
        webhooks.length === 0 ? (
          <EmptyState
            icon="webhooks"
            title={words.endpoints.emptyTitle}
            action={<NewEndpoint />}
            curl={`curl -s '${serviceUrl()}/api/webhooks' \\\n  -H "Authorization: Bearer $KEY" --json '{"url": "https://shop.example.com/hooks", "eventTypes": ["*"]}'`}
            guide={{ href: "/guides/webhooks", label: words.endpoints.guide }}
          >
            {words.endpoints.empty}
          </EmptyState>
        ) : (
          <div class="stack">
            {webhooks
              .filter(({ status }) => status === "suspended")
              .map((webhook) => (
                <Suspended key={webhook.id} webhook={webhook} changed={list.reload} />
              ))}
            <div class="card">
              <ul class="rows">
                {webhooks.map((webhook) => (
                  <Endpoint key={webhook.id} webhook={webhook} changed={list.reload} />
                ))}
              </ul>
            </div>
          </div>
        )
      }
    </Loaded>
  );
}

interface EndpointProps {
  webhook: Webhook;
  changed: () => void;
}

function Suspended({ webhook, changed }: EndpointProps) {
  const probe = async () => {
    const { delivery } = await api.post<{ delivery: Delivery }>(`/api/webhooks/${webhook.id}/probe`);
    changed();
    toast(words.endpoints.probed, "good", followed(delivery));
  };
  return (
    <Callout
      tone="bad"
      title={<Name>{words.endpoints.suspendedTitle(webhook.url)}</Name>}
      actions={can("write") && <Button action={probe}>{words.endpoints.probe}</Button>}
    >
      {webhook.statusReason && <p>{words.endpoints.reason(webhook.statusReason)}</p>}
      <p class="webhook-facts">
        {webhook.waiting !== undefined && <span>{words.endpoints.waiting(webhook.waiting)}</span>}
        {webhook.statusSince && (
          <span>
            {words.endpoints.suspended} <Ago at={webhook.statusSince} />
          </span>
        )}
        {webhook.nextProbeAt && (
          <span>
            {words.endpoints.nextTry} <Ago at={webhook.nextProbeAt} />
          </span>
        )}
      </p>
    </Callout>
  );
}

const followed = (delivery: Delivery) => ({
  label: words.endpoints.follow,
  run: () => go("/webhooks/deliveries", { search: { delivery: delivery.id } }),
});

function Endpoint({ webhook, changed }: EndpointProps) {
  const isOpen = query.value.get("id") === webhook.id;
  return (
    <li class="webhook" aria-current={isOpen || undefined}>
      <div class="grow">
        <Name class="webhook-url">{webhook.url}</Name>
        {webhook.description && (
          <p class="soft small">
            <Name>{webhook.description}</Name>
          </p>
        )}
        <p class="soft small webhook-facts">
          <Badge tone={TONES[webhook.status]}>{webhook.status}</Badge>
          <span>
            {webhook.eventTypes.includes("*")
              ? words.endpoints.all
              : words.endpoints.types(webhook.eventTypes.length)}
          </span>
          {webhook.waiting !== undefined && webhook.waiting > 0 && (
            <span>{words.endpoints.waiting(webhook.waiting)}</span>
          )}
          <LastOutcome webhook={webhook} />
        </p>
      </div>
      <div class="actions">
        {can("write") && (
          <Button small action={() => test(webhook)}>
            {words.endpoints.test}
          </Button>
        )}
        <EndpointMenu webhook={webhook} changed={changed} />
      </div>
    </li>
  );
}

function LastOutcome({ webhook: { lastSuccessAt, lastFailureAt } }: { webhook: Webhook }) {
  const hasFailedLast = lastFailureAt !== null && (lastSuccessAt === null || lastFailureAt > lastSuccessAt);
  const at = hasFailedLast ? lastFailureAt : lastSuccessAt;
  if (!at) return <span>{words.endpoints.none}</span>;
  return (
    <span>
      {hasFailedLast ? words.endpoints.failure : words.endpoints.success} <Ago at={at} />
    </span>
  );
}

async function test(webhook: Webhook) {
  const { delivery } = await api.post<{ delivery: Delivery }>(`/api/webhooks/${webhook.id}/test`);
  toast(words.endpoints.tested, "good", followed(delivery));
}

function EndpointMenu({ webhook, changed }: EndpointProps) {
  const path = `/api/webhooks/${webhook.id}`;
  const setActive = (isActive: boolean) =>
    api.patch(path, { isActive }).then(changed, (thrown: Error) => toast(thrown.message, "bad"));
  return (
    <Menu
      small
      label={`${words.actions}: ${webhook.url}`}
      items={[
        {
          label: words.endpoints.deliveries,
          icon: "list",
          href: href(`/webhooks/deliveries?endpoint=${webhook.id}`),
        },
        can("write") && {
          label: words.endpoints.edit,
          icon: "edit",
          onSelect: () => editEndpoint(webhook).then(changed),
        },
        can("write") && { label: words.endpoints.rotate, icon: "key", onSelect: () => rotate(webhook) },
        can("write") && {
          label: words.endpoints.recover,
          icon: "reload",
          onSelect: () => recover(webhook),
        },
        can("write") &&
          (webhook.status === "active"
            ? { label: words.endpoints.pause, icon: "pause", onSelect: () => setActive(false) }
            : { label: words.endpoints.resume, icon: "play", onSelect: () => setActive(true) }),
        can("write") && {
          label: words.endpoints.remove,
          icon: "trash",
          danger: true,
          onSelect: () => remove(webhook).then((done) => done && changed()),
        },
      ]}
    />
  );
}

async function rotate(webhook: Webhook) {
  let secret: string | undefined;
  await ask({
    title: words.secret.rotateTitle,
    body: words.secret.rotateBody,
    verb: words.secret.rotate,
    danger: false,
    action: async () => {
      secret = (await api.post<{ secret: string }>(`/api/webhooks/${webhook.id}/rotate-secret`)).secret;
    },
  });
  if (secret) await showSigningSecret(secret);
}

async function remove(webhook: Webhook): Promise<boolean> {
  const done = await ask({
    title: words.remove.title,
    body: (
      <>
        <p>
          <Name>{webhook.url}</Name>
        </p>
        <p>{words.remove.body}</p>
      </>
    ),
    verb: words.endpoints.remove,
    action: () => api.delete(`/api/webhooks/${webhook.id}`),
  });
  if (done) toast(words.remove.done);
  return done;
}

function recover(webhook: Webhook) {
  openDialog((close) => (
    <Dialog title={words.recover.title} onClose={close}>
      <Form
        action={async (values) => {
          const since = new Date(Date.now() - Number(values.get("since")) * 1_000).toISOString();
          const answer = await api.post<Record<string, number>>(`/api/webhooks/${webhook.id}/recover`, {
            since,
          });
          close();
          toast(words.recover.done(Object.values(answer)[0] ?? 0), "good");
        }}
      >
        <p class="soft">{words.recover.lead}</p>
        <Select
          label={words.recover.since}
          name="since"
          choices={Object.entries(words.recover.spans).map(([value, label]) => ({ value, label }))}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.recover.verb}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
