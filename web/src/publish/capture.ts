/** What is captured: camera or screen, the microphone, and the audio that comes with a screen. */
import { audioConstraints, type Resolution, videoConstraints } from "./quality";
import type { SourceKind } from "./words";

/** Value of the choice to publish without a microphone. */
export const NO_MICROPHONE = "none";

export interface Wanted {
  source: SourceKind;
  camera: string;
  microphone: string;
  clean: boolean;
  resolution: Resolution;
}

export class Capture {
  video: MediaStreamTrack | null = null;
  microphone: MediaStreamTrack | null = null;
  /** Audio of a shared screen or tab. */
  system: MediaStreamTrack | null = null;
  source: SourceKind = "camera";

  private context: AudioContext | null = null;
  private mixed: MediaStreamAudioDestinationNode | null = null;
  private mixedNodes: AudioNode[] = [];

  /** @param onEnded a device is gone, or the viewer has ended the sharing of the screen */
  constructor(private readonly onEnded: (track: MediaStreamTrack) => void) {}

  /** Of a page that a user has clicked in. */
  get audioContext(): AudioContext {
    this.context ??= new AudioContext({ sampleRate: 48_000 });
    if (this.context.state === "suspended") void this.context.resume();
    return this.context;
  }

  /** Captures what is wanted, in place of what was. Throws the browser's error and leaves what was. */
  async take(wanted: Wanted): Promise<void> {
    if (wanted.source === "screen") await this.takeScreen(wanted);
    else await this.takeCamera(wanted);
    this.source = wanted.source;
  }

  async takeMicrophone({ microphone, clean }: Wanted): Promise<void> {
    if (microphone === NO_MICROPHONE) {
      this.setMicrophone(null);
      return;
    }
    const audio = audioConstraints(microphone, clean);
    // Some browsers open one microphone once.
    this.microphone?.stop();
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    this.setMicrophone(stream.getAudioTracks()[0] ?? null);
  }

  /** The one audio track to send; both sources mixed, when there are two. */
  audio(): MediaStreamTrack | null {
    for (const node of this.mixedNodes) node.disconnect();
    this.mixedNodes = [];
    const tracks = [this.microphone, this.system].filter((track) => track !== null);
    if (tracks.length < 2) return tracks[0] ?? null;
    this.mixed ??= this.audioContext.createMediaStreamDestination();
    for (const track of tracks) {
      const node = this.audioContext.createMediaStreamSource(new MediaStream([track]));
      node.connect(this.mixed);
      this.mixedNodes.push(node);
    }
    return this.mixed.stream.getAudioTracks()[0] ?? null;
  }

  release(): void {
    this.setVideo(null);
    this.setMicrophone(null);
    this.setSystem(null);
  }

  private async takeCamera(wanted: Wanted): Promise<void> {
    const video = videoConstraints(wanted.resolution, "camera", wanted.camera);
    // Another resolution of the same camera would get the one that it has, while it is open.
    if (this.source === "camera") this.video?.stop();
    const wantsMicrophone = wanted.microphone !== NO_MICROPHONE && !isOpen(this.microphone);
    const audio = wantsMicrophone && audioConstraints(wanted.microphone, wanted.clean);
    // One request, so that the browser asks the user once.
    const stream = await navigator.mediaDevices.getUserMedia({ video, audio });
    this.setVideo(stream.getVideoTracks()[0] ?? null);
    this.setSystem(null);
    if (wantsMicrophone) this.setMicrophone(stream.getAudioTracks()[0] ?? null);
  }

  private async takeScreen(wanted: Wanted): Promise<void> {
    const video = videoConstraints(wanted.resolution, "screen", "");
    const stream = await navigator.mediaDevices.getDisplayMedia({ video, audio: true });
    const [track] = stream.getVideoTracks();
    // Text stays sharp; fewer frames are the lesser evil on a slow line.
    if (track && "contentHint" in track) track.contentHint = "detail";
    this.setVideo(track ?? null);
    this.setSystem(stream.getAudioTracks()[0] ?? null);
    const wantsMicrophone = wanted.microphone !== NO_MICROPHONE && !isOpen(this.microphone);
    // A screen is published without a microphone, rather than not at all.
    if (wantsMicrophone) await this.takeMicrophone(wanted).catch(() => undefined);
  }

  private setVideo(track: MediaStreamTrack | null): void {
    this.video?.stop();
    this.video = this.heard(track);
  }

  private setMicrophone(track: MediaStreamTrack | null): void {
    this.microphone?.stop();
    this.microphone = this.heard(track);
  }

  private setSystem(track: MediaStreamTrack | null): void {
    this.system?.stop();
    this.system = this.heard(track);
  }

  private heard(track: MediaStreamTrack | null): MediaStreamTrack | null {
    track?.addEventListener("ended", () => this.onEnded(track));
    return track;
  }
}

function isOpen(track: MediaStreamTrack | null): boolean {
  return track?.readyState === "live";
}
