// The official TypeScript SDK as an agent uses it: one session of `task.json`'s steps; what came of it goes to stdout as JSON.
//
//   node client.mjs task.json
//
// The task: {url, key} or {command: [program, …]}; steps: [{tool, arguments} | {put} | {list: true}]. In arguments "$uploadUrl",
// "$runId" and "$workflowId" are replaced by what the last answer that had one said.
import { readFile } from "node:fs/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const task = JSON.parse(await readFile(process.argv[2], "utf8"));
const client = new Client({ name: "sluice-test", version: "1.0.0" });
await client.connect(transport());
const done = [];
const known = {};
for (const step of task.steps) {
  done.push(await perform(step));
}
await client.close();
console.log(JSON.stringify({ server: client.getServerVersion(), done }));

function transport() {
  if (task.command) {
    const [command, ...args] = task.command;
    return new StdioClientTransport({ command, args, env: { ...process.env, ...task.env } });
  }
  const headers = { authorization: `Bearer ${task.key}` };
  return new StreamableHTTPClientTransport(new URL(task.url), { requestInit: { headers } });
}

async function perform(step) {
  if (step.list) {
    return await client.listTools();
  }
  if (step.put) {
    const answer = await fetch(known.uploadUrl, { method: "PUT", body: await readFile(step.put) });
    return { status: answer.status };
  }
  const progress = [];
  const filled = JSON.stringify(step.arguments ?? {}).replace(/\$(\w+)/g, (whole, name) => known[name] ?? whole);
  try {
    const result = await client.callTool({ name: step.tool, arguments: JSON.parse(filled) }, undefined, {
      onprogress: (report) => progress.push(report),
    });
    remember(result.structuredContent ?? {});
    return { ...result, progress };
  } catch (error) {
    return { refused: { code: error.code, message: error.message } };
  }
}

function remember({ uploadUrl, runId, run, workflow }) {
  const said = { uploadUrl, runId, workflowId: workflow?.id ?? run?.workflowId };
  for (const [name, value] of Object.entries(said)) {
    known[name] = value ?? known[name];
  }
}
