// A WHEP and WHIP server inside a page of the browser under test: the other end of its peer connections. It sends a moving
// canvas and a tone to viewers, and counts what publishers send.
import { randomUUID } from "node:crypto";

/** Flags with which two pages of one Chromium reach each other, and a page that is behind another works on. */
export const FLAGS = [
  "--disable-features=WebRtcHideLocalIpsWithMdns",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  "--disable-backgrounding-occluded-windows",
];

export class PeerServer {
  constructor() {
    this.offers = [];
    this.credentials = [];
    /** An answer in place of a session, {status, headers, body}. */
    this.rejection = null;
    /** Whether answers name a port where nothing listens. */
    this.isBlocked = false;
    this.headers = {};
  }

  async start(context) {
    this.page = await context.newPage();
    await this.page.evaluate(serve);
    return this;
  }

  /** Answers an offer as the service does. */
  answer = async (offer, request) => {
    this.offers.push(offer);
    this.credentials.push(request.headers.authorization ?? null);
    if (this.rejection) return this.rejection;
    const answer = await this.page.evaluate((sdp) => globalThis.answer(sdp), offer);
    return {
      status: 201,
      headers: { location: `/live/v1/whep/${randomUUID()}`, ...this.headers },
      body: this.isBlocked
        ? answer.replace(/^(a=candidate:\S+ \d \w+ \d+) \S+ \d+/gm, "$1 127.0.0.1 9")
        : answer,
    };
  };

  /** Closes all sessions. */
  close() {
    return this.page.evaluate(() => globalThis.closeAll());
  }

  /** Sends nothing more of some kinds, or all again. */
  send(...kinds) {
    return this.page.evaluate((kinds) => globalThis.send(kinds), kinds);
  }

  /** Frames that came from publishers, with their codec. */
  received() {
    return this.page.evaluate(() => globalThis.received());
  }
}

/** Runs in the page. */
function serve() {
  const sessions = new Set();
  const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 360 });
  const pen = canvas.getContext("2d");
  setInterval(() => {
    const at = performance.now() / 5;
    pen.fillStyle = `hsl(${at % 360} 60% 40%)`;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = "white";
    pen.fillRect(at % canvas.width, 100, 80, 80);
  }, 33);
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const out = audio.createMediaStreamDestination();
  tone.connect(out);
  tone.start();
  const stream = new MediaStream([...canvas.captureStream(30).getTracks(), ...out.stream.getTracks()]);

  globalThis.answer = async (sdp) => {
    const pc = new RTCPeerConnection();
    sessions.add(pc);
    await pc.setRemoteDescription({ type: "offer", sdp });
    if (sdp.includes("a=recvonly")) for (const track of stream.getTracks()) pc.addTrack(track, stream);
    await pc.setLocalDescription();
    await new Promise((resolve) => {
      const done = () => pc.iceGatheringState === "complete" && resolve();
      pc.addEventListener("icegatheringstatechange", done);
      done();
    });
    return pc.localDescription.sdp;
  };
  globalThis.closeAll = () => {
    for (const pc of sessions) pc.close();
    sessions.clear();
  };
  globalThis.send = async (kinds) => {
    for (const pc of sessions) {
      for (const { sender } of pc.getTransceivers()) {
        sender.kept ??= sender.track;
        await sender.replaceTrack(kinds.includes(sender.kept?.kind) ? sender.kept : null);
      }
    }
  };
  globalThis.received = async () => {
    const found = { frames: 0, audio: 0, codec: "", width: 0, height: 0 };
    for (const pc of sessions) {
      const reports = await pc.getStats();
      for (const report of reports.values()) {
        if (report.type !== "inbound-rtp") continue;
        if (report.kind === "audio") found.audio += report.packetsReceived;
        else {
          found.frames += report.framesReceived ?? 0;
          found.codec = reports.get(report.codecId)?.mimeType ?? "";
          found.width = report.frameWidth ?? 0;
          found.height = report.frameHeight ?? 0;
        }
      }
    }
    return found;
  };
}
