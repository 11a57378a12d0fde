import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Kind } from "../../../api/changes";
import { type Family, Merger, type MergerOptions, type Source, type Timed } from "./merger";

const signal = new AbortController().signal;
const PAGE = 10;

/** A list on the service: newest first, cursors name the item that was given last. */
class List {
  items: Timed[] = [];
  asked = 0;
  constructor(
    readonly key: string,
    readonly kind: Kind = "job",
    readonly answer = 4,
  ) {}

  add(at: number, id = `${this.key}-${at}`) {
    this.items.push({ id, at });
    this.items.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  }

  source(upTo?: number): Source<Timed> {
    return {
      key: this.key,
      kinds: [this.kind],
      upTo,
      load: async (cursor) => {
        this.asked += 1;
        const [at, id] = cursor?.split("|") ?? [];
        const behind = this.items.filter(
          (item) =>
            cursor === null || item.at < Number(at) || (item.at === Number(at) && item.id < String(id)),
        );
        const items = behind.slice(0, this.answer);
        const last = items[items.length - 1];
        return { items, next: behind.length > items.length && last ? `${last.at}|${last.id}` : null };
      },
    };
  }
}

const merged = (lists: List[], options: Partial<MergerOptions<Timed>> = {}, families: Family<Timed>[] = []) =>
  new Merger(
    lists.map((list) => list.source()),
    families,
    { pageSize: PAGE, ...options },
  );

/** The whole list, as a user reads it who scrolls to its end. */
async function all(merger: Merger<Timed>, step = PAGE): Promise<string[]> {
  const ids: string[] = [];
  for (let rounds = 0; rounds < 5_000; rounds++) {
    const items = await merger.load(ids.length, step, signal);
    ids.push(...items.map(({ id }) => id));
    if (items.length === 0 && merger.isComplete) return ids;
  }
  throw new Error("it has no end");
}

const sorted = (lists: List[]) =>
  lists
    .flatMap(({ items }) => items)
    .sort((a, b) => b.at - a.at)
    .map(({ id }) => id);

/** Numbers from 0 to below `most`, the same for the same seed. */
function randomOf(seed: number) {
  let state = seed * 2_654_435_761 + 1;
  return (most: number) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return Math.abs(state ^ (state >>> 13)) % most;
  };
}

describe("the merged list", () => {
  it("has all items of all sources, newest first", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = randomOf(seed);
      const lists = ["a", "b", "c", "d"].map((key) => new List(key, "job", 1 + random(6)));
      const times = new Set(Array.from({ length: random(120) }, () => random(10_000)));
      for (const at of times) lists[random(lists.length)]?.add(at);
      assert.deepEqual(await all(merged(lists), 1 + random(25)), sorted(lists), `seed ${seed}`);
    }
  });

  it("loses nothing where many have one time", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = randomOf(seed);
      const lists = ["a", "b", "c"].map((key) => new List(key, "job", 1 + random(5)));
      for (let i = 0; i < 80; i++) lists[random(3)]?.add(random(6), `item-${String(i).padStart(3, "0")}`);
      const ids = await all(merged(lists), 1 + random(25));
      assert.deepEqual([...ids].sort(), sorted(lists).sort(), `seed ${seed}`);
      assert.equal(new Set(ids).size, ids.length, `seed ${seed}`);
    }
  });

  it("reads pages again from any place, forwards and backwards", async () => {
    const lists = ["a", "b", "c"].map((key) => new List(key));
    for (let at = 0; at < 300; at++) lists[at % 3]?.add(at);
    const merger = merged(lists);
    const whole = await all(merger);
    for (const offset of [290, 5, 123, 0, 250, 17]) {
      const items = await merger.load(offset, 20, signal);
      assert.deepEqual(
        items.map(({ id }) => id),
        whole.slice(offset, offset + 20),
      );
    }
  });

  it("has what was added and deleted meanwhile, each once, wherever the user was", async () => {
    for (let seed = 1; seed <= 80; seed++) {
      const random = randomOf(seed);
      const lists = ["a", "b", "c"].map((key) => new List(key, "job", 1 + random(6)));
      let now = 0;
      const add = () => lists[random(3)]?.add(now++);
      for (let i = 0; i < 60 + random(60); i++) add();
      const merger = merged(lists);
      for (let round = 0; round < 12; round++) {
        await merger.load(random(100), 1 + random(20), signal);
        for (let i = random(6); i > 0; i--) add();
        const list = lists[random(3)];
        if (list && random(2) === 0) list.items.splice(random(list.items.length), 1);
        merger.invalidate(["job"]);
      }
      assert.deepEqual(await all(merger), sorted(lists), `seed ${seed}`);
    }
  });

  it("begins again when more has come than the first page may take", async () => {
    const list = new List("a");
    for (let at = 0; at < 40; at++) list.add(at);
    const merger = merged([list]);
    await all(merger);
    for (let at = 100; at < 200; at++) list.add(at);
    merger.invalidate(["job"]);
    assert.deepEqual(
      (await merger.load(0, PAGE, signal)).map(({ at }) => at),
      Array.from({ length: PAGE }, (_, i) => 199 - i),
    );
    assert.deepEqual(await all(merger), sorted([list]));
  });

  it("grows from nothing", async () => {
    const list = new List("a");
    const merger = merged([list]);
    assert.deepEqual(await merger.load(0, PAGE, signal), []);
    assert.ok(merger.isComplete);
    for (let at = 0; at < 25; at++) list.add(at);
    merger.invalidate(["job"]);
    assert.deepEqual(await all(merger), sorted([list]));
  });

  it("asks only what has changed again", async () => {
    const [jobs, files] = [new List("a", "job", 50), new List("b", "file", 50)];
    for (let at = 0; at < 20; at++) (at % 2 ? jobs : files).add(at);
    const merger = merged([jobs, files]);
    await merger.load(0, PAGE, signal);
    merger.invalidate(["job"]);
    await merger.load(0, PAGE, signal);
    merger.invalidate(["webhook"]);
    await merger.load(0, PAGE, signal);
    assert.deepEqual([jobs.asked, files.asked], [2, 1]);
  });

  it("gives an error on, and continues after it", async () => {
    const list = new List("a");
    for (let at = 0; at < 30; at++) list.add(at);
    const source = list.source();
    let isBroken = true;
    const broken = {
      ...source,
      load: (cursor: string | null, abort: AbortSignal) =>
        isBroken ? Promise.reject(new Error("no")) : source.load(cursor, abort),
    };
    const merger = new Merger([broken], [], { pageSize: PAGE });
    await assert.rejects(merger.load(0, PAGE, signal), /no/);
    isBroken = false;
    assert.deepEqual(await all(merger), sorted([list]));
  });

  it("keeps what fits, back to the time that was asked for", async () => {
    const list = new List("a");
    for (let at = 0; at < 200; at++) list.add(at);
    const merger = merged([list], { since: 100, keep: ({ at }) => at % 10 === 0 });
    assert.deepEqual(
      await all(merger),
      ["190", "180", "170", "160", "150", "140", "130", "120", "110", "100"].map((at) => `a-${at}`),
    );
  });

  it("stops looking after a number of requests, says how far it came, and continues", async () => {
    const list = new List("a", "job", 2);
    for (let at = 0; at < 100; at++) list.add(at);
    const merger = merged([list], { keep: ({ at }) => at === 0, mostRequests: 5 });
    assert.deepEqual(await merger.load(0, PAGE, signal), []);
    assert.equal(list.asked, 5);
    assert.ok(!merger.isComplete);
    assert.equal(merger.reached, 90);
    await merger.load(0, PAGE, signal);
    assert.equal(merger.reached, 80);
    assert.deepEqual(await all(merger), ["a-0"]);
  });
});

describe("sources that are found on the way", () => {
  /** Inputs with a recording for each number in their list; ordered by their newest. */
  const familyOf = (lists: List[], answer = 3): Family<Timed> & { asked: number } => {
    const newest = (list: List | undefined) => list?.items[0]?.at ?? -1;
    const family = {
      key: "inputs",
      kinds: ["recording", "live_input"] as Kind[],
      asked: 0,
      load: async (offset: number) => {
        family.asked += 1;
        const ordered = [...lists].sort((a, b) => newest(b) - newest(a));
        const found = ordered.slice(offset, offset + answer);
        const next = ordered[offset + answer];
        return {
          sources: found.map((list) => list.source(newest(list))),
          count: found.length,
          upTo: next ? newest(next) : null,
        };
      },
    };
    return family;
  };

  it("are merged like the others", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = randomOf(seed);
      const jobs = new List("jobs");
      const inputs = Array.from({ length: 30 }, (_, i) => new List(`input${i}`, "recording", 1 + random(4)));
      for (let at = 0; at < 200; at++) (random(2) ? jobs : inputs[random(30)])?.add(at);
      const merger = merged([jobs], { mostRequests: 3 + random(40) }, [familyOf(inputs)]);
      for (let round = 0; round < 5; round++) {
        await merger.load(random(150), 1 + random(20), signal);
        inputs[random(30)]?.add(1_000 + round);
        merger.invalidate(["recording"]);
      }
      assert.deepEqual(await all(merger), sorted([jobs, ...inputs]), `seed ${seed}`);
    }
  });

  it("are not asked before the list comes to them", async () => {
    const jobs = new List("jobs", "job", 50);
    for (let at = 1_000; at < 1_100; at++) jobs.add(at);
    const inputs = Array.from({ length: 40 }, (_, i) => new List(`input${i}`, "recording"));
    for (const [i, input] of inputs.entries()) input.add(i < 2 ? 1_095.5 + i : i);
    const family = familyOf(inputs);
    const merger = merged([jobs], {}, [family]);
    await merger.load(0, PAGE, signal);
    assert.deepEqual([family.asked, inputs.filter(({ asked }) => asked > 0).length], [1, 2]);
  });
});
