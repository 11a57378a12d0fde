/**
 * Watches whether the link still opens the folder, since it can be withdrawn while a page is open. Each failed load
 * raises a doubt; concurrent doubts share one request to the service.
 */

/** Reason why the link serves nothing more. */
export type End = "gone" | "locked";

/** Shortest interval between two checks, since previews that cannot be rendered raise doubts, too. */
const PAUSE_MS = 5_000;

export class Link {
  /** Null while the link is valid. */
  end: End | null = null;
  private asking: Promise<void> | null = null;
  private askedAt = Number.NEGATIVE_INFINITY;

  /** @param onEnd called once at most */
  constructor(private readonly onEnd: (end: End) => void) {}

  /** Checks the link after a failed load; resolves when `end` is up to date. */
  doubt(): Promise<void> {
    if (this.end) return Promise.resolve();
    this.asking ??= this.ask().finally(() => {
      this.asking = null;
    });
    return this.asking;
  }

  private async ask(): Promise<void> {
    const early = this.askedAt + PAUSE_MS - performance.now();
    if (early > 0) await new Promise((done) => setTimeout(done, early));
    const status = await statusOf(listingUrl());
    this.askedAt = performance.now();
    const end = endOf(status);
    if (!end || this.end) return;
    this.end = end;
    this.onEnd(end);
  }
}

/** Maps the status of the folder's listing to the end of the link; null when the link may still be valid. */
export function endOf(status: number | null): End | null {
  if (status === 404) return "gone";
  return status === 403 ? "locked" : null;
}

/** Status of a HEAD request; null when the service cannot be reached. */
export async function statusOf(url: string): Promise<number | null> {
  try {
    return (await fetch(url, { method: "HEAD", cache: "no-store" })).status;
  } catch {
    return null;
  }
}

/** Address of the folder's listing, relative to the page's own as every address on it. */
function listingUrl(): string {
  const token = location.pathname.split("/").pop();
  return new URL(`../../api/share/folder/${token}`, location.href).href;
}
