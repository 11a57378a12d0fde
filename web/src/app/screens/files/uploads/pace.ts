/** How fast uploads are, and how long the rest takes. */
const SPAN_MS = 10_000;

export class Pace {
  private samples: { at: number; bytes: number }[] = [];

  /** Takes the bytes that were sent in all. */
  note(bytes: number, at: number) {
    this.samples.push({ at, bytes });
    while (this.samples.length > 2 && at - (this.samples[0]?.at ?? at) > SPAN_MS) this.samples.shift();
  }

  reset() {
    this.samples = [];
  }

  /** Milliseconds for `rest` bytes; null while it is not known. */
  left(rest: number): number | null {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    if (!first || !last || last.at - first.at < 1_000 || last.bytes <= first.bytes) return null;
    return (rest * (last.at - first.at)) / (last.bytes - first.bytes);
  }
}
