/** A call as a program: for a shell, in JavaScript (Node and browsers) and in Python (with requests). Pure. */
import type { Call, FormField } from "./call";

export type Language = "curl" | "JavaScript" | "Python";
export const LANGUAGES: Language[] = ["curl", "JavaScript", "Python"];

export function snippet(language: Language, call: Call): string {
  if (language === "curl") return curl(call);
  return language === "Python" ? python(call) : javaScript(call);
}

/** What a file is called that the answer is written to. */
const SAVED = "answer.bin";
const isChange = (call: Call) => call.method !== "GET" && call.method !== "HEAD";
const cookieName = (call: Call) =>
  call.url.startsWith("https:") ? "__Host-sluice_session" : "sluice_session";

function curl(call: Call): string {
  const flags = [call.answer === "stream" && "-N", call.method !== "GET" && `-X ${call.method}`];
  const lines = [["curl", ...flags, shellWord(call.url)].filter(Boolean).join(" ")];
  if (call.credential === "key") lines.push('-H "Authorization: Bearer $SLUICE_API_KEY"');
  if (call.credential === "session") {
    lines.push(`-b "${cookieName(call)}=$SLUICE_SESSION"`);
    if (isChange(call)) lines.push('-H "X-CSRF-Token: $SLUICE_CSRF_TOKEN"');
  }
  for (const [name, value] of call.headers) lines.push(`-H ${shellWord(`${name}: ${value}`)}`);
  const { body } = call;
  if (body.kind === "json")
    lines.push('-H "Content-Type: application/json"', `-d ${shellWord(compact(body.text))}`);
  if (body.kind === "bytes") lines.push(`-H "Content-Type: ${body.type}"`, "--data-binary @photo.jpg");
  if (body.kind === "form")
    for (const { name, value, isFile } of body.fields)
      lines.push(`-F ${shellWord(`${name}=${isFile ? "@" : ""}${value}`)}`);
  if (body.kind === "words")
    for (const { name, value } of body.fields)
      lines.push(`--data-urlencode ${shellWord(`${name}=${value}`)}`);
  if (call.answer === "bytes") lines.push(`-o ${SAVED}`);
  return lines.join(" \\\n  ");
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function compact(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

function javaScript(call: Call): string {
  const { body } = call;
  const files = body.kind === "bytes" || (body.kind === "form" && body.fields.some((field) => field.isFile));
  const imports = [
    files && 'import { openAsBlob } from "node:fs";',
    call.answer === "bytes" && 'import { writeFile } from "node:fs/promises";',
  ].filter(Boolean);
  const before: string[] = [];
  const headers: string[] = [];
  if (call.credential === "key") headers.push(`Authorization: \`Bearer \${process.env.SLUICE_API_KEY}\``);
  if (call.credential === "session") {
    headers.push(`Cookie: \`${cookieName(call)}=\${process.env.SLUICE_SESSION}\``);
    if (isChange(call)) headers.push('"X-CSRF-Token": process.env.SLUICE_CSRF_TOKEN');
  }
  for (const [name, value] of call.headers) headers.push(`${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  let sent = "";
  if (body.kind === "json") {
    headers.push('"Content-Type": "application/json"');
    sent = jsonBody(body.text);
  } else if (body.kind === "bytes") {
    headers.push(`"Content-Type": ${JSON.stringify(body.type)}`);
    sent = 'await openAsBlob("photo.jpg")';
  } else if (body.kind === "words") {
    const pairs = body.fields.map(({ name, value }) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
    sent = `new URLSearchParams({ ${pairs.join(", ")} })`;
  } else if (body.kind === "form") {
    before.push("const form = new FormData();", ...body.fields.map(appended));
    sent = "form";
  }
  const options = [
    call.method !== "GET" && `method: ${JSON.stringify(call.method)},`,
    headers.length > 0 && `headers: {\n    ${headers.join(",\n    ")},\n  },`,
    sent && `body: ${sent},`,
  ].filter(Boolean);
  const second = options.length > 0 ? `, {\n  ${options.join("\n  ")}\n}` : "";
  const request = `const response = await fetch(${JSON.stringify(call.url)}${second});`;
  const reading = {
    json: "console.log(response.status, await response.json());",
    text: "console.log(await response.text());",
    none: "console.log(response.status);",
    bytes: `await writeFile("${SAVED}", Buffer.from(await response.arrayBuffer()));`,
    stream:
      "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {\n  console.log(text);\n}",
  }[call.answer];
  const program = [...before, request, reading].join("\n");
  return imports.length > 0 ? `${imports.join("\n")}\n\n${program}` : program;
}

function appended({ name, value, isFile }: FormField): string {
  const [field, text] = [JSON.stringify(name), JSON.stringify(value)];
  return isFile
    ? `form.append(${field}, await openAsBlob(${text}), ${text});`
    : `form.append(${field}, ${text});`;
}

/** JSON that cannot be read is shown as it was entered, as text. */
function jsonBody(text: string): string {
  try {
    return `JSON.stringify(${indented(JSON.stringify(JSON.parse(text), null, 2))})`;
  } catch {
    return JSON.stringify(text);
  }
}

function python(call: Call): string {
  const { body } = call;
  const headers: string[] = [];
  const options: string[] = [];
  const usesEnvironment = call.credential !== "none";
  if (call.credential === "key") headers.push(`"Authorization": f"Bearer {os.environ['SLUICE_API_KEY']}"`);
  if (call.credential === "session") {
    options.push(`cookies={"${cookieName(call)}": os.environ["SLUICE_SESSION"]},`);
    if (isChange(call)) headers.push('"X-CSRF-Token": os.environ["SLUICE_CSRF_TOKEN"]');
  }
  for (const [name, value] of call.headers) headers.push(`${pythonValue(name)}: ${pythonValue(value)}`);
  if (body.kind === "bytes") {
    headers.push(`"Content-Type": ${pythonValue(body.type)}`);
    options.push('data=open("photo.jpg", "rb"),');
  }
  if (body.kind === "json") options.push(...pythonJson(body.text, headers));
  if (body.kind === "words") options.push(`data={${pythonPairs(body.fields)}},`);
  if (body.kind === "form") {
    const words = body.fields.filter((field) => !field.isFile);
    const files = body.fields.filter((field) => field.isFile);
    // requests writes a form with boundaries when there are files; a field without a name of a file is a plain one.
    const plain = files.length === 0;
    const parts = plain
      ? words.map(({ name, value }) => `${pythonValue(name)}: (None, ${pythonValue(value)})`)
      : files.map(({ name, value }) => `${pythonValue(name)}: open(${pythonValue(value)}, "rb")`);
    options.push(`files={${parts.join(", ")}},`);
    if (!plain && words.length > 0) options.push(`data={${pythonPairs(words)}},`);
  }
  if (headers.length > 0) options.unshift(`headers={${headers.join(", ")}},`);
  if (call.answer === "stream") options.push("stream=True,");
  const lines = [pythonValue(call.url), ...options].map((line, index) => (index === 0 ? `${line},` : line));
  const imports = [usesEnvironment && "import os", "import requests"].filter(Boolean).join("\n");
  const request = `response = requests.${call.method.toLowerCase()}(\n    ${lines.join("\n    ")}\n)`;
  const reading = {
    json: "print(response.status_code, response.json())",
    text: "print(response.text)",
    none: "print(response.status_code)",
    bytes: `open("${SAVED}", "wb").write(response.content)`,
    stream: "for line in response.iter_lines(decode_unicode=True):\n    print(line)",
  }[call.answer];
  return `${imports}\n\n${request}\n${reading}`;
}

function pythonPairs(fields: FormField[]): string {
  return fields.map(({ name, value }) => `${pythonValue(name)}: ${pythonValue(value)}`).join(", ");
}

function pythonJson(text: string, headers: string[]): string[] {
  try {
    return [`json=${indented(pythonValue(JSON.parse(text)), 4)},`];
  } catch {
    headers.push('"Content-Type": "application/json"');
    return [`data=${pythonValue(text)},`];
  }
}

/** A value as Python writes it. Strings of JSON are strings of Python. */
function pythonValue(value: unknown, indent = ""): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  const deeper = `${indent}    `;
  const inBrackets = (open: string, items: string[], close: string) =>
    items.length === 0
      ? open + close
      : `${open}\n${items.map((item) => `${deeper}${item},\n`).join("")}${indent}${close}`;
  if (Array.isArray(value))
    return inBrackets(
      "[",
      value.map((item) => pythonValue(item, deeper)),
      "]",
    );
  if (typeof value === "object") {
    const items = Object.entries(value).map(
      ([key, item]) => `${JSON.stringify(key)}: ${pythonValue(item, deeper)}`,
    );
    return inBrackets("{", items, "}");
  }
  return JSON.stringify(value);
}

/** The lines behind the first further to the right. */
function indented(text: string, by = 2): string {
  return text.replaceAll("\n", `\n${" ".repeat(by)}`);
}
