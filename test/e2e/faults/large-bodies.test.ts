/** Large bodies of JSON, and large forms: they are read aside, and callers of other endpoints do not notice. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerProcess } from "../serve/process.ts";
import type { Flood } from "./flood.ts";

let served: ServerProcess;
beforeAll(async () => {
  served = await ServerProcess.start("calls");
  // It begins to measure.
  await served.longestTurnMs();
});
afterAll(() => served.stop());

const JSON_HEADERS = { "content-type": "application/json" };

/** A million objects and more in 3.9 MiB, and the slowest to parse of what may come. */
const MANY = `[${"{},".repeat(1_360_000)}{}]`;
const KEYS = `{${Array.from({ length: 90_000 }, (_, i) => `"${String(i).padStart(38, "k")}":1`)}}`;

/** 2.8 MB: read as one value, and as an item of a list. */
const OBJECTS = `[${'{"a":1},'.repeat(350_000)}1]`;

const sum = (numbers: string) => `{"numbers":${numbers}}`;
const form = (numbers: string) =>
  `--part\r\ncontent-disposition: form-data; name="numbers"\r\n\r\n${numbers}\r\n--part--\r\n`;
const message = (numbers: string) => `{"endpoint":"sum","arguments":${sum(numbers)}}`;

/** A neighbour waits for a turn of the event loop at most: reading ten bodies takes the most of it. */
describe("large bodies at once that are refused", () => {
  const flood = async (
    path: string,
    body: string,
    { contentType = "application/json", times = 10 } = {},
  ): Promise<number[]> => {
    const workerData: Flood = { port: served.port, path, body, contentType, times };
    const thread = new Worker(new URL("./flood.ts", import.meta.url), { workerData });
    const [statuses] = await once(thread, "message");
    return statuses;
  };

  it.each([
    ["of too many values, in a call", "/sum/submit", sum(MANY)],
    ["of many keys, in a call", "/sum/submit", sum(KEYS)],
    ["of too many values, in REST", "/api/v1/tasks", message(MANY)],
    ["of many keys, in REST", "/api/v1/tasks", message(KEYS)],
    ["of many keys, in Connect", "/tessera.v1.TaskService/SubmitTask", message(KEYS)],
  ])("take no turn of 50 ms where they are ten: %s", async (_, path, body) => {
    // Processor time, too, is longer where cores and caches are shared: the best of three counts.
    const longestMs: number[] = [];
    while (longestMs.length < 3 && Math.min(...longestMs) >= 50) {
      await served.longestTurnMs();
      expect(new Set(await flood(path, body))).toEqual(new Set([400]));
      longestMs.push(await served.longestTurnMs());
    }
    expect(Math.min(...longestMs)).toBeLessThan(50);
  });

  // The texts of a form are put together on the serving thread, and read on another.
  it.each([
    ["multipart/form-data; boundary=part", form(OBJECTS)],
    ["application/x-www-form-urlencoded", `numbers=${OBJECTS}`],
  ])("hold nobody for long where they are twenty forms: %s", async (contentType, body) => {
    const longestMs: number[] = [];
    while (longestMs.length < 3 && Math.min(...longestMs) >= 200) {
      await served.longestTurnMs();
      const statuses = await flood("/sum/submit", body, { contentType, times: 20 });
      expect(new Set(statuses)).toEqual(new Set([400]));
      longestMs.push(await served.longestTurnMs());
    }
    expect(Math.min(...longestMs)).toBeLessThan(200);
  });
});

describe("a large body that is right", () => {
  const NUMBERS = Array.from({ length: 50_000 }, (_, i) => i);
  const TOTAL = (49_999 * 50_000) / 2;
  const values = { numbers: NUMBERS };
  const call = { endpoint: "sum", arguments: values };
  const text = "ä€".repeat(40_000);

  it("is the call's arguments, in each protocol", async () => {
    const answers = [
      await served.post("/sum", values),
      await served.post("/api/v1/endpoints/sum:call", { arguments: values }),
      await served.post("/tessera.v1.EndpointService/CallEndpoint", call),
    ];
    expect(answers[0]?.json).toBe(TOTAL);
    expect(answers[1]?.text).toContain(String(TOTAL));
    expect(answers[2]?.json).toMatchObject({ value: TOTAL });
    expect((await served.post("/size", { value: text })).json).toBe(text.length + 2);
  });

  it("is the arguments of a task, and of each of several", async () => {
    const submitted = await served.post("/api/v1/tasks", call, { prefer: "wait=30" });
    const { task } = submitted.json as { task: { task_id: string } };
    expect((await served.result("sum", task.task_id)).json).toBe(TOTAL);
    const tasks = [call, { endpoint: "sum" }, { endpoint: "sum", arguments: { numbers: [1, 2] } }];
    const several = await served.post("/tessera.v1.TaskService/SubmitTasks", { tasks });
    expect(several.status, several.text).toBe(200);
    const { results } = several.json as {
      results: { task?: { taskId: string }; error?: object }[];
    };
    const sums = results.map(
      async ({ task }) => task && (await served.result("sum", task.taskId)).json,
    );
    expect(await Promise.all(sums)).toEqual([TOTAL, undefined, 3]);
  });

  it("holds files as data: URLs", async () => {
    const image = Buffer.alloc(300_000, 7);
    const answer = await served.post("/describe", {
      image: `data:image/png;base64,${image.toString("base64")}`,
      title: "sevens",
    });
    expect(answer.json).toMatchObject({ title: "sevens", image: { type: "image/png" } });
  });

  it("is the same call as before under its idempotency key", async () => {
    const key = { "idempotency-key": "a large one" };
    const first = await served.post("/api/v1/tasks", call, key);
    const again = await served.post("/tessera.v1.TaskService/SubmitTask", {
      ...call,
      idempotencyKey: "a large one",
    });
    expect(again.json).toMatchObject({
      task: { taskId: (first.json as { task: { task_id: string } }).task.task_id },
    });
    const other = { endpoint: "sum", arguments: { numbers: [...NUMBERS, 1] } };
    expect((await served.post("/api/v1/tasks", other, key)).status).toBe(409);
  });
});

it("a large message says what is wrong with it as a small one does", async () => {
  const numbers = Array.from({ length: 50_000 }, () => "one");
  const refused = [
    await served.post("/sum/submit", { numbers }),
    await served.post("/api/v1/tasks", { endpoint: "sum", arguments: { numbers } }),
  ];
  for (const { status, text } of refused) {
    expect([status, text.includes("numbers.0")]).toEqual([400, true]);
  }
  const broken = `${message(KEYS)}}`;
  for (const path of ["/api/v1/tasks", "/tessera.v1.TaskService/SubmitTask"]) {
    expect((await served.send(path, broken, JSON_HEADERS)).text).toContain("is not valid JSON");
  }
  const list = { endpoint: "sum", arguments: numbers };
  expect((await served.post("/api/v1/tasks", list)).status).toBe(400);
  const both = { endpoint: "sum", arguments: {}, body: {}, other: numbers };
  const outside = await served.post("/api/v1/tasks", both);
  expect(outside.text).toContain("without its arguments, the body holds more than 30000");
  const signIn = await served.post("/api/v1/tasks/x:cancel", { other: numbers });
  expect(signIn.text).toContain("holds more than 30000 JSON values");
});
