import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { helpOf } from "../shared/help_words";
import { anchorOf, type Block, type Inline, inline, parse, placeOf, textOf } from "./markdown";
import { guides } from "./texts";

const FOLDER = "../docs/guide";
const names = readdirSync(FOLDER).map((file) => file.replace(/\.md$/, ""));
function linksOf(blocks: Block[]): string[] {
  const of = (inside: Inline[]): string[] => inside.flatMap((part) => (part.is === "link" ? [part.to] : []));
  return blocks.flatMap((block) => {
    if (block.is === "code") return [];
    if (block.is === "list") return block.items.flatMap(of);
    if (block.is === "table") return [...block.head, ...block.rows.flat()].flatMap(of);
    return of(block.inside);
  });
}

describe("Markdown", () => {
  it("has headings, prose over lines, code, lists and tables", () => {
    const blocks = parse(
      "# Title\n\nOne line\nand another.\n\n```sh\n# no heading\n```\n- first\n  goes on\n- second\n\n1. one\n\n| a | b |\n|---|---|\n| `x\\|y` | z |\n\n<picture>\n![no](x.png)\n",
    );
    assert.deepEqual(
      blocks.map(({ is }) => is),
      ["heading", "paragraph", "code", "list", "list", "table"],
    );
    const [, prose, code, list, ordered, table] = blocks;
    assert.ok(prose?.is === "paragraph" && textOf(prose.inside) === "One line and another.");
    assert.ok(code?.is === "code" && code.text === "# no heading");
    assert.ok(
      list?.is === "list" && !list.isOrdered && list.items.map(textOf).join("/") === "first goes on/second",
    );
    assert.ok(ordered?.is === "list" && ordered.isOrdered);
    assert.ok(table?.is === "table" && table.rows.length === 1 && textOf(table.rows[0]?.[0] ?? []) === "x|y");
  });

  it("has code, links and emphasis in lines", () => {
    assert.deepEqual(inline("a `b*c*` **d** *e* [f `g`](h.md#i)."), [
      { is: "text", text: "a " },
      { is: "code", text: "b*c*" },
      { is: "text", text: " " },
      { is: "strong", inside: [{ is: "text", text: "d" }] },
      { is: "text", text: " " },
      { is: "em", inside: [{ is: "text", text: "e" }] },
      { is: "text", text: " " },
      {
        is: "link",
        to: "h.md#i",
        inside: [
          { is: "text", text: "f " },
          { is: "code", text: "g" },
        ],
      },
      { is: "text", text: "." },
    ]);
  });

  it("leads to guides, to the reference and to sites, and nowhere by other addresses", () => {
    assert.deepEqual(placeOf("obs.md#in-the-dashboard"), { guide: "obs", anchor: "in-the-dashboard" });
    assert.deepEqual(placeOf("../reference/api.md"), { address: "/docs" });
    assert.deepEqual(placeOf("https://example.org/"), { address: "https://example.org/" });
    assert.equal(placeOf("../reference/settings.md"), null);
    assert.equal(placeOf("javascript:alert(1)"), null);
  });
});

describe("the guides", () => {
  it("are all there", () => assert.deepEqual(Object.keys(guides).sort(), names.sort()));

  it("are named by the help only as they are", () => {
    for (const [path, { guides: named }] of Object.entries(helpOf))
      for (const [name] of named) assert.ok(names.includes(name), `${path}: ${name}`);
  });

  it("begin with their title, and their links to one another and to headings exist", () => {
    const parsed = new Map(names.map((name) => [name, parse(readFileSync(`${FOLDER}/${name}.md`, "utf8"))]));
    const ids = (name: string) =>
      (parsed.get(name) ?? []).flatMap((block) => (block.is === "heading" ? [block.id] : []));
    for (const [name, blocks] of parsed) {
      assert.ok(blocks[0]?.is === "heading" && blocks[0].level === 1, name);
      for (const to of linksOf(blocks)) {
        const place = placeOf(to);
        if (!place || !("guide" in place)) continue;
        const target = place.guide || name;
        assert.ok(names.includes(target), `${name}: ${to}`);
        if (place.anchor) assert.ok(ids(target).includes(place.anchor), `${name}: ${to}`);
      }
    }
  });

  it("have no marks of Markdown in their text", () => {
    for (const name of names) {
      for (const block of parse(readFileSync(`${FOLDER}/${name}.md`, "utf8"))) {
        if (block.is !== "paragraph") continue;
        const text = block.inside.map((part) => (part.is === "text" ? part.text : "")).join("");
        assert.doesNotMatch(text, /\]\(|\*\*|^#|```/, name);
      }
    }
    assert.equal(anchorOf("Who may do what, and `why`?"), "who-may-do-what-and-why");
  });
});
