import assert from "node:assert/strict";
import { test } from "node:test";
import { asCurl, changesMade, reads, recordCall } from "./calls";

const ORIGIN = "https://media.example";

test("a command has the method, the address and the body, and no credential", () => {
  const command = asCurl({ method: "POST", path: "/api/live/inputs", body: { name: "it's on" } }, ORIGIN);
  assert.equal(
    command,
    `curl -s -X POST 'https://media.example/api/live/inputs' \\\n  -H "Authorization: Bearer $KEY" \\\n  --json '{"name":"it'\\''s on"}'`,
  );
});

test("passwords and secrets are left out", () => {
  const body = {
    currentPassword: "hunter2",
    secret: "whsec_1",
    expiresIn: 60,
    deep: { token: "svc_1" },
    password: "",
  };
  const command = asCurl({ method: "PATCH", path: "/x", body }, ORIGIN);
  for (const secret of ["hunter2", "whsec_1", "svc_1"]) assert.ok(!command.includes(secret), command);
  assert.ok(command.includes('"password":""') && command.includes('"expiresIn":60'), command);
});

test("a form names its files", () => {
  const body = new FormData();
  body.append("folderId", "0196");
  body.append("file", new File(["x"], "a b.jpg"));
  const command = asCurl({ method: "POST", path: "/api/files", body }, ORIGIN);
  assert.ok(command.includes("-F 'folderId=0196'") && command.includes("-F 'file=@a b.jpg'"), command);
});

test("the last eight are kept, what is read once for each address, the session never", () => {
  for (let i = 0; i < 12; i++) recordCall({ method: "POST", path: `/api/things/${i}` });
  assert.equal(changesMade.value.length, 8);
  assert.equal(changesMade.value[0]?.path, "/api/things/11");
  for (let i = 0; i < 3; i++) recordCall({ method: "GET", path: "/api/things" });
  recordCall({ method: "GET", path: "/api/session" });
  assert.deepEqual(reads.value, [{ method: "GET", path: "/api/things" }]);
});
