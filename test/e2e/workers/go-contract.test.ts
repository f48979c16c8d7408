/** A worker in Go, from its generated stubs, does what every worker does, as far as it can. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateStubs } from "../../../scripts/generate-clients.ts";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import type { ExecutionEnd } from "../../../src/pool/calls/execution.ts";
import type { RemoteWorker } from "../../../src/pool/remote/remote-worker.ts";
import { leftOut } from "../../needed.ts";
import { NodeEnd, REMOTE_SKIPS } from "../../pool/remote-workers.ts";
import { type StartWorker, workerContract } from "../../pool/worker-contract.ts";
import { servicePath } from "../../worker/process.ts";
import { goMissing, runGo } from "../clients/go-environment.ts";
import { ROOT } from "../clients/python-environment.ts";

/** Cold caches mean that Go compiles gRPC. */
const BUILD_MS = 400_000;
const SILENCE_MS = 3_000;
const LEAVE_WITHIN_MS = 10_000;

const skipped = leftOut(goMissing);
const exits = new WeakMap<object, Promise<string>>();
let folder: string;
let program: string;
let manifest: string;
let built: BuiltArtifact;
const children: Promise<string>[] = [];

beforeAll(async () => {
  if (skipped) {
    return;
  }
  folder = mkdtempSync(join(tmpdir(), "tessera-go-contract-"));
  const source = join(folder, "source");
  for (const name of ["go.mod", "go.sum"]) {
    cpSync(join(ROOT, "examples/worker-go", name), join(source, name));
  }
  cpSync(join(import.meta.dirname, "go-contract/main.go"), join(source, "main.go"));
  await generateStubs("go", join(folder, "go"));
  cpSync(join(folder, "go/gen/tesserav1"), join(source, "tesserav1"), { recursive: true });
  program = join(folder, "program");
  await runGo("go", ["build", "-mod=readonly", "-o", program, "."], { cwd: source });
  built = await buildArtifact(servicePath("serve/contract.ts"));
  manifest = join(folder, "manifest.json");
  writeFileSync(manifest, JSON.stringify(built.index.service));
}, BUILD_MS);

afterAll(async () => {
  await Promise.all(children);
  rmSync(folder, { recursive: true, force: true });
});

const start: StartWorker = async (_fixture, options) => {
  const node = await NodeEnd.start(built, { ...options, silenceMs: SILENCE_MS });
  const child = spawn(program, {
    env: { TESSERA_ADDRESS: new URL(node.url).host, TESSERA_MANIFEST: manifest },
    stdio: ["ignore", "inherit", "ignore"],
  });
  const exited = once(child, "exit").then(
    ([code, signal]) => `it exited with ${signal ?? `code ${code}`}`,
  );
  const worker = await node.ready;
  exits.set(worker, exited);
  pids.set(worker, child.pid ?? 0);
  void worker.exited.then(() => {
    const kill = setTimeout(() => child.kill("SIGKILL"), LEAVE_WITHIN_MS);
    void exited.then(() => clearTimeout(kill));
  });
  children.push(exited.finally(() => worker.exited.then(() => node[Symbol.asyncDispose]())));
  return worker;
};
const pids = new WeakMap<object, number>();
const processEnded = (worker: object) => exits.get(worker) as Promise<string>;

const [REFUSED, ...OTHERS] = REMOTE_SKIPS;

workerContract("a worker in Go", start, {
  skipped,
  processEnded,
  skip: [
    { reason: "it loads nothing", tests: REFUSED?.tests ?? [] },
    ...OTHERS,
    {
      reason: "it has no host process, whose channel a function could write to",
      tests: [
        "that sends half a message and is silent ends with its call's time",
        "that sends %s ends alone",
        "that speaks no version of the protocol that the node has ends, with what to do",
        "that sends two results of one call ends, and the first one stands",
        "that sends a second result while the first one is read ends",
        "that sends a result after the end of its call ends",
        "cannot end a call of another worker, whose calls have the same ids",
      ],
    },
    {
      reason: "it speaks Work alone: reports, batches and streams are optional",
      tests: [
        "with batches",
        "with streams",
        "is counted before its call ends",
        "tells what a call used, all of it before its end",
        "is heard as often as its limits say, and told how much was dropped",
        "has told what a call said when that %s at once",
      ],
    },
    {
      reason: "its limits are its own",
      tests: ["has the most memory that it held while a call ran"],
    },
    {
      reason: "its function takes no head",
      tests: ["shows a function its request, and tells what it says of its answer"],
    },
    {
      reason: "nothing at its machine kills it; the tests below have what the node does",
      tests: [
        "is killed a grace period after an abort that a call ignores which is alone in it",
        "that does not answer is killed for an abort, and what ran beside it is displaced",
        "takes no more calls beside one that ignores its abort, and ends when the others have",
        "takes calls again after one that is %s",
        "is ended when a call has ignored for its grace that its caller has left",
        "that exits with calls under way loses each of them once",
      ],
    },
  ],
});

describe.skipIf(skipped)(`a worker in Go and its node${skipped}`, () => {
  /** Begins a call; of what ends twice, the test hears twice. */
  function begin(worker: RemoteWorker, endpoint: string, timeoutMs = 60_000) {
    const ends: ExecutionEnd[] = [];
    const { promise: ended, resolve } = Promise.withResolvers<ExecutionEnd>();
    const call = { endpoint, kind: "api", taskId: "t", attempt: 1, timeoutMs } as const;
    const execution = worker.execute(
      { ...call, arguments: { json: '{"value":1}', files: [] } },
      {
        onEnd(end) {
          ends.push(end);
          resolve(end);
        },
      },
    );
    return { execution, ends, ended };
  }
  const joined = async (graceMs?: number) =>
    (await start("", graceMs === undefined ? {} : { graceMs })) as RemoteWorker;

  it("end a call at its time, and its neighbours go on", async () => {
    const worker = await joined();
    const neighbour = begin(worker, "linger");
    expect(await begin(worker, "listen", 200).ended).toEqual({
      kind: "aborted",
      reason: "timeout",
    });
    expect(neighbour.ends).toEqual([]);
    expect(await begin(worker, "echo").ended).toMatchObject({ kind: "result" });
    worker.kill("the test is over");
  });

  it("end each call once when it ignores an abort: the others are displaced", async () => {
    const worker = await joined(100);
    const [ignoring, neighbour] = [begin(worker, "linger"), begin(worker, "linger")];
    ignoring.execution.abort("cancelled");
    expect(await ignoring.ended).toEqual({ kind: "aborted", reason: "cancelled" });
    expect(await neighbour.ended).toMatchObject({ kind: "displaced" });
    expect(await processEnded(worker)).toBe("it exited with code 1");
    expect([ignoring.ends.length, neighbour.ends.length]).toEqual([1, 1]);
  });

  it("lose each call once when it crashes, after its silence", async () => {
    const worker = await joined();
    const calls = [begin(worker, "linger"), begin(worker, "exit")];
    const beganMs = performance.now();
    const lost = { kind: "cut_off", message: "nothing was heard of it for 3 s" };
    expect(await Promise.all(calls.map(({ ended }) => ended))).toEqual([lost, lost]);
    expect(performance.now() - beganMs).toBeGreaterThan(SILENCE_MS - 1_000);
    expect(await processEnded(worker)).toBe("it exited with code 3");
    expect(calls.map(({ ends }) => ends.length)).toEqual([1, 1]);
  });

  it("finish what is under way when it is asked to leave", async () => {
    const worker = await joined();
    const listen = built.index.service.endpoints.find(({ name }) => name === "listen");
    if (listen === undefined) {
      throw new Error("the service has no listen");
    }
    worker.capacity.take(listen);
    const call = begin(worker, "listen");
    expect(await begin(worker, "echo").ended).toMatchObject({ kind: "result" });
    process.kill(pids.get(worker) ?? 0, "SIGTERM");
    await expect.poll(() => worker.stopping).toBe(true);
    expect([worker.ended, call.ends]).toEqual([false, []]);
    call.execution.abort("cancelled");
    expect(await call.ended).toEqual({ kind: "aborted", reason: "cancelled" });
    worker.release(listen);
    expect(await worker.exited).toHaveProperty("message", "it ended");
    expect(await processEnded(worker)).toBe("it exited with code 0");
  });
});
