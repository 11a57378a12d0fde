/** The dialog that makes an invitation, and its link, shown once. */
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Form, Select, TextField } from "../../parts/form";
import { RoleChoice } from "./role_choice";
import { words } from "./words";

/** Asks for role, note and lifetime; calls `made` when there is an invitation. */
export async function invite(made?: () => void) {
  let url = "";
  await openDialog((close) => (
    <Dialog title={words.invitations.dialog} onClose={close}>
      <Form
        label={words.invitations.dialog}
        action={async (values) => {
          const body = {
            role: values.get("role"),
            note: String(values.get("note")).trim() || undefined,
            expiresInHours: Number(values.get("expiresInHours")),
          };
          url = (await api.post<{ invitation: { url: string } }>("/api/invitations", body)).invitation.url;
          close();
        }}
      >
        <TextField
          label={words.invitations.note}
          name="note"
          hint={words.invitations.noteHint}
          maxLength={200}
        />
        <RoleChoice value="member" />
        <Select
          label={words.invitations.lifetime}
          name="expiresInHours"
          defaultValue="72"
          choices={words.invitations.lifetimes}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.invitations.make}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
  if (!url) return;
  made?.();
  const fields = [{ label: words.invitations.label, value: url }];
  url = "";
  await showSecret({ title: words.invitations.madeTitle, note: words.invitations.shown, fields });
}
