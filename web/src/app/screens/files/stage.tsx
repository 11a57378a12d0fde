/** The image, video, audio or page of a file. Stored bytes are only ever played; images are the service's own previews. */
import { useEffect, useRef, useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { Badge } from "../../parts/states";
import { toast } from "../../shell/toasts";
import { thumbnailOf } from "../shared/thumbnail";
import { bytesOf, endingOf, ICONS, kindOf } from "./kinds";
import { paneWords as words } from "./pane_words";
import type { FileDetail, FileRecord, FocalPoint } from "./types";

interface StageProps {
  file: FileDetail;
  set: (next: Partial<FileDetail>) => void;
}

export function Stage({ file, set }: StageProps) {
  const kind = kindOf(file.mime_type);
  if (kind === "video") return <Video file={file} />;
  if (kind === "audio") return <Audio file={file} />;
  return <ImagePreview file={file} set={set} isCropped={kind === "image"} />;
}

function ImagePreview({ file, set, isCropped }: StageProps & { isCropped: boolean }) {
  const [isBroken, setBroken] = useState(false);
  const [point, setPoint] = useState<FocalPoint | null>(null);
  const src = thumbnailOf(file, 1280);
  if (!src || isBroken) return <NoPreview file={file} />;
  const shown = point ?? file.focal_point;
  const save = async (focalPoint: FocalPoint | null) => {
    await api.patch(`/api/files/${file.id}`, { focalPoint });
    set({ focal_point: focalPoint });
    setPoint(null);
    toast(words.focal.saved);
  };
  const onClick = (event: MouseEvent) => {
    if (!point) return;
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const part = (value: number) => Math.round(Math.max(0, Math.min(1, value)) * 1_000) / 1_000;
    setPoint({
      x: part((event.clientX - box.left) / box.width),
      y: part((event.clientY - box.top) / box.height),
    });
  };
  return (
    <>
      <div class="stage">
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: the sliders below do the same */}
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the sliders below do the same */}
        <span class={`stage-image ${point ? "stage-aim" : ""}`} onClick={onClick}>
          <img
            src={src}
            alt={file.description ?? file.filename}
            draggable={false}
            onError={() => setBroken(true)}
          />
          {shown && (
            <span
              class="stage-point"
              aria-hidden="true"
              style={{ insetInlineStart: `${shown.x * 100}%`, insetBlockStart: `${shown.y * 100}%` }}
            />
          )}
        </span>
      </div>
      {isCropped && can("write") && (
        <FocalForm point={point} stored={file.focal_point} setPoint={setPoint} save={save} />
      )}
    </>
  );
}

interface FocalProps {
  point: FocalPoint | null;
  stored: FocalPoint | null;
  setPoint: (point: FocalPoint | null) => void;
  save: (point: FocalPoint | null) => Promise<void>;
}

function FocalForm({ point, stored, setPoint, save }: FocalProps) {
  if (!point)
    return (
      <div class="actions">
        <Button small look="quiet" icon="target" onClick={() => setPoint(stored ?? { x: 0.5, y: 0.5 })}>
          {words.focal.set}
        </Button>
      </div>
    );
  const slider = (label: string, axis: "x" | "y") => (
    <label class="small">
      {label}
      <input
        type="range"
        min={0}
        max={100}
        value={Math.round(point[axis] * 100)}
        onInput={(event) => setPoint({ ...point, [axis]: Number(event.currentTarget.value) / 100 })}
      />
    </label>
  );
  return (
    <fieldset class="stack plain-set">
      <legend class="small">{words.focal.title}</legend>
      <p class="soft small">{words.focal.hint}</p>
      <div class="form-row">
        {slider(words.focal.across, "x")}
        {slider(words.focal.down, "y")}
      </div>
      <div class="actions">
        <Button small look="solid" action={() => save(point)}>
          {words.focal.save}
        </Button>
        {stored && (
          <Button small action={() => save(null)}>
            {words.focal.clear}
          </Button>
        )}
        <Button small look="quiet" onClick={() => setPoint(null)}>
          {words.focal.cancel}
        </Button>
      </div>
    </fieldset>
  );
}

function NoPreview({ file }: { file: FileRecord }) {
  return (
    <div class="stage stage-none">
      <Icon name={ICONS[kindOf(file.mime_type)]} class="icon-l" />
      <span class="files-ending">{endingOf(file.filename)}</span>
      <p class="soft small">{words.none}</p>
    </div>
  );
}

function Audio({ file }: { file: FileDetail }) {
  const [isBroken, setBroken] = useState(false);
  const src = thumbnailOf(file, 640);
  return (
    <div class="stage stage-none">
      {src && !isBroken ? (
        <img src={src} alt="" onError={() => setBroken(true)} />
      ) : (
        <Icon name="audio" class="icon-l" />
      )}
      <audio controls preload="metadata" src={bytesOf(file)} aria-label={file.filename} />
    </div>
  );
}

interface Stream {
  id: string;
  status: string;
  progress: number;
  playable: boolean;
  access: string;
  manifestUrl: string | null;
}

/** Plays the video's stream when it has one, else the stored bytes. */
function Video({ file }: { file: FileDetail }) {
  const video = useRef<HTMLVideoElement>(null);
  const [isBroken, setBroken] = useState(false);
  const streams = useResource(
    (signal) =>
      api.get<{ streams: Stream[] }>("/api/video/streams", {
        query: { sourceFileId: file.id, limit: 5 },
        signal,
      }),
    [file.id],
    { on: ["stream"] },
  );
  const list = streams.data?.streams ?? [];
  const stream = list.find(
    ({ playable, manifestUrl, status }) => playable && manifestUrl && status !== "failed",
  );
  const making = list.find(({ status }) => status === "pending" || status === "processing");
  const source = stream?.manifestUrl ? onThisOrigin(stream.manifestUrl) : null;
  const isKnown = streams.data !== undefined || streams.error !== undefined;

  useEffect(() => {
    const element = video.current;
    if (!element || !isKnown) return;
    let release = () => {};
    let ended = false;
    const direct = () => {
      element.src = bytesOf(file);
    };
    if (source)
      import("../../../share/stream").then(({ play }) => {
        if (!ended) release = play(element, source, direct);
      });
    else direct();
    return () => {
      ended = true;
      release();
      element.removeAttribute("src");
      element.load();
    };
  }, [source, isKnown, file.id]);

  const make = async () => {
    await api.post("/api/video/streams", { sourceFileId: file.id });
    streams.reload();
  };
  return (
    <>
      <div class="stage">
        <video
          ref={video}
          controls
          playsInline
          preload="metadata"
          poster={thumbnailOf(file, 1280) ?? undefined}
          aria-label={file.filename}
          onError={(event) => event.currentTarget.getAttribute("src") && setBroken(true)}
          onLoadedMetadata={() => setBroken(false)}
        />
      </div>
      {stream && <Badge>{words.streamed}</Badge>}
      {making && !stream && <p class="soft small">{words.streaming(making.progress)}</p>}
      {!stream && !making && isBroken && (
        <div class="stack">
          <p class="small">{words.unplayable}</p>
          {can("write") && (
            <div class="actions">
              <Button small action={make}>
                {words.makeStream}
              </Button>
            </div>
          )}
        </div>
      )}
    </>
  );
}
