import { chmodSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bearer, Folder, PASSWORD, start } from "./platform.ts";

const mode = (path: string): number => statSync(path).mode & 0o777;

describe("the first start", () => {
  it("makes a folder and a file of keys for its owner alone", async () => {
    using folder = new Folder();
    await using platform = await start(folder);
    expect(platform.setupCode).toMatch(/^\w{43}$/);
    expect(mode(folder.data)).toBe(0o700);
    expect(mode(join(folder.data, "keys.json"))).toBe(0o600);
    expect((await platform.call("/readyz")).status).toBe(200);
  });

  it("is set up once with its link", async () => {
    using folder = new Folder();
    await using platform = await start(folder);
    const cookie = await platform.setUp();
    const me = await platform.call("/api/v1/me", undefined, cookie);
    expect(me.json).toMatchObject({
      email: "ada@example.com",
      organizations: [{ name: "acme", role: "admin" }],
    });
    const again = await platform.call("/api/v1/auth:setUp", {
      setup_code: platform.setupCode,
      organization: "other",
      email: "eve@example.com",
      password: PASSWORD,
    });
    expect(again.status).toBe(400);
    expect(again.json.message).toContain("set");
  });

  it("refuses a wrong code, and keeps waiting for the right one", async () => {
    using folder = new Folder();
    await using platform = await start(folder);
    const wrong = await platform.call("/api/v1/auth:setUp", {
      setup_code: `${platform.setupCode.slice(1)}0`,
      organization: "acme",
      email: "eve@example.com",
      password: PASSWORD,
    });
    expect(wrong.status).toBe(400);
    await platform.setUp();
  });

  it("gives a new link when it ended without a setup, and the old one is worth nothing", async () => {
    using folder = new Folder();
    const first = await start(folder);
    await first.started.stop();
    await using second = await start(folder);
    expect(second.setupCode).not.toBe(first.setupCode);
    const stale = await second.call("/api/v1/auth:setUp", {
      setup_code: first.setupCode,
      organization: "acme",
      email: "eve@example.com",
      password: PASSWORD,
    });
    expect(stale.status).toBe(400);
    await second.setUp();
  });
});

describe("the second start", () => {
  it("finds everything as it was, and gives no link", async () => {
    using folder = new Folder();
    const first = await start(folder);
    const cookie = await first.setUp();
    const { value } = await first.createToken(cookie);
    await first.started.stop();
    await using second = await start(folder);
    expect(second.started.setupCode).toBeUndefined();
    expect(await second.whoIs(cookie)).toBe(200);
    expect(await second.whoIs(bearer(value))).toBe(200);
    expect((await second.signIn("ada@example.com")).status).toBe(200);
  });

  it("refuses keys that others can read, and says what to do", async () => {
    using folder = new Folder();
    await (await start(folder)).started.stop();
    const keys = join(folder.data, "keys.json");
    chmodSync(keys, 0o644);
    await expect(start(folder)).rejects.toThrow(`chmod 600 ${keys}`);
  });

  it("does not make new keys for a platform that has tokens", async () => {
    using folder = new Folder();
    const first = await start(folder);
    await first.setUp();
    await first.started.stop();
    const keys = join(folder.data, "keys.json");
    const text = readFileSync(keys, "utf8");
    unlinkSync(keys);
    await expect(start(folder)).rejects.toThrow(`keys are not at ${keys}`);
    writeFileSync(keys, text, { mode: 0o600 });
    await using second = await start(folder);
    expect((await second.signIn("ada@example.com")).status).toBe(200);
  });

  it("refuses a data folder that another node runs on", async () => {
    using folder = new Folder();
    await using _platform = await start(folder);
    await expect(start(folder)).rejects.toThrow("another tessera process is using it");
  });

  it("takes keys from the environment, and then makes no file of them", async () => {
    using folder = new Folder();
    using other = new Folder();
    await (await start(other)).started.stop();
    const keys = readFileSync(join(other.data, "keys.json"), "utf8");
    await using platform = await start(folder, { env: { TESSERA_KEYS: keys } });
    const { value } = await platform.createToken(await platform.setUp());
    expect(await platform.whoIs(bearer(value))).toBe(200);
    expect(() => statSync(join(folder.data, "keys.json"))).toThrow("ENOENT");
  });
});

describe("sessions", () => {
  it("last as long as the configuration says, and go over TLS only where the platform does", async () => {
    using folder = new Folder();
    await using platform = await start(folder, {
      env: {
        TESSERA_SESSION_LIFETIME: "1h",
        TESSERA_PUBLIC_URL: "https://tessera.example.com",
      },
    });
    await platform.setUp();
    const [cookie = ""] = (await platform.signIn("ada@example.com")).headers.getSetCookie();
    expect(cookie).toMatch(
      /^__Host-tessera_session=\w{43}; Path=\/; .*; HttpOnly; SameSite=Lax; Secure$/,
    );
    const [, expires = ""] = /Expires=([^;]+)/.exec(cookie) ?? [];
    const leftMs = Date.parse(expires) - Date.now();
    expect(leftMs).toBeGreaterThan(3_500_000);
    expect(leftMs).toBeLessThanOrEqual(3_600_000);
    expect(platform.started.url).toBe("https://tessera.example.com");
  });

  it("are limited: many wrong passwords from one address have to wait", async () => {
    using folder = new Folder();
    await using platform = await start(folder);
    await platform.setUp();
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 30; attempt += 1) {
      statuses.push((await platform.signIn("ada@example.com", "wrong password")).status);
    }
    expect(statuses[0]).toBe(401);
    expect(statuses.at(-1)).toBe(429);
  });
});
