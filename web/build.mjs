// Builds the pages into dist/: HTML at the top, everything they load under dist/assets with a hash in its name,
// so that the service may let browsers keep assets for ever and must never let them keep the HTML.
//
//   node build.mjs            build dist/
//   node build.mjs --test     bundle src/**/*.test.ts into node_modules/.test and run them
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
process.chdir(root);

/** Every page and the entry points that its `{{name}}` placeholders are replaced by. */
const entryPoints = [
  "src/player/player.ts",
  "src/watch/watch.ts",
  "src/docs/docs.ts",
  "src/share/share.ts",
  "src/share/stream.ts",
  "src/styles/player.css",
  "src/styles/docs.css",
  "src/styles/share.css",
  "src/styles/notice.css",
  "src/styles/plans.css",
  "src/styles/start.css",
];
const pages = [
  "pages/player.html",
  "pages/watch.html",
  "pages/docs.html",
  "pages/share.html",
  "pages/notice.html",
  "pages/plans.html",
  "pages/missing.html",
  "pages/start.html",
];
const copied = ["pages/favicon.svg"];

if (process.argv.includes("--test")) {
  process.exit(await runTests());
}
await buildPages();

async function buildPages() {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist/assets", { recursive: true });
  const result = await esbuild.build({
    entryPoints,
    outdir: "dist/assets",
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2021",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });

  const urls = new Map();
  for (const [file, output] of Object.entries(result.metafile.outputs)) {
    if (output.entryPoint)
      urls.set(basename(output.entryPoint).replace(/\.ts$/, ".js"), `/assets/${basename(file)}`);
  }
  for (const file of copied) urls.set(basename(file), `/assets/${copyHashed(file)}`);
  for (const page of pages) {
    const html = withParts(readFileSync(page, "utf8")).replace(/\{\{([^}]+)\}\}/g, (_, name) => {
      const url = urls.get(name);
      if (!url) throw new Error(`${page}: nothing was built for {{${name}}}`);
      return url;
    });
    writeFileSync(join("dist", basename(page)), html);
  }
  for (const file of readdirSync("dist/assets")) {
    console.log(`dist/assets/${file}  ${readFileSync(join("dist/assets", file)).length} bytes`);
  }
}

/** `{{> name}}` on a line of its own is replaced by pages/parts/name.html. */
function withParts(html) {
  return html.replace(/^\{\{> ([\w-]+)\}\}\n/gm, (_, name) =>
    readFileSync(`pages/parts/${name}.html`, "utf8"),
  );
}

function copyHashed(file) {
  const data = readFileSync(file);
  const hash = createHash("sha256").update(data).digest("hex").slice(0, 8).toUpperCase();
  const extension = extname(file);
  const name = `${basename(file, extension)}-${hash}${extension}`;
  writeFileSync(join("dist/assets", name), data);
  return name;
}

async function runTests() {
  const outdir = "node_modules/.test";
  rmSync(outdir, { recursive: true, force: true });
  const tests = findTests("src");
  await esbuild.build({
    entryPoints: tests,
    outdir,
    outbase: "src",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const bundles = tests.map((test) => join(outdir, test.replace(/^src\//, "").replace(/\.ts$/, ".mjs")));
  return spawnSync(process.execPath, ["--test", ...bundles], { stdio: "inherit" }).status ?? 1;
}

function findTests(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return findTests(path);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}
