import { afterAll, beforeAll, expect, it } from "vitest";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

interface Event {
  readonly id: number;
  readonly name: string;
  readonly data: Record<string, unknown>;
}

/** The events in a text of Server-Sent Events. */
function eventsIn(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((block) => block.includes("data: "))
    .map((block) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
      return { id: Number(field("id")), name: field("event"), data: JSON.parse(field("data")) };
    });
}

const eventsOf = async (id: string, headers = {}) =>
  eventsIn((await served.get(`/steps/events?task_id=${id}`, headers)).text);

async function finishedSteps(): Promise<string> {
  const id = await served.submit("steps", { count: 3 });
  await served.result("steps", id);
  return id;
}

it("the log of a task that has ended comes whole, in order, and ends", async () => {
  const id = await finishedSteps();
  const answer = await served.get(`/steps/events?task_id=${id}`);
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  const events = eventsIn(answer.text);
  expect(events.map(({ name }) => name)).toEqual([
    ...["state", "state", "log", "progress", "state", "end"],
  ]);
  expect(events.map(({ data }) => data.state ?? data.log ?? data.progress)).toEqual([
    { status: "queued" },
    { status: "running" },
    { level: "info", message: "begun", fields: { count: 3 }, line: 1 },
    { fraction: 0.5, message: "half way" },
    { status: "success" },
    undefined,
  ]);
  const ids = events.slice(0, -1).map((event) => event.id);
  expect(ids).toEqual([...ids].sort((one, other) => one - other));
  expect(events[1]?.data).toMatchObject({ sequence: ids[1], attempt: 1, time: expect.any(String) });
});

it("a log that is written fast has its first 200 and its last 800 lines, with their numbers", async () => {
  const id = await served.submit("ramble", { lines: 20_000 });
  refusal(await served.get(`/ramble/get?task_id=${id}&wait=30`));
  const events = eventsIn((await served.get(`/ramble/events?task_id=${id}`)).text);
  const lines = events.flatMap(({ data }) => (data.log ? [data.log as { line: number }] : []));
  for (const line of lines) {
    expect(line).toEqual({ level: "info", message: `line ${line.line}`, line: line.line });
  }
  const numbers = lines.map(({ line }) => line);
  expect(numbers.slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, at) => at + 1));
  expect(numbers.slice(-800)).toEqual(Array.from({ length: 800 }, (_, at) => at + 19_201));
  expect(numbers.length).toBeLessThan(1_200);
});

it("a reader who comes again goes on after the last event that it has seen", async () => {
  const id = await finishedSteps();
  const all = await eventsOf(id);
  for (const [index, { id: last }] of all.slice(0, -1).entries()) {
    const rest = await eventsOf(id, { "last-event-id": String(last) });
    expect(rest).toEqual(all.slice(index + 1));
  }
  const byQuery = await served.get(`/steps/events?task_id=${id}&last_event_id=${all[1]?.id}`);
  expect(eventsIn(byQuery.text)).toEqual(all.slice(2));
});

it("events come while the task runs, and a reader that leaves disturbs nothing", async () => {
  const id = await served.submit("gated", { url: gate.url });
  const arrival = await gate.arrival();
  await served.until("gated", id, ({ progress }) => progress !== null);
  const leaving = new AbortController();
  const open = (signal?: AbortSignal) =>
    fetch(`${served.origin}/gated/events?task_id=${id}`, signal ? { signal } : {});
  const [left, stayed] = [await open(leaving.signal), await open()];
  const chunks = left.body?.getReader();
  let seen = "";
  while (!seen.includes("at the gate")) {
    seen += Buffer.from((await chunks?.read())?.value ?? []).toString();
  }
  leaving.abort();
  arrival.open("through");
  const names = eventsIn(await stayed.text()).map(({ name, data }) => data.state ?? name);
  expect(names).toEqual([
    ...[{ status: "queued" }, { status: "running" }, "progress", { status: "success" }, "end"],
  ]);
});

it("a failure is told with the event of the state", async () => {
  const id = await served.submit("fail_later", { how: "bad_input" });
  const { text } = await served.get(`/fail_later/events?task_id=${id}`);
  const failure = { reason: "error", code: "invalid_argument", message: "the picture is empty" };
  expect(eventsIn(text).at(-2)?.data).toMatchObject({ state: { status: "failure", failure } });
});

it("a task that does not exist, and an event that cannot, are refused as JSON", async () => {
  expect(refusal(await served.get("/steps/events?task_id=none"))).toMatchObject({
    status: 404,
    reason: "TASK_NOT_FOUND",
  });
  const answer = await served.get("/steps/events?task_id=none", { "last-event-id": "-1" });
  expect(refusal(answer)).toMatchObject({ status: 400, fields: ["Last-Event-ID"] });
});
