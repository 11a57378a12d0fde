// Builds the pages into dist/: HTML at the top, everything they load under dist/assets with a hash in its name,
// so that the service may let browsers keep assets for ever and must never let them keep the HTML. Beside each of them lies
// what it is by brotli (.br) and by gzip (.gz). The build fails when the dashboard is larger than its budgets.
//
//   node build.mjs            build dist/
//   node build.mjs --test     bundle src/**/*.test.ts into node_modules/.test and run them
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
process.chdir(root);

/** Every page and the entry points that its `{{name}}` placeholders are replaced by. */
const entryPoints = [
  "src/app/main.tsx",
  "src/styles/app.css",
  "src/player/player.ts",
  "src/watch/watch.ts",
  "src/publish/publish.ts",
  "src/embed/hls.ts",
  "src/docs/docs.ts",
  "src/share/share.ts",
  "src/share/stream.ts",
  "src/styles/player.css",
  "src/styles/publish.css",
  "src/styles/docs.css",
  "src/styles/share.css",
  "src/styles/notice.css",
  "src/styles/plans.css",
];
const pages = [
  "pages/app.html",
  "pages/player.html",
  "pages/watch.html",
  "pages/publish.html",
  "pages/docs.html",
  "pages/share.html",
  "pages/notice.html",
  "pages/plans.html",
  "pages/missing.html",
];
const copied = ["pages/favicon.svg"];
const element = "embed/sluice-player.js";

/** Bytes on the wire, by brotli. */
const kB = 1000;
const budgets = {
  shellScripts: 40 * kB,
  shellStyles: 12 * kB,
  screen: 15 * kB,
  /** With the player, which has hls.js. */
  screens: {
    "src/app/screens/live_detail/player.tsx": 110 * kB,
    "src/app/screens/workflow_editor/editor.tsx": 25 * kB,
    /** With @xyflow/react and what it needs of React. */
    "src/app/screens/workflow_editor/canvas.tsx": 85 * kB,
  },
  /** The element for other sites, without hls.js, which it loads when it needs it. */
  element: 15 * kB,
  /** Page, script and style of publishing. */
  publish: 15 * kB,
  embedded: 625 * kB,
  /** The guides, which are read in the dashboard: beside these. */
  guides: 90 * kB,
};

/** The canvas of workflows is written for React; Preact does what it asks of it. */
const react = {
  react: "preact/compat",
  "react-dom": "preact/compat",
  "react/jsx-runtime": "preact/jsx-runtime",
  "use-sync-external-store/shim/with-selector.js": "./src/app/screens/workflow_editor/external_store.ts",
};

/**
 * Keeps the shell in one chunk: esbuild puts modules into the same one when the same entry points reach them, and every
 * lazily loaded file is an entry point. Without this the shell would be as many requests as there are combinations.
 */
const shellInOneChunk = {
  name: "shell-in-one-chunk",
  setup(build) {
    build.onLoad({ filter: /\/src\/app\/screens\/.*\.tsx?$/ }, ({ path }) => ({
      contents: `${readFileSync(path, "utf8")}\nimport ${JSON.stringify(join(root, "src/app/main.tsx"))};`,
      loader: extname(path).slice(1),
    }));
  },
};

if (process.argv.includes("--test")) {
  process.exit(await runTests());
}
await buildPages();

async function buildPages() {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist/assets", { recursive: true });
  const { metafile } = await esbuild.build({
    entryPoints,
    outdir: "dist/assets",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2021",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [shellInOneChunk],
    alias: react,
    loader: { ".md": "text" },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });

  const outputs = new Map(Object.entries(metafile.outputs));
  const urls = new Map();
  const preloads = new Map();
  for (const [entry, { entryPoint }] of outputs) {
    if (!entryPoints.includes(entryPoint)) continue;
    const name = basename(entryPoint).replace(/\.tsx?$/, ".js");
    const file = holderOf(outputs, entryPoint) ?? entry;
    urls.set(name, `/assets/${basename(file)}`);
    const chunks = [...loadedWith(outputs, file)].filter((chunk) => chunk !== file);
    preloads.set(
      name,
      chunks.map((chunk) => `<link rel="modulepreload" href="/assets/${basename(chunk)}">`),
    );
  }
  for (const file of copied) urls.set(basename(file), `/assets/${copyHashed(file)}`);
  for (const page of pages) {
    const html = withParts(readFileSync(page, "utf8"))
      .replace(/^( *)\{\{preload ([^}]+)\}\}\n/gm, (_, indent, name) =>
        (preloads.get(name) ?? []).map((link) => `${indent}${link}\n`).join(""),
      )
      .replace(/\{\{([^}]+)\}\}/g, (_, name) => {
        const url = urls.get(name);
        if (!url) throw new Error(`${page}: nothing was built for {{${name}}}`);
        return url;
      });
    writeFileSync(join("dist", basename(page)), html);
  }
  await buildElement(urls.get("hls.js"));
  const sizes = compressAll();
  holdBudgets(outputs, sizes);
}

/** The one script whose address other sites write down: without a hash in its name, and no module. */
async function buildElement(hlsModule) {
  await esbuild.build({
    entryPoints: ["src/embed/sluice_player.ts"],
    outfile: `dist/${element}`,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2021",
    define: { HLS_MODULE: JSON.stringify(`..${hlsModule}`) },
    legalComments: "none",
    logLevel: "warning",
  });
}

/** Writes .br and .gz beside every file of dist/; returns the sizes by brotli. */
function compressAll() {
  const sizes = new Map();
  for (const folder of ["dist", "dist/assets", "dist/embed"]) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(folder, entry.name);
      const data = readFileSync(path);
      const brotli = brotliCompressSync(data, {
        params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length },
      });
      writeFileSync(`${path}.br`, brotli);
      writeFileSync(`${path}.gz`, gzipSync(data, { level: 9 }));
      sizes.set(path, brotli.length);
    }
  }
  return sizes;
}

/** The output that has the code of a source: of the shell a chunk, because screens import it; its entry point is only imports. */
function holderOf(outputs, source) {
  return [...outputs].find(([, output]) => output.inputs[source]?.bytesInOutput > 0)?.[0];
}

/** An output with everything that it imports statically. */
function loadedWith(outputs, file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const { path, kind } of outputs.get(file)?.imports ?? []) {
    if (kind === "import-statement" && outputs.has(path)) loadedWith(outputs, path, found);
  }
  return found;
}

function holdBudgets(outputs, sizes) {
  const total = (files) => [...files].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0);
  const outputOf = (source) => [...outputs].find(([, output]) => output.entryPoint === source)?.[0];
  const shell = loadedWith(outputs, holderOf(outputs, "src/app/main.tsx"));
  const beside = (source) =>
    [...loadedWith(outputs, outputOf(source))].filter((file) => !shell.has(file) && file.endsWith(".js"));
  const guides = [...outputs]
    .filter(([, { entryPoint }]) => entryPoint?.endsWith(".md"))
    .map(([file]) => file);
  const measured = [
    [
      "shell and sign-in",
      total([...shell, ...beside("src/app/screens/sign_in/index.tsx")]),
      budgets.shellScripts,
    ],
    ["styles of the dashboard", total([outputOf("src/styles/app.css")]), budgets.shellStyles],
    [
      "publish page",
      total([
        "dist/publish.html",
        outputOf("src/styles/publish.css"),
        ...loadedWith(outputs, outputOf("src/publish/publish.ts")),
      ]),
      budgets.publish,
    ],
    ["element for other sites", total([`dist/${element}`]), budgets.element],
    ["guides", total(guides), budgets.guides],
    ["everything else embedded", total(sizes.keys()) - total(guides), budgets.embedded],
  ];
  for (const { entryPoint } of outputs.values()) {
    if (!entryPoint?.startsWith("src/app/screens/")) continue;
    measured.push([entryPoint, total(beside(entryPoint)), budgets.screens[entryPoint] ?? budgets.screen]);
  }
  for (const [what, size, budget] of measured) {
    console.log(`${(size / kB).toFixed(1).padStart(6)} of ${budget / kB} kB  ${what}`);
  }
  const over = measured.filter(([, size, budget]) => size > budget);
  if (over.length > 0)
    throw new Error(`larger than the budget by brotli: ${over.map(([what]) => what).join(", ")}`);
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
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".md": "text" },
    sourcemap: "inline",
    logLevel: "warning",
  });
  const bundles = tests.map((test) => join(outdir, test.replace(/^src\//, "").replace(/\.tsx?$/, ".mjs")));
  // Numbers and times are written as the user's language has them; the tests expect one.
  const env = { ...process.env, LC_ALL: "en_US.UTF-8" };
  return spawnSync(process.execPath, ["--test", ...bundles], { stdio: "inherit", env }).status ?? 1;
}

function findTests(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return findTests(path);
    return /\.test\.tsx?$/.test(entry.name) ? [path] : [];
  });
}
