import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { argumentName, callFolder } from "../../src/protocol/messages.ts";
import { filePath } from "../../src/sdk/index.ts";
import { CallFiles, uploadName } from "../../src/worker/call-files.ts";

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "tessera-uploads-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it.each([
  ...["scan.png", "Größe 漢字.tar.gz", "данные.csv", ".hidden"],
  ...["می\u200cکنیم.pdf", "क\u200d्ष.txt", "👩\u200d🔬.png"],
])("keeps %s", (name) => {
  expect(uploadName(name)).toBe(name);
});

it.each([
  ["", "file"],
  ["..", "file"],
  ["../../etc/passwd", "passwd"],
  ["C:\\scans\\a.png", "a.png"],
  ["a\0b\n.png", "a_b_.png"],
  ["\u202egnp.exe", "_gnp.exe"],
  ["half \ud800.txt", "half _.txt"],
  ["a\u2028b\u2029c.txt", "a_b_c.txt"],
])("makes of %j what a file can be called", (sent, kept) => {
  expect(uploadName(sent)).toBe(kept);
});

it.each(["漢".repeat(200), "a".repeat(300)])("cuts a long name before its extension", (stem) => {
  const kept = uploadName(`${stem}.png`);
  expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(255);
  expect(kept.endsWith(".png") && stem.startsWith(kept.slice(0, -4))).toBe(true);
});

it("gives two files of one name a path each, until the call has ended", async () => {
  const files = new CallFiles(scratch(), 1);
  const sent = ["one", "two"].map((text) => ({
    contentType: "text/plain",
    filename: "a.txt",
    data: new TextEncoder().encode(text),
  }));
  const given = await Promise.all(sent.map((each, index) => files.argument(each, index)));
  const paths = await Promise.all(given.map((each) => filePath(each)));
  expect(paths.map((path) => [basename(path), readFileSync(path, "utf8")])).toEqual([
    ["a.txt", "one"],
    ["a.txt", "two"],
  ]);
  files.clear();
  expect(paths.filter((path) => existsSync(path))).toEqual([]);
});

it("names a file that is on disk already without copying it", async () => {
  const folder = scratch();
  mkdirSync(join(folder, callFolder(1)));
  const sent = join(folder, callFolder(1), argumentName(0));
  writeFileSync(sent, "large");
  const file = { contentType: "text/plain", filename: "größe.txt", size: 5 };
  const path = await filePath(await new CallFiles(folder, 1).argument(file, 0));
  expect([basename(path), statSync(path).ino]).toEqual(["größe.txt", statSync(sent).ino]);
});
