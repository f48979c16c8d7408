/**
 * Tries the release: made twice, with the same sums; then checked as docs/install.md tells
 * readers to, and its signature by a key that is thrown away.
 */
import { strict as assert } from "node:assert";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentedBlocks } from "../../test/e2e/docs/blocks.ts";
import { run } from "../run.ts";

const SCRIPT = join(import.meta.dirname, "release.ts");
/** What a release has without images, by the ends of the names. */
const FILES = [
  /^tessera-platform-\d.*\.tgz$/,
  /^tessera-platform-client-\d.*\.tgz$/,
  /^tessera-.*-linux-.*\.tar\.gz$/,
  /^tessera_platform-.*-py3-none-any\.whl$/,
  /^tessera_platform-.*\.tar\.gz$/,
  /^tessera-chart-.*\.tgz$/,
  /^tessera-.*\.cdx\.json$/,
  /^NOTES\.md$/,
];

/** Throws at the first thing that is wrong. */
export function tryRelease(): void {
  const folder = mkdtempSync(join(tmpdir(), "tessera-release-"));
  const key = join(folder, "key");
  const make = (name: string): string => {
    const args = [SCRIPT, "--dry-run", "--output", join(folder, name)];
    return run(process.execPath, args, { env: { TESSERA_MINISIGN_KEY: key } });
  };
  try {
    const first = join(folder, "first");
    // Without a password, which it would ask for in a terminal.
    run("minisign", ["-G", "-W", "-p", join(folder, "tessera.pub"), "-s", key]);
    const sums = make("first");
    assert.equal(make("second"), sums, "two releases of the same sources have other sums");
    const names = readdirSync(first);
    for (const file of FILES) {
      assert(
        names.some((name) => file.test(name)),
        `the release has no ${file}`,
      );
      assert(
        sums.split("\n").some((line) => file.test(line.slice(66))),
        `no sum of ${file}`,
      );
    }
    const check = documentedBlocks().find(({ text }) => text.startsWith("sha256sum --check"));
    assert(check, "docs/install.md does not say how to check a release");
    const verify = (): string =>
      run("bash", ["-euc", check.text.replace("-p tessera.pub", "-p ../tessera.pub")], {
        cwd: first,
      });
    assert.match(verify(), /Trusted comment: tessera \d/);
    const sumsFile = join(first, "SHA256SUMS");
    const [line = ""] = readFileSync(sumsFile, "utf8").split("\n");
    appendFileSync(sumsFile, `${line}\n`);
    assert.throws(verify, /verification failed/i, "the signature holds for other sums");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
