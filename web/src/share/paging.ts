/**
 * Adds the list's next pages when its end is nearly in view. The server renders them like the first: a page's files are
 * appended to the list, and its link to the next page replaces the present one.
 */

import type { Link } from "./link";

/** Distance below the screen at which the next page is loaded. */
const AHEAD = "1200px";

export class Paging {
  private loading: Promise<boolean> | null = null;
  private readonly observer = new IntersectionObserver(
    (seen) => {
      if (seen.some((entry) => entry.isIntersecting)) void this.more();
    },
    { rootMargin: AHEAD },
  );

  /** @param onAdded called with the number of files that were added, and of all files in the list */
  constructor(
    private readonly files: HTMLElement,
    private readonly doubted: Link,
    private readonly onAdded: (added: number, here: number) => void,
  ) {
    this.link?.addEventListener("click", (event) => this.onClick(event));
    this.watch();
  }

  /** True when another page of files follows. */
  get hasMore(): boolean {
    return this.link !== null;
  }

  /** Loads the next page; resolves to true when files were added. */
  more(): Promise<boolean> {
    this.loading ??= this.load().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private async load(): Promise<boolean> {
    const link = this.link;
    if (!link) return false;
    // Observed again only after success, so that a failed page is not requested in a loop.
    this.observer.disconnect();
    link.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(link.href, { cache: "no-store" });
      if (!response.ok) throw new Error(`${response.status}`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      // When the link requires its password again, the answer is the password form with status 200.
      if (page.querySelector("input[type=password]")) throw new Error("locked");
      this.add(page);
      return true;
    } catch {
      // The link then navigates: it loads the next page, or shows why the folder is not available.
      link.dataset.failed = "";
      link.removeAttribute("aria-busy");
      link.textContent = "The rest could not be loaded: try again";
      void this.doubted.doubt();
      return false;
    }
  }

  private add(document: Document): void {
    const entries = [...document.querySelectorAll("#files > li")];
    const hadFocus = this.link === globalThis.document.activeElement;
    const first = entries[0]?.querySelector<HTMLElement>(".file-open");
    this.files.append(...entries);
    const more = document.getElementById("more");
    const present = globalThis.document.getElementById("more");
    if (more) present?.replaceWith(more);
    else present?.remove();
    this.link?.addEventListener("click", (event) => this.onClick(event));
    if (hadFocus) first?.focus();
    this.onAdded(entries.length, this.files.childElementCount);
    this.watch();
  }

  /** Loads the next page in place; after a failure the link navigates. */
  private onClick(event: MouseEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey || this.link?.dataset.failed !== undefined) return;
    event.preventDefault();
    void this.more();
  }

  private watch(): void {
    const { link } = this;
    if (link) this.observer.observe(link);
  }

  private get link(): HTMLAnchorElement | null {
    return document.querySelector<HTMLAnchorElement>("#more a");
  }
}
