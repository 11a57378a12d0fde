/** One photo, dropped: stored, and shown in the builder with an address that works, on a delivery key made on the way. */
import { useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { Icon } from "../../parts/icon";
import { go } from "../../router";
import { toast } from "../../shell/toasts";
import { words } from "./words";

interface Keys {
  keys: { id: string; token: string | null }[];
}

export function DeliverImage() {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [isOver, setOver] = useState(false);
  const take = async (file: File | undefined) => {
    if (!file || isBusy) return;
    setBusy(true);
    try {
      go("/images", { search: { file: await store(file), key: await deliveryKey() } });
    } catch (thrown) {
      toast(asApiError(thrown).message, "bad");
      setBusy(false);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer?.files[0]);
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same as a drop */}
      <div
        class={`drop ${isOver ? "drop-over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <p class="soft">{words.steps.image.lead}</p>
        <button
          type="button"
          class="btn btn-plain"
          aria-busy={isBusy || undefined}
          onClick={() => input.current?.click()}
        >
          <Icon name="upload" />
          {isBusy ? words.steps.image.busy : words.steps.image.choose}
        </button>
      </div>
      <input
        ref={input}
        type="file"
        accept="image/*"
        hidden
        aria-label={words.steps.image.choose}
        onChange={(event) => take(event.currentTarget.files?.[0])}
      />
    </>
  );
}

/** Stores a file at the top; returns its id. */
export async function store(file: File): Promise<string> {
  const form = new FormData();
  form.append("file", file);
  return (await api.post<{ file: { id: string } }>("/api/files", form)).file.id;
}

/** The first key whose token can be shown; one is made when there is none. */
async function deliveryKey(): Promise<string> {
  const { keys } = await api.get<Keys>("/api/delivery-keys");
  const usable = keys.find((key) => key.token);
  if (usable) return usable.id;
  const { key } = await api.post<{ key: { id: string } }>("/api/delivery-keys", {
    name: words.steps.image.keyName,
  });
  return key.id;
}
