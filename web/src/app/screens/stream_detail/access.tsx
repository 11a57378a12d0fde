/** Who may play: with a token or without, on which sites. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Submit } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { Form, Select, Switch, TextArea, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { Time } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { hostsOf } from "../shared/hosts";
import type { StreamAnswer } from "../shared/stream_types";
import { addressesOf, baseOf } from "./code";
import type { StreamProps } from "./index";
import { words } from "./words";

const texts = words.access;

export function Access({ stream, set }: StreamProps) {
  const mayChange = can("write");
  const change = async (body: object) =>
    set((await api.patch<StreamAnswer>(`/api/video/streams/${stream.id}`, body)).stream);
  const turn = (isSigned: boolean) =>
    change({ access: isSigned ? "signed" : "public" }).catch((thrown: Error) => toast(thrown.message, "bad"));
  return (
    <div class="columns">
      <Section title={words.tabs.access}>
        <Switch
          label={texts.signed}
          hint={texts.signedHint}
          checked={stream.access === "signed"}
          disabled={!mayChange}
          onChange={turn}
        />
        <Form
          action={async (values) => {
            const ttl = String(values.get("tokenTtlSeconds") ?? "").trim();
            await change({
              allowedDomains: hostsOf(String(values.get("allowedDomains"))),
              tokenTtlSeconds: ttl ? Number(ttl) : null,
            });
            toast(words.saved, "good");
          }}
        >
          <TextArea
            label={texts.domains}
            name="allowedDomains"
            hint={texts.domainsHint}
            defaultValue={stream.allowedDomains.join("\n")}
            spellcheck={false}
            readOnly={!mayChange}
          />
          <TextField
            label={texts.ttl}
            name="tokenTtlSeconds"
            hint={texts.ttlHint}
            type="number"
            min={60}
            max={604_800}
            placeholder="3600"
            defaultValue={stream.tokenTtlSeconds === null ? "" : String(stream.tokenTtlSeconds)}
            readOnly={!mayChange}
          />
          {mayChange ? (
            <div class="actions">
              <Submit>{words.save}</Submit>
            </div>
          ) : (
            <p class="soft small">{texts.viewer}</p>
          )}
        </Form>
      </Section>
      {mayChange && <Token stream={stream} />}
    </div>
  );
}

interface PlaybackToken {
  token: string;
  manifestUrl: string;
  expiresAt: string;
}

function Token({ stream }: Pick<StreamProps, "stream">) {
  const [made, setMade] = useState<PlaybackToken | null>(null);
  const make = async (values: FormData) => {
    const expiresIn = String(values.get("expiresIn") ?? "");
    const allowedDomains = hostsOf(String(values.get("tokenDomains") ?? ""));
    setMade(
      await api.post<PlaybackToken>(`/api/video/streams/${stream.id}/playback-token`, {
        expiresIn: expiresIn ? Number(expiresIn) : undefined,
        allowedDomains: allowedDomains.length > 0 ? allowedDomains : undefined,
      }),
    );
  };
  return (
    <Section title={texts.token}>
      <p class="soft">{texts.tokenLead}</p>
      {stream.access === "public" && <p class="soft small">{texts.tokenPublic}</p>}
      <Form action={make}>
        <Select
          label={texts.lifetime}
          name="expiresIn"
          choices={Object.entries(texts.lifetimes).map(([value, label]) => ({ value, label }))}
        />
        <TextArea
          label={texts.tokenDomains}
          name="tokenDomains"
          hint={texts.domainsHint}
          spellcheck={false}
          rows={2}
        />
        <div class="actions">
          <Submit>{texts.make}</Submit>
        </div>
      </Form>
      {made && <Made token={made} />}
    </Section>
  );
}

/** A token takes the place of a public stream's playback id. */
function Made({ token: { token, manifestUrl, expiresAt } }: { token: PlaybackToken }) {
  const { page, hls } = addressesOf({ playbackId: token, access: "public", title: "" }, baseOf(manifestUrl));
  return (
    <>
      <CopyField label={texts.tokenPage} value={page} />
      <CopyField label={texts.tokenHls} value={hls} />
      <p class="soft small">
        {texts.until} <Time at={expiresAt} />
      </p>
    </>
  );
}
