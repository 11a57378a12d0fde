/** A delivery key made in place. */
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import type { DeliveryKey } from "./types";
import { words } from "./words";

/** Resolves with the key, or undefined when none was made. */
export async function newKey(): Promise<DeliveryKey | undefined> {
  let made: DeliveryKey | undefined;
  await openDialog((close) => (
    <Dialog title={words.key.newTitle} onClose={close}>
      <Form
        action={async (values) => {
          const name = String(values.get("name")) || undefined;
          made = (await api.post<{ key: DeliveryKey }>("/api/delivery-keys", { name })).key;
          close();
        }}
      >
        <TextField label={words.key.name} name="name" hint={words.key.nameHint} maxLength={120} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.key.make}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
  return made;
}
