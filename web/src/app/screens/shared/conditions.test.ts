import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyGroup, type Group, type Logic, type Rule, readGroup } from "./conditions";
import type { Json } from "./flow";

const rule = (field: string, operator: string, value?: Json, negate = false): Rule => ({
  field,
  operator,
  negate,
  ...(value === undefined ? {} : { value }),
});
const group = (logic: Logic, rules: Rule[], groups: Group[] = [], negate = false): Group => ({
  logic,
  negate,
  rules,
  groups,
});
const wide = { field: "width", operator: "gt", value: 0 };
const small = { field: "width", operator: "lt", value: 0 };
const [isWide, isSmall] = [rule("width", "gt", 0), rule("width", "lt", 0)];

/** The cases of the service: `groups_join_nest_and_negate` in media/src/workflow/tests/conditions.rs, and what read.rs takes. */
test("groups are read in every spelling that the service takes", () => {
  for (const [given, expected] of [
    [{ conditions: [] }, group("and", [])],
    [{ logic: "or", conditions: [] }, group("or", [])],
    [{ logic: "or", groups: [] }, group("or", [])],
    [{ logic: "or" }, group("or", [])],
    [{ combinator: "any" }, group("or", [])],
    [{ conditions: [], negate: true }, group("and", [], [], true)],
    [{ conditions: [wide, small] }, group("and", [isWide, isSmall])],
    [{ logic: "AND", conditions: [wide, wide] }, group("and", [isWide, isWide])],
    [{ logic: "Or", conditions: [small, small] }, group("or", [isSmall, isSmall])],
    [{ logic: "any", conditions: [small], negate: true }, group("or", [isSmall], [], true)],
    [
      { logic: "all", conditions: [wide], groups: [{ conditions: [small] }] },
      group("and", [isWide], [group("and", [isSmall])]),
    ],
    [
      { logic: "or", groups: [{ conditions: [small] }, { conditions: [small], negate: true }] },
      group("or", [], [group("and", [isSmall]), group("and", [isSmall], [], true)]),
    ],
    [
      { conditions: [wide, { logic: "or", conditions: [small, wide] }] },
      group("and", [isWide], [group("or", [isSmall, isWide])]),
    ],
    [{ combinator: "or", rules: [small, wide], not: "true" }, group("or", [isSmall, isWide], [], true)],
    [
      { conditions: null, rules: [wide], logic: null, combinator: "or", negate: null, not: true },
      group("or", [isWide], [], true),
    ],
    [
      { conditions: [wide], rules: [small], logic: "and", combinator: "or", negate: false, not: true },
      group("and", [isWide]),
    ],
    [{ groups: [wide, "images-only"] }, group("and", [isWide, rule("mime", "starts_with", "image/")])],
    [wide, group("and", [isWide])],
    [[wide, small], group("and", [isWide, isSmall])],
    [
      { field: "mime", operator: "is_empty", value: null, not: " TRUE " },
      group("and", [rule("mime", "is_empty", undefined, true)]),
    ],
  ] as [Json, Group][])
    assert.deepEqual(readGroup(given), expected, JSON.stringify(given));
});

test("logic and negation are read in every spelling", () => {
  for (const [word, logic] of [
    ["and", "and"],
    ["AND", "and"],
    [" all ", "and"],
    ["&&", "and"],
    ["or", "or"],
    [" Or ", "or"],
    ["O-R", "or"],
    ["ANY", "or"],
    ["||", "or"],
    [" || ", "or"],
  ] as const) {
    for (const name of ["logic", "combinator"])
      assert.deepEqual(readGroup({ [name]: word, rules: [wide] }), group(logic, [isWide]), word);
    assert.deepEqual(readGroup([wide, small], word), group(logic, [isWide, isSmall]), word);
  }
  for (const [given, negate] of [
    [true, true],
    ["TRUE", true],
    [" true ", true],
    [false, false],
    ["False", false],
    [null, false],
  ] as const)
    for (const name of ["negate", "not"]) {
      assert.deepEqual(readGroup({ conditions: [], [name]: given }), group("and", [], [], negate));
      const read = readGroup({ ...wide, [name]: given });
      assert.deepEqual(read, group("and", [{ ...isWide, negate }]), `${name} ${given}`);
    }
});

test("words of older definitions are the conditions that they mean", () => {
  for (const [word, ...meant] of [
    ["images-only", "mime", "starts_with", "image/"],
    ["IMAGES-ONLY", "mime", "starts_with", "image/"],
    ["images_only", "mime", "starts_with", "image/"],
    ["imagesOnly", "mime", "starts_with", "image/"],
    [" Images Only ", "mime", "starts_with", "image/"],
    ["videos-only", "mime", "starts_with", "video/"],
    ["audio-only", "mime", "starts_with", "audio/"],
    ["from-google-drive", "upload_source", "matches", "^google[-_ ]?drive$"],
    ["larger-than-100mb", "size_bytes", "gt", 100_000_000],
    ["image/", "mime", "starts_with", "image/"],
    ["Image/*", "mime", "starts_with", "Image/"],
    ["x-world/*", "mime", "starts_with", "x-world/"],
    ["image/png", "mime", "equals", "image/png"],
    ["application/x-7z_compressed", "mime", "equals", "application/x-7z_compressed"],
  ] as [string, string, string, Json][])
    for (const given of [word, [word], { conditions: [word] }])
      assert.deepEqual(readGroup(given), group("and", [rule(...meant)]), word);
  assert.deepEqual(
    readGroup(["images-only", "larger-than-100mb"], "any"),
    group("or", [rule("mime", "starts_with", "image/"), rule("size_bytes", "gt", 100_000_000)]),
  );
});

test("nothing is no condition", () => {
  for (const nothing of [null, "", " ", []]) assert.equal(readGroup(nothing, "xor"), null);
});

/** The cases of `what_cannot_be_read_is_named_with_its_place`, where the form is at fault. */
test("what cannot be read is kept as it is", () => {
  for (const given of [
    7,
    true,
    {},
    { matches: "something newer" },
    { conditions: {} },
    { groups: "images-only" },
    { conditions: [null] },
    { conditions: [[wide]] },
    { conditions: [""] },
    { groups: [{ conditions: [], negate: 1 }] },
    { conditions: [], not: "yes" },
    { ...wide, negate: "no" },
    { logic: "xor", conditions: [] },
    { combinator: 1, rules: [] },
    { logic: "&", conditions: [] },
    { field: "mime" },
    { field: 1, operator: "equals", value: 1 },
    "everything",
    "*/*",
    "/",
    ["everything"],
    [wide, [small]],
    [wide, ""],
  ] as Json[])
    assert.deepEqual(readGroup(given), { ...emptyGroup(), raw: given }, JSON.stringify(given));
  const raw = { logic: "xor", conditions: [wide] };
  assert.deepEqual(readGroup([wide], "xor"), { ...emptyGroup(), raw });
  assert.deepEqual(readGroup("images-only", "xor"), group("and", [rule("mime", "starts_with", "image/")]));
});
