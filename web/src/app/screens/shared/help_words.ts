/** What each screen is for, and the guides that have more about it. */
export interface Help {
  about: string;
  /** Names of files in `docs/guide`, with the titles of their links. */
  guides: [name: string, title: string][];
}

const OVERVIEW: Help = {
  about:
    "What needs you, what is on air, what was used this month and what happened last. The first steps lead from an empty installation to a stream, a delivered image and a webhook.",
  guides: [
    ["dashboard", "The dashboard"],
    ["troubleshooting", "When something does not work"],
  ],
};

/** By the beginning of a screen's address; the longest one that fits. */
export const helpOf: Record<string, Help> = {
  "/": OVERVIEW,
  "/live": {
    about:
      "Every live input: an address to publish to from OBS, ffmpeg, a camera or a browser, and an address to watch at. What is on air comes first.",
    guides: [
      ["obs", "Streaming with OBS"],
      ["ffmpeg", "Streaming with ffmpeg"],
      ["srt", "SRT"],
      ["webrtc", "From and in the browser, by WebRTC"],
    ],
  },
  "/live/": {
    about:
      "One live input: what it sends and what to change in the encoder, how to connect, where else it is sent, what was recorded, and who may watch.",
    guides: [
      ["obs", "Streaming with OBS"],
      ["recordings", "Recordings and clips"],
      ["restream", "Sending to other platforms"],
      ["playback", "Who may watch"],
    ],
  },
  "/files": {
    about:
      "Everything that is stored, in folders. Drop files anywhere to upload them; choose some to move, tag, convert, download or share them.",
    guides: [
      ["files", "Files and folders"],
      ["conversions", "Converting"],
    ],
  },
  "/files/shares": {
    about: "Every link to a folder that is in force: how often it was used, until when, and its end.",
    guides: [["share", "Sharing a folder"]],
  },
  "/images": {
    about:
      "An image's address gives any size and format. Build one, see the result beside the source, save it as a preset, and see what is delivered.",
    guides: [
      ["images", "Delivering images"],
      ["cors", "Pages of other sites"],
    ],
  },
  "/convert": {
    about:
      "Drop files, choose a format or a tool, and take the results: with their sizes before and after, stored or downloaded together.",
    guides: [
      ["conversions", "Converting"],
      ["video", "Video and audio"],
    ],
  },
  "/streams": {
    about:
      "Stored video, made ready to be watched at several sizes: with captions, a player to embed, and tokens for those who may watch.",
    guides: [
      ["video-streams", "Video streams"],
      ["playback", "Who may watch"],
    ],
  },
  "/workflows": {
    about:
      "A workflow is a graph of steps that every file runs through: begun by an upload, for a stored file, or by what lands in a folder.",
    guides: [["workflows", "Workflows"]],
  },
  "/workflows/": {
    about:
      "One workflow, as an outline or as a drawing: the same steps in both. A dry run says which way a file would take, before anything is done.",
    guides: [["workflows", "Workflows"]],
  },
  "/runs": {
    about:
      "Runs of every workflow, and of each its log on the graph: the path that it took and the other one, and the step that failed.",
    guides: [["workflows", "Workflows"]],
  },
  "/activity": {
    about:
      "Jobs, workflow runs, video streams, recordings and uploads in one list, newest first: how far they are, what came of them, and what failed.",
    guides: [
      ["conversions", "Converting"],
      ["workflows", "Workflows"],
      ["recordings", "Recordings and clips"],
    ],
  },
  "/webhooks": {
    about:
      "Your own services are sent what happens here. Endpoints, what was sent to them and what they answered, and every event.",
    guides: [["webhooks", "Webhooks"]],
  },
  "/settings": {
    about: "Your password, and the browsers in which you are signed in.",
    guides: [["dashboard", "The dashboard"]],
  },
  "/settings/api": {
    about:
      "API keys are for programs, delivery keys are in the addresses of images, playback keys sign who may watch.",
    guides: [
      ["images", "Delivering images"],
      ["playback", "Who may watch"],
      ["agents", "Agents by MCP"],
    ],
  },
  "/settings/usage": {
    about: "What was used of the plan, by day and by key, and when the count begins again.",
    guides: [["operations", "Running the service"]],
  },
  "/settings/members": {
    about: "Who is in the account and what they may do. New ones come by a link that works once.",
    guides: [["dashboard", "The dashboard"]],
  },
  "/settings/audit": {
    about: "Who changed what, when and from where.",
    guides: [["dashboard", "The dashboard"]],
  },
  "/guides": {
    about:
      "How things are done, step by step: each guide is about one subject, and begins with the shortest way.",
    guides: [
      ["dashboard", "The dashboard"],
      ["troubleshooting", "When something does not work"],
    ],
  },
  "/system": {
    about:
      "The service itself: its parts, workers and queues, disk, object store, database and log, what is wrong with it, and the settings in force.",
    guides: [
      ["operations", "Running the service"],
      ["backup", "Backup"],
      ["cluster", "PostgreSQL, object store, nodes"],
      ["troubleshooting", "When something does not work"],
    ],
  },
};

export function helpFor(path: string): Help {
  const fitting = Object.keys(helpOf).filter(
    (begin) => path === begin || path.startsWith(begin.endsWith("/") ? begin : `${begin}/`),
  );
  const longest = fitting.sort((a, b) => b.length - a.length)[0];
  return helpOf[longest ?? "/"] ?? OVERVIEW;
}

export const helpWords = {
  title: (screen: string) => `Help: ${screen}`,
  guides: "Guides",
  reference: "API reference",
  everywhere: "Keys everywhere",
  onScreen: "Keys on this screen",
  steps: "First steps again",
};
