import { describe, expect, it } from "vitest";
import {
  isLocked,
  MAX_LOCK_CHARACTERS,
  readLock,
  writeLock,
} from "../../../src/artifacts/environments/requirements.ts";

const HASH = "a".repeat(64);
const OTHER = "b".repeat(64);

describe("a lock", () => {
  it("has one text for equal releases, however it was written", () => {
    const text = `# by hand\r\nSix_Pack[a,b]==1.17.0 ; python_version < '3.12' \\\n    --hash=sha256:${HASH} \\\n    --hash=sha256:${OTHER}\n\n   # via nothing\nx==2!1.0+cpu --hash=sha256:${HASH}  # why\n`;
    const packages = readLock(text);
    expect(packages.map(({ name }) => name)).toEqual(["six-pack", "x"]);
    expect(writeLock(packages)).toBe(
      `Six_Pack[a,b]==1.17.0 ; python_version < '3.12' --hash=sha256:${HASH} --hash=sha256:${OTHER}\nx==2!1.0+cpu --hash=sha256:${HASH}\n`,
    );
    expect(writeLock(readLock(writeLock(packages)))).toBe(writeLock(packages));
  });

  it.each([
    ["a release without hashes", "six==1.17.0"],
    ["a range", `six>=1 --hash=sha256:${HASH}`],
    ["an index", "--index-url https://evil.example/simple"],
    ["an index after a release", `six==1 --hash=sha256:${HASH} --index-url https://evil.example`],
    ["another file", "-r /etc/passwd"],
    ["a path", `six @ file:///etc --hash=sha256:${HASH}`],
    ["a repository", "six @ git+https://evil.example/six"],
    ["a folder", "-e ."],
    ["a weak digest", "six==1 --hash=md5:d41d8cd98f00b204e9800998ecf8427e"],
    ["a line that goes on to nothing", `six==1 --hash=sha256:${HASH.slice(1)}`],
  ])("is refused with %s", (_what, text) => {
    expect(() => readLock(text)).toThrow("is not the release of a package with its hashes");
  });

  it("is refused when it is too long", () => {
    expect(() => readLock("#".repeat(MAX_LOCK_CHARACTERS + 1))).toThrow("characters");
  });

  it("is told from requirements that still have to be resolved", () => {
    expect(isLocked(`six==1 \\\n  --hash=sha256:${HASH}\n`)).toBe(true);
    expect(isLocked(`six==1 --hash=sha256:${HASH}\nx>=1\n`)).toBe(false);
    expect(isLocked("# nothing\n")).toBe(false);
  });
});
