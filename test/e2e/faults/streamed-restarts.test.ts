import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { Gate } from "../serve/gate.ts";
import { pieceEvents, told } from "../serve/piece-stream.ts";
import { ServerProcess } from "../serve/process.ts";
import { type Served, serve } from "../serve/served.ts";

const events = (served: Served, id: string, after?: string) =>
  pieceEvents(served.origin, `/gated/stream?task_id=${id}`, after === undefined ? {} : { after });

describe("after a kill -9 of the node", () => {
  it("a reader goes on where it was, and misses and repeats nothing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tessera-streams-"));
    const database = join(folder, "tasks.db");
    try {
      await using gate = await Gate.build();
      const before = await ServerProcess.start("streamed-tasks", database);
      const ended = await before.submit("gated", { gate: gate.url });
      (await gate.arrival()).open("a;");
      (await gate.arrival()).open("b;");
      (await gate.arrival()).open("end");
      await before.result("gated", ended);
      const running = await before.submit("gated", { gate: gate.url });
      (await gate.arrival()).open("void;");
      const following = events(before, running);
      expect((await following.next()).value).toMatchObject({ id: "1-1", data: "begun 1;" });
      expect((await following.next()).value).toMatchObject({ id: "1-2", data: "void;" });
      await gate.arrival();
      await before.kill();
      await expect(following.next()).rejects.toThrow();

      await using after = await ServerProcess.start("streamed-tasks", database);
      expect(await told(events(after, ended, "1-1"))).toEqual(["a;", "b;", "end"]);
      expect(await told(events(after, ended, "1-3"))).toEqual(["end"]);
      const again = await gate.arrival();
      expect(again.attempt).toBe(2);
      const resumed = events(after, running, "1-2");
      expect((await resumed.next()).value).toMatchObject({ event: "restart", id: "2-0" });
      expect((await resumed.next()).value).toMatchObject({ data: "begun 2;", id: "2-1" });
      again.open("end");
      expect(await told(resumed)).toEqual(["end"]);
      expect((await after.result("gated", running)).text).toBe("begun 2;");
      await after.stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});

describe("on two nodes on one Postgres", () => {
  it("pieces are read on the node that does not run the task, as they come, from any point", async () => {
    const options = { database: await databaseUrl(), graceMs: 100, drainMs: 1_000 };
    await using gate = await Gate.build();
    await using one = await serve("streamed-tasks", options);
    await using other = await serve("streamed-tasks", options);
    const id = await one.submit("gated", { gate: gate.url });
    const arrival = await gate.arrival();
    const following = [one, other].map((node) => events(node, id));
    const next = () => Promise.all(following.map(async (each) => (await each.next()).value?.data));
    expect(await next()).toEqual(["begun 1;", "begun 1;"]);
    arrival.open("first;");
    expect(await next()).toEqual(["first;", "first;"]);
    (await gate.arrival()).open("second;");
    expect(await next()).toEqual(["second;", "second;"]);
    // A reader changes the node in the middle.
    const moved = events(other, id, "1-2");
    expect((await moved.next()).value).toMatchObject({ id: "1-3", data: "second;" });
    (await gate.arrival()).open("end");
    expect(await Promise.all([...following, moved].map(told))).toEqual([["end"], ["end"], ["end"]]);
    expect((await other.result("gated", id)).text).toBe("begun 1;first;second;");
  });

  it("a task begins anew on the other node when a worker is killed", async () => {
    const options = { database: await databaseUrl(), graceMs: 100, drainMs: 1_000 };
    await using gate = await Gate.build();
    await using one = await serve("streamed-tasks", options);
    await using other = await serve("streamed-tasks", options);
    const id = await one.submit("gated", { gate: gate.url });
    const following = events(other, id);
    expect((await following.next()).value).toMatchObject({ data: "begun 1;" });
    process.kill((await gate.arrival()).pid, "SIGKILL");
    const again = await gate.arrival();
    expect((await following.next()).value).toMatchObject({ event: "restart" });
    expect((await following.next()).value).toMatchObject({ data: "begun 2;" });
    again.open("end");
    expect(await told(following)).toEqual(["end"]);
  });
});
