import assert from "node:assert/strict";
import { test } from "node:test";
import { oneAtATime } from "./one_at_a_time";

test("an act that is in progress is not begun again", async () => {
  const ends: (() => void)[] = [];
  const save = oneAtATime((version: number) => new Promise<number>((end) => ends.push(() => end(version))));
  const calls = [save(1), save(1)];
  assert.equal(ends.length, 1, "the second call begins nothing");
  ends[0]?.();
  assert.deepEqual(await Promise.all(calls), [1, 1]);
  const next = save(2);
  assert.equal(ends.length, 2, "once it has ended, it may begin again");
  ends[1]?.();
  assert.equal(await next, 2);
});

test("an act that failed may be tried again", async () => {
  let tries = 0;
  const save = oneAtATime(async () => {
    tries += 1;
    if (tries === 1) throw new Error("no connection");
  });
  const calls = [save(), save()];
  for (const call of calls) await assert.rejects(call, /no connection/);
  await save();
  assert.equal(tries, 2);
});
