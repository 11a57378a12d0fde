/** What can be set of an input, and its end. */
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Form, Select, Switch, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { Name } from "../../parts/values";
import { go } from "../../router";
import { toast } from "../../shell/toasts";
import type { LiveInputAnswer } from "../shared/live_types";
import type { InputProps } from "./index";
import { words } from "./words";

export function InputSettings({ input, set }: InputProps) {
  const path = `/api/live/inputs/${input.id}`;
  const mayChange = can("write");
  const change = async (body: object) => set((await api.patch<LiveInputAnswer>(path, body)).liveInput);
  const turn = (body: object) => change(body).catch((thrown: Error) => toast(thrown.message, "bad"));
  const enable = async (enabled: boolean) => {
    if (enabled || input.status === "idle") return turn({ enabled });
    await ask({
      title: words.settings.disableTitle,
      body: words.settings.disableBody,
      verb: words.settings.disable,
      action: () => change({ enabled }),
    });
  };
  return (
    <div class="columns">
      <Section title={words.tabs.settings}>
        <Form
          key={`${input.name}|${input.latency}|${input.reconnectWindowSeconds}`}
          action={async (values) => {
            await change({
              name: values.get("name"),
              latency: values.get("latency"),
              reconnectWindowSeconds: Number(values.get("reconnectWindowSeconds")),
            });
            toast(words.saved, "good");
          }}
        >
          <fieldset class="plain-fieldset form" disabled={!mayChange}>
            <TextField
              label={words.settings.name}
              name="name"
              defaultValue={input.name}
              maxLength={120}
              required
            />
            <Select
              label={words.settings.latency}
              name="latency"
              defaultValue={input.latency}
              choices={Object.entries(words.settings.latencies).map(([value, label]) => ({ value, label }))}
            />
            <TextField
              label={words.settings.window}
              name="reconnectWindowSeconds"
              hint={words.settings.windowHint}
              type="number"
              min={0}
              max={1800}
              defaultValue={String(input.reconnectWindowSeconds)}
              required
            />
            {mayChange && (
              <div class="actions">
                <Submit>{words.save}</Submit>
              </div>
            )}
          </fieldset>
        </Form>
        <Switch
          label={words.settings.record}
          hint={words.settings.recordHint}
          checked={input.recordMode === "automatic"}
          disabled={!mayChange}
          onChange={(isOn) => turn({ recordMode: isOn ? "automatic" : "off" })}
        />
        <Switch
          label={words.settings.enabled}
          hint={words.settings.enabledHint}
          checked={input.enabled}
          disabled={!mayChange}
          onChange={enable}
        />
      </Section>
      {mayChange && <Delete input={input} />}
    </div>
  );
}

/** The number of viewers above which the name has to be typed. */
const MANY = 20;

function Delete({ input }: Pick<InputProps, "input">) {
  const remove = async () => {
    const done = await ask({
      title: <Name>{words.settings.deleteTitle(input.name)}</Name>,
      body: words.settings.deleteBody(input.viewers ?? 0),
      verb: words.settings.delete,
      typed: (input.viewers ?? 0) > MANY ? input.name : undefined,
      action: () => api.delete(`/api/live/inputs/${input.id}`),
    });
    if (!done) return;
    toast(words.settings.deleted);
    go("/live", { replace: true });
  };
  return (
    <Section title={words.settings.danger}>
      <p class="soft">{words.settings.deleteHint}</p>
      <div class="actions">
        <Button look="danger" icon="trash" onClick={remove}>
          {words.settings.delete}
        </Button>
      </div>
    </Section>
  );
}
