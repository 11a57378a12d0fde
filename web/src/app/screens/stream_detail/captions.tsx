/** Captions: those that players offer, and adding one. */
import { useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { can } from "../../api/session";
import { Button, ButtonLink, Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Checkbox, Field, Form, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { Badge } from "../../parts/states";
import { Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import type { Caption } from "../shared/stream_types";
import type { StreamProps } from "./index";
import { words } from "./words";

const texts = words.captions;

export function Captions({ stream, set }: StreamProps) {
  const remove = ({ language, label }: Caption) =>
    ask({
      title: texts.removeTitle(label),
      body: texts.removeBody,
      verb: texts.removeVerb,
      action: async () => {
        await api.delete(`/api/video/streams/${stream.id}/captions/${encodeURIComponent(language)}`);
        set({ ...stream, captions: stream.captions.filter((caption) => caption.language !== language) });
        toast(texts.removed, "good");
      },
    });
  return (
    <div class="columns">
      <Section title={texts.title}>
        {stream.captions.length === 0 && <p class="soft">{texts.none}</p>}
        <ul class="rows">
          {stream.captions.map((caption) => (
            <li key={caption.language}>
              <span class="grow">
                <Name>{caption.label}</Name> <span class="soft small">{caption.language}</span>{" "}
                {caption.isDefault && <Badge>{texts.default}</Badge>}
              </span>
              <ButtonLink small look="quiet" icon="download" href={onThisOrigin(caption.url)} download>
                {texts.download}
              </ButtonLink>
              {can("write") && (
                <Button
                  small
                  look="quiet"
                  icon="trash"
                  label={texts.remove(caption.label)}
                  onClick={() => remove(caption)}
                />
              )}
            </li>
          ))}
        </ul>
      </Section>
      {can("write") ? <Add stream={stream} set={set} /> : <p class="soft small">{words.settings.viewer}</p>}
    </div>
  );
}

function Add({ stream, set }: StreamProps) {
  const [round, setRound] = useState(0);
  const add = async (values: FormData) => {
    const file = values.get("file");
    if (!(file instanceof File) || file.size === 0)
      throw new ApiError(400, texts.needed, undefined, undefined, "file");
    const form = new FormData();
    form.append("file", file);
    for (const name of ["language", "label"]) {
      const text = String(values.get(name) ?? "").trim();
      if (text) form.append(name, text);
    }
    form.append("isDefault", String(values.get("isDefault") === "on"));
    const { caption } = await api.post<{ caption: Caption }>(
      `/api/video/streams/${stream.id}/captions`,
      form,
    );
    const others = stream.captions
      .filter(({ language }) => language !== caption.language)
      .map((other) => (caption.isDefault ? { ...other, isDefault: false } : other));
    set({ ...stream, captions: [...others, caption] });
    setRound(round + 1);
    toast(texts.added, "good");
  };
  return (
    <Section title={texts.add}>
      <Form key={round} action={add}>
        <Field label={texts.file} name="file" hint={texts.fileHint}>
          {(bound) => <input {...bound} type="file" class="input" accept=".vtt,.srt,text/vtt" />}
        </Field>
        <TextField label={texts.language} name="language" hint={texts.languageHint} required maxLength={35} />
        <TextField label={texts.label} name="label" hint={texts.labelHint} maxLength={100} />
        <Checkbox label={texts.isDefault} name="isDefault" />
        <div class="actions">
          <Submit>{texts.submit}</Submit>
        </div>
      </Form>
    </Section>
  );
}
