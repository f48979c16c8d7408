/** Batches of calls and tasks in a running deployment: what goes together, and when. */
import { afterEach, describe, expect, it } from "vitest";
import { Hosting, RECORD, source } from "./hosting.ts";

let hosting: Hosting;
afterEach(() => hosting[Symbol.asyncDispose]());

/** Answers each text with all that it was together with; "wait" waits for a call of `open`. */
const GATHER = `
  let gate = Promise.withResolvers();
  let waiting = Promise.withResolvers();
  const input = { text: z.string(), key: z.string().default("") };
  const gather = async (items) => {
    const texts = items.map(({ text }) => text);
    if (texts.includes("wait")) {
      waiting.resolve();
      await gate.promise;
    }
    if (texts.includes("die")) process.exit(3);
    if (texts.includes("poison")) throw new Error("poisoned");
    const all = texts.toSorted().join(" ");
    return texts.map((text) => text === "bad" ? new Error("bad item") : all);
  };`;
const OPEN = `
  open: api({}, async () => {
    await waiting.promise;
    gate.resolve();
    gate = Promise.withResolvers();
    waiting = Promise.withResolvers();
  }),
  pid: api({}, () => process.pid)`;

async function start(batch: string, options = ""): Promise<void> {
  hosting = await Hosting.start();
  const endpoints = `
    call: api({ input, batch: ${batch} ${options} }, gather),
    work: task({ input, batch: ${batch} ${options}, retries: { max: 1, backoff: 0 } }, gather),
    ${OPEN}`;
  await hosting.deploy(source(endpoints, GATHER));
}

const calls = (...texts: string[]) => texts.map((text) => hosting.call("call", { text }));
const submits = (...texts: string[]) =>
  Promise.all(texts.map((text) => hosting.submit("work", { text })));
const values = async (ids: readonly string[]) =>
  (await Promise.all(ids.map((id) => hosting.ended(id)))).map(({ status, value }) =>
    status === "success" ? value : status,
  );

describe("calls", () => {
  it("that come at the same time go together", async () => {
    await start("{ maxSize: 8, maxWait: 1_000 }");
    expect(await Promise.all(calls(..."abcdefgh"))).toEqual(Array(8).fill("a b c d e f g h"));
  });

  it("that come while a batch runs are the next one, and wait for nobody", async () => {
    await start('{ maxSize: 8, maxWait: "1m" }');
    const first = calls("wait", ..."1234567");
    const next = calls("a", "b", "c");
    await expect.poll(() => hosting.hosted.calls.waiting(endpoint("call"))).toBe(3);
    await hosting.call("open");
    expect(await Promise.all(next)).toEqual(Array(3).fill("a b c"));
    expect(await Promise.all(first)).toEqual(Array(8).fill("1 2 3 4 5 6 7 wait"));
  });

  it("wait for others no longer than they should, and soon not at all", async () => {
    await start("{ maxSize: 8, maxWait: 40 }");
    const took: number[] = [];
    for (let call = 0; call < 10; call += 1) {
      const startMs = performance.now();
      expect(await hosting.call("call", { text: "alone" })).toBe("alone");
      took.push(performance.now() - startMs);
    }
    expect(took[0]).toBeGreaterThanOrEqual(35);
    expect(Math.min(...took.slice(7))).toBeLessThan(20);
  });

  it("with another key go in another batch", async () => {
    await start('{ maxSize: 8, maxWait: 50, key: "key" }');
    const keyed = (text: string, key: string) => hosting.call("call", { text, key });
    expect(
      await Promise.all([keyed("a", "x"), keyed("b", "y"), keyed("c", "x"), keyed("d", "y")]),
    ).toEqual(["a c", "b d", "a c", "b d"]);
  });

  it("that are too large together go one after the other", async () => {
    await start("{ maxSize: 8, maxWait: 50, maxBytes: 300 }");
    const long = "x".repeat(180);
    const [first, second] = await Promise.all([...calls(`a${long}`), ...calls(`b${long}`)]);
    expect([first, second]).toEqual([`a${long}`, `b${long}`]);
  });

  it("fail alone, whatever they were with", async () => {
    await start("{ maxSize: 3, maxWait: 1_000 }");
    const told = (text: string) => calls(text)[0]?.catch((err: Error) => err.message);
    expect(await Promise.all([told("a"), told("bad"), told("c")])).toEqual([
      "a bad c",
      expect.stringContaining("bad item"),
      "a bad c",
    ]);
    expect(await Promise.all([told("a"), told("poison"), told("c")])).toEqual([
      "a",
      expect.stringContaining("poisoned"),
      "c",
    ]);
  });

  it("leave the others when their caller does", async () => {
    await start("{ maxSize: 8, maxWait: 50 }");
    const leaving = new AbortController();
    const { manifest, reader } = hosting.hosted.endpoint("call");
    const given = { case: "arguments", value: { text: "gone" } as never } as const;
    const payload = await reader.read(given, hosting.hosted.files.api);
    const { signal } = leaving;
    const left = hosting.hosted.calls.call(manifest, payload, { signal });
    const others = calls("a", "b");
    leaving.abort();
    await expect(left).rejects.toThrow("the caller has gone");
    expect(await Promise.all(others)).toEqual(["a b", "a b"]);
  });

  it("are refused when the deployment ends while they wait for others", async () => {
    await start('{ maxSize: 8, maxWait: "1m" }');
    const waiting = calls("a")[0]?.catch((err: Error) => err.message);
    await expect.poll(() => hosting.hosted.calls.waiting(endpoint("call"))).toBe(1);
    hosting.hosted.calls.close();
    expect(await waiting).toMatch(/shutting down/);
  });

  it("of 10 ms are at least ten times as many in batches of 32", async () => {
    hosting = await Hosting.start();
    const pause = "await new Promise((resolve) => setTimeout(resolve, 10))";
    const endpoints = `
      alone: api({ concurrency: 1 }, async () => { ${pause}; }),
      together: api({ batch: { maxSize: 32 } }, async (items) => { ${pause}; return items.map(() => null); })`;
    await hosting.deploy(source(endpoints));
    const seconds = async (name: string): Promise<number> => {
      const startMs = performance.now();
      await Promise.all(Array.from({ length: 128 }, () => hosting.call(name)));
      return performance.now() - startMs;
    };
    await seconds("together");
    expect(await seconds("alone")).toBeGreaterThan(10 * (await seconds("together")));
  });
});

describe("tasks", () => {
  it("that wait for a slot are claimed together, and each has its result", async () => {
    await start('{ maxSize: 4, maxWait: "1m" }');
    const first = await submits("wait", "1", "2", "3");
    const next = await submits("a", "b", "c", "d", "e");
    await hosting.call("open");
    expect(await values(first)).toEqual(Array(4).fill("1 2 3 wait"));
    // Tasks of one millisecond have no order among them.
    const sizes = (await values(next)).map((value) => String(value).split(" ").length);
    expect(sizes.toSorted()).toEqual([1, 4, 4, 4, 4]);
  });

  it("wait for others, no longer than they should", async () => {
    // Half of it, after a batch that nobody joined.
    await start("{ maxSize: 8, maxWait: 1_000 }");
    await values(await submits("warm"));
    const ids = [...(await submits("a")), ...(await submits("b", "c"))];
    expect(new Set(await values(ids))).toEqual(new Set(["a b c"]));
  });

  it("with other keys run when it is their turn", async () => {
    await start('{ maxSize: 4, maxWait: 20, key: "key" }');
    const wait = await hosting.submit("work", { text: "wait", key: "x" });
    await expect.poll(async () => (await status(wait))?.status).toBe("running");
    const keys = ["x", "y", "x", "z", "y", "x"];
    const ids = await Promise.all(
      keys.map((key, index) => hosting.submit("work", { text: `${key}${index}`, key })),
    );
    await hosting.call("open");
    for (const [index, value] of (await values(ids)).entries()) {
      const together = String(value).split(" ");
      expect(together).toContain(`${keys[index]}${index}`);
      expect(together.every((text) => text[0] === keys[index])).toBe(true);
    }
  });

  it("are tried again one by one, each by its own retries", async () => {
    await start("{ maxSize: 4, maxWait: 100 }");
    const ids = await submits("a", "bad", "c", "d");
    expect(await values(ids)).toEqual(["a bad c d", "failure", "a bad c d", "a bad c d"]);
    expect((await status(ids[1] ?? ""))?.attempt).toBe(2);
    expect((await status(ids[0] ?? ""))?.attempt).toBe(1);
  });

  it("that lose their worker each begin again, alone, and end once", async () => {
    await start("{ maxSize: 4, maxWait: 100 }");
    const ids = await submits("wait", "a", "b", "c");
    await expect.poll(async () => (await status(ids[3] ?? ""))?.status).toBe("running");
    process.kill((await hosting.call("pid")) as number, "SIGKILL");
    // They go one after the other, and the first would wait for a call that nobody can send it.
    expect(await values(ids.slice(1))).toEqual(["a", "b", "c"]);
    expect((await status(ids[1] ?? ""))?.attempt).toBe(2);
    await hosting.hosted.queue.cancel({ taskId: ids[0] ?? "" }, true);
    expect((await hosting.ended(ids[0] ?? "")).status).toBe("cancelled");
  });

  it("leave the others when they are cancelled", async () => {
    await start("{ maxSize: 3, maxWait: 100 }");
    const ids = await submits("wait", "a", "b");
    await expect.poll(async () => (await status(ids[2] ?? ""))?.status).toBe("running");
    await hosting.hosted.queue.cancel({ taskId: ids[1] ?? "" }, true);
    expect((await hosting.ended(ids[1] ?? "")).status).toBe("cancelled");
    await hosting.call("open");
    const [first, , third] = await values(ids);
    expect([first, third]).toEqual(["a b wait", "a b wait"]);
  });
});

function endpoint(name: string) {
  return hosting.hosted.endpoint(name).manifest;
}

async function status(taskId: string) {
  return hosting.storage.getTask({ deploymentId: RECORD.deploymentId, taskId });
}
