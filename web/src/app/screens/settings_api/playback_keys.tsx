/** Keys with which other servers sign playback tokens. */
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { CopyButton } from "../../parts/copy";
import { Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { Ago, Name } from "../../parts/values";
import { curl, KeyList, revoke, useKeys, useNew } from "./key_list";
import type { PlaybackKey } from "./types";
import { words } from "./words";

const PATH = "/api/playback-keys";

export function PlaybackKeys() {
  const keys = useKeys<PlaybackKey>(PATH, "playback_key");
  const make = () => newKey(keys.reload);
  useNew(make, can("admin"));
  return (
    <KeyList
      of={keys}
      about={words.playback.about}
      empty={{
        title: words.playback.emptyTitle,
        curl: curl(PATH, { name: "my site" }),
        guide: { href: "/guides/playback", label: words.playback.guide },
      }}
      action={
        <Button look="solid" icon="plus" onClick={make}>
          {words.playback.new}
        </Button>
      }
    >
      {(rows) => (
        <table class="table table-cards">
          <thead>
            <tr>
              <th scope="col">{words.name}</th>
              <th scope="col">{words.playback.kid}</th>
              <th scope="col">{words.created}</th>
              <th scope="col">
                <span class="visually-hidden">{words.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((key) => (
              <tr key={key.id}>
                <th scope="row">
                  <Name>{key.name}</Name>
                </th>
                <td data-label={words.playback.kid}>
                  <code>{key.id}</code> <CopyButton value={key.id} what={words.playback.kid} />
                </td>
                <td data-label={words.created}>
                  <Ago at={key.createdAt} />
                </td>
                <td class="end">
                  <Button
                    small
                    look="danger"
                    aria-label={`${words.delete} ${key.name}`}
                    onClick={() =>
                      revoke(`${PATH}/${key.id}`, words.playback).then((done) => done && keys.reload())
                    }
                  >
                    {words.delete}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </KeyList>
  );
}

function newKey(changed: () => void) {
  let made: { key: PlaybackKey; secret: string } | undefined;
  openDialog((close) => (
    <Dialog title={words.playback.new} onClose={close}>
      <Form
        action={async (values) => {
          made = await api.post(PATH, { name: String(values.get("name")) || undefined });
          close();
        }}
      >
        <TextField label={words.name} name="name" hint={words.playback.nameHint} maxLength={120} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.make}</Submit>
        </div>
      </Form>
    </Dialog>
  )).then(async () => {
    if (!made) return;
    changed();
    const fields = [
      { label: words.playback.kid, value: made.key.id },
      { label: words.playback.secret, value: made.secret },
    ];
    made = undefined;
    await showSecret({ title: words.playback.new, note: words.playback.shown, fields });
  });
}
