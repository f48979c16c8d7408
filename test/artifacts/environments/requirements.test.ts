import { describe, expect, it } from "vitest";
import {
  isLocked,
  MAX_LOCK_CHARACTERS,
  readLock,
  writeLock,
} from "../../../src/artifacts/environments/requirements.ts";
import { threadTimer } from "../../thread-time.ts";

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

  it.each([
    ["an option", "python_version > '3' --find-links=https://evil.example", '"--"'],
    ["an option in quotes", "extra == ' --index-url x'", '"--"'],
    ["an address", "extra == 'a' @ https://evil.example", '"@"'],
    ["an address in quotes", "extra == 'six@https://evil.example'", '"@"'],
    ["a line that goes on", "python_version > '3' \\ x", '"\\\\"'],
    ["an escape in quotes", "extra == 'a\\' or extra == 'b'", '"\\\\"'],
    ["another requirement", "python_version > '3', other==1", ""],
    ["a path", "extra == '/etc/passwd'", ""],
    ["a variable of the environment", "extra == '$" + "{HOME}'", ""],
    ["a quote without end", "extra == 'a", ""],
    ["letters of other alphabets", "extra == '\u0430'", ""],
    ["a control character", "extra == 'a\u0000'", ""],
  ])("is refused with a marker that has %s", (_what, marker, odd) => {
    const line = `six==1.17.0 ; ${marker} --hash=sha256:${HASH}`;
    const said = odd === "" ? "is no condition" : `is, because of ${odd}, no condition`;
    expect(() => readLock(line)).toThrow(`the marker of six, ${JSON.stringify(marker)}, ${said}`);
  });

  it.each([
    "python_full_version < '3.12.5' and platform_machine == 'x86_64'",
    'sys_platform != "win32" or (extra == "gpu-cu12" and os_name not in "nt java")',
    "implementation_name == 'cpython' and python_version in '3.10, 3.11'",
    "(platform_release >= '20.0.0+local*') and 'linux' in sys_platform and python_version ~= '3.8'",
  ])("takes the marker %s", (marker) => {
    const line = `six==1.17.0 ; ${marker} --hash=sha256:${HASH}`;
    expect(writeLock(readLock(line))).toBe(`${line}\n`);
  });

  it("is refused at once, whatever its lines repeat", () => {
    const spentMs = threadTimer();
    for (const odd of [
      `six==1 ; ${`--hash=sha256:${HASH} `.repeat(45_000)}x`,
      `six==1${` --hash=sha256:${HASH}`.repeat(45_000)} x`,
      `six==1 ; ${"a".repeat(1_900)}# --hash=sha256:${HASH}`,
      `${"a-".repeat(1_900_000)}==1 --hash=sha256:${HASH}`,
    ]) {
      expect(() => readLock(odd)).toThrow("the lock of the service's packages is invalid");
    }
    expect(spentMs()).toBeLessThan(2_000);
    expect(() => readLock(`six==1 ; ${" ()".repeat(1_000)} --hash=sha256:${HASH}`)).toThrow(
      "has more than 2000 characters",
    );
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
