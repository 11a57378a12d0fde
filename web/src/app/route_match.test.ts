import assert from "node:assert/strict";
import { test } from "node:test";
import { match } from "./route_match";

const routes = ["/", "/files/shares", "/files/:folder?", "/live", "/live/:id/:tab?"].map((path) => ({
  path,
}));

const cases: [string, string | undefined, Record<string, string>?][] = [
  ["/", "/", {}],
  ["/files", "/files/:folder?", {}],
  ["/files/0196", "/files/:folder?", { folder: "0196" }],
  ["/files/shares", "/files/shares", {}],
  ["/files/a/b", undefined],
  ["/live", "/live", {}],
  ["/live/", "/live", {}],
  ["/live/a%2Fb", "/live/:id/:tab?", { id: "a/b" }],
  ["/live/a/outputs", "/live/:id/:tab?", { id: "a", tab: "outputs" }],
  ["/live/__proto__", "/live/:id/:tab?", { id: "__proto__" }],
  ["/live/%zz", undefined],
  ["/nothing", undefined],
];

test("an address names the first route that fits, or none", () => {
  for (const [path, route, params] of cases) {
    const found = match(routes, path);
    assert.equal(found?.route.path, route, path);
    if (params) assert.deepEqual(found?.params, params, path);
  }
});
