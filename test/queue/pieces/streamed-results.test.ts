import { describe, expect, it } from "vitest";
import type { Payload } from "../../../src/protocol/messages.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { unavailable } from "../../../src/storage/unavailable.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { key, newTask, openLease, submit } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { BEGINNING, Streaming, TASK } from "./streaming.ts";

/** A storage with these tasks in its queue. */
async function queued(...taskIds: string[]) {
  const storage = await openSqlite(":memory:");
  await openLease(storage);
  await submit(storage, ...taskIds.map((taskId) => newTask(taskId)));
  return storage;
}

async function resultOf(storage: Storage, taskId = TASK): Promise<Payload> {
  const result = await storage.getResult(key(taskId));
  if (result === undefined) {
    throw new Error(`task ${taskId} has no result`);
  }
  return result;
}

describe("the whole of a streamed result", () => {
  it.each([
    ["json", ["1", '{"a":[]}', '"x"'], { json: '[1,{"a":[]},"x"]', files: [] }],
    ["json", [], { json: "[]", files: [] }],
    ["text", ["one ", "", '"two"\n'], { json: '"one \\"two\\"\\n"', files: [] }],
    ["text", [], { json: '""', files: [] }],
    [
      "bytes",
      [Uint8Array.of(1, 2), Uint8Array.of(255)],
      { json: "0", files: [{ contentType: "image/png", data: Buffer.of(1, 2, 255) }] },
    ],
  ] as const)("is made of its pieces: %s %j", async (form, pieces, whole) => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin(form);
    call?.send(...pieces);
    call?.end();
    expect(await streaming.told(TASK)).toEqual(pieces);
    const { json, files } = await resultOf(storage);
    expect(json).toBe(whole.json);
    expect(files.map((file) => "data" in file && Buffer.from(file.data))).toEqual(
      whole.files.map(({ data }) => data),
    );
  });

  it("stands in the blob store when it is large", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin("json");
    const value = JSON.stringify("x".repeat(200_000));
    for (let sent = 0; sent < 30; sent += 1) {
      call?.send(value);
    }
    call?.end();
    await streaming.told(TASK);
    const { text } = await resultOf(storage);
    expect(text?.contentType).toBe("application/json");
    const chunks: Uint8Array[] = [];
    for await (const chunk of streaming.keeper.read((text as NonNullable<typeof text>).blob)) {
      chunks.push(chunk);
    }
    expect(Buffer.concat(chunks).toString()).toBe(`[${Array(30).fill(value).join()}]`);
  });
});

describe("pieces of a running task", () => {
  it("are read as they come, and credit is given when they are stored", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin();
    const events = streaming.read(TASK);
    for (const piece of ["one", "two", "three"]) {
      call?.send(piece);
      expect(await events.next()).toMatchObject({ value: { piece: { data: piece, attempt: 1 } } });
    }
    expect(call?.credit).toBe(3);
    call?.end();
    expect(await events.next()).toMatchObject({ done: true, value: { status: "success" } });
  });

  it("share one write over all tasks of a turn", async () => {
    const taskIds = Array.from({ length: 100 }, createIdSource());
    await using storage = await queued(...taskIds);
    let writes = 0;
    const append = storage.appendPieces;
    storage.appendPieces = (parameters) => {
      writes += 1;
      return append(parameters);
    };
    const streaming = new Streaming(storage);
    const calls = await streaming.begin();
    for (const call of calls) {
      call.send("a", "b");
      call.end();
    }
    for (const taskId of taskIds) {
      expect(await streaming.told(taskId)).toEqual(["a", "b"]);
    }
    expect(writes).toBe(1);
  });

  it("are not lost, and get no credit, while the storage is away", async () => {
    await using storage = await queued(TASK);
    const append = storage.appendPieces;
    let fails = 2;
    storage.appendPieces = (parameters) => {
      fails -= 1;
      return fails < 0 ? append(parameters) : Promise.reject(unavailable(new Error("away")));
    };
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin();
    call?.send("a");
    await new Promise((resolve) => setImmediate(resolve));
    expect(call?.credit).toBe(0);
    call?.send("b");
    call?.end();
    expect(await streaming.told(TASK)).toEqual(["a", "b"]);
    expect(call?.credit).toBe(2);
  });

  it("stop with the limit of a result, and the task fails", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage, { maxResultBytes: 10 });
    const [call] = await streaming.begin();
    const events = streaming.read(TASK);
    call?.send("123456", "7890");
    await events.next();
    await events.next();
    call?.send("x");
    expect(call?.aborted).toBe("cancelled");
    await streaming.queue.recorded();
    // It is tried again, as the endpoint says.
    expect(await storage.getTask(key(TASK))).toMatchObject({ status: "queued", failedAttempts: 1 });
    const history = await storage.getHistory({ ...key(TASK), afterSequence: 0, limit: 10 });
    expect(JSON.stringify(history?.stored)).toContain("larger than 10 bytes");
  });

  it("of an attempt that has lost its lease are dropped, and its function is aborted", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [stale] = await streaming.begin();
    stale?.send("old");
    const events = streaming.read(TASK);
    await events.next();
    await storage.rescueExpired({ nowMs: Date.now(), all: true });
    await openLease(storage, "lease-2", Date.now());
    const [second] = await streaming.begin("text", "lease-2");
    stale?.send("stale");
    second?.send("new");
    expect(await events.next()).toMatchObject({ value: { kind: "restart", attempt: 2 } });
    expect(await events.next()).toMatchObject({ value: { piece: { data: "new", sequence: 1 } } });
    second?.end();
    expect((await events.next()).done).toBe(true);
    expect(stale?.aborted).toBe("cancelled");
    expect((await resultOf(storage)).json).toBe('"new"');
  });
});

describe("a reader", () => {
  it("resumes after any piece, while the task runs and when it has ended", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin();
    call?.send("a", "b");
    const following = streaming.told(TASK, { attempt: 1, sequence: 1 });
    call?.send("c");
    call?.end();
    expect(await following).toEqual(["b", "c"]);
    for (const sequence of [0, 1, 2, 3]) {
      const rest = await streaming.told(TASK, { attempt: 1, sequence });
      expect(rest).toEqual(["a", "b", "c"].slice(sequence));
    }
  });

  it("is told of a restart only if it has pieces that are void", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [first] = await streaming.begin();
    first?.send("a");
    first?.end({ kind: "displaced", message: "killed" });
    await streaming.queue.recorded();
    const [second] = await streaming.begin();
    second?.send("A");
    second?.end();
    expect(await streaming.told(TASK, { attempt: 1, sequence: 1 })).toEqual(["restart 2", "A"]);
    expect(await streaming.told(TASK, BEGINNING)).toEqual(["A"]);
    expect(await streaming.told(TASK, { attempt: 1, sequence: 0 })).toEqual(["A"]);
  });

  it("that leaves changes nothing for the task", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin();
    const leaving = new AbortController();
    const events = streaming.read(TASK, BEGINNING, leaving.signal);
    call?.send("a");
    await events.next();
    const next = events.next();
    leaving.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    call?.send("b");
    call?.end();
    expect(await streaming.told(TASK)).toEqual(["a", "b"]);
    expect(call?.aborted).toBeUndefined();
  });

  it("that is slow holds up nobody: the function gets its credit from the storage", async () => {
    await using storage = await queued(TASK);
    const streaming = new Streaming(storage);
    const [call] = await streaming.begin();
    const slow = streaming.read(TASK);
    call?.send("first");
    await slow.next();
    const pieces = Array.from({ length: 200 }, (_, index) => `${index}`);
    call?.send(...pieces);
    call?.end();
    expect(await streaming.told(TASK)).toEqual(["first", ...pieces]);
    expect(call?.credit).toBe(201);
    const rest: unknown[] = [];
    for await (const event of slow) {
      rest.push(event.kind === "piece" && event.piece.data);
    }
    expect(rest).toEqual(pieces);
  });
});
