import { Writable } from "node:stream";
import { type FastifyBaseLogger, fastify } from "fastify";
import { pino } from "pino";
import { expect, test } from "vitest";
import { toProblem } from "../../../src/errors.ts";
import { requestIdOf, setDefaultHeaders } from "../../../src/server/http/default-headers.ts";
import { sendProblem } from "../../../src/server/http/problem.ts";
import { requestLog, writeTo } from "../../../src/server/http/request-log.ts";

test("a line about a request bears the id that its answer has, and so do lines of children", async () => {
  const lines: { readonly msg: string; readonly reqId: string; readonly part?: string }[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  let made = 0;
  const onChild = () => {
    made += 1;
  };
  const log: FastifyBaseLogger = pino({ level: "debug", onChild }, stream);
  await using app = fastify({ genReqId: requestIdOf });
  writeTo(app, log);
  setDefaultHeaders(app);
  app.get("/broken", (req, reply) => {
    requestLog(req).child({ part: "child" }).warn("before");
    return sendProblem(reply, toProblem(new Error("a defect")));
  });
  app.get("/silent", (_req, reply) => reply.send(""));
  await app.inject("/silent");
  const madeForAll = made;
  await app.inject("/silent");
  expect(made).toBe(madeForAll);
  lines.length = 0;
  const answers = [await app.inject("/broken"), await app.inject("/broken")];
  const ids = answers.map(({ headers }) => headers["x-request-id"]);
  const own = lines.filter(({ msg }) => msg === "before" || msg.includes("internal"));
  expect(new Set(ids).size).toBe(2);
  expect(own.map(({ reqId, part }) => [reqId, part])).toEqual([
    [ids[0], "child"],
    [ids[0], undefined],
    [ids[1], "child"],
    [ids[1], undefined],
  ]);
});
