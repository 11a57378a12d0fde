/** Files that this page gives to the browser to save. */

/** Downloads from an address of this origin; without a name the answer's own is taken. */
export function download(href: string, name = "") {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

/** The browser reads the bytes after the click has returned. */
const READ_MS = 60_000;

export function downloadBytes(content: BlobPart | BlobPart[], type: string, name: string) {
  const url = URL.createObjectURL(new Blob([content].flat(), { type }));
  download(url, name);
  setTimeout(() => URL.revokeObjectURL(url), READ_MS);
}
