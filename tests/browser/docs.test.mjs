// The API reference page under the service's content policy.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openChromium } from "./chromium.mjs";
import { MockService } from "./mock/service.mjs";
import { Observer } from "./observer.mjs";

const openapi = {
  openapi: "3.1.0",
  info: { title: "Sluice", version: "1.0.0", description: "One **media** service." },
  security: [{ bearer: [] }],
  paths: {
    "/api/live/inputs": {
      post: {
        tags: ["Live inputs"],
        summary: "Create a live input",
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/New" } } } },
        responses: { 201: { description: "Made, with its `secrets` <script>alert(1)</script>." } },
      },
    },
  },
  components: {
    schemas: { New: { type: "object", required: ["name"], properties: { name: { type: "string" } } } },
  },
};

describe("the reference page", () => {
  let service;
  let chromium;
  let observer;

  before(async () => {
    service = await new MockService({ openapi }).start();
    chromium = await openChromium({ width: 320, height: 640 });
    observer = new Observer(chromium.page);
    await observer.open(service.url.replace(/\/live\/.*/, "/docs#post-api-live-inputs"));
  });

  after(async () => {
    await chromium?.close();
    await service?.stop();
  });

  it("the operation that the address names is open and complete", async () => {
    const operation = chromium.page.locator("#post-api-live-inputs");
    await operation.locator("text=Made, with its").waitFor();
    const text = await operation.textContent();
    for (const part of [
      "POST",
      "/api/live/inputs",
      "Authorization: Bearer",
      "name",
      "required",
      "201",
      "<script>",
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
  });

  it("nothing on it is wider than a 320 px screen", async () => {
    assert.equal(await observer.evaluate("() => document.documentElement.scrollWidth"), 320);
  });

  it("it keeps to the content policy and to its own origin", () => {
    const { consoleErrors, foreignRequests } = observer.summary();
    assert.deepEqual({ consoleErrors, foreignRequests }, { consoleErrors: [], foreignRequests: [] });
  });
});
