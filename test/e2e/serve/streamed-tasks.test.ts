import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";
import { type PieceEvent, pieceEvents, told } from "./piece-stream.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streamed-tasks"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const list = ["a", "", "b\r\nc", "é\u2028🙂"];
const values = [1, null, { a: "b\nc" }, [[]], "x".repeat(300)];

const streamOf = (endpoint: string, id: string) => `/${endpoint}/stream?task_id=${id}`;
const events = (endpoint: string, id: string, after?: string) =>
  pieceEvents(served.origin, streamOf(endpoint, id), after === undefined ? {} : { after });

const errorEvent = (reason: string) => ({
  event: "error",
  data: { details: [{ debug: { reason } }] },
});

async function finished(endpoint: string, given: unknown): Promise<string> {
  const id = await served.submit(endpoint, { list: given });
  await served.result(endpoint, id);
  return id;
}

describe("the stream of a task that has ended", () => {
  it.each([
    ["texts", list, "text/plain; charset=utf-8", list.join("")],
    ["values", values, "application/x-ndjson; charset=utf-8", undefined],
    ["audio", ["ab", "c"], "audio/mpeg", "abc"],
  ])("of %s has its own form unless another is asked for", async (endpoint, given, type, text) => {
    const id = await finished(endpoint, given);
    const answer = await served.get(streamOf(endpoint, id));
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const lines = `${values.map((value) => JSON.stringify(value)).join("\n")}\n`;
    expect(answer.text).toBe(text ?? lines);
  });

  it.each([
    ["texts", list, list, "text"],
    ["values", values, values, "json"],
    ["audio", ["ab", "c"], [btoa("ab"), btoa("c")], "bytes"],
  ])("of %s is events where they are asked for", async (endpoint, given, pieces, form) => {
    const id = await finished(endpoint, given);
    const answer = await served.get(streamOf(endpoint, id), { accept: "text/event-stream" });
    expect(answer.headers.get("tessera-pieces")).toBe(form);
    const blocks = answer.text.split("\n\n").slice(0, -1);
    expect(blocks.pop()).toBe("event: end\ndata: {}");
    expect(blocks).toEqual(
      pieces.map((piece, index) => `id: 1-${index + 1}\ndata: ${JSON.stringify(piece)}`),
    );
  });

  it("goes on after any piece", async () => {
    const id = await finished("values", values);
    for (const [index] of values.entries()) {
      const rest = await told(events("values", id, `1-${index + 1}`));
      expect(rest).toEqual([...values.slice(index + 1), "end"]);
    }
    const byQuery = await served.get(`${streamOf("values", id)}&last_event_id=1-4`);
    expect(byQuery.json).toBe(values[4]);
  });

  it("has the same pieces as its result", async () => {
    expect((await served.result("texts", await finished("texts", list))).text).toBe(list.join(""));
    expect((await served.result("values", await finished("values", values))).json).toEqual(values);
    const audio = await served.result("audio", await finished("audio", ["ab", "c"]));
    expect([audio.headers.get("content-type"), audio.text]).toEqual(["audio/mpeg", "abc"]);
  });

  it("is read by its own path only if it is a stream, and asked for as one", async () => {
    const whole = await served.submit("whole", {});
    const values = await served.submit("values", { list: [1] });
    const refused = async (path: string, headers = {}) => refusal(await served.get(path, headers));
    expect(await refused(streamOf("whole", whole))).toMatchObject({
      status: 400,
      reason: "REQUEST_INVALID",
    });
    expect(await refused(streamOf("values", "none"))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    expect(await refused(streamOf("texts", values))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    const id = { "last-event-id": "7" };
    expect(await refused(streamOf("values", values), id)).toMatchObject({
      status: 400,
      fields: ["Last-Event-ID"],
    });
    const other = await served.get(streamOf("values", values), { accept: "text/plain" });
    expect(other.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
  });
});

describe("the stream of a task that runs", () => {
  it("gives each piece when it is made, to every reader, and ends with the task", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    const [one, other] = [events("gated", id), events("gated", id)];
    const next = async (event: AsyncIterator<PieceEvent>) => (await event.next()).value?.data;
    expect([await next(one), await next(other)]).toEqual(["begun 1;", "begun 1;"]);
    for (const piece of ["first;", "second;"]) {
      (await gate.arrival()).open(piece);
      expect([await next(one), await next(other)]).toEqual([piece, piece]);
    }
    (await gate.arrival()).open("end");
    expect([await told(one), await told(other)]).toEqual([["end"], ["end"]]);
    expect((await served.result("gated", id)).text).toBe("begun 1;first;second;");
  });

  it("goes on when a reader leaves", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    const leaving = new AbortController();
    const path = streamOf("gated", id);
    const left = pieceEvents(served.origin, path, { signal: leaving.signal });
    await left.next();
    const arrival = await gate.arrival();
    leaving.abort();
    arrival.open("after;");
    (await gate.arrival()).open("end");
    expect((await served.result("gated", id)).text).toBe("begun 1;after;");
  });

  it("is text that can be read as it comes", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    const arrival = await gate.arrival();
    const res = await fetch(served.origin + streamOf("gated", id));
    const reader = (res.body as ReadableStream<Uint8Array>).getReader();
    const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
    expect(await read()).toBe("begun 1;");
    arrival.open("more;");
    expect(await read()).toBe("more;");
    (await gate.arrival()).open("end");
    expect((await reader.read()).done).toBe(true);
  });

  it("ends with an error when the task is cancelled in the middle, and keeps what it gave", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    const following = events("gated", id);
    await following.next();
    (await gate.arrival()).open("kept;");
    await following.next();
    await gate.arrival();
    await served.fetch(`/gated/cancel?task_id=${id}&abort=true`, { method: "POST" });
    expect((await following.next()).value).toMatchObject(errorEvent("TASK_CANCELLED"));
    expect(await told(events("gated", id))).toEqual(["begun 1;", "kept;", "error"]);
  });

  it("ends with the failure of the task", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    (await gate.arrival()).open("fail");
    const all: PieceEvent[] = [];
    for await (const event of events("gated", id)) {
      all.push(event);
    }
    expect(all).toMatchObject([
      { data: "begun 1;" },
      { ...errorEvent("TASK_FAILED"), data: { message: "the gate said so" } },
    ]);
    // As text, only a broken connection can tell.
    await expect(served.get(streamOf("gated", id))).rejects.toThrow();
  });

  it("begins anew when its worker is killed, and readers are told", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    const following = events("gated", id);
    const first = await following.next();
    expect(first.value).toMatchObject({ id: "1-1", data: "begun 1;" });
    const arrival = await gate.arrival();
    arrival.open("lost;");
    expect((await following.next()).value).toMatchObject({ id: "1-2", data: "lost;" });
    process.kill((await gate.arrival()).pid, "SIGKILL");
    expect((await following.next()).value).toEqual({
      id: "2-0",
      event: "restart",
      data: { attempt: 2 },
    });
    expect((await following.next()).value).toMatchObject({ id: "2-1", data: "begun 2;" });
    const again = await gate.arrival();
    expect(again.attempt).toBe(2);
    again.open("end");
    expect(await told(following)).toEqual(["end"]);
    expect((await served.result("gated", id)).text).toBe("begun 2;");
    // A reader who comes later with a piece of the first attempt is told too.
    expect(await told(events("gated", id, "1-2"))).toEqual(["restart", "begun 2;", "end"]);
    const asText = await served.get(streamOf("gated", id), { "last-event-id": "1-2" });
    expect(refusal(asText)).toMatchObject({ reason: "TASK_RESTARTED" });
  });

  it("stands among the events of the task, which go on after any of them", async () => {
    const id = await served.submit("gated", { gate: gate.url });
    (await gate.arrival()).open("more;");
    (await gate.arrival()).open("end");
    await served.result("gated", id);
    const read = async (after?: string) => {
      const all: PieceEvent[] = [];
      const options = after === undefined ? {} : { after };
      const path = `/gated/events?task_id=${id}`;
      for await (const event of pieceEvents(served.origin, path, options)) {
        all.push(event);
      }
      return all;
    };
    const all = await read();
    expect(all.map(({ id, event }) => `${event} ${id}`)).toEqual([
      ...["state 1", "state 2", "piece 2-1-1", "piece 2-1-2", "state 3-1-2", "end "],
    ]);
    expect(all[3]?.data).toEqual({ sequence: 2, attempt: 1, piece: { number: 2, value: "more;" } });
    for (const [index, { id }] of all.slice(0, -1).entries()) {
      expect(await read(id)).toEqual(all.slice(index + 1));
    }
  });
});

describe("a reader that is slow", () => {
  it("holds up neither the task nor another reader, and gets everything", async () => {
    const id = await served.submit("fill", { pieces: 400, characters: 50_000 });
    const res = await fetch(served.origin + streamOf("fill", id));
    const reader = (res.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const whole = (await served.result("fill", id)).body;
    expect(whole.length).toBe(400 * 50_000);
    const quick = await served.get(streamOf("fill", id));
    expect(quick.body.equals(whole)).toBe(true);
    let length = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      length += chunk.value.length;
    }
    expect(length).toBeGreaterThan(whole.length - 200_000);
  });
});

it("a thousand tasks stream at once, each its own pieces", { timeout: 120_000 }, async () => {
  const ids = await Promise.all(
    Array.from({ length: 1_000 }, (_, number) => served.submit("gather", { number })),
  );
  const streams = await Promise.all(
    ids.map(async (id, number) => {
      const { text } = await served.get(streamOf("gather", id));
      return text === `${number}\n`.repeat(41);
    }),
  );
  expect(streams.filter((isWhole) => !isWhole)).toEqual([]);
});
