/** Making a stream of an upload or of a stored file. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, Select, TextArea, TextField } from "../../parts/form";
import { formatBytes } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Name } from "../../parts/values";
import { go } from "../../router";
import { hostsOf } from "../shared/hosts";
import type { StreamAnswer } from "../shared/stream_types";
import { renditionsOf } from "./renditions";
import { words } from "./words";

const texts = words.make;

interface Source {
  name: string;
  size: number;
  file?: File;
  id?: string;
}

/** Opens the dialog; `file` is a stored one that is taken. */
export function newStream(file?: { id: string; filename: string; size_bytes: number }) {
  const given = file && { id: file.id, name: file.filename, size: file.size_bytes };
  openDialog((close) => (
    <Dialog title={texts.title} onClose={close} wide>
      <StreamForm close={close} given={given} />
    </Dialog>
  ));
}

function StreamForm({ close, given }: { close: () => void; given: Source | undefined }) {
  const [source, setSource] = useState<Source | undefined>(given);
  const [profile, setProfile] = useState("standard");
  const [sent, setSent] = useState<number | null>(null);
  const stop = useRef(() => {});
  const isStopped = useRef(false);
  useEffect(
    () => () => {
      isStopped.current = true;
      stop.current();
    },
    [],
  );

  const make = async (values: FormData) => {
    const text = (name: string) => String(values.get(name) ?? "").trim();
    if (!source) throw new ApiError(400, texts.needed);
    const renditions = profile === "custom" ? renditionsOf(text("renditions")) : undefined;
    if (profile === "custom" && !renditions)
      throw new ApiError(400, texts.heightsHint, undefined, undefined, "renditions");
    const sourceFileId = source.id ?? (await upload(source));
    const { stream } = await api.post<StreamAnswer>("/api/video/streams", {
      sourceFileId,
      title: text("title") || undefined,
      profile,
      renditions,
      access: text("access"),
      allowedDomains: hostsOf(text("allowedDomains")),
      segmentDuration: text("segmentDuration") ? Number(text("segmentDuration")) : undefined,
    });
    close();
    go(`/streams/${stream.id}`);
  };

  /** Stores the file by a resumable upload; a second try takes what is stored already. */
  const upload = async ({ file, name, size }: Source): Promise<string> => {
    if (!file) throw new ApiError(400, texts.needed);
    const { resumable, send } = await import("../files/uploads/sending");
    setSent(0);
    try {
      const id = await send({
        file,
        folder: null,
        resume: undefined,
        onId: () => {},
        onSent: (bytes) => setSent(Math.floor((100 * bytes) / Math.max(1, size))),
        onLimit: () => {},
        onStop: (end) => {
          stop.current = end;
        },
        isStopped: () => isStopped.current,
      });
      const stored = id ? await resumable(id) : null;
      if (!stored?.fileId) throw new ApiError(404, texts.needed);
      setSource({ id: stored.fileId, name, size });
      return stored.fileId;
    } finally {
      setSent(null);
    }
  };

  return (
    <Form action={make}>
      <SourceChoice source={source} setSource={setSource} />
      <TextField label={texts.name} name="title" hint={texts.nameHint} maxLength={200} />
      <Select
        label={texts.profile}
        name="profile"
        hint={texts.profileHint}
        value={profile}
        choices={Object.entries(texts.profiles).map(([value, label]) => ({ value, label }))}
        onChange={(event) => setProfile(event.currentTarget.value)}
      />
      {profile === "custom" && (
        <TextField
          label={texts.heights}
          name="renditions"
          hint={texts.heightsHint}
          defaultValue="360, 720"
          required
        />
      )}
      <details class="stream-further">
        <summary>{texts.further}</summary>
        <div class="stack">
          <Select
            label={texts.access}
            name="access"
            choices={Object.entries(texts.accesses).map(([value, label]) => ({ value, label }))}
          />
          <TextArea label={texts.domains} name="allowedDomains" hint={texts.domainsHint} spellcheck={false} />
          <TextField
            label={texts.segment}
            name="segmentDuration"
            hint={texts.segmentHint}
            type="number"
            min={2}
            max={12}
            placeholder="6"
          />
        </div>
      </details>
      {sent !== null && (
        <p class="stream-progress" role="status">
          <progress aria-label={texts.sending(sent)} max={100} value={sent} />
          <span class="soft small numeric">{texts.sending(sent)}</span>
        </p>
      )}
      <div class="dialog-actions">
        <Button onClick={close}>{texts.cancel}</Button>
        <Submit>{texts.start}</Submit>
      </div>
    </Form>
  );
}

interface ChoiceProps {
  source: Source | undefined;
  setSource: (source: Source) => void;
}

function SourceChoice({ source, setSource }: ChoiceProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const take = (file: File | undefined) => file && setSource({ file, name: file.name, size: file.size });
  const fromFiles = async () => {
    const { chooseFile } = await import("../shared/choose_file");
    const file = await chooseFile({ types: "video,audio" });
    if (file) setSource({ id: file.id, name: file.filename, size: file.size_bytes });
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside do the same as a drop
    <div
      class={`drop ${isOver ? "drop-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files[0]);
      }}
    >
      <p class="field-label">{texts.source}</p>
      {source && (
        <p class="stream-source">
          <Icon name="video" />
          <Name>{source.name}</Name>
          <span class="soft small numeric">{formatBytes(source.size)}</span>
        </p>
      )}
      <div class="actions">
        <Button icon="upload" onClick={() => input.current?.click()}>
          {texts.upload}
        </Button>
        <Button icon="files" action={fromFiles}>
          {texts.stored}
        </Button>
      </div>
      <p class="soft small">{source?.file ? texts.stored_note : texts.drop}</p>
      <input
        ref={input}
        type="file"
        accept="video/*,audio/*,.mkv,.ts,.flv"
        hidden
        data-pick="stream"
        aria-label={texts.upload}
        onChange={(event) => take(event.currentTarget.files?.[0])}
      />
    </div>
  );
}
