/** One operation: closed a line, opened everything about it. */
import { callOf, startingValues } from "./call";
import { acceptedBy, type Entry, type OpenApi, type Parameter, resolve } from "./document";
import { element, prose } from "./element";
import { exampleView } from "./example_view";
import { bodyView, schemaView } from "./schema_view";
import { tryView } from "./try_view";

export function operationView(api: OpenApi, entry: Entry): HTMLDetailsElement {
  const { operation } = entry;
  const summary = element(
    "summary",
    {},
    methodView(entry),
    element("span", { class: "operation-title" }, operation.summary ?? entry.path),
    element("code", { class: "path" }, entry.path),
  );
  const view = element("details", { class: "operation", id: entry.id }, summary) as HTMLDetailsElement;
  view.addEventListener("toggle", () => view.open && complete(api, entry, view));
  return view;
}

/** Makes what an operation has inside, once. */
export function complete(api: OpenApi, entry: Entry, view: HTMLElement): void {
  if (view.childElementCount > 1) return;
  const { operation } = entry;
  const base = api.servers?.[0]?.url.replace(/\/$/, "") || location.origin;
  const values = startingValues(api, entry);
  const example = exampleView(callOf(api, entry, base, values));
  const body = operation.requestBody && resolve(api, operation.requestBody);
  view.append(
    element(
      "div",
      { class: "operation-body" },
      operation.deprecated && element("p", { class: "deprecated" }, "Deprecated"),
      prose(operation.description),
      element("p", { class: "accepts" }, acceptsWords(api, entry)),
      example.view,
      tryView(api, entry, values, () => example.show(callOf(api, entry, base, values))),
      parametersView(api, entry.parameters),
      body && section("Request body", bodyView(api, body)),
      responsesView(api, entry),
    ),
  );
}

export function methodView(entry: Entry): HTMLElement {
  return element("span", { class: `method method-${entry.method}` }, entry.method.toUpperCase());
}

function acceptsWords(api: OpenApi, entry: Entry): string {
  const accepted = acceptedBy(api, entry.operation);
  if (accepted.length === 0) return "Needs no credential beyond its address.";
  const byKey = accepted.some((name) => name !== "session");
  const bySession = accepted.includes("session");
  if (byKey && bySession) return "Needs an API key or a session.";
  return byKey ? "Needs an API key." : "Needs a session.";
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
