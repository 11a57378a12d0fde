/** A publish from "Go live" to "Stop": sessions one after the other, each after a pause when the one before was lost. */
import { retryDelayMs } from "../player/backoff";
import type { Rejection } from "../webrtc/exchange";
import { type Offered, PublishSession, type SessionListener } from "./session";
import { bitrateBetween, droppedSince, type Sent } from "./statistics";
import { CLOSED, type Problem, rejectionWords, type Stage, UNREACHABLE } from "./words";

/** Longest pause before a lost session is replaced. */
const LONGEST_RECONNECT_MS = 5_000;
/** Time for which the service may take the lost session for another encoder. */
const OWN_CONFLICT_MS = 30_000;
/** A session that the service closes so soon after it replaced another one is not replaced: two pages would take over from each other. */
const CLOSED_AGAIN_MS = 15_000;

export interface Measured {
  bitrate: number;
  roundTripS: number | null;
  dropped: number | null;
  sent: Sent;
}

export interface BroadcastListener {
  onStage(stage: Stage): void;
  /** The publish is over, and not by "Stop". */
  onProblem(problem: Problem): void;
}

/**
 * Whether an offer that was rejected while a lost session is replaced is worth another try. Pure.
 *
 * @param lostForMs time since the session was lost
 */
export function isWorthAnotherTry(status: number, lostForMs: number): boolean {
  if (status === 409) return lostForMs < OWN_CONFLICT_MS;
  return status === 0 || status === 429 || status >= 500;
}

export class Broadcast {
  stage: Stage = "setup";
  /** Time at which it was first live, as of `performance.now`. */
  liveSinceMs: number | null = null;

  private session: PublishSession | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private attempts = 0;
  private lostAtMs: number | null = null;
  private connectedAtMs = 0;
  private first: Sent | null = null;
  private last: Sent | null = null;
  private droppedBefore = 0;

  /** @param offer what is sent at present; asked for again for each session */
  constructor(
    private readonly url: string,
    private readonly credential: string,
    private readonly offer: () => Offered,
    private readonly listener: BroadcastListener,
  ) {}

  start(): void {
    this.become("connecting");
    this.connect();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.session?.stop();
    this.session = null;
    this.become("setup");
  }

  replace(track: MediaStreamTrack): void {
    void this.session?.replace(track).catch(() => undefined);
  }

  setQuality({ videoBitrate, framesPerSecond }: Offered): void {
    void this.session?.setQuality(videoBitrate, framesPerSecond).catch(() => undefined);
  }

  /** What was sent since the last call; null while nothing is. */
  async measure(): Promise<Measured | null> {
    const { session } = this;
    if (!session || this.stage !== "live") return null;
    const sent = await session.sent();
    if (session !== this.session || this.stage !== "live") return null;
    this.first ??= sent;
    const dropped = droppedSince(this.first, sent);
    const measured = {
      bitrate: this.last ? bitrateBetween(this.last, sent) : Number.NaN,
      roundTripS: sent.roundTripS,
      dropped: dropped === null ? null : dropped + this.droppedBefore,
      sent,
    };
    this.last = sent;
    return measured;
  }

  private connect(): void {
    const session: PublishSession = new PublishSession(
      this.url,
      this.credential,
      this.offer(),
      this.listenerOf(() => session),
    );
    this.session = session;
  }

  /** Listens to a session for as long as it is the present one. */
  private listenerOf(session: () => PublishSession): SessionListener {
    const present = (act: () => void) => {
      if (session() === this.session) act();
    };
    return {
      onConnected: () => present(() => this.onConnected()),
      onRejected: (rejection) => present(() => this.onRejected(rejection)),
      onUnreachable: () =>
        present(() => (this.stage === "reconnecting" ? this.again() : this.fail(UNREACHABLE))),
      onLost: (byService) => present(() => this.onLost(byService)),
    };
  }

  private onConnected(): void {
    this.attempts = 0;
    this.connectedAtMs = performance.now();
    this.liveSinceMs ??= this.connectedAtMs;
    this.become("live");
  }

  private onLost(byService: boolean): void {
    const isSoon = performance.now() - this.connectedAtMs < CLOSED_AGAIN_MS;
    if (byService && isSoon && this.lostAtMs !== null) {
      this.fail(CLOSED);
      return;
    }
    if (this.first && this.last) this.droppedBefore += droppedSince(this.first, this.last) ?? 0;
    this.first = null;
    this.last = null;
    this.lostAtMs = performance.now();
    this.become("reconnecting");
    this.again();
  }

  private onRejected({ status, code, message, afterS }: Rejection): void {
    const isReconnect = this.stage === "reconnecting";
    if (isReconnect && isWorthAnotherTry(status, performance.now() - (this.lostAtMs ?? 0))) {
      this.again(status === 429 || status === 503 ? afterS * 1000 : 0);
    } else {
      this.fail(rejectionWords(status, code, message));
    }
  }

  private again(atLeastMs = 0): void {
    const pause = retryDelayMs(this.attempts, Math.random(), LONGEST_RECONNECT_MS);
    this.attempts += 1;
    this.session = null;
    this.timer = setTimeout(() => this.connect(), Math.max(pause, atLeastMs));
  }

  private fail(problem: Problem): void {
    this.session = null;
    this.become("setup");
    this.listener.onProblem(problem);
  }

  private become(stage: Stage): void {
    if (stage === this.stage) return;
    this.stage = stage;
    this.listener.onStage(stage);
  }
}
