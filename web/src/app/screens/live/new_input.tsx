/** Making a live input; its page, which then opens, shows how to connect. */
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { go } from "../../router";
import type { LiveInputWithKey } from "../shared/live_types";
import { words } from "./words";

export function newInput() {
  openDialog((close) => (
    <Dialog title={words.dialog.title} onClose={close}>
      <Form
        action={async (values) => {
          const name = String(values.get("name")) || undefined;
          const { liveInput } = await api.post<LiveInputWithKey>("/api/live/inputs", { name });
          close();
          go(`/live/${liveInput.id}/connect`);
        }}
      >
        <TextField label={words.dialog.name} name="name" hint={words.dialog.nameHint} maxLength={120} />
        <p class="soft small">{words.dialog.more}</p>
        <div class="dialog-actions">
          <Button onClick={close}>{words.dialog.cancel}</Button>
          <Submit>{words.dialog.make}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
