/**
 * The page of a shared folder. The server renders all of it, and reading and downloading work without this script,
 * which adds the viewer and loads further pages on scrolling.
 */
import { watchDownloads } from "./downloads";
import { Failures, ofEnd } from "./failure";
import { Link } from "./link";
import { findPage } from "./page";
import { Paging } from "./paging";
import { Viewer } from "./viewer";

/** Removes previews that fail to load, which shows the icon under them, and has the link checked. */
function dropBroken(files: HTMLElement, link: Link): void {
  files.addEventListener(
    "error",
    (event) => {
      if (!(event.target instanceof HTMLImageElement)) return;
      event.target.remove();
      void link.doubt();
    },
    true,
  );
  for (const image of files.querySelectorAll("img")) {
    const isBroken = image.complete && image.currentSrc !== "" && image.naturalWidth === 0;
    if (isBroken) image.remove();
  }
}

const page = findPage();
const failures = new Failures(page);
let viewer: Viewer | null = null;
const link = new Link((end) => {
  failures.sayForGood(ofEnd(end));
  viewer?.empty();
});
watchDownloads(link, failures);

const files = document.getElementById("files");
if (files) {
  dropBroken(files, link);
  const paging = new Paging(files, link, (added, here) => {
    page.announcement.textContent = `${added} more files, ${here} in all`;
  });
  viewer = new Viewer(page, files, paging, link);
}
