/** Dropping cached images by address or tag. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { can } from "../../api/session";
import { Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Form, TextArea } from "../../parts/form";
import { Section } from "../../parts/page";
import { query } from "../../router";
import { toast } from "../../shell/toasts";
import { purgeOf } from "./address";
import { words } from "./words";

export function Purge() {
  const [text, setText] = useState(query.peek().get("purge") ?? "");
  if (!can("write")) return null;
  const purge = async () => {
    const asked = purgeOf(text);
    const count = asked.urls.length + asked.tags.length;
    if (count === 0) throw new ApiError(400, words.purge.nothing, undefined, undefined, "urls");
    let dropped = 0;
    const done = await ask({
      title: words.purge.askTitle(count),
      body: words.purge.askBody,
      verb: words.purge.verb,
      action: async () => {
        const answer = await api.post<{ purged: number; purgedTags: number }>("/api/cdn-purge", asked);
        dropped = answer.purged + answer.purgedTags;
      },
    });
    if (!done) return;
    toast(words.purge.done(dropped, count), dropped === count ? "good" : "bad");
    if (dropped === count) setText("");
  };
  return (
    <Section title={words.purge.title}>
      <p class="soft prose">{words.purge.about}</p>
      <Form action={purge} label={words.purge.title}>
        <TextArea
          label={words.purge.label}
          name="urls"
          hint={words.purge.hint}
          rows={2}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="actions">
          <Submit look="danger">{words.purge.verb}</Submit>
        </div>
      </Form>
    </Section>
  );
}
