import assert from "node:assert/strict";
import { test } from "node:test";
import { iceServersOf, retryAfterS, withStartBitrate, withStereo } from "./sdp";

test("stereo is asked for in Opus and in nothing else", () => {
  const offer = [
    "m=audio 9 UDP/TLS/RTP/SAVPF 111 63",
    "a=rtpmap:111 opus/48000/2",
    "a=fmtp:111 minptime=10;useinbandfec=1",
    "a=rtpmap:63 red/48000/2",
    "a=fmtp:63 111/111",
    "",
  ].join("\r\n");
  const asked = withStereo(offer);
  assert.ok(
    asked.includes("a=fmtp:111 minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1\r\n"),
    JSON.stringify(asked),
  );
  assert.ok(asked.includes("a=fmtp:63 111/111\r\n"));
  assert.equal(withStereo(asked), asked, "asked for once");
  assert.equal(withStereo(""), "");
});

test("a rate to begin with is asked for in each codec of video", () => {
  const answer = [
    "v=0",
    "m=video 9 UDP/TLS/RTP/SAVPF 102 103",
    "a=fmtp:102 packetization-mode=1",
    "a=fmtp:103 apt=102",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111",
    "a=fmtp:111 stereo=1",
    "",
  ].join("\r\n");
  const asked = withStartBitrate(answer, 1_500_000);
  assert.equal(asked, answer.replace("mode=1", "mode=1;x-google-start-bitrate=1500"));
  const last = answer.replace(/m=audio.*$/s, "");
  assert.equal(withStartBitrate(last, 800_000), last.replace("mode=1", "mode=1;x-google-start-bitrate=800"));
  assert.equal(withStartBitrate("", 1), "");
});

test("ICE servers are read from Link headers", () => {
  const table: [string | null, RTCIceServer[]][] = [
    [null, []],
    ["", []],
    ['<stun:stun.example.net>; rel="ice-server"', [{ urls: "stun:stun.example.net" }]],
    ["<stun:stun.example.net>; rel=ice-server", [{ urls: "stun:stun.example.net" }]],
    [
      '<stun:a.example>; rel="ice-server", <turn:b.example?transport=udp>; rel="ice-server"; ' +
        'username="us,er"; credential="my\\"Pass;word"; credential-type="password"',
      [
        { urls: "stun:a.example" },
        { urls: "turn:b.example?transport=udp", username: "us,er", credential: 'my"Pass;word' },
      ],
    ],
    ['<https://example.net/next>; rel="next"', []],
    ['<javascript:alert(1)>; rel="ice-server"', []],
  ];
  for (const [header, expected] of table) assert.deepEqual(iceServersOf(header), expected, String(header));
});

test("Retry-After is a number of seconds or a date", () => {
  const now = Date.parse("2026-11-26T12:00:00Z");
  const table: [string | null, number][] = [
    [null, 7],
    ["", 7],
    ["soon", 7],
    ["-3", 7],
    ["0", 0],
    ["12", 12],
    ["Thu, 26 Nov 2026 12:00:30 GMT", 30],
    ["Thu, 26 Nov 2026 11:00:00 GMT", 0],
  ];
  for (const [header, expected] of table) assert.equal(retryAfterS(header, now, 7), expected, String(header));
});
