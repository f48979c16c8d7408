/** Callers that leave a stream: nobody's defect, so nothing is logged as one. */
import { once } from "node:events";
import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { expect, it, vi } from "vitest";
import { WatchTaskRequestSchema } from "../../../gen/tessera/v1/task_pb.js";
import type { Problem } from "../../../src/errors.ts";
import { untilAborted } from "../../../src/server/rpc/engine/deadline.ts";
import { startServer } from "./server.ts";

it("a stream that its caller resets, or whose connection breaks, is no defect", async () => {
  const found: Problem[] = [];
  const written = vi.spyOn(console, "error");
  let ends = Promise.withResolvers<void>();
  await using server = await startServer(
    {
      async *watchTask() {
        try {
          for (let sequence = 1n; ; sequence += 1n) {
            const message = "x".repeat(10_000);
            yield { sequence, event: { case: "log", value: { level: "info", message } } };
          }
        } finally {
          ends.resolve();
        }
      },
    },
    { http2: true, report: (problem) => found.push(problem) },
  );
  const body = encodeEnvelope(
    0,
    toBinary(WatchTaskRequestSchema, create(WatchTaskRequestSchema, { taskId: "a" })),
  );
  for (const leave of ["reset", "end", "break"] as const) {
    for (const reads of [true, false]) {
      ends = Promise.withResolvers();
      const session = connect(server.origin).on("error", () => {});
      const stream = session.request({
        ...{ ":method": "POST", ":path": "/tessera.v1.TaskService/WatchTask", te: "trailers" },
        "content-type": "application/grpc+proto",
      });
      stream.on("error", () => {}).end(body);
      await once(stream, "response");
      if (reads) {
        await once(stream.resume(), "data");
      }
      if (leave === "break") {
        session.destroy();
      } else {
        stream.close(leave === "reset" ? 8 : 0);
      }
      await ends.promise;
      session.destroy();
    }
  }
  expect(found.filter(({ reason }) => reason !== "CALLER_GONE")).toEqual([]);
  expect(written.mock.calls).toEqual([]);
  written.mockRestore();
});

it("what its reader throws into a stream is a caller who has gone", async () => {
  const { signal } = new AbortController();
  async function* endless() {
    for (;;) {
      yield 1;
    }
  }
  const items = untilAborted(endless(), signal);
  await items.next();
  const thrown = items.throw(new Error("write ECANCELED"));
  await expect(thrown).rejects.toMatchObject({ rawMessage: "the caller is gone", code: 1 });
});
