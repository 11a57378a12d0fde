/** Two images of one shape, one over the other. */
import { useState } from "preact/hooks";

interface CompareProps {
  before: string;
  after: string;
  /** Names the slider. */
  label: string;
  names?: { before: string; after: string };
  /** Sizes of the images, once they are known. */
  onLoad?: (side: "before" | "after", width: number, height: number) => void;
}

/** The image before over the one after up to a line, which a slider moves: by pointer and by arrows. */
export function Compare({ before, after, label, names, onLoad }: CompareProps) {
  const [at, setAt] = useState(50);
  const sized = (side: "before" | "after") => (event: Event) => {
    const { naturalWidth, naturalHeight } = event.currentTarget as HTMLImageElement;
    onLoad?.(side, naturalWidth, naturalHeight);
  };
  return (
    <div class="compare clear">
      <img src={after} alt={names?.after ?? ""} draggable={false} onLoad={sized("after")} />
      <img
        src={before}
        alt={names?.before ?? ""}
        draggable={false}
        style={{ clipPath: `inset(0 ${100 - at}% 0 0)` }}
        onLoad={sized("before")}
      />
      <span class="compare-line" aria-hidden="true" style={{ left: `${at}%` }} />
      <input
        type="range"
        min={0}
        max={100}
        value={at}
        aria-label={label}
        onInput={(event) => setAt(Number(event.currentTarget.value))}
      />
    </div>
  );
}
