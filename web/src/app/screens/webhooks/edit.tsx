/** Making and changing an endpoint; its events are chosen from the catalogue of the service. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Checkbox, Form, TextField } from "../../parts/form";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import type { EventType, Webhook } from "./types";
import { words } from "./words";

export const showSigningSecret = (secret: string) =>
  showSecret({
    title: words.secret.title,
    note: words.secret.note,
    fields: [{ label: words.secret.label, value: secret }],
  });

export async function editEndpoint(webhook: Webhook | null): Promise<void> {
  let secret: string | undefined;
  await openDialog((close) => (
    <Dialog title={webhook ? words.edit.title : words.edit.newTitle} onClose={close} wide>
      <Form
        action={async (values) => {
          const body = {
            url: values.get("url"),
            description: String(values.get("description")) || null,
            eventTypes: values.getAll("eventTypes"),
          };
          if (body.eventTypes.length === 0) throw new ApiError(400, words.edit.none);
          if (webhook) await api.patch(`/api/webhooks/${webhook.id}`, body);
          else secret = (await api.post<{ secret: string }>("/api/webhooks", body)).secret;
          close();
        }}
      >
        <TextField
          label={words.edit.url}
          name="url"
          hint={words.edit.urlHint}
          type="url"
          defaultValue={webhook?.url ?? ""}
          placeholder="https://shop.example.com/hooks"
          maxLength={2048}
          spellcheck={false}
          required
        />
        <TextField
          label={words.edit.description}
          name="description"
          defaultValue={webhook?.description ?? ""}
          maxLength={500}
        />
        <EventTypes chosen={webhook?.eventTypes ?? ["*"]} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{webhook ? words.save : words.edit.create}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
  if (secret) await showSigningSecret(secret);
}

function EventTypes({ chosen }: { chosen: string[] }) {
  const [isAll, setAll] = useState(chosen.includes("*"));
  const types = useResource(
    async (signal) => (await api.get<{ eventTypes: EventType[] }>("/api/catalogue", { signal })).eventTypes,
    [],
  );
  return (
    <fieldset class="plain-fieldset webhook-events">
      <legend>{words.edit.events}</legend>
      <Checkbox
        label={words.edit.all}
        hint={words.edit.allHint}
        name="eventTypes"
        value="*"
        checked={isAll}
        onChange={(event) => setAll(event.currentTarget.checked)}
      />
      <Loaded of={types} skeleton={<Skeleton rows={4} height={28} />}>
        {(all) => (
          <div class="webhook-types">
            {all.map((type) => (
              <Checkbox
                key={type.name}
                label={
                  <>
                    <code>{type.name}</code> {type.isOptIn && <Badge>{words.edit.optIn}</Badge>}
                  </>
                }
                hint={type.summary}
                name="eventTypes"
                value={type.name}
                defaultChecked={chosen.includes(type.name)}
                disabled={isAll && !type.isOptIn}
              />
            ))}
          </div>
        )}
      </Loaded>
    </fieldset>
  );
}
