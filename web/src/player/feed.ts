/**
 * Follows the state of a live input by long-polling the service: one request is always open, and it is answered as soon
 * as something changes. Rule: the feed never gives up; it only waits longer between tries.
 */
import { retryDelayMs } from "./backoff";
import { type Feed, parseReply, type Reply } from "./stage";

/** Time for which the service holds a request while nothing changes. The service allows 25 s at most. */
const WAIT_S = 20;
/** An answer that is later than the wait by this counts as a lost connection. */
const GRACE_MS = 5000;
/** An unknown address may become known (a new input), but there is no hurry. */
const UNKNOWN_RETRY_MS = 10_000;
/** A service that answers at once although nothing changed is not asked more often than this. */
const UNCHANGED_PAUSE_MS = 1000;

export interface FeedListener {
  /** Called at every answer and every change of the feed's status. */
  onFeed(feed: Feed, reply: Reply | null): void;
}

export class StateFeed {
  /** The service's clock minus this machine's; accurate to about a second. */
  clockOffsetMs = 0;

  private reply: Reply | null = null;
  private failures = 0;
  private wake: (() => void) | null = null;

  constructor(
    private readonly url: string,
    private readonly listener: FeedListener,
    private readonly over?: AbortSignal,
  ) {}

  /** Asks for as long as the page is open, or until `over`. */
  async run(): Promise<void> {
    const signal = this.over;
    window.addEventListener("online", () => this.hurry(), { signal });
    const onVisible = () => {
      if (document.visibilityState === "visible") this.hurry();
    };
    document.addEventListener("visibilitychange", onVisible, { signal });
    signal?.addEventListener("abort", () => this.hurry());
    while (!signal?.aborted) {
      await this.sleep(await this.ask());
    }
  }

  /** Ends a pause early: the network is back, or the page is visible again. */
  hurry(): void {
    this.wake?.();
  }

  /** Sends one request; returns the pause before the next one, in milliseconds. */
  private async ask(): Promise<number> {
    // Without `since` the service answers at once, so that the first answer after a failure does not wait for a change.
    const since = this.failures === 0 ? this.reply?.version : undefined;
    const askedAt = performance.now();
    const giveUp = new AbortController();
    const stop = () => giveUp.abort();
    this.over?.addEventListener("abort", stop);
    const timer = setTimeout(stop, since === undefined ? GRACE_MS : WAIT_S * 1000 + GRACE_MS);
    try {
      const response = await fetch(this.question(since), {
        cache: "no-store",
        signal: giveUp.signal,
      });
      const changed = await this.take(response, since);
      return changed ?? (performance.now() - askedAt < UNCHANGED_PAUSE_MS ? UNCHANGED_PAUSE_MS : 0);
    } catch {
      return this.fail();
    } finally {
      this.over?.removeEventListener("abort", stop);
      clearTimeout(timer);
    }
  }

  private question(since: string | undefined): string {
    return since === undefined ? this.url : `${this.url}?wait=${WAIT_S}&since=${encodeURIComponent(since)}`;
  }

  /** The pause after an answer, in milliseconds; null when the answer is unchanged. */
  private async take(response: Response, since: string | undefined): Promise<number | null> {
    const body: unknown = await response.json();
    if (response.status === 404 && (body as { code?: unknown }).code === "not_found")
      return this.refuse("unknown");
    if (response.status === 401 || response.status === 403) return this.refuse("forbidden");
    const reply = response.ok ? parseReply(body) : null;
    if (!reply) return this.fail();

    const date = Date.parse(response.headers.get("date") ?? "");
    // The header has whole seconds, so half a second is the expected remainder.
    if (!Number.isNaN(date)) this.clockOffsetMs = date + 500 - Date.now();
    this.failures = 0;
    this.reply = reply;
    this.listener.onFeed("following", reply);
    return reply.version === since ? null : 0;
  }

  private refuse(feed: "unknown" | "forbidden"): number {
    this.reply = null;
    this.listener.onFeed(feed, null);
    return UNKNOWN_RETRY_MS;
  }

  private fail(): number {
    if (this.over?.aborted) return 0;
    const delay = retryDelayMs(this.failures, Math.random());
    this.failures += 1;
    this.listener.onFeed("failing", this.reply);
    return delay;
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.wake = done;
    });
  }
}
