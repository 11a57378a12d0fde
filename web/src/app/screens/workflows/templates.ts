/** Workflows to begin with: what people ask for most. */
import type { Definition } from "../shared/workflow_types";

export interface Template {
  id: string;
  name: string;
  text: string;
  /** The steps in short, for a line under the text. */
  steps: string[];
  definition: Definition;
}

const only = (type: string) => ({
  logic: "and",
  conditions: [{ field: "mime", operator: "starts_with", value: `${type}/` }],
});

export const TEMPLATES: Template[] = [
  {
    id: "webp",
    name: "Photos to WebP",
    text: "Every photo becomes a WebP that loads fast, at most 2,000 pixels wide.",
    steps: ["Images only", "Resize", "WebP", "Store"],
    definition: {
      nodes: [
        { id: "upload", data: { kind: "upload" } },
        { id: "fit", data: { kind: "resize", title: "At most 2,000 wide", config: { resizeWidth: 2000 } } },
        {
          id: "webp",
          data: { kind: "convert", title: "To WebP", config: { format: "webp", compression: 82 } },
        },
        { id: "keep", data: { kind: "storage", title: "Store the WebP" } },
      ],
      edges: [
        { source: "upload", target: "fit" },
        { source: "fit", target: "webp" },
        { source: "webp", target: "keep" },
      ],
      uploadGate: only("image"),
    },
  },
  {
    id: "product-photos",
    name: "Product photos",
    text: "Wide photos become 1,200 pixels wide for the product page, the others 800 for the list; all of them WebP.",
    steps: ["Images only", "Wider than 1,200?", "Resize", "WebP", "Store"],
    definition: {
      nodes: [
        { id: "upload", data: { kind: "upload" } },
        { id: "wide", data: { kind: "branch", title: "Wider than 1200 pixels?" } },
        {
          id: "large",
          data: { kind: "resize", title: "For the product page", config: { resizeWidth: 1200 } },
        },
        { id: "small", data: { kind: "resize", title: "For the list", config: { resizeWidth: 800 } } },
        {
          id: "webp",
          data: { kind: "convert", title: "To WebP", config: { format: "webp", compression: 82 } },
        },
        { id: "keep", data: { kind: "storage", title: "Store the WebP" } },
      ],
      edges: [
        { source: "upload", target: "wide" },
        { source: "wide", target: "large", kind: "true" },
        { source: "wide", target: "small", kind: "false" },
        { source: "large", target: "webp" },
        { source: "small", target: "webp" },
        { source: "webp", target: "keep" },
      ],
      uploadGate: only("image"),
      branchConditions: {
        wide: { logic: "and", conditions: [{ field: "width", operator: "gt", value: 1200 }] },
      },
      renamePattern: "{original}-{width}",
    },
  },
  {
    id: "podcast",
    name: "Podcast from a recording",
    text: "The sound of a video or an audio file, brought to one loudness, as an MP3.",
    steps: ["Audio or video", "Extract audio", "Loudness", "MP3", "Store"],
    definition: {
      nodes: [
        { id: "upload", data: { kind: "upload" } },
        { id: "sound", data: { kind: "extract_audio", title: "Only the sound", config: { format: "wav" } } },
        { id: "level", data: { kind: "adjust", title: "One loudness", config: { normalize: true } } },
        { id: "mp3", data: { kind: "audio", title: "To MP3", config: { format: "mp3", bitrateKbps: 128 } } },
        { id: "keep", data: { kind: "storage", title: "Store the MP3" } },
      ],
      edges: [
        { source: "upload", target: "sound" },
        { source: "sound", target: "level" },
        { source: "level", target: "mp3" },
        { source: "mp3", target: "keep" },
      ],
      uploadGate: {
        logic: "or",
        conditions: [...only("audio").conditions, ...only("video").conditions],
      },
    },
  },
];

/** The least that a workflow does: a file comes in and is kept. */
export const BLANK: Definition = {
  nodes: [
    { id: "upload", data: { kind: "upload" } },
    { id: "keep", data: { kind: "storage" } },
  ],
  edges: [{ source: "upload", target: "keep" }],
};
