/**
 * The page of a shared folder. The server renders all of it; this adds the viewer and the pages that follow while one
 * scrolls, and nothing on it needs this to be read or downloaded.
 */
import { findPage } from "./page";
import { Paging } from "./paging";
import { Viewer } from "./viewer";

/** A picture that cannot be had leaves the symbol under it. */
function dropBroken(files: HTMLElement): void {
  files.addEventListener(
    "error",
    (event) => {
      if (event.target instanceof HTMLImageElement) event.target.remove();
    },
    true,
  );
  for (const picture of files.querySelectorAll("img")) {
    const isBroken = picture.complete && picture.currentSrc !== "" && picture.naturalWidth === 0;
    if (isBroken) picture.remove();
  }
}

const files = document.getElementById("files");
if (files) {
  dropBroken(files);
  const page = findPage();
  const paging = new Paging(files, (added, here) => {
    page.announcement.textContent = `${added} more files, ${here} in all`;
  });
  new Viewer(page, files, paging);
}
