/**
 * Checks a download with a HEAD request before it begins, since an error page would replace this page. The browser then
 * loads the anchor's own address, so a download is the same with and without this script.
 */

import { type Failures, ofDownload } from "./failure";
import { endOf, type Link, statusOf } from "./link";

export function watchDownloads(link: Link, failures: Failures): void {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
    const target = event.target instanceof Element ? event.target : null;
    const anchor = target?.closest<HTMLAnchorElement>("a[data-download]");
    if (!anchor) return;
    event.preventDefault();
    if (link.end || anchor.ariaBusy === "true") return;
    failures.clear();
    anchor.ariaBusy = "true";
    void begin(anchor.href, link, failures).finally(() => {
      anchor.ariaBusy = null;
    });
  });
}

async function begin(url: string, link: Link, failures: Failures): Promise<void> {
  const status = await statusOf(url);
  if (status !== null && status < 400) {
    location.assign(url);
    return;
  }
  if (endOf(status)) await link.doubt();
  if (!link.end) failures.say(ofDownload(status));
}
