/** The form that sends a call of an operation, and its answer. */
import {
  BYTES,
  bodySchema,
  bodyTypes,
  type Call,
  callOf,
  entered,
  formFields,
  isForm,
  type Values,
} from "./call";
import { askSession, credentialLine, withCredential } from "./credential";
import { type Entry, type OpenApi, type Parameter, resolve, type Schema } from "./document";
import { element } from "./element";
import { exampleOf, parameterExample } from "./example";

/** Text of an answer that is shown; a stream of events has no end. */
const SHOWN = 200_000;

let fields = 0;

/** `onChange` is called after `values` has what was entered. */
export function tryView(api: OpenApi, entry: Entry, values: Values, onChange: () => void): HTMLElement {
  const answer = element("div", { class: "answer" });
  const send = element("button", { class: "button button-solid", type: "submit" }, "Send");
  const stop = element("button", { class: "button button-plain", type: "button" }, "Stop");
  stop.hidden = true;
  const form = element(
    "form",
    { class: "try-form" },
    ...entered(entry).map((parameter) => parameterField(api, parameter, values, onChange)),
    bodyFields(api, entry, values, onChange),
    credentialLine(),
    element("div", { class: "try-actions" }, send, stop),
    answer,
  );
  let sending: AbortController | null = null;
  stop.addEventListener("click", () => sending?.abort());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sending?.abort();
    const mine = new AbortController();
    sending = mine;
    stop.hidden = false;
    const call = callOf(api, entry, "", values, { examples: false });
    await showAnswer(call, answer, mine.signal);
    if (sending === mine) stop.hidden = true;
  });
  const details = element(
    "details",
    { class: "try" },
    element("summary", {}, "Try it"),
    form,
  ) as HTMLDetailsElement;
  details.addEventListener("toggle", () => details.open && void askSession().catch(() => undefined), {
    once: true,
  });
  return details;
}

function parameterField(
  api: OpenApi,
  parameter: Parameter,
  values: Values,
  onChange: () => void,
): HTMLElement {
  const schema = resolve(api, parameter.schema ?? {});
  const label = `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""})`;
  return textField(label, schema, parameterExample(api, parameter), (text) => {
    values.parameters[`${parameter.in}.${parameter.name}`] = text;
    onChange();
  });
}

function textField(
  label: string,
  schema: Schema,
  hint: string,
  onInput: (text: string) => void,
): HTMLElement {
  const choices = schema.enum ?? (schema.type === "boolean" ? [true, false] : null);
  const id = nextId();
  const input = choices
    ? element(
        "select",
        { class: "input", id },
        ...["", ...choices.map(String)].map((one) => element("option", {}, one)),
      )
    : element("input", { class: "input", id, placeholder: hint, autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => onInput((input as HTMLInputElement | HTMLSelectElement).value));
  return labelled(label, input);
}

function labelled(label: string, input: HTMLElement): HTMLElement {
  return element("div", { class: "try-field" }, element("label", { for: input.id }, label), input);
}

function nextId(): string {
  fields += 1;
  return `try-${fields}`;
}

/** The body in the chosen type: JSON as text, a form by its fields, bytes as a file. */
function bodyFields(api: OpenApi, entry: Entry, values: Values, onChange: () => void): HTMLElement {
  const types = bodyTypes(api, entry);
  const place = element("div", { class: "try-body" });
  const show = () => place.replaceChildren(...fieldsOfType(api, entry, values, onChange));
  show();
  if (types.length < 2) return place;
  const id = nextId();
  const select = element(
    "select",
    { class: "input", id },
    ...types.map((type) => element("option", {}, type)),
  );
  select.addEventListener("input", () => {
    values.type = (select as HTMLSelectElement).value;
    show();
    onChange();
  });
  return element("div", { class: "try-body" }, labelled("Type of the body", select), place);
}

function fieldsOfType(api: OpenApi, entry: Entry, values: Values, onChange: () => void): HTMLElement[] {
  const { type } = values;
  if (!type) return [];
  if (type === "application/json") {
    const text = element("textarea", {
      class: "input",
      id: nextId(),
      rows: String(Math.min(16, values.json.split("\n").length + 1)),
      spellcheck: "false",
    }) as HTMLTextAreaElement;
    text.value = values.json;
    text.addEventListener("input", () => {
      values.json = text.value;
      onChange();
    });
    return [labelled("Body (JSON)", text)];
  }
  const schema = bodySchema(api, entry, type);
  if (!schema.properties) return isForm(type) ? [] : [fileField("Body", BYTES, values, onChange)];
  return formFields(api, schema).map(({ name, schema: field, isRequired, isFile }) => {
    const label = isRequired ? `${name} (required)` : name;
    if (isFile) return fileField(label, name, values, onChange);
    return textField(label, field, String(exampleOf(api, field, name) ?? ""), (value) => {
      values.fields[name] = value;
      onChange();
    });
  });
}

function fileField(label: string, name: string, values: Values, onChange: () => void): HTMLElement {
  const input = element("input", { class: "input", id: nextId(), type: "file" }) as HTMLInputElement;
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) values.files[name] = file;
    else delete values.files[name];
    onChange();
  });
  return labelled(label, input);
}

async function showAnswer(call: Call, place: HTMLElement, signal: AbortSignal): Promise<void> {
  const status = element("p", { class: "answer-status", role: "status" }, "Waiting for the answer");
  place.replaceChildren(status);
  try {
    const begun = performance.now();
    const headers = new Headers(call.headers);
    const body = bodyFor(call, headers);
    const options = await withCredential(call.method, headers);
    const response = await fetch(call.url, { method: call.method, body, signal, ...options });
    const type = response.headers.get("content-type") ?? "";
    const took = `${Math.round(performance.now() - begun)} ms`;
    const line = [`${response.status} ${response.statusText}`.trim(), took, type].filter(Boolean).join(" · ");
    status.replaceChildren(element("strong", { class: `status status-${String(response.status)[0]}` }, line));
    place.append(headersView(response.headers));
    if (/json|^text\/|mpegurl|openmetrics|xml/.test(type)) await showText(response, type, place);
    else await showFile(response, place);
  } catch (error) {
    const words = signal.aborted ? "Stopped" : `No answer: ${error instanceof Error ? error.message : error}`;
    place.append(element("p", { role: "status" }, words));
  }
}

function bodyFor(call: Call, headers: Headers): BodyInit | null {
  const { body } = call;
  if (body.kind === "json") {
    headers.set("content-type", "application/json");
    return body.text;
  }
  if (body.kind === "bytes") {
    headers.set("content-type", body.type);
    return body.file ?? null;
  }
  if (body.kind === "words") return new URLSearchParams(body.fields.map(({ name, value }) => [name, value]));
  if (body.kind === "none") return null;
  const form = new FormData();
  for (const { name, value, file } of body.fields) form.append(name, file ?? value);
  return form;
}

function headersView(headers: Headers): HTMLElement {
  const lines = [...headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return element(
    "details",
    { class: "nested" },
    element("summary", {}, "Headers"),
    element("pre", { tabindex: "0" }, element("code", {}, lines)),
  );
}

/** Text as it arrives; JSON with line breaks once it is complete. */
async function showText(response: Response, type: string, place: HTMLElement): Promise<void> {
  const code = element("code", {});
  place.append(element("pre", { class: "answer-body", tabindex: "0", "aria-label": "Answer" }, code));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (reader && text.length < SHOWN) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
    code.textContent = text.slice(0, SHOWN);
  }
  if (text.length >= SHOWN) {
    await reader?.cancel();
    place.append(element("p", {}, "The rest is not shown."));
  } else if (type.includes("json")) {
    code.textContent = pretty(text);
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function showFile(response: Response, place: HTMLElement): Promise<void> {
  const bytes = await response.blob();
  if (bytes.size === 0) return;
  const url = URL.createObjectURL(bytes);
  const save = element("a", { href: url, download: "answer" }, "Save the answer");
  place.append(element("p", {}, save, ` (${bytes.size.toLocaleString()} bytes)`));
}
