import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crc32, distinctNames, zipOf } from "./zip";

const bytes = (text: string) => new TextEncoder().encode(text);

test("the CRC is that of the standard's check value", () => {
  assert.equal(crc32(bytes("123456789")), 0xcbf4_3926);
  assert.equal(crc32(bytes("")), 0);
});

test("names differ and lead nowhere else", () => {
  assert.deepEqual(distinctNames(["a.jpg", "A.jpg", "a.jpg", "../x", "", ".env", ".env"]), [
    "a.jpg",
    "A (2).jpg",
    "a (3).jpg",
    ".._x",
    "file",
    ".env",
    ".env (2)",
  ]);
});

test("another program reads the archive", () => {
  const folder = mkdtempSync(join(tmpdir(), "zip-"));
  const path = join(folder, "a.zip");
  writeFileSync(
    path,
    Buffer.concat(
      zipOf([
        { name: "größe.txt", data: bytes("eins") },
        { name: "größe.txt", data: bytes("") },
      ]),
    ),
  );
  const script = `import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
print([(name, archive.read(name).decode()) for name in archive.namelist()])`;
  const { stdout, stderr } = spawnSync("python3", ["-X", "utf8", "-c", script, path], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  assert.equal(stdout.trim(), "[('größe.txt', 'eins'), ('größe (2).txt', '')]", stderr);
});
