// Reads ffmpeg's fragmented MP4 from a pipe: the init section, then one part per moof + mdat.
// It knows just enough of ISO/IEC 14496-12 to list parts and to move their decode times.

const INDEPENDENT_MASK = 0x0001_0000; // sample_is_non_sync_sample

/** Calls `onInit(Buffer)` once and `onPart({data, seconds, independent})` per fragment. */
export function readFragments(stream, { shiftSeconds = 0, onInit, onPart }) {
  let pending = Buffer.alloc(0);
  let head = [];
  let timescales = new Map();
  let moof = null;
  stream.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 8 && pending.length >= pending.readUInt32BE(0)) {
      const size = pending.readUInt32BE(0);
      const type = pending.toString("latin1", 4, 8);
      const box = Buffer.from(pending.subarray(0, size));
      pending = pending.subarray(size);
      if (type === "ftyp") head = [box];
      if (type === "moov") {
        timescales = readTimescales(box);
        onInit(Buffer.concat([...head, box]));
      }
      if (type === "moof") moof = box;
      if (type === "mdat" && moof) {
        onPart({ data: Buffer.concat([moof, box]), ...describe(moof, timescales, shiftSeconds) });
        moof = null;
      }
    }
  });
}

function* children(box, from = 8) {
  for (let at = from; at + 8 <= box.length; at += box.readUInt32BE(at)) {
    yield { type: box.toString("latin1", at + 4, at + 8), box: box.subarray(at, at + box.readUInt32BE(at)) };
  }
}

function find(box, ...path) {
  for (const child of children(box)) {
    if (child.type === path[0]) return path.length === 1 ? child.box : find(child.box, ...path.slice(1));
  }
  return null;
}

function readTimescales(moov) {
  const scales = new Map();
  for (const { type, box } of children(moov)) {
    if (type !== "trak") continue;
    const header = find(box, "tkhd");
    const media = find(box, "mdia", "mdhd");
    const trackId = header.readUInt32BE(header[8] === 1 ? 28 : 20);
    scales.set(trackId, { scale: media.readUInt32BE(media[8] === 1 ? 28 : 20), video: isVideo(box) });
  }
  return scales;
}

function isVideo(trak) {
  return find(trak, "mdia", "hdlr").toString("latin1", 16, 20) === "vide";
}

/** Shifts every decode time in place; returns the video's duration and whether it begins with a key frame. */
function describe(moof, tracks, shiftSeconds) {
  let seconds = 0;
  let independent = false;
  for (const { type, box } of children(moof)) {
    if (type !== "traf") continue;
    const header = readTrackHeader(find(box, "tfhd"));
    const track = tracks.get(header.trackId);
    const times = find(box, "tfdt");
    times.writeBigUInt64BE(times.readBigUInt64BE(12) + BigInt(Math.round(shiftSeconds * track.scale)), 12);
    if (!track.video) continue;
    const run = readRun(find(box, "trun"), header);
    seconds = run.duration / track.scale;
    independent = (run.firstFlags & INDEPENDENT_MASK) === 0;
  }
  return { seconds, independent };
}

function readTrackHeader(tfhd) {
  const flags = tfhd.readUInt32BE(8);
  let at = 16 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0);
  const next = (present) => {
    if (!present) return 0;
    at += 4;
    return tfhd.readUInt32BE(at - 4);
  };
  const duration = next(flags & 8);
  next(flags & 0x10);
  return { trackId: tfhd.readUInt32BE(12), duration, sampleFlags: next(flags & 0x20) };
}

function readRun(trun, header) {
  const flags = trun.readUInt32BE(8);
  const count = trun.readUInt32BE(12);
  let at = 16 + (flags & 1 ? 4 : 0);
  let firstFlags = header.sampleFlags;
  if (flags & 4) {
    firstFlags = trun.readUInt32BE(at);
    at += 4;
  }
  if (!(flags & 0x100)) return { duration: count * header.duration, firstFlags };
  const stride = [0x100, 0x200, 0x400, 0x800].filter((bit) => flags & bit).length * 4;
  if (flags & 0x400) firstFlags = trun.readUInt32BE(at + 4 + (flags & 0x200 ? 4 : 0));
  let duration = 0;
  for (let sample = 0; sample < count; sample += 1) duration += trun.readUInt32BE(at + sample * stride);
  return { duration, firstFlags };
}
