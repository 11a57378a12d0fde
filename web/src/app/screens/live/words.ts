/** The texts of the list of live inputs. */
export const words = {
  title: "Live",
  counts: (onAir: number, total: number) =>
    `${onAir.toLocaleString("en")} of ${total.toLocaleString("en")} on air`,
  new: "New input",
  search: "Search live inputs",
  status: "Status",
  all: "All",
  statuses: { live: "On air", reconnecting: "Reconnecting", idle: "Idle" },
  sort: "Order",
  sorts: {
    "lastLive:desc": "Last on air",
    "created:desc": "Newest",
    "name:asc": "Name",
    "viewers:desc": "Viewers",
  } as Record<string, string>,
  list: "Live inputs",
  viewers: (count: number) => (count === 1 ? "1 viewer" : `${count.toLocaleString("en")} viewers`),
  never: "never on air",
  signed: "signed",
  domains: (count: number) => (count === 1 ? "1 site" : `${count} sites`),
  recorded: "recorded",
  pulled: "pulled",
  none: "No live input fits.",
  empty: {
    title: "Nothing can publish yet",
    body: "A live input is an address to publish to from OBS, ffmpeg or a camera, and an address to watch at.",
    guide: "Streaming with OBS",
  },
  dialog: {
    title: "New live input",
    name: "Name",
    nameHint: "For you: “Main stage”, “Studio camera 2”.",
    more: "Further settings can be changed later, on the input's page.",
    cancel: "Cancel",
    make: "Make the input",
  },
};
