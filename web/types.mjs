// Makes src/app/api/schema.ts, the types of the API, out of docs/reference/openapi.json, which a test of the service keeps
// equal to what it answers. Run by `npm run check`, when the document is newer than the types.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const document = new URL("../docs/reference/openapi.json", import.meta.url);
const types = new URL("src/app/api/schema.ts", import.meta.url);

if (!existsSync(types) || statSync(types).mtimeMs < statSync(document).mtimeMs) {
  const { default: openapiTS, astToString } = await import("openapi-typescript");
  const made = astToString(await openapiTS(JSON.parse(readFileSync(document, "utf8"))));
  writeFileSync(types, made);
  console.log(`${fileURLToPath(types)}  ${made.length} bytes`);
}
