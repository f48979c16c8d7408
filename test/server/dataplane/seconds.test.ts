import { durationMs } from "@bufbuild/protobuf/wkt";
import Fastify from "fastify";
import { expect, it } from "vitest";
import { Problem } from "../../../src/errors.ts";
import { queryWait } from "../../../src/server/dataplane/request.ts";

it("reads seconds as programs write numbers, and refuses other texts by the parameter's name", async () => {
  await using app = Fastify();
  app.get("/", async (req) => {
    try {
      const wait = queryWait(req);
      return { ms: wait && durationMs(wait) };
    } catch (err) {
      return { field: err instanceof Problem ? err.violations[0]?.field : String(err) };
    }
  });
  const read = async (wait: string) =>
    (await app.inject({ url: "/", query: { wait } })).json() as unknown;
  expect(await read("20")).toEqual({ ms: 20_000 });
  expect(await read("1.5s")).toEqual({ ms: 1_500 });
  expect(await read("1e-05")).toEqual({ ms: 0 });
  expect(await read("6E1")).toEqual({ ms: 60_000 });
  expect(await read("5.960464477539063e-08")).toEqual({ ms: 0 });
  for (const refused of ["61", "6e2", "-1", "NaN", "", "e5", "1e", "0x10", "1e9999"]) {
    expect(await read(refused), refused).toEqual({ field: "wait" });
  }
});
