/** Who may watch. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Submit } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { Form, Select, Switch, TextArea } from "../../parts/form";
import { Section } from "../../parts/page";
import { Time } from "../../parts/values";
import { href } from "../../router";
import { toast } from "../../shell/toasts";
import { hostsOf } from "../shared/hosts";
import type { LiveInput, LiveInputAnswer } from "../shared/live_types";
import type { InputProps } from "./index";
import { words } from "./words";

export function Access({ input, set }: InputProps) {
  const mayChange = can("write");
  const change = async (body: object) =>
    set((await api.patch<LiveInputAnswer>(`/api/live/inputs/${input.id}`, body)).liveInput);
  const turn = (requireSignedPlayback: boolean) =>
    change({ requireSignedPlayback }).catch((thrown: Error) => toast(thrown.message, "bad"));
  return (
    <div class="columns">
      <Section title={words.tabs.access}>
        <Switch
          label={words.access.signed}
          hint={words.access.signedHint}
          checked={input.requireSignedPlayback}
          disabled={!mayChange}
          onChange={turn}
        />
        <Form
          action={async (values) => {
            await change({ allowedDomains: hostsOf(String(values.get("allowedDomains"))) });
            toast(words.saved, "good");
          }}
        >
          <TextArea
            label={words.access.domains}
            name="allowedDomains"
            hint={words.access.domainsHint}
            defaultValue={input.allowedDomains.join("\n")}
            spellcheck={false}
            readOnly={!mayChange}
          />
          {mayChange && (
            <div class="actions">
              <Submit>{words.save}</Submit>
            </div>
          )}
        </Form>
      </Section>
      {mayChange && <Token input={input} />}
    </div>
  );
}

interface PlaybackToken {
  token: string;
  hlsUrl: string;
  expiresAt: string;
}

function Token({ input }: { input: LiveInput }) {
  const [made, setMade] = useState<PlaybackToken | null>(null);
  return (
    <Section title={words.access.token}>
      <p class="soft">{words.access.tokenLead}</p>
      <Form
        action={async (values) =>
          setMade(
            await api.post<PlaybackToken>(`/api/live/inputs/${input.id}/playback-token`, {
              expiresIn: Number(values.get("expiresIn")),
            }),
          )
        }
      >
        <Select
          label={words.access.lifetime}
          name="expiresIn"
          choices={Object.entries(words.access.lifetimes).map(([value, label]) => ({ value, label }))}
        />
        <div class="actions">
          <Submit>{words.access.makeToken}</Submit>
        </div>
      </Form>
      {made && (
        <>
          <CopyField label={words.access.tokenWatch} value={watchPage(input, made.token)} />
          <CopyField label={words.access.tokenHls} value={made.hlsUrl} />
          <p class="soft small">
            {words.access.until} <Time at={made.expiresAt} />
          </p>
        </>
      )}
      {can("admin") && (
        <p>
          <a href={href("/settings/api/playback-keys")}>{words.access.keys}</a>
        </p>
      )}
    </Section>
  );
}

const watchPage = (input: LiveInput, token: string) =>
  input.playback.watchUrl.replace(input.playbackId, token);
