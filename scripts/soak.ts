/**
 * `npm run soak`: holds a platform under mixed load at a steady rate, and follows the memory of
 * its node, without its workers. It has to be flat: what grows with the age of a node ends it.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ExamplePlatform } from "./example-platform.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run soak -- [options]

Runs the platform with both examples under mixed load (calls with JSON and files, tasks
that are submitted, watched, read and cancelled, lists, metrics, wrong requests), and
writes the memory of the node each minute. After a quarter of the time and in the end it
collects the garbage; ends with 1 if the heap that is left has grown, or a call failed.

Options:
  --minutes <n>  how long (default: 120)
  --rate <n>     calls per second (default: 40)
  --help         shows this help
`;

const MINUTE_MS = 60_000;
const SAMPLE_MS = 5_000;
const MIN_MINUTES = 4;
/** What may be left of the heap in the end, beyond what was left after a quarter of the time. */
const MAX_GROWTH = 0.05;
const MIB = 2 ** 20;
/** Calls under way; beyond them the platform is slower than the rate, and calls are left out. */
const MAX_UNDER_WAY = 64;
/** Articles of a task. */
const BATCH = 20;

type Call = (platform: ExamplePlatform, number: number) => Promise<void>;

/** Reads an answer to its end. Throws if its status is another. */
async function expectStatus(answer: Promise<Response>, status = 200): Promise<void> {
  const response = await answer;
  const text = await response.text();
  if (response.status !== status) {
    throw new Error(`${response.url} answered ${response.status}: ${text.slice(0, 300)}`);
  }
}

/** Called in turns. */
const CALLS: readonly Call[] = [
  (platform, number) =>
    expectStatus(platform.summarizer("/summarize", { text: platform.text(number), sentences: 2 })),
  (platform, number) => expectStatus(platform.classify(number)),
  (platform) =>
    expectStatus(platform.summarizer("/summarize", { text: "A sentence.", sentences: 0 }), 400),
  async (platform) => {
    const taskId = await platform.submitBatch(BATCH);
    await expectStatus(platform.summarizer(`/summarize_batch/get?task_id=${taskId}&wait=30`));
    await expectStatus(platform.summarizer(`/summarize_batch/status?task_id=${taskId}`));
  },
  async (platform) => {
    const taskId = await platform.submitBatch(BATCH);
    await expectStatus(platform.summarizer(`/summarize_batch/events?task_id=${taskId}`));
  },
  async (platform) => {
    const taskId = await platform.submitBatch(BATCH, "?delay=600");
    const method = "PUT";
    const path = `/summarize_batch/cancel?task_id=${taskId}`;
    await expectStatus(platform.summarizer(path, undefined, { method }));
  },
  (platform) => expectStatus(platform.asked("/api/v1/deployments?organization=acme")),
  (platform) => expectStatus(platform.asked("/api/v1/organizations/acme/tasks?page_size=20")),
  (platform) => expectStatus(platform.asked("/api/v1/metrics?organization=acme")),
  (platform) => expectStatus(platform.asked("/no-such-path"), 404),
  (platform) => expectStatus(fetch(`${platform.url}/readyz`)),
  async (platform) => void (await platform.metrics()),
];

/** Calls at a steady rate until it is stopped. */
class Load {
  calls = 0;
  failed = 0;
  left = 0;
  /** The first few, for the report. */
  readonly errors = new Set<string>();
  readonly #platform: ExamplePlatform;
  readonly #underWay = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #number = 0;

  constructor(platform: ExamplePlatform, perSecond: number) {
    this.#platform = platform;
    this.#timer = setInterval(() => this.#next(), 1_000 / perSecond);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#underWay);
  }

  #next(): void {
    if (this.#underWay.size >= MAX_UNDER_WAY) {
      this.left += 1;
      return;
    }
    const call = CALLS[this.#number % CALLS.length] as Call;
    this.#number += 1;
    this.calls += 1;
    const done = call(this.#platform, this.#number)
      .catch((err: unknown) => {
        this.failed += 1;
        if (this.errors.size < 5) {
          this.errors.add(err instanceof Error ? err.message : String(err));
        }
      })
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }
}

async function residentMib(platform: ExamplePlatform): Promise<number> {
  const [, bytes = "NaN"] =
    /^process_resident_memory_bytes(?:\{.*\})? (\S+)/m.exec(await platform.metrics()) ?? [];
  return Number(bytes) / MIB;
}

/** Answers the live heap after a quarter of the time and in the end, in MiB. */
async function soak(platform: ExamplePlatform, minutes: number, load: Load) {
  const liveMib = async (): Promise<number> => (await platform.inspector.liveHeapBytes()) / MIB;
  let early = 0;
  for (let minute = 1; minute <= minutes; minute += 1) {
    const { calls, failed } = load;
    const samples: number[] = [];
    const untilMs = performance.now() + MINUTE_MS;
    while (performance.now() < untilMs) {
      await sleep(SAMPLE_MS);
      samples.push(await residentMib(platform));
    }
    process.stdout.write(
      `minute ${minute}: ${median(samples).toFixed(0)} MiB resident, ` +
        `${load.calls - calls} calls, ${load.failed - failed} failed\n`,
    );
    if (minute === Math.floor(minutes / 4)) {
      early = await liveMib();
      process.stdout.write(`live heap ${early.toFixed(1)} MiB\n`);
    }
  }
  return { early, late: await liveMib() };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Undefined if help was requested. Throws a `UsageError`. */
function readOptions(): { readonly minutes: number; readonly rate: number } | undefined {
  const { values } = readArguments({
    options: {
      minutes: { type: "string", default: "120" },
      rate: { type: "string", default: "40" },
      help: { type: "boolean", default: false },
    },
  });
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
  if (!Number.isInteger(minutes) || minutes < MIN_MINUTES) {
    throw new UsageError(`--minutes must be a whole number, at least ${MIN_MINUTES}`);
  }
  if (!(rate > 0 && rate <= 1_000)) {
    throw new UsageError("--rate must be a number up to 1000");
  }
  return values.help ? undefined : { minutes, rate };
}

/** Resolves with the exit code. */
async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tessera-soak-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, "data");
  const platform = stack.use(await ExamplePlatform.start(data));
  const load = new Load(platform, options.rate);
  const { early, late } = await soak(platform, options.minutes, load).finally(() => load.stop());
  const databaseMib = statSync(join(data, "tessera.db")).size / MIB;
  process.stdout.write(
    `live heap ${late.toFixed(1)} MiB, database ${databaseMib.toFixed(0)} MiB\n` +
      `${load.calls} calls, ${load.failed} failed, ${load.left} left out\n` +
      [...load.errors].map((each) => `  ${each}\n`).join(""),
  );
  return late <= early * (1 + MAX_GROWTH) && load.failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  process.stderr.write(`soak: ${err instanceof Error ? err.message : err}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
