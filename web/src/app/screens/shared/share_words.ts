/** The texts of sharing. */
import { formatNumber } from "../../parts/format";

const count = (value: number, one: string) => `${formatNumber(value)} ${one}${value === 1 ? "" : "s"}`;

export const shareWords = {
  title: (folder: string) => `Share ${folder}`,
  lead: "Everyone who has the link sees this folder and everything below it, without an account.",
  expires: "Valid for",
  expiries: {
    "86400": "1 day",
    "604800": "7 days",
    "2592000": "30 days",
    "7776000": "90 days",
    "": "Until it is revoked",
    date: "Until a date…",
  } as Record<string, string>,
  until: "Until",
  password: "Password",
  passwordHint: "Optional. Visitors enter it once when they open the link; send it apart from the link.",
  limit: "Downloads at most",
  limitHint: "Empty: any number.",
  looking: "For looking only",
  lookingHint: "No downloads of originals; images are shown as previews.",
  create: "Make the link",
  replace: "Make a new link",
  replaceNote: "The present link stops working as soon as the new one is made.",
  cancel: "Cancel",
  close: "Done",
  link: "Link",
  zipLink: "Everything as one ZIP",
  open: "Open",
  counts: (views: number, downloads: number, limit: number | null) =>
    `${count(views, "view")}, ${limit === null ? count(downloads, "download") : `${formatNumber(downloads)} of ${count(limit, "download")}`}`,
  validUntil: "Valid until",
  used: "Used",
  withPassword: "password",
  withoutPassword: "no password",
  lookingOnly: "looking only",
  terms: "Terms",
  never: "until it is revoked",
  revoke: "Revoke",
  revokeTitle: "Revoke the link?",
  revokeBody:
    "It stops working at once, also for downloads in progress. Making a new one gives another address.",
  revoked: "The link is revoked",
  change: "Other terms…",
  viewer: "You may look at links; who may write can make and revoke them.",
  none: "This folder is not shared.",
};
