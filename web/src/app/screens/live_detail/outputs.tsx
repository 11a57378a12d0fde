/** Other platforms that the input goes to. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask, Dialog, openDialog } from "../../parts/dialog";
import { Form, Switch, TextField } from "../../parts/form";
import { formatBytes } from "../../parts/format";
import { Badge, EmptyState, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Name, Since } from "../../parts/values";
import { toast } from "../../shell/toasts";
import type { LiveInput } from "../shared/live_types";
import type { Output } from "./types";
import { words } from "./words";

const TONES: Record<Output["status"], Tone> = {
  idle: "calm",
  connecting: "info",
  live: "live",
  waiting: "warn",
};
/** Between two looks at what is sent while the input is on air. */
const EVERY_MS = 2_000;

export function Outputs({ input }: { input: LiveInput }) {
  const path = `/api/live/inputs/${input.id}/outputs`;
  const list = useResource(
    (signal) => api.get<{ outputs: Output[] }>(path, { signal }),
    [path, input.status],
    {
      on: ["output"],
      keep: true,
    },
  );
  const isOnAir = input.status !== "idle";
  useEffect(() => {
    if (!isOnAir) return;
    const timer = setInterval(() => !document.hidden && list.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [isOnAir, list.reload]);
  const add = can("write") && (
    <Button look="solid" icon="plus" onClick={() => edit(path, null, list.reload)}>
      {words.outputs.new}
    </Button>
  );
  return (
    <Loaded of={list} skeleton={<Skeleton rows={2} height={72} />}>
      {({ outputs }) =>
        outputs.length === 0 ? (
          <EmptyState
            icon="out"
            title={words.outputs.emptyTitle}
            action={add}
            curl={`curl -s '${serviceUrl()}${path}' \\\n  -H "Authorization: Bearer $KEY" --json '{"url": "rtmps://live.example.com/app/key"}'`}
            guide={{ href: "/guides/restream", label: words.outputs.guide }}
          >
            {words.outputs.empty}
          </EmptyState>
        ) : (
          <>
            <div class="toolbar">{add}</div>
            <div class="card">
              <ul class="rows">
                {outputs.map((output) => (
                  <OutputRow key={output.id} path={path} output={output} changed={list.reload} />
                ))}
              </ul>
            </div>
          </>
        )
      }
    </Loaded>
  );
}

function OutputRow({ path, output, changed }: { path: string; output: Output; changed: () => void }) {
  const one = `${path}/${output.id}`;
  const remove = async () => {
    const done = await ask({
      title: words.outputs.removeTitle,
      body: words.outputs.removeBody,
      verb: words.outputs.remove,
      action: () => api.delete(one),
    });
    if (!done) return;
    toast(words.outputs.removed);
    changed();
  };
  const turn = (enabled: boolean) =>
    api.patch(one, { enabled }).then(changed, (thrown: Error) => toast(thrown.message, "bad"));
  return (
    <li class="live-output">
      <div class="grow">
        <Name>{output.url}</Name>
        <span class="soft small live-output-facts">
          <Badge tone={TONES[output.status]} dot={output.status === "live"}>
            {output.status}
          </Badge>
          {output.status === "live" && output.since && <Since at={output.since} />}
          {output.status === "live" && (
            <span class="numeric">
              {formatBytes(output.sentBytes)} · {words.outputs.lag(output.lagMs)}
              {output.droppedUnits > 0 && ` · ${words.outputs.dropped(output.droppedUnits)}`}
            </span>
          )}
          {output.retries > 0 && output.status !== "live" && (
            <span>{words.outputs.tries(output.retries)}</span>
          )}
        </span>
        {output.lastError && <p class="field-error">{output.lastError}</p>}
      </div>
      {can("write") && (
        <div class="actions">
          <Switch label={words.outputs.enabled} checked={output.enabled} onChange={turn} />
          <Button small onClick={() => edit(path, output, changed)}>
            {words.outputs.change}
          </Button>
          <Button small look="danger" onClick={remove}>
            {words.outputs.remove}
          </Button>
        </div>
      )}
    </li>
  );
}

function edit(path: string, output: Output | null, changed: () => void) {
  openDialog((close) => (
    <Dialog title={output ? words.outputs.change : words.outputs.new} onClose={close}>
      <Form
        action={async (values) => {
          const body = { url: values.get("url") };
          await (output ? api.patch(`${path}/${output.id}`, body) : api.post(path, body));
          changed();
          close();
        }}
      >
        <TextField
          label={words.outputs.url}
          name="url"
          hint={words.outputs.urlHint}
          spellcheck={false}
          required
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{output ? words.save : words.outputs.add}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
