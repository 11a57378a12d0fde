import assert from "node:assert/strict";
import { test } from "node:test";
import { errorOf, fieldOf } from "./error";

test("an error has the API's sentence, its code and the time to wait", () => {
  const error = errorOf(429, "12", '{"error":"too many requests: wait","code":"rate_limited"}');
  assert.deepEqual(
    [error.status, error.message, error.code, error.retryAfter],
    [429, "Too many requests: wait", "rate_limited", 12],
  );
});

test("an answer that is not the API's is named by its status", () => {
  for (const text of ["", "<html>Bad gateway</html>", "null", '"error"', '{"error":{"message":"x"}}']) {
    assert.equal(errorOf(502, null, text).message, "The service answered with status 502", text);
  }
  assert.equal(errorOf(503, "Wed, 25 Nov 2026 18:00:00 GMT", "{}").retryAfter, undefined);
});

test("the field is the name with which the message begins", () => {
  const cases: [string, string | undefined][] = [
    ["name must have at most 200 characters", "name"],
    ["`allowedDomains[1]` is no host name", "allowedDomains"],
    ["presets_only is a boolean", "presetsOnly"],
    ["focalPoint.x: from 0 to 1", "focalPoint"],
    ["The link is gone", undefined],
    ["", undefined],
  ];
  for (const [message, field] of cases) assert.equal(fieldOf(message), field, message);
});

test("a message that begins with a field's name keeps its spelling", () => {
  assert.equal(
    errorOf(400, null, '{"error":"allowedDomains has an empty entry"}').message,
    "allowedDomains has an empty entry",
  );
});
