/** Reads the Markdown of the guides: headings, paragraphs, code, lists and tables, with code, links and emphasis in them. */

export type Inline =
  | { is: "text"; text: string }
  | { is: "code"; text: string }
  | { is: "strong"; inside: Inline[] }
  | { is: "em"; inside: Inline[] }
  | { is: "link"; to: string; inside: Inline[] };

export type Block =
  | { is: "heading"; level: number; id: string; inside: Inline[] }
  | { is: "paragraph"; inside: Inline[] }
  | { is: "code"; text: string }
  | { is: "list"; isOrdered: boolean; items: Inline[][] }
  | { is: "table"; head: Inline[][]; rows: Inline[][][] };

const FENCE = "```";
const ITEM = /^(?:[-*]|(\d+)\.) +(.*)$/;
const HEADING = /^(#{1,4}) +(.*)$/;

/** Images and other HTML are left out: the guides that are read here are without them. */
export function parse(markdown: string): Block[] {
  const lines = markdown.split("\n");
  const blocks: Block[] = [];
  let at = 0;
  const takeWhile = (fits: (line: string) => boolean): string[] => {
    const taken: string[] = [];
    for (let line = lines[at]; line !== undefined && fits(line); line = lines[at]) {
      taken.push(line);
      at += 1;
    }
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = HEADING.exec(line);
    if (line.startsWith(FENCE)) {
      at += 1;
      blocks.push({ is: "code", text: takeWhile((text) => !text.startsWith(FENCE)).join("\n") });
      at += 1;
    } else if (heading?.[1] && heading[2] !== undefined) {
      const text = heading[2];
      blocks.push({ is: "heading", level: heading[1].length, id: anchorOf(text), inside: inline(text) });
      at += 1;
    } else if (line.startsWith("|")) {
      const [head = [], , ...rows] = takeWhile((text) => text.startsWith("|")).map(cells);
      blocks.push({ is: "table", head, rows });
    } else if (ITEM.test(line)) {
      blocks.push(list(takeWhile((text) => ITEM.test(text) || /^ +\S/.test(text))));
    } else if (line.trim() === "" || /^\s*<|^!\[/.test(line)) {
      at += 1;
    } else {
      const text = takeWhile((next) => isProse(next)).join(" ");
      blocks.push({ is: "paragraph", inside: inline(text) });
    }
  }
  return blocks;
}

const isProse = (line: string) =>
  line.trim() !== "" &&
  !line.startsWith(FENCE) &&
  !line.startsWith("|") &&
  !HEADING.test(line) &&
  !ITEM.test(line);

function list(lines: string[]): Block {
  const items: string[] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push(item[2] ?? "");
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  }
  const isOrdered = ITEM.exec(lines[0] ?? "")?.[1] !== undefined;
  return { is: "list", isOrdered, items: items.map(inline) };
}

/** The cells of a line of a table: `\|` is no end of a cell. */
function cells(line: string): Inline[][] {
  const inside = line.trim().replace(/^\||\|$/g, "");
  return inside.split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
}

/** The anchor of a heading, as code forges make it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");
}

const INLINE =
  /`([^`]+)`|!?\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|\*\*([^*]+)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*/;

/** The text of a line without its marks. */
export const textOf = (inside: Inline[]): string =>
  inside.map((part) => ("inside" in part ? textOf(part.inside) : part.text)).join("");

export function inline(text: string): Inline[] {
  const found = INLINE.exec(text);
  if (!found) return text ? [{ is: "text", text }] : [];
  const [whole, code, label, to, strong, em] = found;
  const parts: Inline[] = [];
  if (found.index > 0) parts.push({ is: "text", text: text.slice(0, found.index) });
  if (code !== undefined) parts.push({ is: "code", text: code });
  else if (strong !== undefined) parts.push({ is: "strong", inside: inline(strong) });
  else if (em !== undefined) parts.push({ is: "em", inside: inline(em) });
  else if (to !== undefined && !whole.startsWith("!"))
    parts.push({ is: "link", to, inside: inline(label ?? "") });
  return [...parts, ...inline(text.slice(found.index + whole.length))];
}

/** Where a link of a guide leads: another guide, the reference of the API, another site, or nowhere that is served. */
export function placeOf(to: string): { guide: string; anchor: string } | { address: string } | null {
  if (/^https?:\/\//.test(to)) return { address: to };
  const [path = "", anchor = ""] = to.split("#");
  if (path === "" && anchor) return { guide: "", anchor };
  const guide = /^(?:\.\/|\.\.\/guide\/)?([\w-]+)\.md$/.exec(path)?.[1];
  if (guide) return { guide, anchor };
  return /reference\/api\.md$|^\/docs/.test(path) ? { address: "/docs" } : null;
}
