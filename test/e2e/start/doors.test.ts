/** What a platform asks of every request before it looks who sent it. */
import { chmodSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Folder, type Platform, start } from "./platform.ts";

let folder: Folder;
let platform: Platform;
beforeAll(async () => {
  folder = new Folder();
  platform = await start(folder);
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

it.each(["/api/v1/auth:signIn", "/tessera.v1.AuthService/SignIn"])(
  "deeply nested JSON is a malformed body at %s",
  async (path) => {
    const deep = `{"email":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    const headers = { "content-type": "application/json" };
    const res = await fetch(platform.url + path, { method: "POST", headers, body: deep });
    expect(await res.text()).toContain("BODY_MALFORMED");
    expect(res.status).toBe(400);
  },
);

describe.skipIf(process.platform === "win32")("the files of the database", () => {
  const modes = (data: string) =>
    readdirSync(data)
      .filter((name) => /^tessera\.db(?:-\w+)?$/.test(name))
      .map((name) => [name, (statSync(join(data, name)).mode & 0o777).toString(8)]);
  const OWN = [
    ["tessera.db", "600"],
    ["tessera.db-lock", "600"],
    ["tessera.db-shm", "600"],
    ["tessera.db-wal", "600"],
  ];

  it("are their owner's alone, whatever the process would give others", async () => {
    using own = new Folder();
    const before = process.umask(0o022);
    try {
      await using first = await start(own);
      expect(modes(own.data), first.url).toEqual(OWN);
    } finally {
      process.umask(before);
    }
  });

  it("are tightened at the next start where others may read them", async () => {
    using own = new Folder();
    await (await start(own))[Symbol.asyncDispose]();
    chmodSync(join(own.data, "tessera.db"), 0o644);
    chmodSync(join(own.data, "tessera.db-lock"), 0o664);
    await using again = await start(own);
    expect(modes(own.data), again.url).toEqual(OWN);
  });
});
