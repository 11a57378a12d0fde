/**
 * The page of a shared folder. The server renders all of it; this adds the viewer and the pages that follow while one
 * scrolls, and nothing on it needs this to be read or downloaded.
 */
import { findPage } from "./page";
import { Paging } from "./paging";
import { Viewer } from "./viewer";

const files = document.getElementById("files");
if (files) {
  const page = findPage();
  const paging = new Paging(files, (added, here) => {
    page.announcement.textContent = `${added} more files, ${here} in all`;
  });
  new Viewer(page, files, paging);
}
