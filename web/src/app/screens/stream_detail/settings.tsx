/** The title, and the end of a stream. */
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { go } from "../../router";
import { toast } from "../../shell/toasts";
import type { StreamAnswer } from "../shared/stream_types";
import type { StreamProps } from "./index";
import { words } from "./words";

const texts = words.settings;

export function StreamSettings({ stream, set }: StreamProps) {
  const mayChange = can("write");
  const rename = async (values: FormData) => {
    const title = String(values.get("title") ?? "").trim();
    set((await api.patch<StreamAnswer>(`/api/video/streams/${stream.id}`, { title })).stream);
    toast(words.saved, "good");
  };
  const remove = async () => {
    const isDone = await ask({
      title: texts.deleteTitle(stream.title),
      body: texts.deleteBody,
      verb: texts.deleteVerb,
      action: () => api.delete(`/api/video/streams/${stream.id}`),
    });
    if (!isDone) return;
    toast(texts.deleted, "good");
    go("/streams");
  };
  if (!mayChange) return <p class="soft">{texts.viewer}</p>;
  return (
    <div class="columns">
      <Section title={words.tabs.settings}>
        <Form action={rename}>
          <TextField
            label={texts.name}
            name="title"
            hint={texts.nameHint}
            defaultValue={stream.title}
            required
            maxLength={200}
          />
          <div class="actions">
            <Submit>{words.save}</Submit>
          </div>
        </Form>
      </Section>
      <Section title={texts.delete}>
        <p class="soft">{texts.deleteLead}</p>
        <div class="actions">
          <Button look="danger" icon="trash" onClick={remove}>
            {texts.deleteVerb}
          </Button>
        </div>
      </Section>
    </div>
  );
}
