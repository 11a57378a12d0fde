/** Words of the Overview. */
import { formatBytes } from "../../parts/format";

export const words = {
  title: "Overview",
  steps: {
    title: "First steps",
    hide: "Hide",
    of: (done: number, all: number) => `${done} of ${all}`,
    done: "Done",
    signedIn: "Signed in",
    live: {
      title: "Go live",
      lead: "In OBS, under Settings, Stream, with the service “Custom…”:",
      none: "There is no live input yet. One input is one address to publish to.",
      create: "Make a live input",
      firstName: "My first stream",
      server: "Server",
      showKey: "Show the stream key",
      newKey: "New stream key",
      keyTitle: "Stream key",
      keyNote:
        "Anyone who has this key can publish to this input. OBS: Settings, Stream, Custom…; or run the command.",
      key: "Stream key",
      command: "A test video by ffmpeg",
      waiting: "Waiting: nothing has reached the server yet.",
      hint: "Nothing yet? Check that the encoder uses this server, and that no firewall closes its port. sluice doctor, on the machine of the service, checks both.",
      open: "Open the input",
    },
    image: {
      title: "Deliver an image",
      lead: "Drop a photo here, or choose one: it gets an address that gives any size and format.",
      choose: "Choose a photo",
      busy: "Storing the photo",
      keyName: "My site",
    },
    webhook: {
      title: "Get notified",
      lead: "Let your own service know when something happens.",
      add: "Add a webhook",
    },
    share: "Then share a folder:",
    files: "Files",
  },
  onAir: {
    title: "On air",
    count: (live: number, total: number) => `${live.toLocaleString()} of ${total.toLocaleString()}`,
    all: "All inputs",
    none: "Nothing is on air.",
    viewers: (count: number) => (count === 1 ? "1 viewer" : `${count.toLocaleString()} viewers`),
    live: "live",
  },
  needs: {
    title: "Needs you",
    none: "All is well.",
    suspended: (url: string) => `${url} is suspended`,
    waiting: (count: number) =>
      count >= 10_000
        ? "10 000 or more deliveries wait, none is lost."
        : `${count.toLocaleString()} deliveries wait, none is lost.`,
    tryNow: "Try now",
    tried: "Sent again: the answer is shown under Webhooks, Deliveries",
    open: "Open",
    quota: (what: string, percent: number) => `${percent} % of this month's ${what} are used`,
    storage: (percent: number) => `${percent} % of the storage is used`,
    usage: "Usage and plan",
  },
  month: {
    title: "This month",
    operations: "Operations",
    deliveries: "Deliveries",
    storage: "Storage",
    resets: (date: string) => `Begins again on ${date}`,
    files: (count: number) => (count === 1 ? "1 file" : `${count.toLocaleString()} files`),
    details: "Details",
    noLimit: "without limit",
  },
  activity: {
    title: "Activity",
    none: "What is uploaded, converted, streamed and delivered appears here.",
    job: "Conversion",
    run: "Workflow run",
    stream: "Video stream",
    queued: (place: number) => `waits, ${place}. in the queue`,
  },
};

const text = (value: unknown) => (typeof value === "string" ? value : "");
const files = (total: unknown) => (total === 1 ? "1 file" : `${total} files`);
type Say = (data: Record<string, unknown>) => string;

/** What an event says in one line, and how it ended. Types that are not here are shown by their names. */
export const eventWords: Record<string, { tone: "good" | "bad" | "live" | "calm"; say: Say }> = {
  "file.uploaded": {
    tone: "calm",
    say: (data) => `${text(data.filename)} stored, ${formatBytes(Number(data.sizeBytes) || 0)}`,
  },
  "conversion.started": { tone: "calm", say: (data) => `${text(data.filename)}: conversion begins` },
  "conversion.progress": {
    tone: "calm",
    say: (data) => `${text(data.filename)}: ${data.completed} of ${data.total} converted`,
  },
  "conversion.completed": {
    tone: "good",
    say: (data) => `${text(data.filename)} converted, ${files(data.filesTotal)}`,
  },
  "conversion.failed": {
    tone: "bad",
    say: (data) => `${text(data.filename)} not converted: ${text(data.error)}`,
  },
  "media.tool.completed": { tone: "good", say: (data) => `${text(data.filename)}: ${text(data.tool)} done` },
  "media.tool.failed": {
    tone: "bad",
    say: (data) => `${text(data.filename) || text(data.tool)}: ${text(data.error)}`,
  },
  "video.stream.started": { tone: "calm", say: () => "A video stream is being prepared" },
  "video.stream.ready": { tone: "good", say: () => "A video stream is ready" },
  "video.stream.failed": { tone: "bad", say: (data) => `A video stream failed: ${text(data.error)}` },
  "workflow.completed": { tone: "good", say: (data) => `Workflow “${text(data.name)}” completed` },
  "workflow.failed": {
    tone: "bad",
    say: (data) => `Workflow “${text(data.name)}” ${text(data.status)}: ${text(data.error)}`,
  },
  "live.input.connected": { tone: "live", say: (data) => `${text(data.name)} is on air` },
  "live.input.disconnected": { tone: "calm", say: (data) => `${text(data.name)} is off air` },
  "live.input.recording.ready": {
    tone: "good",
    say: (data) => `Recording of ${text(data.name) || "a broadcast"} stored`,
  },
};
