import { EventEmitter, once } from "node:events";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { Code, createContextKey, createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  SubmitTaskRequestSchema,
  TaskService,
  WatchTaskRequestSchema,
} from "../../../../gen/tessera/v1/task_pb.js";
import { Problem } from "../../../../src/errors.ts";
import { createInvoker, register } from "../../../../src/server/rpc/engine/invoker.ts";
import {
  compilePrecheck,
  createRequestValidator,
} from "../../../../src/server/rpc/interceptors/validate.ts";

const { getTask, watchTask, cancelTask } = TaskService.method;
const request = create(GetTaskRequestSchema, { taskId: "a" });

type Implementation = Parameters<typeof register<typeof TaskService>>[1];

function invokerOf(implementation: Implementation, ...interceptors: Interceptor[]) {
  return createInvoker({ services: [register(TaskService, implementation)], interceptors });
}

async function thrown(call: Promise<unknown>): Promise<Problem> {
  const err = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(err).toBeInstanceOf(Problem);
  return err as Problem;
}

describe("the invoker", () => {
  it("runs the interceptors from the first to the last, around the implementation", async () => {
    const order: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (req) => {
        order.push(`${name} in`);
        const res = await next(req);
        order.push(`${name} out`);
        return res;
      };
    const invoker = invokerOf({ getTask: () => ({}) }, named("a"), named("b"));
    await invoker.unary(getTask, request);
    expect(order).toEqual(["a in", "b in", "b out", "a out"]);
  });

  it("gives the implementation headers, values, URL and method of the request", async () => {
    const key = createContextKey("nobody");
    const invoker = invokerOf({
      getTask: (_, { requestHeader, values, url, requestMethod, method, service }) => ({
        taskId: [
          requestHeader.get("X-A"),
          [...requestHeader].length,
          values.get(key),
          url,
          requestMethod,
          method.name,
          service.typeName,
        ].join(),
      }),
    });
    const { message } = await invoker.unary(getTask, request, {
      header: { "x-a": "1", ":path": "/", "set-cookie": ["x", "y"] },
      contextValues: createContextValues().set(key, "me"),
      url: "/u",
      requestMethod: "GET",
    });
    expect(message.taskId).toBe("1,3,me,/u,GET,GetTask,tessera.v1.TaskService");
  });

  it("keeps what an implementation returns apart from other calls", async () => {
    const invoker = invokerOf({
      getTask: ({ taskId }, { responseHeader }) => {
        responseHeader.set("x-id", taskId);
        return { taskId };
      },
    });
    const [one, two] = await Promise.all(
      ["1", "2"].map((taskId) => invoker.unary(getTask, create(GetTaskRequestSchema, { taskId }))),
    );
    expect([one?.header.get("x-id"), two?.header.get("x-id")]).toEqual(["1", "2"]);
  });

  it("throws nothing but problems", async () => {
    const invoker = invokerOf({
      getTask: () => {
        throw new Error("secret");
      },
    });
    const err = await thrown(invoker.unary(getTask, request));
    expect(err.reason).toBe("INTERNAL");
    expect(err.rawMessage).not.toContain("secret");
    const missing = await thrown(invoker.unary(cancelTask, create(cancelTask.input)));
    expect(missing.code).toBe(Code.Unimplemented);
  });

  it("answers for an implementation that ignores its deadline", async () => {
    const invoker = invokerOf({ getTask: () => new Promise(() => undefined) });
    const err = await thrown(invoker.unary(getTask, request, { timeoutMs: 1 }));
    expect(err.reason).toBe("CALL_TIMEOUT");
  });

  it("tells a caller that went away from a failure", async () => {
    const invoker = invokerOf({
      getTask: async (_, { signal }) => {
        await once(new EventEmitter(), "never", { signal });
        return {};
      },
    });
    const caller = new AbortController();
    const call = invoker.unary(getTask, request, { signal: caller.signal });
    caller.abort();
    expect((await thrown(call)).code).toBe(Code.Canceled);
  });
});

describe("a stream", () => {
  const watch = create(WatchTaskRequestSchema, { taskId: "a" });

  it("has its headers with the first message and its trailers at the end", async () => {
    const invoker = invokerOf({
      async *watchTask(_, { responseHeader, responseTrailer }) {
        responseHeader.set("x-h", "1");
        yield { sequence: 1n };
        responseTrailer.set("x-t", "2");
      },
    });
    const stream = invoker.stream(watchTask, watch);
    for await (const { sequence } of stream) {
      expect(sequence).toBe(1n);
      expect(stream.header.get("x-h")).toBe("1");
    }
    expect(stream.trailer.get("x-t")).toBe("2");
  });

  it("ends the implementation when its reader leaves", async () => {
    const ended = Promise.withResolvers<void>();
    const invoker = invokerOf({
      async *watchTask() {
        try {
          while (true) yield { sequence: 1n };
        } finally {
          ended.resolve();
        }
      },
    });
    for await (const _ of invoker.stream(watchTask, watch)) break;
    await ended.promise;
  });

  it("ends the implementation when its caller goes away without reading on", async () => {
    const ended = Promise.withResolvers<void>();
    const caller = new AbortController();
    const invoker = invokerOf({
      async *watchTask() {
        try {
          while (true) yield { sequence: 1n };
        } finally {
          ended.resolve();
        }
      },
    });
    const stream = invoker.stream(watchTask, watch, { signal: caller.signal });
    await stream[Symbol.asyncIterator]().next();
    caller.abort();
    await ended.promise;
  });

  it("ends when its caller goes away, even if the implementation does not notice", async () => {
    const caller = new AbortController();
    const invoker = invokerOf({
      async *watchTask() {
        yield { sequence: 1n };
        await new Promise(() => undefined);
      },
    });
    const read = async () => {
      for await (const _ of invoker.stream(watchTask, watch, { signal: caller.signal }))
        caller.abort();
    };
    expect((await thrown(read())).code).toBe(Code.Canceled);
  });
});

describe("the check of requests", () => {
  const validator = createRequestValidator();
  const precheck = compilePrecheck(SubmitTaskRequestSchema);

  it.each<[string, MessageInitShape<typeof SubmitTaskRequestSchema>, string[]]>([
    ["a plain request", { endpoint: "a" }, []],
    ["the longest wait", { endpoint: "a", wait: { seconds: 60n }, resultFormat: 2 }, []],
    ["63 letters", { endpoint: "é".repeat(63) }, []],
    ["63 letters of two units", { endpoint: "😀".repeat(63) }, []],
    ["an empty name", { endpoint: "" }, ["endpoint"]],
    ["64 letters", { endpoint: "a".repeat(64) }, ["endpoint"]],
    ["a wait too long", { endpoint: "a", wait: { seconds: 60n, nanos: 1 } }, ["wait"]],
    ["a negative wait", { endpoint: "a", wait: { seconds: -1n } }, ["wait"]],
    ["an unknown format", { endpoint: "a", resultFormat: 9 as never }, ["result_format"]],
    [
      "several at once",
      { deployment: "a".repeat(128), idempotencyKey: "a".repeat(256) },
      ["deployment", "endpoint", "idempotency_key"],
    ],
  ])("of %s finds what is wrong", (_, init, fields) => {
    const message = create(SubmitTaskRequestSchema, init);
    let found: Problem | undefined;
    try {
      validator.validate(SubmitTaskRequestSchema, message);
    } catch (err) {
      found = err as Problem;
    }
    expect(found?.violations.map((one) => one.field) ?? []).toEqual(fields);
    // The fast check may doubt a valid message, but never passes an invalid one.
    expect(precheck(message) && fields.length > 0).toBe(false);
  });

  it.each([
    [[], true],
    [Array.from({ length: 10 }, () => "é".repeat(64)), true],
    [["a", ""], false],
    [["a".repeat(65)], false],
    [Array.from({ length: 11 }, () => "a"), false],
  ])("of a list of texts looks at their number and lengths (%#)", (tags, isFine) => {
    const desc = ListTasksRequestSchema;
    expect(compilePrecheck(desc)(create(desc, { tags }))).toBe(isFine);
    expect(createValidator().validate(desc, create(desc, { tags })).kind).toBe(
      isFine ? "valid" : "invalid",
    );
  });

  it("passes ordinary requests of every method without protovalidate", () => {
    for (const { input, name } of TaskService.methods) {
      const given = { endpoint: "a", taskId: "a", tasks: [{ endpoint: "a" }] };
      const fields = Object.fromEntries(
        Object.entries(given).filter(([key]) => key in input.field),
      );
      expect([name, compilePrecheck(input)(create(input, fields as never))]).toEqual([name, true]);
    }
  });
});
