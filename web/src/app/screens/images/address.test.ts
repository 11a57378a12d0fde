import assert from "node:assert/strict";
import { test } from "node:test";
import {
  baseOf,
  pathOf,
  pointOf,
  presetOf,
  problemOf,
  purgeOf,
  queryOf,
  valuesOf,
  valuesOfPreset,
} from "./address";
import { type Built, codeOf, languagesOf, widthsOf } from "./code";
import type { CdnParameter } from "./types";

const parameter = (
  name: string,
  input: CdnParameter["input"],
  more: Partial<CdnParameter> = {},
): CdnParameter => ({
  name,
  aliases: [],
  type: input === "integer" || input === "number" ? input : input === "flag" ? "boolean" : "string",
  input,
  group: "size",
  allowed: `allowed for ${name}`,
  values: [],
  minimum: null,
  maximum: null,
  step: null,
  default: null,
  summary: "",
  ...more,
});

const parameters = [
  parameter("w", "integer", { minimum: 1, maximum: 8192 }),
  parameter("h", "integer", { minimum: 1, maximum: 8192 }),
  parameter("dpr", "number", { minimum: 1, maximum: 4, default: 1 }),
  parameter("q", "quality", { values: ["auto", "auto:best"], minimum: 1, maximum: 100, default: "80" }),
  parameter("format", "choice", { values: ["auto", "webp", "avif", "jpg", "png"], default: "auto" }),
  parameter("fp", "point"),
  parameter("flip", "flag", { default: false }),
  parameter("bg", "colour"),
];
const FILE = "01a2142b-3f37-773e-a24d-2a63fd5b2c8b";

const built = (values: Built["values"], more: Partial<Built> = {}): Built => ({
  place: { base: "https://media.example", key: "shop", file: FILE },
  values,
  catalogue: { cdnParameters: parameters, formats: [{ name: "avif", mime: "image/avif", aliases: [] }] },
  source: { width: 4000, hasAlpha: false },
  result: undefined,
  alt: "",
  isText: false,
  ...more,
});

test("a query is in the catalogue's order, without what says nothing", () => {
  const values = {
    bg: "ffcc00",
    w: "960",
    dpr: "1",
    q: "auto:best",
    flip: "1",
    format: "auto",
    fp: "0.5,0.3",
  };
  assert.equal(queryOf(values, parameters), "w=960&q=auto:best&fp=0.5,0.3&flip=1&bg=ffcc00");
  assert.deepEqual(valuesOf("w=960&q=auto:best&fp=0.5,0.3"), { w: "960", q: "auto:best", fp: "0.5,0.3" });
  assert.equal(queryOf({ bg: `"><script>&'` }, parameters), "bg=%22%3E%3Cscript%3E%26%27");
  assert.equal(queryOf({ flip: "0", unknown: "1" }, parameters), "");
});

test("presets are read into values and written from them", () => {
  assert.deepEqual(valuesOfPreset({ w: 400, flip: true, fp: "0.5,0.25", trim: false }), {
    w: "400",
    flip: "1",
    fp: "0.5,0.25",
  });
  assert.deepEqual(presetOf({ w: "400", dpr: "2", flip: "1", q: "80", bg: "fc0" }, parameters), {
    w: 400,
    dpr: 2,
    flip: true,
    bg: "fc0",
  });
});

test("paths have a query or a preset", () => {
  const place = { key: "shop", file: FILE };
  assert.equal(pathOf(place, {}), `/cdn/v1/shop/${FILE}`);
  assert.equal(pathOf(place, { query: "w=1" }), `/cdn/v1/shop/${FILE}?w=1`);
  assert.equal(pathOf(place, { preset: "card", query: "w=1" }), `/cdn/v1/shop/${FILE}/p/card`);
  assert.equal(baseOf("https://a.example/media/api/downloads/x/api/", "-"), "https://a.example/media");
  assert.equal(baseOf("/api/files/1", "http://here"), "http://here");
});

test("values out of range are named by what is allowed", () => {
  const problem = (name: string, value: string) => {
    const found = parameters.find((known) => known.name === name);
    assert.ok(found);
    return problemOf(found, value);
  };
  for (const [name, good, bad] of [
    ["w", ["", "1", "8192"], ["0", "8193", "1.5", "x", "1e3"]],
    ["dpr", ["1", "1.25", "4"], ["0.5", "5", "two"]],
    ["q", ["80", "auto", "auto:best", "1"], ["0", "101", "auto:worst", "7.5"]],
    ["bg", ["fc0", "FFCC00", "transparent"], ["#fc0", "red", "ffcc0"]],
    ["fp", ["0.5,0.3", "0,1", ".5,1.0"], ["0.5", "2,0", "0.5,0.3,0.1", "a,b"]],
  ] as const) {
    for (const value of good) assert.equal(problem(name, value), undefined, `${name}=${value}`);
    for (const value of bad) assert.equal(problem(name, value), `allowed for ${name}`, `${name}=${value}`);
  }
});

test("a click is a point inside of the image", () => {
  assert.equal(pointOf(0.12345, 0.5), "0.123,0.5");
  assert.equal(pointOf(-0.2, 1.7), "0,1");
});

test("addresses and tags to purge are taken apart", () => {
  assert.deepEqual(
    purgeOf(`asset:${FILE}\n  https://m.example/cdn/v1/k/${FILE}?w=1 ${FILE}\nasset:${FILE}`),
    {
      urls: [`https://m.example/cdn/v1/k/${FILE}?w=1`],
      tags: [`asset:${FILE}`],
    },
  );
  assert.deepEqual(purgeOf("  \n"), { urls: [], tags: [] });
});

test("widths are around the asked one and never above the source's", () => {
  assert.deepEqual(widthsOf(960, 4000, false), [480, 960, 1440, 1920]);
  assert.deepEqual(widthsOf(960, 1200, false), [480, 960, 1200]);
  assert.deepEqual(widthsOf(960, 600, false), [480, 600]);
  assert.deepEqual(widthsOf(960, 600, true), [480, 960, 1440, 1920]);
  assert.deepEqual(widthsOf(undefined, 1000, false), [320, 640, 960, 1000]);
  assert.deepEqual(widthsOf(1, null, false), [1, 2]);
});

test("srcset keeps the shape, leaves density to the browser and escapes for HTML", () => {
  const code = codeOf(
    built({ w: "800", h: "600", dpr: "2", fp: "0.5,0.3" }, { alt: `A "dune" & <sand>` }),
    "srcset",
  );
  const at = (width: number, height: number) =>
    `https://media.example/cdn/v1/shop/${FILE}?w=${width}&amp;h=${height}&amp;fp=0.5,0.3`;
  assert.ok(code.includes(`src="${at(800, 600)}"`), code);
  for (const [width, height] of [
    [400, 300],
    [1200, 900],
    [1600, 1200],
  ] as const)
    assert.ok(code.includes(`${at(width, height)} ${width}w`), code);
  assert.ok(code.includes(`sizes="(min-width: 800px) 800px, 100vw"`));
  assert.ok(code.includes(`alt="A &quot;dune&quot; &amp; &lt;sand&gt;"`));
  assert.ok(!code.includes("dpr"));
});

test("a height alone becomes widths of the same image", () => {
  const code = codeOf(built({ h: "300" }, { result: { width: 400, height: 300 } }), "srcset");
  assert.ok(code.includes(`?w=800 800w`) && !code.includes("h=300 4"), code);
  assert.ok(code.includes(`width="400" height="300"`));
});

test("picture names each format, and one that every browser shows", () => {
  const code = codeOf(built({ w: "960" }), "picture");
  assert.deepEqual(code.match(/<source type="[^"]+"/g), [
    '<source type="image/avif"',
    '<source type="image/webp"',
  ]);
  assert.ok(code.includes("w=960&amp;q=auto&amp;format=avif 960w"), code);
  assert.match(code, /<img src="[^"]*format=jpg"/);
  const clear = codeOf(built({ w: "960", q: "50" }, { source: { width: 4000, hasAlpha: true } }), "picture");
  assert.match(clear, /<img src="[^"]*format=png"/);
  assert.ok(clear.includes("q=50&amp;format=avif"));
});

test("a preset has one address", () => {
  const card = built({ w: "1" }, { preset: "card", result: { width: 4, height: 3 } });
  assert.deepEqual(languagesOf(card), ["url", "srcset", "curl"]);
  assert.deepEqual(languagesOf({ ...card, isText: true }), ["url", "curl"]);
  assert.equal(codeOf(card, "url"), `https://media.example/cdn/v1/shop/${FILE}/p/card`);
  assert.equal(
    codeOf(card, "srcset"),
    `<img src="https://media.example/cdn/v1/shop/${FILE}/p/card" width="4" height="3" alt="" loading="lazy">`,
  );
});

test("the loader makes addresses of the component's width and quality", async () => {
  const code = codeOf(built({ w: "960", fp: "0.5,0.3", q: "auto:best" }), "next");
  const source = `data:text/javascript,${encodeURIComponent(code)}`;
  const { default: loader } = await import(source);
  const begin = `https://media.example/cdn/v1/shop/${FILE}`;
  assert.equal(loader({ src: FILE, width: 640 }), `${begin}?w=640&q=auto:best&fp=0.5,0.3`);
  assert.equal(loader({ src: FILE, width: 640, quality: 50 }), `${begin}?w=640&q=50&fp=0.5,0.3`);
});
