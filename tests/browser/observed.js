// Runs in a page before its own scripts: keeps the page's peer connections, reads what its video shows, and answers
// `sluiceReport()`. The frames of test clips have their number in 16 bars, those of the latency bench their time in 40.
(() => {
  const connections = [];
  const Real = globalThis.RTCPeerConnection;
  if (!Real) return;
  globalThis.RTCPeerConnection = class extends Real {
    constructor(...args) {
      super(...args);
      connections.push(this);
    }

    setRemoteDescription(description) {
      if (!globalThis.sluiceWithoutUdp) return super.setRemoteDescription(description);
      const isUdp = (line) => /^a=candidate:\S+ \d+ udp /i.test(line);
      const lines = description.sdp.split("\r\n").filter((line) => !isUdp(line));
      return super.setRemoteDescription({ type: description.type, sdp: lines.join("\r\n") });
    }
  };

  globalThis.sluiceError = null;
  addEventListener("error", (event) => (globalThis.sluiceError ??= String(event.error ?? event.message)));
  addEventListener("unhandledrejection", (event) => (globalThis.sluiceError ??= String(event.reason)));

  const openedAt = performance.now();
  const seen = { shown: 0, firstShownMs: null, first: null, last: null, latencies: [] };
  const canvas = document.createElement("canvas");
  let pen = null;

  /** The number in `count` bars, the highest bit on the left; null when a bar is neither black nor white. */
  function bars(video, count) {
    const { videoWidth: width, videoHeight: height } = video;
    if (width === 0) return null;
    if (canvas.width !== width) {
      canvas.width = width;
      canvas.height = 1;
      pen = canvas.getContext("2d", { willReadFrequently: true });
    }
    pen.drawImage(video, 0, Math.floor(height / 4), width, 1, 0, 0, width, 1);
    const row = pen.getImageData(0, 0, width, 1).data;
    let number = 0;
    for (let bar = 0; bar < count; bar++) {
      const luma = row[Math.floor(((bar + 0.5) * width) / count) * 4];
      if (luma > 80 && luma < 170) return null;
      number = number * 2 + (luma > 128 ? 1 : 0);
    }
    return number;
  }

  function watch(video) {
    const next = (_now, frame) => {
      seen.shown = frame.presentedFrames;
      seen.firstShownMs ??= Math.round(performance.now() - openedAt);
      if (globalThis.sluiceClock) {
        const at = bars(video, 40);
        const latency = at === null ? null : (Date.now() % 2 ** 40) - at;
        if (latency !== null && Math.abs(latency) < 60_000) seen.latencies.push(latency);
      } else {
        const number = bars(video, 16);
        if (number !== null) {
          seen.first ??= number;
          seen.last = number;
        }
      }
      video.requestVideoFrameCallback(next);
    };
    video.requestVideoFrameCallback(next);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const video = document.querySelector("video");
    if (video) watch(video);
  });

  globalThis.sluiceReport = async () => {
    const connection = connections.findLast((it) => it.connectionState !== "closed") ?? connections.at(-1);
    const report = {
      connections: connections.length,
      state: connection?.connectionState ?? "none",
      error: globalThis.sluiceError,
      ...seen,
    };
    seen.latencies = [];
    if (!connection) return report;
    const stats = new Map();
    for (const [id, it] of await connection.getStats()) stats.set(id, it);
    const pick = (type, kind) =>
      [...stats.values()].find((it) => it.type === type && (it.kind ?? kind) === kind) ?? {};
    const video = pick("inbound-rtp", "video");
    const audio = pick("inbound-rtp", "audio");
    const sent = pick("outbound-rtp", "video");
    const transport = pick("transport");
    const dtls = connection.getTransceivers().map((it) => (it.receiver ?? it.sender).transport?.state);
    const pair = stats.get(transport.selectedCandidatePairId) ?? {};
    return {
      ...report,
      transport: stats.get(pair.remoteCandidateId)?.protocol ?? null,
      dtls: dtls.find(Boolean) ?? null,
      decoded: video.framesDecoded ?? 0,
      dropped: video.framesDropped ?? 0,
      keyFrames: video.keyFramesDecoded ?? 0,
      plis: video.pliCount ?? 0,
      freezes: video.freezeCount ?? 0,
      frozenS: video.totalFreezesDuration ?? 0,
      width: video.frameWidth ?? 0,
      height: video.frameHeight ?? 0,
      videoCodec: stats.get(video.codecId)?.mimeType ?? null,
      lost: video.packetsLost ?? 0,
      audioCodec: stats.get(audio.codecId)?.mimeType ?? null,
      audioEnergy: audio.totalAudioEnergy ?? 0,
      audioSamples: audio.totalSamplesReceived ?? 0,
      concealed: audio.concealedSamples ?? 0,
      skewMs: (video.estimatedPlayoutTimestamp ?? 0) - (audio.estimatedPlayoutTimestamp ?? 0),
      encoded: sent.framesEncoded ?? 0,
      keyFramesEncoded: sent.keyFramesEncoded ?? 0,
    };
  };
})();
