/** One WHIP session: tracks that are sent to the service until they are stopped or the connection is lost. */
import { exchange, Rejection, type Resource } from "../webrtc/exchange";
import { withStartBitrate } from "../webrtc/sdp";
import { preferred } from "./quality";
import { type Sent, sentOf } from "./statistics";

/** Time from the answer to a connection, after which the ports count as blocked. */
const CONNECT_WITHIN_MS = 10_000;
/** Time for which a connection without packets may come back by itself. */
const DISCONNECTED_MS = 4_000;

/** Most bits a second of video to begin with, before the browser has measured the line. */
const MOST_START_BITRATE = 1_500_000;

export interface SessionListener {
  onConnected(): void;
  onRejected(rejection: Rejection): void;
  /** Nothing came through to the service's ports. */
  onUnreachable(): void;
  /** A connection was there and is lost. @param byService it was closed on purpose */
  onLost(byService: boolean): void;
}

export interface Offered {
  video: MediaStreamTrack;
  audio: MediaStreamTrack | null;
  videoBitrate: number;
  audioBitrate: number;
  framesPerSecond: number;
}

export function isPublishingSupported(): boolean {
  return typeof RTCPeerConnection === "function" && "addTransceiver" in RTCPeerConnection.prototype;
}

export class PublishSession {
  private readonly pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  private readonly over = new AbortController();
  private readonly video: RTCRtpTransceiver;
  private readonly audio: RTCRtpTransceiver | null;
  private resource: Resource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isConnected = false;

  /** @param credential of WHIP, `{inputSlug}.{streamKey}`; sent as a header, so that it is in no log of addresses */
  constructor(
    url: string,
    credential: string,
    offered: Offered,
    private readonly listener: SessionListener,
  ) {
    const { pc } = this;
    const streams = [new MediaStream(offered.audio ? [offered.video, offered.audio] : [offered.video])];
    this.video = pc.addTransceiver(offered.video, {
      direction: "sendonly",
      streams,
      sendEncodings: [{ maxBitrate: offered.videoBitrate, maxFramerate: offered.framesPerSecond }],
    });
    const capable = RTCRtpSender.getCapabilities("video")?.codecs;
    if (capable) this.video.setCodecPreferences?.(preferred(capable));
    this.audio =
      offered.audio &&
      pc.addTransceiver(offered.audio, {
        direction: "sendonly",
        streams,
        sendEncodings: [{ maxBitrate: offered.audioBitrate }],
      });
    pc.addEventListener("connectionstatechange", () => this.follow());
    void this.begin(url, credential, offered.videoBitrate);
  }

  /** Sends another track in place of the one before. */
  async replace(track: MediaStreamTrack): Promise<void> {
    const transceiver = track.kind === "video" ? this.video : this.audio;
    await transceiver?.sender.replaceTrack(track);
  }

  async setQuality(videoBitrate: number, framesPerSecond: number): Promise<void> {
    const parameters = this.video.sender.getParameters();
    for (const encoding of parameters.encodings) {
      encoding.maxBitrate = videoBitrate;
      encoding.maxFramerate = framesPerSecond;
    }
    await this.video.sender.setParameters(parameters);
  }

  async sent(): Promise<Sent> {
    return sentOf((await this.pc.getStats()).values());
  }

  /** Ends the session, which is a clean end of the publish. */
  stop(): void {
    if (this.over.signal.aborted) return;
    this.over.abort();
    clearTimeout(this.timer);
    this.resource?.delete();
    this.pc.close();
  }

  /** Leaves a lost session without an end of the publish: the service keeps the broadcast open for the next one. */
  private abandon(tell: () => void): void {
    if (this.over.signal.aborted) return;
    this.over.abort();
    clearTimeout(this.timer);
    this.pc.close();
    tell();
  }

  private async begin(url: string, credential: string, videoBitrate: number): Promise<void> {
    try {
      await this.keepResolution();
      this.resource = await exchange(this.pc, url, {
        headers: { authorization: `Bearer ${credential}` },
        signal: this.over.signal,
        adapt: (answer) => withStartBitrate(answer, Math.min(MOST_START_BITRATE, videoBitrate / 2)),
      });
      if (this.over.signal.aborted) return this.resource.delete();
      this.hearClose();
      if (!this.isConnected) {
        this.timer = setTimeout(() => this.abandon(() => this.listener.onUnreachable()), CONNECT_WITHIN_MS);
      }
    } catch (error) {
      const rejection = error instanceof Rejection ? error : new Rejection(500, "", String(error), 5);
      this.abandon(() => this.listener.onRejected(rejection));
    }
  }

  /** The service closes a session by DTLS, which browsers show at the transport and not at the connection. */
  private hearClose(): void {
    const { transport } = this.video.sender;
    transport?.addEventListener("statechange", () => {
      if (transport.state === "closed") this.lose(true);
    });
  }

  /**
   * On a slow line frames are left out and the resolution stays: each change of it is a discontinuity for viewers by HLS and
   * in recordings. Browsers that do not know the preference keep theirs.
   */
  private async keepResolution(): Promise<void> {
    const parameters: RTCRtpSendParameters & { degradationPreference?: string } =
      this.video.sender.getParameters();
    parameters.degradationPreference = "maintain-resolution";
    await this.video.sender.setParameters(parameters).catch(() => undefined);
  }

  private follow(): void {
    clearTimeout(this.timer);
    switch (this.pc.connectionState) {
      case "connected":
        if (!this.isConnected) this.listener.onConnected();
        this.isConnected = true;
        break;
      case "disconnected":
        this.timer = setTimeout(() => this.lose(), DISCONNECTED_MS);
        break;
      case "failed":
      case "closed":
        this.lose();
        break;
      default:
        this.timer = setTimeout(() => this.lose(), CONNECT_WITHIN_MS);
    }
  }

  private lose(byService = false): void {
    this.abandon(() => (this.isConnected ? this.listener.onLost(byService) : this.listener.onUnreachable()));
  }
}
