/** The page at `/docs`: shows the service's own `/openapi.json`, and nothing that comes from elsewhere. */
import { credentialView } from "./credential";
import { type Entry, entriesByTag, type OpenApi, titleOf } from "./document";
import { element, prose } from "./element";
import { complete, methodView, operationView } from "./operation_view";
import { isFound, namesOf, wordsOf } from "./search";

/** From this width on the contents are beside the reference, and always open; as in docs.css. */
const WIDE = "(min-width: 60rem)";

/** An operation on the page: in the contents and in the reference. */
interface Shown {
  names: string;
  words: string;
  item: HTMLElement;
  view: HTMLDetailsElement;
  entry: Entry;
}

async function run(): Promise<void> {
  followScheme();
  const main = document.getElementById("reference");
  const nav = document.getElementById("contents");
  const search = document.getElementById("search") as HTMLInputElement | null;
  if (!main || !nav || !search) return;
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`the service answered ${response.status}`);
    const api = (await response.json()) as OpenApi;
    const shown = show(api, main, nav);
    const find = startSearch(search, shown, main, nav);
    const open = () =>
      openTarget(api, shown, () => {
        search.value = "";
        find();
      });
    open();
    window.addEventListener("hashchange", open);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    main.replaceChildren(element("p", { role: "status" }, `The reference could not be read: ${reason}.`));
  }
}

/** The colour scheme that was chosen in the dashboard. */
function followScheme(): void {
  try {
    const scheme = localStorage.getItem("sluice.scheme");
    if (scheme) document.documentElement.dataset.scheme = scheme;
  } catch {
    // Without storage the system's holds.
  }
}

function show(api: OpenApi, main: HTMLElement, nav: HTMLElement): Shown[] {
  const shown: Shown[] = [];
  const version = element("span", { class: "version" }, api.info.version);
  const status = element("p", { class: "search-status", role: "status" });
  main.replaceChildren(element("h1", {}, api.info.title, " ", version), status, introduction(api));
  const contents = element("details", {}, element("summary", {}, "Contents"));
  contents.append(
    element(
      "ul",
      {},
      ...["Authentication", "Calls from this page"].map((title, index) =>
        element("li", {}, element("a", { href: ["#authentication", "#credential"][index] ?? "" }, title)),
      ),
    ),
  );
  for (const [tag, entries] of entriesByTag(api)) {
    const described = api.tags?.find((one) => one.name === tag)?.description;
    const id = `tag-${tag.replace(/[^A-Za-z0-9]+/g, "-")}`;
    const title = titleOf(api, tag);
    const heading = element("h2", { id: `${id}-title` }, title);
    const section = element(
      "section",
      { class: "tag", id, "aria-labelledby": `${id}-title` },
      heading,
      prose(described),
    );
    const list = element("ul", {});
    for (const entry of entries) {
      const view = operationView(api, entry);
      const item = contentsItem(entry);
      section.append(view);
      list.append(item);
      shown.push({ names: namesOf(api, entry), words: wordsOf(api, entry), item, view, entry });
    }
    main.append(section);
    contents.append(element("section", {}, element("h2", {}, element("a", { href: `#${id}` }, title)), list));
  }
  nav.replaceChildren(contents);
  keepContents(contents as HTMLDetailsElement);
  return shown;
}

/** Opens the contents beside the reference; above it, on a phone, they close when something of them is chosen. */
function keepContents(contents: HTMLDetailsElement): void {
  const wide = matchMedia(WIDE);
  const follow = () => {
    contents.open = wide.matches;
  };
  follow();
  wide.addEventListener("change", follow);
  contents.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a") && !wide.matches) contents.open = false;
  });
}

/** Authentication and the credential of calls; a search leaves it out. */
function introduction(api: OpenApi): HTMLElement {
  return element("div", { class: "introduction" }, prose(api.info.description), credentialView());
}

function contentsItem(entry: Entry): HTMLElement {
  const link = element(
    "a",
    { href: `#${entry.id}` },
    methodView(entry),
    entry.operation.summary ?? entry.path,
  );
  return element("li", {}, link);
}

/** Leaves only what is found, in the contents and in the reference. Enter goes to the first, rather one that is called so; `/` comes back. Returns what searches. */
function startSearch(
  search: HTMLInputElement,
  shown: Shown[],
  main: HTMLElement,
  nav: HTMLElement,
): () => void {
  const status = main.querySelector<HTMLElement>(".search-status");
  const introduction = main.querySelector<HTMLElement>(".introduction");
  const find = () => {
    const query = search.value.trim();
    for (const one of shown) {
      const isHidden = !isFound(one.words, query);
      one.item.hidden = isHidden;
      one.view.hidden = isHidden;
    }
    for (const group of [...main.querySelectorAll<HTMLElement>(".tag"), ...nav.querySelectorAll("section")])
      group.hidden = !group.querySelector(".operation:not([hidden]), li:not([hidden])");
    if (introduction) introduction.hidden = query !== "";
    const count = shown.filter(({ view }) => !view.hidden).length;
    const words = count > 0 ? `${count} of ${shown.length} operations` : `No operation has “${query}”`;
    if (status) status.textContent = query && words;
    if (query) window.scrollTo(0, 0);
  };
  search.addEventListener("input", find);
  search.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    const found = shown.filter(({ view }) => !view.hidden);
    const first = found.find(({ names }) => isFound(names, search.value.trim())) ?? found[0];
    if (!first) return;
    first.view.open = true;
    first.view.querySelector("summary")?.focus();
  });
  window.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
  if (search.value) find();
  return find;
}

/** What the address names is shown, also when the search has left it out; an operation is opened. */
function openTarget(api: OpenApi, shown: Shown[], showAll: () => void): void {
  const id = location.hash.slice(1);
  const operation = shown.find(({ entry }) => entry.id === id);
  if (operation) {
    complete(api, operation.entry, operation.view);
    operation.view.open = true;
  }
  const target = document.getElementById(id);
  if (target?.closest("[hidden]")) showAll();
  target?.scrollIntoView();
}

void run();
