/** What was recorded of the input, and clips of what is on air. */
import { api } from "../../api/client";
import { usePages } from "../../api/resource";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, Select, TextField } from "../../parts/form";
import { formatBytes, formatDuration, formatNumber } from "../../parts/format";
import { Badge, EmptyState, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { go, href } from "../../router";
import { toast } from "../../shell/toasts";
import type { LiveInput, LiveInputAnswer } from "../shared/live_types";
import type { InputProps } from "./index";
import type { Recording } from "./types";
import { words } from "./words";

const TONES: Record<string, Tone> = { recording: "live", processing: "info", ready: "good", failed: "bad" };

interface RecordingPage {
  recordings: Recording[];
  nextCursor: string | null;
}

export function Recordings({ input, set }: InputProps) {
  const path = `/api/live/inputs/${input.id}/recordings`;
  const list = usePages<Recording>(
    async (cursor, signal) => {
      const query = { limit: 50, cursor };
      const { recordings, nextCursor } = await api.get<RecordingPage>(path, { query, signal });
      return { items: recordings, next: nextCursor };
    },
    `${path} ${input.status}`,
    ["recording"],
  );
  const isOn = input.recordMode === "automatic";
  const turnOn = async () =>
    set(
      (await api.patch<LiveInputAnswer>(`/api/live/inputs/${input.id}`, { recordMode: "automatic" }))
        .liveInput,
    );
  return (
    <Loaded of={list} skeleton={<Skeleton rows={3} height={56} />}>
      {({ items: recordings, hasMore }) =>
        recordings.length === 0 ? (
          <EmptyState
            icon="video"
            title={words.recordings.emptyTitle}
            action={
              !isOn &&
              can("write") && (
                <Button look="solid" action={turnOn}>
                  {words.recordings.turnOn}
                </Button>
              )
            }
            guide={{ href: "/guides/recordings", label: words.recordings.guide }}
          >
            {isOn ? words.recordings.emptyOn : words.recordings.emptyOff}
          </EmptyState>
        ) : (
          <div class="card">
            <RecordingTable recordings={recordings} />
            {hasMore && (
              <Button small onClick={list.more}>
                {words.health.more}
              </Button>
            )}
          </div>
        )
      }
    </Loaded>
  );
}

function RecordingTable({ recordings }: { recordings: Recording[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.recordings.started}</th>
          <th scope="col">{words.recordings.length}</th>
          <th scope="col">{words.recordings.size}</th>
          <th scope="col">{words.recordings.peak}</th>
          <th scope="col">{words.recordings.status}</th>
          <th scope="col">{words.recordings.files}</th>
        </tr>
      </thead>
      <tbody>
        {recordings.map((item) => (
          <tr key={item.id}>
            <th scope="row">
              <Time at={item.startedAt} />
            </th>
            <td data-label={words.recordings.length} class="numeric">
              {formatDuration(sum(item, "duration") * 1_000)}
            </td>
            <td data-label={words.recordings.size} class="numeric">
              {formatBytes(sum(item, "sizeBytes"))}
            </td>
            <td data-label={words.recordings.peak} class="numeric">
              {item.peakViewers == null ? "–" : formatNumber(item.peakViewers)}
            </td>
            <td data-label={words.recordings.status}>
              <Badge tone={TONES[item.status] ?? "calm"}>
                {words.recordings.statuses[item.status] ?? item.status}
              </Badge>
              {(item.error ?? item.stoppedReason) && (
                <p class="field-error">{item.error ?? item.stoppedReason}</p>
              )}
            </td>
            <td data-label={words.recordings.files}>
              {item.files.map((file) =>
                file.fileId ? (
                  <a key={file.fileId} class="one-line" href={href(`/files?file=${file.fileId}`)}>
                    <Name>{file.filename}</Name>
                  </a>
                ) : null,
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const sum = (recording: Recording, field: "duration" | "sizeBytes") =>
  recording.files.reduce((total, file) => total + file[field], 0);

/** Asks how much of what is on air to keep, and stores it. */
export function makeClip(input: LiveInput) {
  openDialog((close) => (
    <Dialog title={words.recordings.clipTitle} onClose={close}>
      <Form
        action={async (values) => {
          const { file } = await api.post<{ file: { id: string } }>(`/api/live/inputs/${input.id}/clips`, {
            start: -Number(values.get("start")),
            filename: String(values.get("filename")) || undefined,
          });
          close();
          toast(words.recordings.clipDone, "good", {
            label: words.recordings.clipOpen,
            run: () => go("/files", { search: { file: file.id } }),
          });
        }}
      >
        <p class="soft">{words.recordings.clipLead}</p>
        <Select
          label={words.recordings.clipLast}
          name="start"
          choices={Object.entries(words.recordings.clipLengths).map(([value, label]) => ({ value, label }))}
        />
        <TextField label={words.recordings.clipName} name="filename" maxLength={200} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.recordings.clipMake}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
