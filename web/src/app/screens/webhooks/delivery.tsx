/** One delivery: its attempts, the request, the answer, and a program that checks its signature. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { CodeBox } from "../../parts/code_box";
import { CopyField } from "../../parts/copy";
import { Dialog, openDialog } from "../../parts/dialog";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name, Time } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { asCurl, LANGUAGE_NAMES, LANGUAGES, type Language, verifier } from "./snippets";
import type { Attempt, Delivery, DeliveryDetail, SentRequest } from "./types";
import { words } from "./words";

export const openDelivery = (id: string) =>
  openDialog((close) => (
    <Dialog title={words.detail.title} onClose={close} wide>
      <DeliveryView id={id} />
    </Dialog>
  ));

function DeliveryView({ id }: { id: string }) {
  const detail = useResource(
    (signal) => api.get<DeliveryDetail>(`/api/webhooks/deliveries/${id}`, { signal }),
    [id],
    { on: ["delivery"], id },
  );
  return (
    <Loaded of={detail} skeleton={<Skeleton rows={6} height={40} />}>
      {({ delivery, attempts, request }) => (
        <div class="stack">
          <Summary delivery={delivery} changed={detail.reload} />
          <h3>{words.detail.attempts}</h3>
          <Attempts attempts={attempts} />
          <h3>{words.detail.answer}</h3>
          {delivery.responseBodyPreview ? (
            <CodeBox label={words.detail.answer}>{delivery.responseBodyPreview}</CodeBox>
          ) : (
            <p class="soft">
              {delivery.error ?? (delivery.httpStatus ? words.detail.emptyAnswer : words.detail.noAnswer)}
            </p>
          )}
          {request && <Request request={request} />}
        </div>
      )}
    </Loaded>
  );
}

function Summary({ delivery, changed }: { delivery: Delivery; changed: () => void }) {
  const again = async () => {
    await api.post(`/api/webhooks/deliveries/${delivery.id}/retry`);
    toast(words.detail.sent, "good");
    changed();
  };
  return (
    <>
      <dl class="facts">
        <dt>{words.detail.event}</dt>
        <dd>
          <code>{delivery.eventType}</code> <code class="soft small">{delivery.eventId}</code>
        </dd>
        <dt>{words.deliveries.endpoint}</dt>
        <dd>
          <Name>{delivery.endpointUrl}</Name>
        </dd>
        <dt>{words.deliveries.status}</dt>
        <dd>
          {words.deliveries.statuses[delivery.status]}
          {delivery.error && <p class="field-error">{delivery.error}</p>}
        </dd>
        {delivery.nextAttemptAt && (
          <>
            <dt>{words.detail.next}</dt>
            <dd>
              <Time at={delivery.nextAttemptAt} exact />
            </dd>
          </>
        )}
      </dl>
      {can("write") && (
        <div class="actions">
          <Button
            look="solid"
            icon="reload"
            disabled={delivery.status === "pending" || delivery.status === "delivering"}
            action={again}
          >
            {words.detail.again}
          </Button>
        </div>
      )}
    </>
  );
}

function Attempts({ attempts }: { attempts: Attempt[] }) {
  return (
    <ol class="webhook-attempts">
      {attempts.map((attempt) => (
        <li key={attempt.number}>
          <Time at={attempt.startedAt} exact />{" "}
          <Badge
            tone={attempt.status === "delivered" ? "good" : attempt.status === "failed" ? "bad" : "calm"}
          >
            {attempt.httpStatus ?? attempt.status}
          </Badge>{" "}
          {attempt.isProbe && <Badge>{words.detail.probe}</Badge>}{" "}
          {attempt.error && attempt.httpStatus === null && <span class="soft small">{attempt.error}</span>}
        </li>
      ))}
    </ol>
  );
}

const asText = ({ method, url, headers, body }: SentRequest) =>
  [`${method} ${url}`, ...headers.map(({ name, value }) => `${name}: ${value}`), "", body].join("\n");

function Request({ request }: { request: SentRequest }) {
  const [language, setLanguage] = useState<Language>("shell");
  const state = request.isAsSent
    ? words.detail.asSent
    : request.sentAt
      ? words.detail.changed
      : words.detail.notSent;
  const program = verifier(language, request);
  return (
    <>
      <h3>{words.detail.request}</h3>
      <p class="soft small">{state}</p>
      <CodeBox label={words.detail.request}>{asText(request)}</CodeBox>
      <CopyField label={words.detail.curl} value={asCurl(request)} code />
      {program && (
        <>
          <Segmented
            label={words.detail.verify}
            value={language}
            choices={LANGUAGES.map((value) => ({ value, label: LANGUAGE_NAMES[value] }))}
            onChange={setLanguage}
          />
          <CopyField label={`${words.detail.verify} ${LANGUAGE_NAMES[language]}`} value={program} code />
          <p class="soft small">{words.detail.verifyLead}</p>
        </>
      )}
    </>
  );
}
