/** What is delivered, and with which key: chosen, or made in place. */
import { useRef, useState } from "preact/hooks";
import { asApiError } from "../../api/error";
import type { Resource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Select } from "../../parts/form";
import { formatCompact } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Section } from "../../parts/page";
import { ErrorState, Meter } from "../../parts/states";
import { Bytes, Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { store } from "../overview/deliver_image";
import { thumbnailOf } from "../shared/thumbnail";
import { partOf } from "./address";
import { changeDraft, draft } from "./draft";
import { MOST_KEYS } from "./keys";
import type { DeliveryKey, StoredFile } from "./types";
import { words } from "./words";

interface SourceProps {
  file: Resource<StoredFile>;
  keys: DeliveryKey[];
  addKey: (key: DeliveryKey) => void;
  month: { used: number; limit: number | null } | undefined;
}

export function Source({ file, keys, addKey, month }: SourceProps) {
  return (
    <Section title={words.file.title} class="builder-source">
      <FileChoice file={file} />
      <KeyChoice keys={keys} addKey={addKey} />
      {month && (
        <Meter
          label={words.month}
          value={month.used}
          limit={month.limit}
          format={formatCompact}
          note={words.monthNote}
        />
      )}
      {!can("write") && <p class="soft small">{words.viewer}</p>}
    </Section>
  );
}

const choose = async () => {
  const { chooseFile } = await import("../shared/choose_file");
  const chosen = await chooseFile({
    types: "image,video,audio,document",
    search: words.file.searchLabel,
    noneStored: words.file.noneStored,
  });
  if (chosen) changeDraft({ file: chosen.id });
};

function FileChoice({ file }: { file: Resource<StoredFile> }) {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [isOver, setOver] = useState(false);
  const mayStore = can("write");
  const take = async (chosen: File | undefined) => {
    if (!chosen || isBusy || !mayStore) return;
    setBusy(true);
    try {
      changeDraft({ file: await store(chosen) });
    } catch (thrown) {
      toast(asApiError(thrown).message, "bad");
    } finally {
      setBusy(false);
    }
  };
  const isChosen = draft.value.file !== "";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same as a drop
    <div
      class={`drop builder-drop ${isOver ? "drop-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(mayStore);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files[0]);
      }}
    >
      {isChosen && file.data && <Chosen file={file.data} />}
      {isChosen && file.error && <ErrorState error={file.error} />}
      <div class="actions">
        <Button icon="search" look={isChosen ? "plain" : "solid"} onClick={choose}>
          {isChosen ? words.file.other : words.file.choose}
        </Button>
        {mayStore && (
          <Button icon="upload" aria-busy={isBusy || undefined} onClick={() => input.current?.click()}>
            {words.file.upload}
          </Button>
        )}
      </div>
      {mayStore && !isChosen && <p class="soft small">{words.file.drop}</p>}
      <input
        ref={input}
        type="file"
        hidden
        aria-label={words.file.upload}
        onChange={(event) => {
          take(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

function Chosen({ file }: { file: StoredFile }) {
  const src = thumbnailOf(file, 320);
  return (
    <div class="builder-file">
      {src ? <img src={src} alt="" /> : <Icon name="file" />}
      <div>
        <Name>{file.filename}</Name>
        <p class="soft small">
          {file.width && file.height ? `${file.width} × ${file.height} · ` : ""}
          <Bytes value={file.size_bytes} />
        </p>
      </div>
    </div>
  );
}

function KeyChoice({ keys, addKey }: { keys: DeliveryKey[]; addKey: (key: DeliveryKey) => void }) {
  const make = async () => {
    const { newKey } = await import("./new_key");
    const made = await newKey();
    if (!made) return;
    addKey(made);
    changeDraft({ key: made.id });
  };
  const label = (key: DeliveryKey) => {
    if (!partOf(key)) return `${key.name} (${words.key.lost(key.key_prefix)})`;
    return key.presets_only ? `${key.name} (${words.key.presetsOnly})` : key.name;
  };
  return (
    <div class="stack">
      {keys.length > 0 ? (
        <Select
          label={words.key.label}
          name="key"
          value={draft.value.key}
          hint={keys.length >= MOST_KEYS && words.key.newest}
          choices={[
            ...(draft.value.key ? [] : [{ value: "", label: words.unset }]),
            ...keys.map((key) => ({ value: key.id, label: label(key) })),
          ]}
          onChange={(event) => changeDraft({ key: event.currentTarget.value })}
        />
      ) : (
        <p class="soft small">{words.key.none}</p>
      )}
      {can("write") && (
        <div class="actions">
          <Button
            icon="plus"
            look={keys.length > 0 ? "plain" : "solid"}
            small={keys.length > 0}
            onClick={make}
          >
            {words.key.new}
          </Button>
        </div>
      )}
    </div>
  );
}
