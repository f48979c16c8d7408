import { describe, expect, it } from "vitest";
import { readServeConfig } from "../../src/config/serve.ts";
import { readDataConfig } from "../../src/config/start.ts";

const POOLED = "postgres://me:secret@pooler:6432/db";
const DIRECT = "postgres://me:secret@one:5432,two:5432/db?target_session_attrs=read-write";

describe("DATABASE_DIRECT_URL", () => {
  it("is another way to the Postgres of DATABASE_URL, with one host or several", () => {
    const env = { DATABASE_URL: POOLED, DATABASE_DIRECT_URL: DIRECT };
    expect(readDataConfig({}, env).secrets).toMatchObject({
      database: POOLED,
      directDatabase: DIRECT,
    });
    const flags = { database: POOLED };
    expect(readServeConfig("s.ts", flags, env).secrets.directDatabase).toBe(DIRECT);
    expect(readServeConfig("s.ts", {}, env).secrets.directDatabase).toBeUndefined();
  });

  it.each([
    [{ DATABASE_DIRECT_URL: DIRECT }, /names no Postgres: set both, or neither/],
    [
      { DATABASE_URL: POOLED, DATABASE_DIRECT_URL: "./tasks.db" },
      /takes the address of a Postgres/,
    ],
    [{ DATABASE_URL: `${POOLED}?target_session_attrs=standby` }, /must be read-write/],
    [{ DATABASE_URL: "postgres://me:secret@one,,two/db" }, /not a valid address/],
  ])("is refused where it cannot be one, without being quoted: %j", (env, message) => {
    expect(() => readDataConfig({}, env)).toThrow(message);
    expect(() => readDataConfig({}, env)).not.toThrow(/secret/);
  });
});
