/** Before and after of a work: images under a slider or side by side, players for video and audio, facts as text. */
import { useEffect, useState } from "preact/hooks";
import { address } from "../../api/base";
import { CodeBox } from "../../parts/code_box";
import { Compare } from "../../parts/compare";
import { formatBytes, formatDuration } from "../../parts/format";
import { Segmented } from "../../parts/tabs";
import { thumbnailOf } from "../shared/thumbnail";
import type { ResultFile, Source } from "./types";
import { words } from "./words";
import { resultUrl, type Work } from "./work";

/** Types that every browser of today draws. */
const DRAWN = /^image\/(jpeg|png|webp|gif|avif|bmp)$/;
const SVG = "image/svg+xml";

interface Side {
  kind: "image" | "video" | "audio" | "none";
  url: string | null;
  /** The type in words: "TIFF". */
  type: string;
}

const typeOf = (mime: string) => (mime.split("/")[1] ?? mime).replace(/^x-|\+xml$/g, "").toUpperCase();

function kindOf(mime: string): Side["kind"] {
  const [kind] = mime.split("/");
  return kind === "video" || kind === "audio" ? kind : "image";
}

/** The source as this browser can show it; a stored image is the service's own preview, and bytes are only ever played. */
function useBefore({ file, stored, mime }: Source): Side {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!file) return;
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  const kind = kindOf(mime);
  const type = typeOf(mime);
  if (kind !== "image" && stored) return { kind, type, url: address(`/api/files/${stored.id}`) };
  if (kind !== "image") return { kind, type, url };
  if (stored) return { kind, type, url: thumbnailOf(stored, 1280) };
  return DRAWN.test(mime) ? { kind, type, url } : { kind: "none", type, url: null };
}

function afterOf(result: ResultFile, source: Source): Side {
  const mime = result.mimeType ?? "";
  const kind = kindOf(mime);
  const type = typeOf(mime);
  if (kind !== "image") return { kind, type, url: resultUrl(result) };
  // An SVG is drawn where the service has traced it, not where it may be someone's own
  const isTraced = mime === SVG && source.mime !== SVG;
  if (DRAWN.test(mime) || isTraced) return { kind, type, url: resultUrl(result) };
  if (!result.storedFileId) return { kind: "none", type, url: null };
  return { kind, type, url: address(`/api/files/${result.storedFileId}/preview`, { w: 1280 }) };
}

interface Size {
  width: number;
  height: number;
}

export function Stage({ work }: { work: Work }) {
  const [first] = work.results;
  const [source] = work.sources;
  if (!first || !source) return null;
  if (first.facts) return <CodeBox label={words.stage.facts}>{JSON.stringify(first.facts, null, 2)}</CodeBox>;
  return <Sides source={source} result={first} isJoined={work.sources.length > 1} />;
}

interface SidesProps {
  source: Source;
  result: ResultFile;
  isJoined: boolean;
}

function Sides({ source, result, isJoined }: SidesProps) {
  const before = useBefore(source);
  const after = afterOf(result, source);
  const [look, setLook] = useState<"over" | "side">("over");
  const [sizes, setSizes] = useState<Record<string, Size>>({});
  const size = (name: string, width: number, height: number) =>
    setSizes((known) => ({ ...known, [name]: { width, height } }));
  const isSame = isSameShape(sizes.before, sizes.after);
  const areImages = before.kind === "image" && after.kind === "image" && before.url && after.url;
  const isOver = look === "over" && isSame && areImages;
  if (isJoined)
    return (
      <div class="convert-sides">
        <Shown side={after} name="after" result={result} onSize={size} />
      </div>
    );
  return (
    <div class="stack">
      {isSame && areImages && (
        <div class="actions">
          <Segmented
            label={words.stage.looks}
            value={look}
            choices={[
              { value: "over", label: words.stage.over },
              { value: "side", label: words.stage.side },
            ]}
            onChange={setLook}
          />
        </div>
      )}
      {isOver ? (
        <div class="stack">
          <Compare
            before={before.url ?? ""}
            after={after.url ?? ""}
            label={words.stage.slider}
            names={{ before: words.stage.before, after: words.stage.after }}
          />
          <p class="convert-captions small">
            <Caption name="before" source={source} size={sizeOf(source) ?? sizes.before} />
            <Caption name="after" result={result} size={sizes.after} />
          </p>
        </div>
      ) : (
        <div class="convert-sides">
          <Shown side={before} name="before" source={source} onSize={size} />
          <Shown side={after} name="after" result={result} onSize={size} />
        </div>
      )}
    </div>
  );
}

/** Whether both show the same part, so that one over the other means something. */
function isSameShape(before: Size | undefined, after: Size | undefined): boolean {
  if (!before || !after) return false;
  return Math.abs(before.width / before.height / (after.width / after.height) - 1) < 0.015;
}

const sizeOf = ({ stored }: Source): Size | undefined =>
  stored?.width && stored.height ? { width: stored.width, height: stored.height } : undefined;

interface ShownProps {
  side: Side;
  name: "before" | "after";
  source?: Source;
  result?: ResultFile;
  onSize: (name: string, width: number, height: number) => void;
}

function Shown({ side, name, source, result, onSize }: ShownProps) {
  const [broken, setBroken] = useState<string | null>(null);
  const [size, setSize] = useState<Size>();
  const { kind, url, type } = side;
  const isBroken = url !== null && broken === url;
  const label = words.stage[name];
  const sized = (width: number, height: number) => {
    if (width === 0) return;
    setSize({ width, height });
    onSize(name, width, height);
  };
  return (
    <figure>
      <div class="convert-stage clear" data-kind={kind}>
        {url === null || isBroken || kind === "none" ? (
          <p class="soft small">{words.stage.none(type)}</p>
        ) : kind === "image" ? (
          <img
            src={url}
            alt={label}
            onError={() => setBroken(url)}
            onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) =>
              sized(naturalWidth, naturalHeight)
            }
          />
        ) : kind === "video" ? (
          <video
            controls
            playsInline
            preload="metadata"
            src={url}
            aria-label={label}
            onError={() => setBroken(url)}
            onLoadedMetadata={({ currentTarget: { videoWidth, videoHeight } }) =>
              sized(videoWidth, videoHeight)
            }
          />
        ) : (
          <audio controls preload="metadata" src={url} aria-label={label} onError={() => setBroken(url)} />
        )}
      </div>
      <figcaption class="small">
        <Caption
          name={name}
          source={source}
          result={result}
          size={(source && sizeOf(source)) ?? (result?.width ? undefined : size) ?? size}
        />
      </figcaption>
    </figure>
  );
}

interface CaptionProps {
  name: "before" | "after";
  source?: Source | undefined;
  result?: ResultFile | undefined;
  size: Size | undefined;
}

function Caption({ name, source, result, size }: CaptionProps) {
  const bytes = source?.size ?? result?.finalSize;
  const width = result?.width ?? size?.width;
  const height = result?.height ?? size?.height;
  const facts = [
    bytes !== undefined && bytes !== null ? formatBytes(bytes) : "",
    width && height ? `${width} × ${height}` : "",
    result?.duration ? formatDuration(result.duration * 1_000) : "",
  ];
  return (
    <span>
      <b>{words.stage[name]}</b> <span class="numeric">{facts.filter(Boolean).join(", ")}</span>
    </span>
  );
}
