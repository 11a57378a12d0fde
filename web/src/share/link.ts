/**
 * Whether the link still opens the folder. A page may be open for hours, and its link be withdrawn meanwhile: whatever does not
 * come raises a doubt, and the service is asked once for all doubts that come together.
 */

/** Why nothing comes any more. */
export type End = "gone" | "locked";

/** Between two questions: pictures that cannot be made raise doubts, too. */
const PAUSE_MS = 5_000;

export class Link {
  /** Null as long as the link holds. */
  end: End | null = null;
  private asking: Promise<void> | null = null;
  private askedAt = Number.NEGATIVE_INFINITY;

  /** @param onEnd is told once */
  constructor(private readonly onEnd: (end: End) => void) {}

  /** Something did not come. Resolves when it is known whether the link is why. */
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

/** What the status of the folder's listing means for the link. */
export function endOf(status: number | null): End | null {
  if (status === 404) return "gone";
  return status === 403 ? "locked" : null;
}

/** Of a HEAD request; null when the service cannot be reached. */
export async function statusOf(url: string): Promise<number | null> {
  try {
    return (await fetch(url, { method: "HEAD", cache: "no-store" })).status;
  } catch {
    return null;
  }
}

/** Relative to the page's own address, as every address on it. */
function listingUrl(): string {
  const token = location.pathname.split("/").pop();
  return new URL(`../../api/share/folder/${token}`, location.href).href;
}
