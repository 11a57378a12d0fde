/** Custom renditions as they are typed: "360, 720:2500". */
export interface WantedRendition {
  height: number;
  bitrate?: number;
}

/** Heights in pixels, each with its bit rate in kbit/s behind a colon; undefined when it cannot be read. */
export function renditionsOf(text: string): WantedRendition[] | undefined {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  if (parts.length === 0) return undefined;
  const made: WantedRendition[] = [];
  for (const part of parts) {
    const found = /^(\d{1,5})p?(?::(\d{1,6}))?$/i.exec(part);
    if (!found) return undefined;
    const rendition: WantedRendition = { height: Number(found[1]) };
    if (found[2]) rendition.bitrate = Number(found[2]) * 1_000;
    made.push(rendition);
  }
  return made;
}
