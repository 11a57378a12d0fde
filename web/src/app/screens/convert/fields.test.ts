import assert from "node:assert/strict";
import { test } from "node:test";
import {
  classOf,
  counts,
  describe,
  formatsFor,
  groupOf,
  isRequired,
  joins,
  labelOf,
  paramsOf,
  problemOf,
  problemsOf,
  takes,
  usualFormat,
} from "./fields";
import type { Format, ResizePreset, Tool, ToolField } from "./types";

const field = (more: Partial<ToolField> & { name: string }): ToolField => ({
  type: "string",
  input: "text",
  allowed: "a value",
  values: [],
  minimum: null,
  maximum: null,
  maxLength: null,
  default: null,
  summary: "",
  ...more,
});
const whole = (name: string, minimum: number, maximum: number, more: Partial<ToolField> = {}) =>
  field({ name, type: "integer", input: "integer", minimum, maximum, ...more });
const flag = (name: string, byDefault = false) =>
  field({ name, type: "boolean", input: "flag", default: byDefault });
const tool = (more: Partial<Tool>): Tool => ({
  name: "convert",
  path: "/api/convert",
  summary: "",
  accepts: ["raster", "video"],
  minFiles: 1,
  maxFiles: 1,
  fields: [],
  ...more,
});
const format = (name: string, kind: string, aliases: string[] = []): Format => ({
  name,
  mime: `${kind === "raster" ? "image" : kind}/${name}`,
  aliases,
  class: kind,
  isWritten: true,
});

const formats = [
  format("jpg", "raster", ["jpeg"]),
  format("webp", "raster"),
  format("mp4", "video"),
  format("mp3", "audio"),
  format("zip", "archive"),
];
const presets: ResizePreset[] = [
  { name: "website", width: 1920, height: null, needs: [], takes: [] },
  { name: "width", width: null, height: null, needs: ["resizeWidth"], takes: ["resizeWidth"] },
];
const convert = tool({
  fields: [
    field({ name: "format", input: "format", values: ["jpg", "webp", "mp4", "mp3", "svg"] }),
    field({ name: "resizePreset", input: "choice", values: ["website", "width"] }),
    whole("resizeWidth", 1, 16_383),
    whole("resizeHeight", 1, 16_383),
    whole("compression", 1, 100, { default: 82 }),
    flag("autoOrient", true),
    flag("mono"),
  ],
});

test("the class of a file is that of its media type, else of its extension", () => {
  for (const [name, mime, expected] of [
    ["a.bin", "image/webp", "raster"],
    ["A.JPEG", "", "raster"],
    ["a.mp4", "application/octet-stream", "video"],
    ["a.xyz", "image/x-new", "raster"],
    ["a.xyz", "text/plain", undefined],
    ["jpg", "", undefined],
  ] as const)
    assert.equal(classOf({ name, mime }, formats), expected, `${name} ${mime}`);
});

test("a tool is offered for what it accepts and for what is unknown", () => {
  const images = tool({ name: "vectorize", accepts: ["raster"] });
  assert.equal(takes(images, { name: "a.jpg", mime: "" }, formats), true);
  assert.equal(takes(images, { name: "a.mp3", mime: "" }, formats), false);
  assert.equal(takes(images, { name: "a.zip", mime: "" }, formats), false);
  assert.equal(takes(convert, { name: "a.zip", mime: "" }, formats), true);
  assert.equal(takes(images, { name: "a.unknown", mime: "" }, formats), true);
});

test("tools are grouped by what they take", () => {
  assert.equal(groupOf(convert), "often");
  assert.equal(groupOf(tool({ name: "x", accepts: ["raster", "document"] })), "image");
  assert.equal(groupOf(tool({ name: "x", accepts: ["audio", "video"] })), "media");
  assert.equal(groupOf(tool({ name: "x", accepts: ["vector", "video"] })), "any");
});

test("only tools without a file field of their own join files", () => {
  assert.equal(joins(tool({ maxFiles: 100 })), true);
  assert.equal(
    joins(tool({ maxFiles: 2, fields: [field({ name: "watermarkFile", input: "file" })] })),
    false,
  );
  assert.equal(joins(convert), false);
});

test("a field that has no name of its own here is named by its words", () => {
  assert.equal(labelOf("someNewThing"), "Some new thing");
});

test("sides count beside a size that takes them, and are needed by one that needs them", () => {
  const [width, height] = [convert.fields[2] as ToolField, convert.fields[3] as ToolField];
  assert.equal(counts(convert, width, {}, presets), true);
  assert.equal(counts(convert, width, { resizePreset: "website" }, presets), false);
  assert.equal(counts(convert, width, { resizePreset: "width" }, presets), true);
  assert.equal(counts(convert, height, { resizePreset: "width" }, presets), false);
  assert.equal(isRequired(convert, width, { resizePreset: "width" }, presets), true);
  assert.deepEqual(
    Object.keys(problemsOf(convert, { format: "jpg", resizePreset: "width" }, { resizePresets: presets })),
    ["resizeWidth"],
  );
});

test("numbers are held to their range and kind", () => {
  const quality = whole("quality", 1, 100);
  for (const [text, isWrong] of [
    ["", false],
    ["1", false],
    ["100", false],
    ["0", true],
    ["101", true],
    ["1.5", true],
    ["many", true],
  ] as const)
    assert.equal(problemOf(quality, text) !== undefined, isWrong, text);
  const factor = field({ name: "f", type: "number", input: "number", minimum: 0, maximum: 10 });
  assert.equal(problemOf(factor, "1.5"), undefined);
});

test("texts are held to their length and words", () => {
  assert.ok(problemOf(field({ name: "t", maxLength: 2 }), "🎬🎬🎬"));
  assert.equal(problemOf(field({ name: "t", maxLength: 2 }), "🎬🎬"), undefined);
  assert.ok(problemOf(field({ name: "t", values: ["a"] }), "b"));
});

test("a size of a crop needs the other, and a watermark a text or an image", () => {
  const crop = tool({ name: "transform", fields: [whole("cropWidth", 1, 10), whole("cropHeight", 1, 10)] });
  const none = { resizePresets: [] };
  assert.deepEqual(Object.keys(problemsOf(crop, { cropWidth: "3" }, none)), ["cropHeight"]);
  assert.deepEqual(problemsOf(crop, {}, none), {});
  const mark = tool({
    name: "watermark",
    fields: [field({ name: "text" }), field({ name: "watermarkFile", input: "file" })],
  });
  assert.deepEqual(Object.keys(problemsOf(mark, {}, none)), ["text"]);
  assert.deepEqual(problemsOf(mark, {}, none, true), {});
  assert.deepEqual(problemsOf(mark, { text: "©" }, none), {});
});

test("a request says what counts and differs from the default, in the field's type", () => {
  const values = {
    format: "jpg",
    resizePreset: "website",
    resizeWidth: "300",
    compression: "82",
    autoOrient: "true",
    mono: "true",
  };
  assert.deepEqual(paramsOf(convert, values, presets), {
    format: "jpg",
    resizePreset: "website",
    compression: 82,
  });
  assert.deepEqual(paramsOf(convert, { format: "svg", mono: "true", autoOrient: "false" }, presets), {
    format: "svg",
    autoOrient: false,
    mono: true,
  });
});

test("formats are those that the files can become", () => {
  const choices = convert.fields[0] as ToolField;
  assert.deepEqual(formatsFor(choices, new Set(["audio"]), formats), ["mp3", "svg"]);
  assert.deepEqual(formatsFor(choices, new Set(["raster"]), formats), ["jpg", "webp", "svg"]);
  assert.deepEqual(formatsFor(choices, new Set(), formats), choices.values);
  assert.equal(usualFormat(new Set(["audio"]), ["mp3"]), "mp3");
  assert.equal(usualFormat(new Set(["video", "raster"]), ["jpg", "mp4"]), "mp4");
  assert.equal(usualFormat(new Set(), ["jpg"]), "jpg");
});

test("units of the summary are part of the label", () => {
  for (const [summary, label, hint] of [
    ["pixels", "Width, px", ""],
    ["pixels; never more than the video has", "Width, px", "Never more than the video has"],
    ["pixels from the edges", "Width, px", "From the edges"],
    ["pixelated", "Width", "Pixelated"],
    ["the format to make", "Width", ""],
  ] as const)
    assert.deepEqual(describe({ name: "width", summary }), { label, hint });
});
