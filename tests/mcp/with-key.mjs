// Runs a program beside a proxy that adds a credential, since the conformance suite has none to send:
//
//   node with-key.mjs http://127.0.0.1:8080 KEY program … URL …
//
// URL is replaced by the proxy's /mcp. Host and Origin are passed on unchanged. Exits with the program's status.
import { spawn } from "node:child_process";
import http from "node:http";

const [service, key, program, ...rest] = process.argv.slice(2);
const { hostname, port } = new URL(service);

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  const onward = http.request({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
proxy.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
  const child = spawn(program, rest.map((word) => (word === "URL" ? url : word)), { stdio: "inherit" });
  child.on("exit", (code) => process.exit(code ?? 1));
});
