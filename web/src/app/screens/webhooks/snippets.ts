/** Programs that check one delivery's signature, with its bytes inside. Pure. */
import type { SentRequest } from "./types";

export const LANGUAGES = ["shell", "node", "python", "php"] as const;
export type Language = (typeof LANGUAGES)[number];
export const LANGUAGE_NAMES: Record<Language, string> = {
  shell: "Shell",
  node: "Node",
  python: "Python",
  php: "PHP",
};

/** Prints "valid" when the delivery was signed with the secret in `WEBHOOK_SECRET`; null before there is a signature. */
export function verifier(language: Language, request: SentRequest): string | null {
  const header = headerOf(request, "service-signature");
  if (!header) return null;
  const body = base64(request.body);
  switch (language) {
    case "shell":
      return [
        `header='${quoted(header)}'`,
        `t=$(printf %s "$header" | tr , '\\n' | sed -n 's/^t=//p')`,
        `sum=$({ printf %s. "$t"; printf %s '${body}' | base64 -d; } |`,
        '  openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" | sed "s/.*= //")',
        'case ",$header," in *",v1=$sum,"*) echo valid ;; *) echo "not valid" ;; esac',
      ].join("\n");
    case "node":
      return [
        'import { createHmac, timingSafeEqual } from "node:crypto";',
        `const header = ${JSON.stringify(header)};`,
        `const body = Buffer.from("${body}", "base64");`,
        'const parts = header.split(",").map((part) => part.trim().split("="));',
        'const t = parts.find(([name]) => name === "t")[1];',
        'const expected = Buffer.from(createHmac("sha256", process.env.WEBHOOK_SECRET)',
        '  .update(t + ".").update(body).digest("hex"));',
        "const isValid = parts.some(([name, value]) => name === 'v1' &&",
        "  value.length === expected.length && timingSafeEqual(Buffer.from(value), expected));",
        'console.log(isValid ? "valid" : "not valid");',
      ].join("\n");
    case "python":
      return [
        "import base64, hashlib, hmac, os",
        `header = ${JSON.stringify(header)}`,
        `body = base64.b64decode("${body}")`,
        'parts = [part.strip().partition("=") for part in header.split(",")]',
        't = next(value for name, _, value in parts if name == "t")',
        'expected = hmac.new(os.environ["WEBHOOK_SECRET"].encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()',
        'is_valid = any(name == "v1" and hmac.compare_digest(value, expected) for name, _, value in parts)',
        'print("valid" if is_valid else "not valid")',
      ].join("\n");
    case "php":
      return [
        "<?php",
        `$header = '${header.replaceAll("'", "")}';`,
        `$body = base64_decode('${body}');`,
        "preg_match('/(?:^|,)t=(\\d+)/', $header, $t);",
        "preg_match_all('/(?:^|,)v1=([0-9a-f]+)/', $header, $given);",
        '$expected = hash_hmac("sha256", "$t[1].$body", getenv("WEBHOOK_SECRET"));',
        "$isValid = array_filter($given[1], fn($v1) => hash_equals($expected, $v1));",
        'echo $isValid ? "valid\\n" : "not valid\\n";',
      ].join("\n");
  }
}

/** The request as a command. */
export function asCurl(request: SentRequest): string {
  const headers = request.headers.map(({ name, value }) => `  -H '${quoted(`${name}: ${value}`)}' \\`);
  return [
    `printf %s '${base64(request.body)}' | base64 -d |`,
    `curl -i -X ${request.method} '${quoted(request.url)}' \\`,
    ...headers,
    "  --data-binary @-",
  ].join("\n");
}

const headerOf = (request: SentRequest, wanted: string) =>
  request.headers.find(({ name }) => name.toLowerCase() === wanted)?.value;

/** Inside of single quotes of a shell. */
const quoted = (text: string) => text.replaceAll("'", "'\\''");

/** The UTF-8 bytes of a text; base64 keeps them whole through every shell and language. */
function base64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
