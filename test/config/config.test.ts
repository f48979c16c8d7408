import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readServeConfig } from "../../src/config/serve.ts";
import type { Flags } from "../../src/config/settings.ts";
import { ConfigError } from "../../src/config/values.ts";

function read(flags: Flags = {}, env: NodeJS.ProcessEnv = {}) {
  return readServeConfig("service.ts", flags, env);
}

describe("the configuration of serve", () => {
  it("is for one developer on one machine by default", () => {
    const { config, secrets } = read();
    expect(config).toMatchObject({
      servicePath: "service.ts",
      port: 3000,
      host: "localhost",
      database: ":memory:",
      watch: false,
      logLevel: "info",
    });
    expect(config.workers).toBeUndefined();
    expect(config.defaultWorkers).toBeGreaterThanOrEqual(2);
    expect(config.defaultWorkers).toBeLessThanOrEqual(4);
    expect(secrets.token).toBeUndefined();
  });

  it("lets one address have all connections, which may be a proxy's", () => {
    const { total, perAddress } = read().config.connections;
    expect([total > 0, perAddress]).toEqual([true, total]);
  });

  it("takes every flag", () => {
    const given = { port: "0", host: "::", workers: "7", database: "./a b.db", watch: true };
    const flags = { ...given, readyTimeout: "10m" };
    const { config } = read(flags, { TESSERA_LOG_LEVEL: "silent" });
    expect(config).toMatchObject({
      port: 0,
      host: "::",
      workers: 7,
      database: "./a b.db",
      watch: true,
      readyTimeoutMs: 600_000,
      logLevel: "silent",
    });
  });

  it("leaves variables alone that a shell has for the platform or for other programs", () => {
    const env = { TESSERA_PORT: "1", TESSERA_HOST: "::", DATABASE_URL: "postgres://me@host/db" };
    const direct = { DATABASE_DIRECT_URL: "mysql://host/db" };
    expect(read({}, { ...env, ...direct })).toEqual(read());
  });

  it("takes the token from the flag or the environment, and keeps it apart", () => {
    const env = { TESSERA_TOKEN: "from-the-environment" };
    expect(read({}, env).secrets.token).toBe("from-the-environment");
    expect(read({ token: "from-the-flag" }, env).secrets.token).toBe("from-the-flag");
    expect(read({}, { TESSERA_TOKEN: "" }).secrets.token).toBeUndefined();
    expect(JSON.stringify(read({}, env).config)).not.toContain("from-the-environment");
  });

  it("allows workers nothing besides, unless it is asked for", () => {
    const { config, secrets } = read();
    expect(config.workerAccess).toEqual({
      read: [],
      addons: false,
      threads: false,
      processes: false,
    });
    expect(secrets.workerEnv).toEqual({});
  });

  it("takes what workers may besides, with paths from the root", () => {
    const flags = {
      allowRead: ["src", tmpdir()],
      allowAddons: true,
      allowWorkers: true,
      allowProcesses: true,
    };
    expect(read(flags).config.workerAccess).toEqual({
      read: [resolve("src"), tmpdir()],
      addons: true,
      threads: true,
      processes: true,
    });
  });

  it("takes variables for workers by name or with their value, and keeps them apart", () => {
    const env = { API_KEY: "from-the-environment", OTHER: "not asked for" };
    const { config, secrets } = read(
      { env: ["API_KEY", "URL=http://x/?a=b", "LIST=a,b", "EMPTY="] },
      env,
    );
    expect(secrets.workerEnv).toEqual({
      API_KEY: "from-the-environment",
      URL: "http://x/?a=b",
      LIST: "a,b",
      EMPTY: "",
    });
    expect(JSON.stringify(config)).not.toContain("from-the-environment");
  });

  it("cannot be changed", () => {
    const { config, secrets } = read();
    expect(Object.isFrozen(config) && Object.isFrozen(secrets)).toBe(true);
  });

  it.each([
    [{ port: "" }, "--port"],
    [{ port: "1e3" }, "--port"],
    [{ port: " 80" }, "--port"],
    [{ port: "0x50" }, "--port"],
    [{ port: "65536" }, "--port"],
    [{ workers: "257" }, "--workers"],
    [{ readyTimeout: "0s" }, "--ready-timeout"],
    [{ readyTimeout: "2 minutes" }, "--ready-timeout"],
    [{ workers: "-1" }, "--workers"],
    [{ workers: "1.5" }, "--workers"],
    [{ host: "" }, "--host"],
    [{ host: " " }, "--host"],
    [{ token: "" }, "--token"],
    [{ token: "1234567" }, "--token"],
    [{ token: "x".repeat(1_025) }, "--token"],
    [{ token: "line\nbreak" }, "--token"],
    [{ token: "with a space" }, "--token"],
    [{ token: "пароль-пароль" }, "--token"],
    [{ allowRead: ["/nowhere/at/all"] }, "--allow-read"],
    [{ allowRead: [""] }, "--allow-read"],
    [{ env: ["NOT_SET_ANYWHERE"] }, "NOT_SET_ANYWHERE is not set"],
    [{ env: ["=secret"] }, "--env"],
    [{ env: ["a-b=secret"] }, "--env"],
    [{ env: ["TMPDIR=/secret"] }, "--env TMPDIR"],
    [{ database: "" }, "--database"],
    [{ database: "mysql://me:secret@host/db" }, "--database"],
  ])("refuses what cannot be, and names it: %j", (flags, name) => {
    expect(() => read(flags)).toThrow(ConfigError);
    expect(() => read(flags)).toThrow(name);
    expect(() => read(flags)).not.toThrow("secret");
  });

  it("refuses a level of the log that there is not", () => {
    expect(() => read({}, { TESSERA_LOG_LEVEL: "verbose" })).toThrow("TESSERA_LOG_LEVEL");
  });
});
