/**
 * The viewer: one file at a time over the whole window, in a modal `<dialog>`, which keeps the focus inside and
 * restores it. The address names the file while it is open, so that "back" closes it and a link to it opens it.
 */
import { type Item, readItem } from "./item";
import type { Link } from "./link";
import type { Page } from "./page";
import type { Paging } from "./paging";
import { type Shown, show } from "./shown";
import { onSwipe } from "./swipe";

export class Viewer {
  private entry: HTMLElement | null = null;
  private shown: Shown | null = null;
  /** True when this page pushed the file's address to the history, so that closing goes back. */
  private pushed = false;

  constructor(
    private readonly page: Page,
    private readonly files: HTMLElement,
    private readonly paging: Paging,
    private readonly link: Link,
  ) {
    files.addEventListener("click", (event) => this.onClick(event));
    page.close.addEventListener("click", () => this.leave());
    page.previous.addEventListener("click", () => this.step(-1));
    page.next.addEventListener("click", () => this.step(1));
    page.viewer.addEventListener("keydown", (event) => this.onKey(event));
    page.viewer.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.leave();
    });
    page.stage.addEventListener("click", (event) => {
      if (event.target === page.stage) this.leave();
    });
    onSwipe(page.stage, (swipe) => {
      if (swipe === "close") this.leave();
      else this.step(swipe === "next" ? 1 : -1);
    });
    addEventListener("popstate", () => this.followAddress());
    this.followAddress();
  }

  private onClick(event: MouseEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
    if (!(event.target instanceof Element) || !event.target.closest(".file-open")) return;
    const entry = event.target.closest<HTMLElement>(".file");
    // Files that cannot be shown are downloaded: their link is followed.
    if (!entry || entry.dataset.kind === "other") return;
    event.preventDefault();
    history.pushState({ viewer: true }, "", `#${entry.dataset.id}`);
    this.pushed = true;
    this.open(entry);
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // The browser's player uses the arrow keys to seek and to change its volume.
    if (event.target instanceof HTMLMediaElement) return;
    switch (event.key) {
      case "ArrowRight":
        this.step(1);
        break;
      case "ArrowLeft":
        this.step(-1);
        break;
      case "Home":
        this.go(this.files.firstElementChild);
        break;
      case "End":
        this.go(this.files.lastElementChild);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  /** Opens or closes by the address's fragment: after "back", "forward", and at the start. */
  private followAddress(): void {
    const id = location.hash.slice(1);
    const entry = id ? this.files.querySelector<HTMLElement>(`.file[data-id="${CSS.escape(id)}"]`) : null;
    if (entry) this.open(entry);
    else this.close();
  }

  private step(by: 1 | -1): void {
    const { entry } = this;
    if (!entry) return;
    const beside = by === 1 ? entry.nextElementSibling : entry.previousElementSibling;
    if (beside || by === -1) {
      this.go(beside);
      return;
    }
    void this.paging.more().then(() => {
      if (this.entry === entry) this.go(entry.nextElementSibling);
    });
  }

  private go(entry: Element | null): void {
    if (!(entry instanceof HTMLElement) || entry === this.entry) return;
    history.replaceState(history.state, "", `#${entry.dataset.id}`);
    this.open(entry);
  }

  private open(entry: HTMLElement): void {
    const { page } = this;
    const item = readItem(entry);
    this.shown?.release();
    this.entry = entry;
    this.shown = show(item, () => void this.link.doubt());
    page.stage.replaceChildren(this.shown.element);
    this.describe(item, entry);
    if (this.link.end) this.empty();
    if (!page.viewer.open) {
      page.viewer.showModal();
      page.close.focus();
    }
    if (!this.link.end) this.prefetch(entry.nextElementSibling);
  }

  /** Clears the stage once the link has ended, so that the message with the reason is seen. */
  empty(): void {
    this.shown?.release();
    this.shown = null;
    this.page.stage.replaceChildren();
    this.page.download.hidden = true;
  }

  private describe(item: Item, entry: HTMLElement): void {
    const { page, files, paging } = this;
    const number = [...files.children].indexOf(entry) + 1;
    const here = files.childElementCount.toLocaleString("en");
    const position = `${number.toLocaleString("en")} of ${here}${paging.hasMore ? "+" : ""}`;
    page.name.textContent = item.name;
    page.facts.textContent = `${position} · ${item.facts}`;
    page.viewerAnnouncement.textContent = `${item.name}, ${position}`;
    page.download.hidden = item.downloadUrl === null;
    if (item.downloadUrl) page.download.href = item.downloadUrl;
    page.previous.hidden = entry.previousElementSibling === null;
    page.next.hidden = entry.nextElementSibling === null && !paging.hasMore;
    // Hiding the focused button moves the focus to the body, where the dialog's keys do not work.
    if (page.viewer.open && document.activeElement === document.body) page.close.focus();
  }

  /** Loads the next image's preview ahead. */
  private prefetch(next: Element | null): void {
    if (!(next instanceof HTMLElement)) return;
    const { kind, largeUrl } = readItem(next);
    if (kind === "image" && largeUrl) new Image().src = largeUrl;
  }

  /** Closes the viewer by its own controls, and restores the list's address. */
  private leave(): void {
    if (this.pushed) {
      history.back();
      return;
    }
    history.replaceState(null, "", location.pathname + location.search);
    this.close();
  }

  private close(): void {
    const { page, entry } = this;
    this.pushed = false;
    if (!entry) return;
    this.shown?.release();
    this.shown = null;
    this.entry = null;
    page.stage.replaceChildren();
    page.viewer.close();
    const link = entry.querySelector<HTMLElement>(".file-open");
    link?.focus({ preventScroll: true });
    entry.scrollIntoView({ block: "nearest" });
  }
}
