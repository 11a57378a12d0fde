// Pictures and folders of pictures to upload, made here: nothing is fetched and nothing lies in the repository.
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

/** A PNG with a gradient between two colours, `seed` apart from others. */
export function png(seed, width = 192, height = 128) {
  const ends = [0, 1].map((end) => [0, 1, 2].map((channel) => hashed(seed * 7 + end * 3 + channel) & 255));
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const share = (x / width + y / height) / 2;
      const at = y * (1 + width * 3) + 1 + x * 3;
      for (let c = 0; c < 3; c++) rows[at + c] = Math.round(ends[0][c] * (1 - share) + ends[1][c] * share);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function hashed(value) {
  let mixed = Math.imul(value ^ 0x9e3779b9, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function chunk(type, data) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** A folder "Holiday" on the disk with `count` pictures, a third of them in each of three levels; returns its path. */
export function folderOfPictures(count) {
  const top = join(mkdtempSync(join(tmpdir(), "sluice-pictures-")), "Holiday");
  const levels = [top, join(top, "Beach"), join(top, "Beach", "Evening")];
  mkdirSync(levels[2], { recursive: true });
  for (let i = 0; i < count; i++) {
    const name = `picture ${String(i).padStart(3, "0")}.png`;
    writeFileSync(join(levels[i % 3], name), png(i));
  }
  return top;
}
