/**
 * Adds the list's next pages as its end comes near. The server renders them as it renders the first: a page's files are
 * taken out of it and put behind those that are here, and its link to the next one replaces the present link.
 */

import type { Link } from "./link";

/** So far below the screen the end is near enough. */
const AHEAD = "1200px";

export class Paging {
  private loading: Promise<boolean> | null = null;
  private readonly observer = new IntersectionObserver(
    (seen) => {
      if (seen.some((entry) => entry.isIntersecting)) void this.more();
    },
    { rootMargin: AHEAD },
  );

  /** @param onAdded is told the number of files that came, and of those that are here now */
  constructor(
    private readonly files: HTMLElement,
    private readonly doubted: Link,
    private readonly onAdded: (added: number, here: number) => void,
  ) {
    this.link?.addEventListener("click", (event) => this.onClick(event));
    this.watch();
  }

  /** Whether files follow those that are here. */
  get hasMore(): boolean {
    return this.link !== null;
  }

  /** Loads the next page; whether one came. */
  more(): Promise<boolean> {
    this.loading ??= this.load().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private async load(): Promise<boolean> {
    const link = this.link;
    if (!link) return false;
    this.observer.disconnect();
    link.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(link.href, { cache: "no-store" });
      if (!response.ok) throw new Error(`${response.status}`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      // Where the link wants its password again, the answer is the form for it.
      if (page.querySelector("input[type=password]")) throw new Error("locked");
      this.add(page);
      return true;
    } catch {
      // By the link itself, a person tries again or learns what has become of the folder.
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

  /** After a failure the link does what links do. */
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
