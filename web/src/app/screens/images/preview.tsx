/** Source and result, beside each other or one over the other, with what the result weighs. */
import { useState } from "preact/hooks";
import { Compare } from "../../parts/compare";
import { formatBytes, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, ErrorState } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { thumbnailOf } from "../shared/thumbnail";
import { pointOf } from "./address";
import type { Delivered, useDelivered } from "./delivered";
import type { StoredFile } from "./types";
import { words } from "./words";

export interface Sides {
  width: number;
  height: number;
}

interface PreviewProps {
  file: StoredFile | undefined;
  of: ReturnType<typeof useDelivered>;
  /** Why nothing is asked for. */
  note: string | undefined;
  /** The focal point's value, and its change; without one a click means nothing. */
  point: string;
  onPoint: ((value: string) => void) | undefined;
  sides: Sides | undefined;
  setSides: (sides: Sides | undefined) => void;
}

export function Preview({ file, of, note, point, onPoint, sides, setSides }: PreviewProps) {
  const [look, setLook] = useState<"side" | "compare">("side");
  const before = file ? thumbnailOf(file, 1280) : null;
  const { data, error } = of;
  const isSame = isSameShape(file, sides);
  const isCompared = look === "compare" && isSame && before && data?.url;
  const onLoad = (event: Event) => {
    const { naturalWidth: width, naturalHeight: height } = event.currentTarget as HTMLImageElement;
    setSides({ width, height });
  };
  return (
    <Section
      title={words.preview.title}
      class="builder-preview"
      actions={
        isSame &&
        before && (
          <Segmented
            label={words.preview.looks}
            value={look}
            choices={[
              { value: "side", label: words.preview.side },
              { value: "compare", label: words.preview.compare },
            ]}
            onChange={setLook}
          />
        )
      }
    >
      {error && <ErrorState error={error} retry={of.again} />}
      {note && <p class="soft">{note}</p>}
      {isCompared ? (
        <Compare
          before={before}
          after={data.url ?? ""}
          label={words.preview.compareLabel}
          names={{ before: words.preview.source, after: words.preview.result }}
        />
      ) : (
        <div class="builder-images" aria-busy={of.isLoading}>
          {file && (
            <figure>
              <SourcePicture src={before} point={point} onPoint={onPoint} />
              <figcaption class="small">
                <b>{words.preview.source}</b>{" "}
                <span class="numeric">
                  {formatBytes(file.size_bytes)}
                  {file.width && file.height ? `, ${file.width} × ${file.height}` : ""}
                </span>
              </figcaption>
            </figure>
          )}
          {data && !note && (
            <figure>
              {data.url ? (
                <div class={`builder-stage clear ${of.isLoading ? "builder-old" : ""}`}>
                  <img src={data.url} alt={words.preview.result} onLoad={onLoad} />
                </div>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls is reached by keyboard
                <pre class="builder-stage" tabIndex={0}>
                  {data.text}
                </pre>
              )}
              <figcaption class="small">
                <b>{words.preview.result}</b>{" "}
                <span class="numeric">
                  {formatBytes(data.bytes)}
                  {data.url && sides ? `, ${sides.width} × ${sides.height}` : ""}
                </span>
              </figcaption>
            </figure>
          )}
        </div>
      )}
      {data && !note && <Facts of={data} file={file} isLoading={of.isLoading} />}
      {onPoint && before && !isCompared && (
        <p class="soft small">{point ? words.preview.aimed : words.preview.aim}</p>
      )}
    </Section>
  );
}

/** Whether both show the same part, so that one over the other means something. */
function isSameShape(file: StoredFile | undefined, sides: Sides | undefined): boolean {
  if (!file?.width || !file.height || !sides) return false;
  return Math.abs(file.width / file.height / (sides.width / sides.height) - 1) < 0.015;
}

function Facts({ of, file, isLoading }: { of: Delivered; file: StoredFile | undefined; isLoading: boolean }) {
  const share = file ? of.bytes / Math.max(1, file.size_bytes) : 1;
  return (
    <p class="builder-facts small" role="status">
      <Badge tone="info">{of.type.replace("image/", "").toUpperCase()}</Badge>
      <Badge tone={of.cache === "hit" ? "good" : "calm"}>
        {words.preview.cache}: {of.cache}
      </Badge>
      <span class="soft numeric">
        {isLoading ? `${words.preview.loading}…` : words.preview.answered(of.ms)}
        {of.url && share < 0.995 && `, ${words.preview.smaller(formatPercent(1 - share))}`}
        {of.url && share > 1.005 && `, ${words.preview.larger(formatPercent(share - 1))}`}
      </span>
    </p>
  );
}

interface SourcePictureProps {
  src: string | null;
  point: string;
  onPoint: ((value: string) => void) | undefined;
}

function SourcePicture({ src, point, onPoint }: SourcePictureProps) {
  const [broken, setBroken] = useState<string>();
  const [x, y] = point.split(",").map(Number);
  if (!src || broken === src) return <p class="builder-stage soft small">{words.preview.none}</p>;
  const aim = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    onPoint?.(pointOf((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height));
  };
  return (
    <div class="builder-stage">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the number fields of the parameter do the same */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the number fields of the parameter do the same */}
      <span class={`stage-image ${onPoint ? "stage-aim" : ""}`} onClick={aim}>
        <img src={src} alt={words.preview.source} draggable={false} onError={() => setBroken(src)} />
        {x !== undefined && y !== undefined && point && (
          <span
            class="stage-point"
            aria-hidden="true"
            style={{ insetInlineStart: `${x * 100}%`, insetBlockStart: `${y * 100}%` }}
          />
        )}
      </span>
    </div>
  );
}
