import assert from "node:assert/strict";
import { test } from "node:test";
import { browserName } from "./browser";

test("a browser is named by what it says of itself, not by what it resembles", () => {
  const cases = [
    [
      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
      "Chrome on Linux",
    ],
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36 Edg/156.0",
      "Edge on Windows",
    ],
    ["Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0", "Firefox on Android"],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile Safari/604.1",
      "Safari on iPhone",
    ],
    ["curl/8.9.1", "curl"],
    ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
  ] as const;
  for (const [userAgent, name] of cases) assert.equal(browserName(userAgent), name);
});
