/**
 * What every worker does, whatever its language and however it is started. A call ends
 * exactly once, and a worker that breaks the protocol ends alone.
 */
import { afterEach, beforeEach, describe, expect, test as vitest } from "vitest";
import { BatchPost } from "../../src/pool/calls/batch-post.ts";
import type { ExecutionEnd, ExecutionListener } from "../../src/pool/calls/execution.ts";
import { DEFAULT_LIMITS } from "../../src/pool/limits.ts";
import type { Worker } from "../../src/pool/worker.ts";
import type { WorkerOptions } from "../../src/pool/worker-options.ts";
import type { RequestHead } from "../../src/protocol/heads.ts";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";
import {
  type FileValue,
  MAX_INLINE_FILE_BYTES,
  type StoredFile,
} from "../../src/protocol/messages.ts";
import { once } from "../../src/storage/files/keeper.ts";
import { announced, BAD_FRAMES, frame } from "../fixtures/frames.ts";
import { batchContract } from "./batch-contract.ts";
import { files } from "./local-workers.ts";
import { streamContract } from "./stream-contract.ts";

/** Starts a worker of a service in `test/fixtures/services`, without loading it. */
export type StartWorker = (fixture: string, options?: Partial<WorkerOptions>) => Promise<Worker>;

const SERVICE = "serve/contract.ts";
const MEBIBYTE = 1024 ** 2;

/** No worker is too slow for it, on however busy a machine. */
const PATIENT_GRACE_MS = 20_000;
/** A worker that drains is not taken for one that does not answer, where the machine is busy. */
const DRAIN_GRACE_MS = 1_000;

const results = (...list: object[]) => frame({ type: "results", results: list });
const forged = (...parts: Buffer[]) => ({ base64: Buffer.concat(parts).toString("base64") });
const notUnderWay = (id: number) => `it sent a result of call ${id}, which is not under way`;

async function bytesOf(file: FileValue | StoredFile | undefined): Promise<Buffer> {
  if (file === undefined || "data" in file) {
    return Buffer.from(file?.data ?? []);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.api.read(file.blob)) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Tests of the contract that a kind of worker is excused from, by their names. */
export interface ContractSkip {
  readonly reason: string;
  readonly tests: readonly string[];
}

export interface ContractOptions {
  /** Added to the names of tests that this machine cannot run. */
  readonly skipped?: string;
  readonly skip?: readonly ContractSkip[];
  /** Resolves with the reason when the process of a worker has ended. Default: the worker ends with it. */
  readonly processEnded?: (worker: Worker) => Promise<string>;
}

export function workerContract(
  name: string,
  start: StartWorker,
  {
    skipped = "",
    skip = [],
    processEnded = async ({ exited }) => (await exited).message,
  }: ContractOptions = {},
): void {
  const excused = new Map(skip.flatMap(({ reason, tests }) => tests.map((each) => [each, reason])));
  /** Skips, by their titles or the names of their groups, the tests that this kind is excused from. */
  function skipExcused(title: string) {
    const reason = excused.get(title);
    excused.delete(title);
    return {
      isSkipped: reason !== undefined,
      why: reason === undefined ? "" : ` (skipped: ${reason})`,
    };
  }
  function test(title: string, run: () => Promise<void>): void {
    const { isSkipped, why } = skipExcused(title);
    vitest.skipIf(isSkipped)(`${title}${why}`, run);
  }
  test.each = <One>(all: readonly One[]) => {
    return (title: string, run: (one: One) => Promise<void>): void => {
      const { isSkipped, why } = skipExcused(title);
      // A list is spread into arguments.
      vitest.skipIf(isSkipped).each(all)(`${title}${why}`, (...args: unknown[]) =>
        run((args.length > 1 ? args : args[0]) as One),
      );
    };
  };
  function group(title: string, define: () => void): void {
    const { isSkipped, why } = skipExcused(title);
    describe.skipIf(isSkipped)(`${title}${why}`, define);
  }

  describe.skipIf(skipped)(`${name}${skipped}`, () => {
    let worker: Worker;
    let manifest: ServiceManifest;
    const started: Worker[] = [];

    async function ready(options?: Partial<WorkerOptions>, service = SERVICE): Promise<Worker> {
      worker = await start(service, { graceMs: PATIENT_GRACE_MS, ...options });
      started.push(worker);
      manifest = await worker.load();
      return worker;
    }

    beforeEach(async () => {
      await ready();
    });
    afterEach(async () => {
      for (const each of started.splice(0)) {
        each.kill("the test is over");
        await each.exited;
      }
    });

    /** Begins a call of the worker that was started last. */
    function begin(
      endpoint: string,
      values: object = {},
      {
        sent = [],
        request,
        batch,
        asBytes = false,
        ...listener
      }: Partial<ExecutionListener> & {
        readonly sent?: (FileValue | StoredFile)[];
        readonly request?: RequestHead;
        readonly batch?: BatchPost;
        readonly asBytes?: boolean;
      } = {},
    ) {
      const ends: ExecutionEnd[] = [];
      const ended = Promise.withResolvers<ExecutionEnd>();
      const found = manifest.endpoints.find((each) => each.name === endpoint);
      const text = JSON.stringify(values);
      const json = asBytes ? { json: "", jsonBytes: Buffer.from(text) } : { json: text };
      const execution = worker.execute(
        {
          endpoint,
          kind: "api",
          taskId: "t",
          attempt: 1,
          timeoutMs: found?.timeoutMs ?? 0,
          abortGraceMs: found?.abortGraceMs,
          isCounted: found?.byKey?.concurrency !== undefined,
          arguments: { ...json, files: sent, ...(request && { request }) },
          stream: found?.stream,
          ...(batch && { batch }),
        },
        {
          ...listener,
          onEnd(end) {
            ends.push(end);
            ended.resolve(end);
          },
        },
      );
      return { execution, ends, ended: ended.promise };
    }

    group("with batches", () =>
      batchContract((endpoint, values, listener) => {
        const batch = new BatchPost(values.length);
        return values.map((each) => begin(endpoint, each, { ...listener, batch }));
      }),
    );

    const result = (value: unknown) => ({
      kind: "result",
      result: { json: JSON.stringify(value), files: [] },
    });

    /** Its end, and that there is no second one after the worker's. */
    async function endOf({ ends, ended }: ReturnType<typeof begin>): Promise<ExecutionEnd> {
      const end = await ended;
      await processEnded(worker);
      expect(ends).toEqual([end]);
      return end;
    }

    test("tells its manifest, and has slots, memory and processor time from then on", async () => {
      expect(manifest.name).toBe("contract");
      const echo = manifest.endpoints.find((each) => each.name === "echo");
      expect(worker.loaded && echo && worker.freeSlots(echo)).toBe(64);
      expect([worker.used, worker.stopping, worker.ended]).toEqual([false, false, false]);
      await expect.poll(() => worker.usage().memoryBytes).toBeGreaterThan(5 * MEBIBYTE);
      expect(worker.usage().cpuMs).toBeGreaterThan(0);
    });

    test("has the most memory that it held while a call ran", async () => {
      await ready({ limits: DEFAULT_LIMITS });
      const { execution, ended } = begin("echo", { value: 1 });
      await ended;
      // What is not Linux tells nothing of it.
      const isTold = process.platform === "linux";
      const { peakMemoryBytes = 0 } = execution;
      expect(peakMemoryBytes > 5 * MEBIBYTE).toBe(isTold);
      expect(peakMemoryBytes).toBeLessThan(DEFAULT_LIMITS.memoryBytes);
    });

    test("that refuses its service says why, and goes by itself", async () => {
      const refusing = await start("refused/throws-at-import.ts");
      started.push(refusing);
      await expect(refusing.load()).rejects.toThrow(/throws-at-import/);
      expect(await refusing.exited).toEqual({
        cause: "crashed",
        message: "it exited with code 1",
      });
    });

    test("that exits while it loads refuses its service", async () => {
      const leaving = await start("refused/exits.ts");
      started.push(leaving);
      await expect(leaving.load()).rejects.toThrow(/exited with code/);
      expect((await leaving.exited).message).toMatch(/exited with code/);
    });

    test("takes no calls before its service says that it is ready", async () => {
      await ready({}, "serve/readiness.ts");
      const said = ["the model is warming up", false, true];
      expect(await begin("said").ended).toEqual(result(said));
    });

    test("gets no calls while its service says that it is not ready", async () => {
      const lines: string[] = [];
      const onOutput = (line: string): void => void lines.push(line);
      const waiting = await ready({ onOutput }, "serve/readiness.ts");
      await begin("tire", { times: 2 }).ended;
      const said = manifest.endpoints.find(({ name }) => name === "said");
      const slots = () => said && waiting.freeSlots(said);
      await expect.poll(slots, { timeout: 20_000 }).toBe(0);
      expect(waiting.isBlocked).toBe(true);
      await expect.poll(slots, { timeout: 20_000 }).toBe(100);
      expect(lines.map((line) => line.replace(/^worker \S+ /, ""))).toEqual([
        "gets no calls: ready said it is tired",
        "is ready again",
      ]);
    });

    test("whose service cannot say whether it is ready says why, and goes by itself", async () => {
      const refusing = await start("refused/ready-throws.ts");
      started.push(refusing);
      await expect(refusing.load()).rejects.toThrow(/the index is torn/);
      expect((await refusing.exited).message).toBe("it exited with code 1");
    });

    test("that is killed while it loads is told as lost", async () => {
      const killed = await start(SERVICE);
      started.push(killed);
      const loading = killed.load();
      killed.kill("the test wants it");
      await expect(loading).rejects.toThrow(/ended while it loaded .*: the test wants it/);
    });

    test("runs 64 calls at a time, and gives each its own result", async () => {
      const calls = Array.from({ length: 64 }, (_, number) => begin("gather", { number }));
      expect(worker.busyness).toBe(64);
      const ends = await Promise.all(calls.map(({ ended }) => ended));
      expect(ends).toEqual(calls.map((_, number) => result(number)));
      expect([worker.busyness, worker.used]).toEqual([0, true]);
    });

    test("takes arguments whose JSON is bytes", async () => {
      const value = "ä".repeat(50_000);
      for (const { ended } of [1, 2].map(() => begin("echo", { value }, { asBytes: true }))) {
        expect(await ended).toEqual(result(value));
      }
    });

    test("shows a function its request, and tells what it says of its answer", async () => {
      const request = {
        ...{ method: "POST", url: "http://a.example/told?q=%C3%BC", client: "192.0.2.1" },
        headers: [["x-tenant", "acme"]] as const,
      };
      const end = await begin("told", {}, { request }).ended;
      const headers = [
        ["x-model", "v2"],
        ["set-cookie", "a=b"],
        ["set-cookie", "c=d"],
      ];
      expect(end).toEqual({
        kind: "result",
        result: {
          json: JSON.stringify(["POST", "ü", "acme", "192.0.2.1"]),
          files: [],
          response: { status: 201, headers: expect.arrayContaining(headers) },
        },
      });
    });

    test.each([1, MAX_INLINE_FILE_BYTES, MAX_INLINE_FILE_BYTES + 1])(
      "takes and gives a file of %d bytes",
      async (bytes) => {
        const facts = { contentType: "a/b", filename: "f" };
        const kept = await files.api.keep(facts, once(Buffer.alloc(bytes, 3)));
        const given = begin("size", { file: 0 }, { sent: [kept] });
        expect(await given.ended).toEqual(result({ bytes, sum: 3 * bytes }));
        const made = await begin("make", { bytes }).ended;
        expect(made).toMatchObject({ kind: "result", result: { json: "0" } });
        const [file] = made.kind === "result" ? made.result.files : [];
        expect(await bytesOf(file)).toEqual(Buffer.alloc(bytes, 7));
        expect(file && "blob" in file).toBe(bytes > MAX_INLINE_FILE_BYTES);
      },
    );

    test("aborts a call that listens, and its neighbour goes on", async () => {
      const listening = begin("listen");
      const neighbour = begin("linger");
      listening.execution.abort("cancelled");
      expect(await listening.ended).toEqual({ kind: "aborted", reason: "cancelled" });
      expect(neighbour.ends).toEqual([]);
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
    });

    const unheard = (endpoint: string, reason: string, graceMs = 200): string =>
      `endpoint ${endpoint} went on ${graceMs} ms after its abort (${reason})`;

    /** The slots of an endpoint that are free. */
    const free = (endpoint: string): number | undefined => {
      const found = manifest.endpoints.find(({ name }) => name === endpoint);
      return found && worker.freeSlots(found);
    };

    test("is killed a grace period after an abort that a call ignores which is alone in it", async () => {
      await ready({ graceMs: 200 });
      const aborted = begin("linger");
      aborted.execution.abort("timeout");
      expect(await endOf(aborted)).toMatchObject({ kind: "aborted", reason: "timeout" });
      expect(await processEnded(worker)).toBe(unheard("linger", "timeout"));
    });

    test("that does not answer is killed for an abort, and what ran beside it is displaced", async () => {
      await ready({ graceMs: 200 });
      const neighbour = begin("linger");
      const aborted = begin("spin");
      aborted.execution.abort("timeout");
      expect(await endOf(aborted)).toMatchObject({ kind: "aborted", reason: "timeout" });
      const message = unheard("spin", "timeout");
      expect(await endOf(neighbour)).toEqual({ kind: "displaced", message });
    });

    test("takes no more calls beside one that ignores its abort, and ends when the others have", async () => {
      await ready({ graceMs: DRAIN_GRACE_MS });
      const neighbour = begin("listen");
      const aborted = begin("linger");
      aborted.execution.abort("cancelled");
      expect(await aborted.ended).toEqual({ kind: "aborted", reason: "cancelled" });
      await expect.poll(() => free("echo")).toBe(0);
      expect([neighbour.ends, worker.ended]).toEqual([[], false]);
      neighbour.execution.abort("cancelled");
      expect(await endOf(neighbour)).toEqual({ kind: "aborted", reason: "cancelled" });
      expect(await processEnded(worker)).toBe(unheard("linger", "cancelled", DRAIN_GRACE_MS));
      expect(aborted.ends).toHaveLength(1);
    });

    test.each(["deaf", "counted"])("takes calls again after one that is %s", async (which) => {
      await ready({ graceMs: DRAIN_GRACE_MS });
      const neighbour = begin("linger");
      const begun = Promise.withResolvers<void>();
      const aborted = begin(which, {}, { onLog: () => begun.resolve() });
      await begun.promise;
      aborted.execution.abort("timeout");
      await expect.poll(() => free("echo")).toBe(0);
      expect(aborted.ends).toHaveLength(which === "counted" ? 0 : 1);
      expect(await begin("let_go").ended).toMatchObject({ kind: "result" });
      expect(await aborted.ended).toMatchObject({ kind: "aborted", reason: "timeout" });
      await expect.poll(() => free("echo")).toBe(64);
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      expect([aborted.ends.length, neighbour.ends, worker.ended]).toEqual([1, [], false]);
    });

    test("is ended when a call has ignored for its grace that its caller has left", async () => {
      await ready({ graceMs: 200 });
      const neighbour = begin("linger");
      const left = begin("outstay");
      left.execution.abort("caller_gone");
      expect(await left.ended).toEqual({ kind: "aborted", reason: "caller_gone" });
      const message = unheard("outstay", "caller_gone", 300);
      expect(await endOf(neighbour)).toEqual({ kind: "displaced", message });
    });

    test("goes on with a call whose caller has left, and with those beside it", async () => {
      await ready({ graceMs: 1 });
      const left = begin("linger");
      left.execution.abort("caller_gone");
      const untilMs = performance.now() + 50;
      while (performance.now() < untilMs) {
        expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      }
      expect(left.ends).toEqual([]);
      expect(worker.ended).toBe(false);
    });

    test("that sends half a message and is silent ends with its call's time", async () => {
      await ready({ graceMs: 200 });
      const neighbour = begin("linger");
      expect(await endOf(begin("half"))).toMatchObject({ kind: "aborted", reason: "timeout" });
      expect(await endOf(neighbour)).toMatchObject({ kind: "displaced" });
    });

    test("is counted before its call ends", async () => {
      const order: string[] = [];
      const take = (): undefined => {
        order.push("metrics");
      };
      await ready({ countsOf: () => ({ take, end() {} }) });
      await begin("count").ended.then(() => order.push("end"));
      expect(order).toEqual(["metrics", "end"]);
    });

    test("tells what a call used, all of it before its end", async () => {
      const told: object[] = [];
      const used = begin("use", {}, { onUsage: (units) => told.push(units) });
      expect(await used.ended).toEqual(result("used"));
      expect(told).toEqual([{ tokens: 5, pages: 0.5 }]);
    });

    test("is heard as often as its limits say, and told how much was dropped", async () => {
      const lines: string[] = [];
      await ready({
        limits: { ...DEFAULT_LIMITS, logLinesPerSecond: 2 },
        onOutput: (line, stream) => stream === "node" && lines.push(line),
      });
      let heard = 0;
      const onLog = (): void => {
        heard += 1;
      };
      expect(await begin("chat", { lines: 500 }, { onLog }).ended).toEqual(result("said"));
      expect(heard).toBeGreaterThanOrEqual(20);
      expect(heard).toBeLessThan(200);
      await expect.poll(() => lines.join()).toMatch(/^\d+ lines dropped: the limit is 2 a second/);
    });

    test.each(["blocks", "exits"])(
      "has told what a call said when that %s at once",
      async (how) => {
        await ready({ graceMs: 100 });
        const said: string[] = [];
        const heard = Promise.withResolvers<void>();
        const call = begin(
          "last_words",
          { how },
          {
            onLog({ message }) {
              said.push(message);
              if (said.length === 3) {
                heard.resolve();
              }
            },
          },
        );
        if (how === "blocks") {
          await heard.promise;
          call.execution.abort("timeout");
        }
        await endOf(call);
        expect(said).toEqual(["one", "two", "three"]);
      },
    );

    test.each(Object.entries(BAD_FRAMES))("that sends %s ends alone", async ([, [bad, said]]) => {
      const neighbour = begin("linger");
      const ended = await endOf(begin("forge", forged(bad())));
      expect(ended).toEqual({
        kind: "lost",
        message: expect.stringMatching(said),
        alone: false,
        outOfMemory: false,
      });
      expect(await neighbour.ended).toEqual(ended);
    });

    test("that speaks no version of the protocol that the node has ends, with what to do", async () => {
      const hello = { type: "hello", protocols: [1, 9], language: "x", version: "1", sdk: "2" };
      await endOf(begin("forge", forged(frame(hello))));
      expect(await processEnded(worker)).toBe(
        "the host of x 1 (2) speaks version 1, 9 of the host protocol, and this node version 2: " +
          "install the version that belongs to it",
      );
    });

    test("that sends two results of one call ends, and the first one stands", async () => {
      const twice = results({ id: 1, result: "1" }, { id: 1, result: "2" });
      expect(await endOf(begin("forge", forged(twice)))).toEqual(result(1));
      expect(await processEnded(worker)).toBe(notUnderWay(1));
    });

    test("that sends a second result while the first one is read ends", async () => {
      const onDisk = { json: "0", files: [{ contentType: "a/b", size: 1 }] };
      begin("forge", forged(results({ id: 1, result: onDisk }), results({ id: 1, result: "2" })));
      expect(await processEnded(worker)).toBe(notUnderWay(1));
    });

    test("that sends a result after the end of its call ends", async () => {
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      const call = begin("forge", forged(results({ id: 1, result: '"late"' })));
      expect(await endOf(call)).toEqual({
        kind: "lost",
        message: notUnderWay(1),
        alone: true,
        outOfMemory: false,
      });
    });

    test("cannot end a call of another worker, whose calls have the same ids", async () => {
      const honest = worker;
      const echo = begin("echo", { value: "own" });
      const listening = begin("listen");
      const hostile = await ready();
      const own = begin("forge", forged(results({ id: 1, result: "1" }, { id: 2, result: "2" })));
      expect(await endOf(own)).toEqual(result(1));
      expect(await processEnded(hostile)).toBe(notUnderWay(2));
      expect(await echo.ended).toEqual(result("own"));
      expect([listening.ends, honest.ended, honest.busyness]).toEqual([[], false, 1]);
    });

    group("with streams", () => streamContract({ begin, endOf }));

    test("that exits while it is idle says so", async () => {
      expect(await begin("exit_soon").ended).toEqual(result("soon"));
      expect(await processEnded(worker)).toBe("it exited with code 3");
    });

    test("displaces calls that begin after its end, and uses nothing", async () => {
      await begin("exit_soon").ended;
      await worker.exited;
      const late = {
        kind: "displaced",
        message: "the worker had ended before it began",
        unbegun: true,
      };
      expect(await begin("echo").ended).toEqual(late);
      expect(worker.usage().memoryBytes).toBe(0);
    });

    test("is known as crashed, killed or unresponsive by its end", async () => {
      await begin("exit_soon").ended;
      expect(await worker.exited).toHaveProperty("cause", "crashed");
      await ready();
      begin("forge", forged(announced(0)));
      expect(await worker.exited).toHaveProperty("cause", "killed");
      await ready({ graceMs: 200 });
      begin("linger").execution.abort("timeout");
      expect(await worker.exited).toHaveProperty("cause", "unresponsive");
    });

    test("that exits with calls under way loses each of them once", async () => {
      const neighbour = begin("linger");
      const lost = {
        kind: "lost",
        message: "it exited with code 3",
        alone: false,
        outOfMemory: false,
      };
      expect(await endOf(begin("exit"))).toEqual(lost);
      expect(await endOf(neighbour)).toEqual(lost);
    });

    test("that exits at an abort ends the call as aborted", async () => {
      const call = begin("exit_when_aborted");
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      call.execution.abort("cancelled");
      expect(await endOf(call)).toEqual({ kind: "aborted", reason: "cancelled" });
    });

    test("that exits while it stops loses the call that it had left", async () => {
      const call = begin("exit_when_aborted");
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      const stopping = worker.stop(PATIENT_GRACE_MS);
      expect(worker.loaded).toBe(false);
      expect(await endOf(call)).toEqual({ kind: "aborted", reason: "shutdown" });
      await stopping;
    });

    test("that stops finishes what has a slot, and exits by itself", async () => {
      const echo = manifest.endpoints.find((each) => each.name === "echo");
      if (echo === undefined) {
        throw new Error("the service has no echo");
      }
      worker.capacity.take(echo);
      const stopping = worker.stop();
      expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
      worker.release(echo);
      await stopping;
      expect(await processEnded(worker)).toBe("it exited with code 0");
    });

    test("excuses no worker from what it does not test", async () => {
      expect([...excused.keys()]).toEqual([]);
    });
  });
}
