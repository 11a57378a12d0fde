/** A ZIP archive of stored (not compressed) members, made in the browser: media is compressed already. */

export interface Member {
  name: string;
  data: Uint8Array;
}

/** The largest archive without ZIP64. */
export const MOST_BYTES = 0xffff_ffff - 1_000_000;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb8_8320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** CRC-32 as in ISO 3309. */
export function crc32(data: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of data) crc = (TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffff_ffff) >>> 0;
}

/** Names without directories, each once: "a.jpg", "a (2).jpg". */
export function distinctNames(names: string[]): string[] {
  const taken = new Set<string>();
  return names.map((given) => {
    const name = given.replaceAll(/[/\\\0]/g, "_") || "file";
    const [, stem = name, ending = ""] = /^(.+?)(\.[^.]+)?$/s.exec(name) ?? [];
    let next = name;
    for (let i = 2; taken.has(next.toLowerCase()); i++) next = `${stem} (${i})${ending}`;
    taken.add(next.toLowerCase());
    return next;
  });
}

/** Bit 11: names are UTF-8. */
const FLAGS = 0x0800;
const VERSION = 20;
/** 1 January 1980, the earliest date of the format. */
const DATE = 0x0021;

/** The parts of the archive, for a `Blob`. */
export function zipOf(members: Member[]): Uint8Array<ArrayBuffer>[] {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  const names = distinctNames(members.map(({ name }) => name));
  let offset = 0;
  members.forEach(({ data }, i) => {
    const name = new TextEncoder().encode(names[i]);
    // Version, flags, method 0 (stored), time, date, CRC, both sizes, length of the name, no extra field
    const common = fields([
      [2, VERSION],
      [2, FLAGS],
      [2, 0],
      [2, 0],
      [2, DATE],
      [4, crc32(data)],
      [4, data.length],
      [4, data.length],
      [2, name.length],
      [2, 0],
    ]);
    const local = joined([fields([[4, 0x0403_4b50]]), common, name]);
    const more: [number, number][] = [
      [2, 0],
      [2, 0],
      [2, 0],
      [4, 0],
      [4, offset],
    ];
    directory.push(
      joined([
        fields([
          [4, 0x0201_4b50],
          [2, VERSION],
        ]),
        common,
        fields(more),
        name,
      ]),
    );
    parts.push(local, data as Uint8Array<ArrayBuffer>);
    offset += local.length + data.length;
  });
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const end = fields([
    [4, 0x0605_4b50],
    [2, 0],
    [2, 0],
    [2, members.length],
    [2, members.length],
    [4, size],
    [4, offset],
    [2, 0],
  ]);
  return [...parts, ...directory, end];
}

/** Numbers of so many bytes, the lowest byte first. */
function fields(numbers: [bytes: number, value: number][]): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(numbers.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of numbers)
    for (let i = 0; i < bytes; i++) made[at++] = Math.floor(value / 256 ** i) & 0xff;
  return made;
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}
