import assert from "node:assert/strict";
import { test } from "node:test";
import { LONGEST_DELAY_MS, retryDelayMs } from "./backoff";

test("the wait doubles up to its ceiling and is spread over the upper half", () => {
  const table = [
    { attempt: 0, random: 0, expected: 250 },
    { attempt: 0, random: 0.999, expected: 500 },
    { attempt: 1, random: 0.5, expected: 750 },
    { attempt: 2, random: 0, expected: 1000 },
    { attempt: 3, random: 0.999, expected: 2999 },
    { attempt: 4000, random: 0.999, expected: 2999 },
  ];
  for (const { attempt, random, expected } of table) {
    const delay = retryDelayMs(attempt, random);
    assert.ok(Math.abs(delay - expected) <= 1, `attempt ${attempt}, random ${random}: ${delay} ms`);
    assert.ok(delay <= LONGEST_DELAY_MS);
  }
});
