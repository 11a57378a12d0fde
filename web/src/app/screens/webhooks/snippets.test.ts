import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { asCurl, type Language, verifier } from "./snippets";
import type { SentRequest } from "./types";

const SECRET = "whsec_c2VjcmV0IG9mIGEgdGVzdA==";
const BODY = `{"id":"evt_1","name":"it's “quoted” \\u0000 $HOME \`id\` 日本"}`;

function request(signedWith: string): SentRequest {
  const t = "1795276800";
  const v1 = createHmac("sha256", signedWith).update(`${t}.${BODY}`).digest("hex");
  return {
    method: "POST",
    url: "https://shop.example/hooks?it's=1",
    headers: [
      { name: "Content-Type", value: "application/json" },
      { name: "service-signature", value: `t=${t},v1=${"0".repeat(64)},v1=${v1}` },
    ],
    body: BODY,
    sentAt: "2026-11-25T00:00:00Z",
    isAsSent: true,
  };
}

function run(language: Language, program: string): string {
  const [command, args]: [string, string[]] = {
    shell: ["sh", ["-c", program]] as [string, string[]],
    node: ["node", ["--input-type=module", "-e", program]] as [string, string[]],
    python: ["python3", ["-c", program]] as [string, string[]],
    php: ["php", ["-r", program.replace("<?php\n", "")]] as [string, string[]],
  }[language];
  const env = { ...process.env, WEBHOOK_SECRET: SECRET };
  return spawnSync(command, args, { encoding: "utf8", env }).stdout.trim();
}

for (const language of ["shell", "node", "python"] as const) {
  test(`a ${language} program tells a delivery of its secret from one of another`, () => {
    assert.equal(run(language, verifier(language, request(SECRET)) ?? ""), "valid");
    assert.equal(run(language, verifier(language, request("whsec_another")) ?? ""), "not valid");
  });
}

test("there is nothing to check before the first attempt", () => {
  assert.equal(verifier("node", { ...request(SECRET), headers: [] }), null);
});

test("the command carries hostile bytes whole", () => {
  const command = asCurl(request(SECRET)).replace("curl -i -X POST", "sh -c 'cat' #");
  const printed = spawnSync("sh", ["-c", command.split("\n").slice(0, 2).join("\n")], { encoding: "utf8" });
  assert.equal(printed.stdout, BODY);
});
