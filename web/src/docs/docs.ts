/** The page at `/docs`: shows the service's own `/openapi.json`, and nothing that comes from elsewhere. */
import { curlFor, type Entry, entriesByTag, type OpenApi, type Parameter, resolve } from "./document";
import { element, prose } from "./element";
import { bodyView, schemaView } from "./schema_view";

async function run(): Promise<void> {
  const main = document.getElementById("reference");
  const nav = document.getElementById("contents");
  if (!main || !nav) return;
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`the service answered ${response.status}`);
    show((await response.json()) as OpenApi, main, nav);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    main.replaceChildren(element("p", { role: "status" }, `The reference could not be read: ${reason}.`));
  }
}

function show(api: OpenApi, main: HTMLElement, nav: HTMLElement): void {
  const groups = entriesByTag(api);
  main.replaceChildren(introduction(api));
  nav.replaceChildren();
  for (const [tag, entries] of groups) {
    const described = api.tags?.find((one) => one.name === tag)?.description;
    const id = `tag-${tag.replace(/[^A-Za-z0-9]+/g, "-")}`;
    const heading = element("h2", { id: `${id}-title` }, tag);
    const items = entries.map((entry) => operationView(api, entry));
    main.append(
      element(
        "section",
        { class: "tag", id, "aria-labelledby": `${id}-title` },
        heading,
        prose(described),
        ...items,
      ),
    );
    nav.append(element("h2", {}, tag), element("ul", {}, ...entries.map(contentsItem)));
  }
  openTarget();
  window.addEventListener("hashchange", openTarget);
}

function introduction(api: OpenApi): HTMLElement {
  const version = element("span", { class: "version" }, api.info.version);
  return element(
    "div",
    { class: "introduction" },
    element("h1", {}, api.info.title, " ", version),
    prose(api.info.description),
  );
}

function contentsItem(entry: Entry): HTMLElement {
  const link = element("a", { href: `#${entry.id}` }, method(entry), entry.operation.summary ?? entry.path);
  return element("li", {}, link);
}

function method(entry: Entry): HTMLElement {
  return element("span", { class: `method method-${entry.method}` }, entry.method.toUpperCase());
}

function operationView(api: OpenApi, entry: Entry): HTMLElement {
  const { operation } = entry;
  const title = element("span", { class: "operation-title" }, operation.summary ?? "");
  const summary = element(
    "summary",
    {},
    method(entry),
    element("code", { class: "path" }, entry.path),
    title,
  );
  const body = operation.requestBody && resolve(api, operation.requestBody);
  return element(
    "details",
    { class: "operation", id: entry.id },
    summary,
    element(
      "div",
      { class: "operation-body" },
      operation.deprecated && element("p", { class: "deprecated" }, "Deprecated"),
      prose(operation.description),
      command(curlFor(api, entry, api.servers?.[0]?.url.replace(/\/$/, "") || location.origin)),
      parametersView(api, entry.parameters),
      body && section("Request body", bodyView(api, body)),
      responsesView(api, entry),
    ),
  );
}

function command(text: string): HTMLElement {
  const copy = element("button", { class: "button copy", type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text).catch(() => undefined);
    copy.textContent = "Copied";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  });
  return element(
    "div",
    { class: "command" },
    element("pre", { tabindex: "0" }, element("code", {}, text)),
    copy,
  );
}

function parametersView(api: OpenApi, parameters: Parameter[]): HTMLElement | null {
  if (parameters.length === 0) return null;
  const rows = parameters.map((parameter) => {
    const place = parameter.required ? `${parameter.in}, required` : parameter.in;
    const name = element(
      "dt",
      {},
      element("code", {}, parameter.name),
      element("span", { class: "place" }, place),
    );
    return element(
      "div",
      { class: "row" },
      name,
      element("dd", {}, schemaView(api, parameter.schema ?? {}), prose(parameter.description)),
    );
  });
  return section("Parameters", element("dl", { class: "rows" }, ...rows));
}

function responsesView(api: OpenApi, entry: Entry): HTMLElement | null {
  const responses = Object.entries(entry.operation.responses ?? {});
  if (responses.length === 0) return null;
  const rows = responses.map(([status, response]) => {
    const code = element("dt", {}, element("code", { class: `status status-${status[0]}` }, status));
    return element("div", { class: "row" }, code, element("dd", {}, bodyView(api, resolve(api, response))));
  });
  return section("Responses", element("dl", { class: "rows" }, ...rows));
}

function section(title: string, ...content: HTMLElement[]): HTMLElement {
  return element("section", {}, element("h3", {}, title), ...content);
}

/** An operation that the address names is opened and shown. */
function openTarget(): void {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
  target?.scrollIntoView();
}

void run();
