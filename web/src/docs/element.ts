/** Makes elements out of text that is not trusted: never by way of HTML. */

type Child = Node | string | null | undefined | false;

export function element(name: string, attributes: Record<string, string>, ...children: Child[]): HTMLElement {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child): child is Node | string => Boolean(child)));
  return made;
}

/** Headings, paragraphs, `code`, **strong** and lists: as much of Markdown as descriptions use. */
export function prose(text: string | undefined): HTMLElement | null {
  if (!text?.trim()) return null;
  const blocks = text
    .trim()
    .split(/\n\s*\n/)
    .map((block) => {
      const lines = block.split("\n");
      const heading = /^#+ (.*)$/.exec(block)?.[1];
      if (heading) return element("h2", { id: idFor(heading) }, ...inline(heading));
      if (!lines.every((line) => /^\s*[-*] /.test(line)))
        return element("p", {}, ...inline(block.replace(/\n/g, " ")));
      return element(
        "ul",
        {},
        ...lines.map((line) => element("li", {}, ...inline(line.replace(/^\s*[-*] /, "")))),
      );
    });
  return element("div", { class: "prose" }, ...blocks);
}

/** The id of a heading, by which addresses lead to it. */
function idFor(heading: string): string {
  return heading.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

function inline(text: string): Child[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (piece.startsWith("`") && piece.length > 2) return element("code", {}, piece.slice(1, -1));
    if (piece.startsWith("**") && piece.length > 4) return element("strong", {}, piece.slice(2, -2));
    return piece;
  });
}
