/** The builder's state as a new preset, or in place of one that there is. */
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { toast } from "../../shell/toasts";
import type { Preset } from "./types";
import { words } from "./words";

/** Asks for a name and saves; resolves when the dialog is closed. */
export function savePreset(params: Record<string, unknown>, saved: (preset: Preset) => void): Promise<void> {
  return openDialog((close) => (
    <Dialog title={words.preset.asPreset} onClose={close}>
      <Form
        action={async (values) => {
          const name = String(values.get("name")).trim();
          const { preset } = await api.post<{ preset: Preset }>("/api/cdn-presets", { name, params });
          toast(words.preset.saved(preset.name));
          saved(preset);
          close();
        }}
      >
        <TextField
          label={words.preset.name}
          name="name"
          hint={words.preset.nameHint}
          maxLength={64}
          required
          spellcheck={false}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.preset.save}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
