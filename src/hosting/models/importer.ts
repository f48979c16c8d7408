/**
 * The importer: does imports of models that wait in the database, a few at a time. Of all nodes,
 * the one that has claimed an import does it, and the claim is renewed with each report. A node
 * that stops gives its imports up; those of one that died are claimed when their claims have ended.
 */
import { type KeyRing, modelTokenContext } from "../../auth/keys.ts";
import { SharedBound } from "../../collections/shared-bound.ts";
import { toProblem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { BlobStore } from "../../storage/blobs.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import type { ModelImport, ModelStorage } from "../../storage/hosting/models.ts";
import { Backoff } from "../../time/backoff.ts";
import { Timer } from "../../time/timer.ts";
import { ImportRun } from "./import-run.ts";
import { type ModelSource, type PinnedSource, pinSource } from "./source.ts";

/** Imports that one node does at a time. */
const MAX_PARALLEL_IMPORTS = 4;
/** Interval at which a node that has room looks for imports, once for all that it may do. */
const IMPORT_POLL_INTERVAL_MS = 1_000;
/** Interval of reports: what a killed node has stored since the last one is fetched again. */
const IMPORT_REPORT_INTERVAL_MS = 1_000;
/** How long a run has an import for itself after a report; then its node is taken for dead. */
const IMPORT_CLAIM_MS = 20_000;
/** Times that a run asks a source that does not answer what it has. */
const MAX_PIN_ATTEMPTS = 8;
/** Pause before a source is asked again; it doubles. */
const PIN_RETRY_PAUSE_MS = 500;
/** Longest pause before a source is asked again. */
const MAX_PIN_RETRY_PAUSE_MS = 15_000;
/** Reports that the speed is measured over. */
const MAX_SPEED_SAMPLES = 10;

interface ImporterOptions {
  readonly hosting: ModelStorage & ArtifactFiles;
  readonly blobs: BlobStore;
  readonly sources: readonly ModelSource[];
  readonly keys: Pick<KeyRing, "unseal">;
  /** What an organization may store, in bytes. */
  readonly maxBytes: number;
  readonly now: () => number;
  readonly newId: () => string;
  readonly log: Log;
  /** How long a claim lasts, in milliseconds. Default: 20 s. */
  readonly claimMs?: number;
}

/** Starts to import; dispose of the result to give up what is under way. */
export function startImporter(options: ImporterOptions): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;
  const failed = (err: unknown): void =>
    options.log.error({ err }, "models that wait to be imported could not be looked for");
  const slots = new ImportSlots();
  const runs = new Set<Promise<void>>();
  const look = async (): Promise<void> => {
    while (runs.size < MAX_PARALLEL_IMPORTS && !signal.aborted) {
      const job = await claimNext(options, slots);
      if (job === undefined) {
        return;
      }
      const run: Promise<void> = importFrom(job, options, signal, slots)
        .catch(failed)
        .finally(() => runs.delete(run));
      runs.add(run);
    }
  };
  const timer = new Timer(IMPORT_POLL_INTERVAL_MS, look, failed);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await timer[Symbol.asyncDispose]();
      await Promise.all(runs);
    },
  };
}

/** Does all imports that wait, one after the other. */
export async function importWaiting(options: ImporterOptions, signal: AbortSignal): Promise<void> {
  const slots = new ImportSlots();
  await importFrom(await claimNext(options, slots), options, signal, slots);
}

/** Does this import, and those that wait and have a slot after it. */
async function importFrom(
  first: ClaimedImport | undefined,
  options: ImporterOptions,
  signal: AbortSignal,
  slots: ImportSlots,
): Promise<void> {
  const { claimMs = IMPORT_CLAIM_MS } = options;
  let next = first;
  while (next !== undefined) {
    const { job, claim } = next;
    try {
      await importOne(job, { ...options, claimMs, claim, signal });
    } finally {
      slots.give(job);
    }
    next = signal.aborted ? undefined : await claimNext(options, slots);
  }
}

interface ClaimedImport {
  readonly job: ModelImport;
  readonly claim: string;
}

/** Claims the next import that waits and has a slot. */
async function claimNext(
  { hosting, now, newId, claimMs = IMPORT_CLAIM_MS }: ImporterOptions,
  slots: ImportSlots,
): Promise<ClaimedImport | undefined> {
  const claim = newId();
  const job = await slots.take((without) =>
    hosting.takeImport({ claim, without, nowMs: now(), ttlMs: claimMs }),
  );
  return job && { job, claim };
}

/** The imports of a node, of which those of one organization leave room for others. */
class ImportSlots {
  readonly #bound = new SharedBound(MAX_PARALLEL_IMPORTS);
  #taking: Promise<unknown> = Promise.resolve();

  /** One takes at a time: who has their share is known when the next one looks. */
  take(
    takeImport: (without: readonly string[]) => Promise<ModelImport | undefined>,
  ): Promise<ModelImport | undefined> {
    const taken = this.#taking.then(async () => {
      const job = await takeImport(this.#bound.full);
      if (job !== undefined) {
        this.#bound.take(job.organizationId);
      }
      return job;
    });
    this.#taking = taken.catch(() => undefined);
    return taken;
  }

  give({ organizationId }: ModelImport): void {
    this.#bound.give(organizationId);
  }
}

/** Names a version, and the run that has it. */
type Held = Omit<Parameters<ModelStorage["failImport"]>[0], "reason">;

interface OneImport extends ImporterOptions {
  readonly claimMs: number;
  readonly claim: string;
  /** The node stops. */
  readonly signal: AbortSignal;
}

async function importOne(job: ModelImport, options: OneImport): Promise<void> {
  const { hosting, log, claim, signal } = options;
  const { organizationId, model, version } = job;
  const held = { organizationId, model, version, claim };
  const lost = new AbortController();
  const reporter = new Reporter(held, options, () => lost.abort());
  try {
    await fetchModel(job, { ...options, signal: AbortSignal.any([signal, lost.signal]) }, reporter);
    log.info({ model, version }, "a model was imported");
  } catch (err) {
    await reporter.stop();
    if (lost.signal.aborted) {
      log.warn(
        { model, version },
        "an import was given up: it was deleted, or another node has it",
      );
    } else if (signal.aborted) {
      await reporter.report(0);
    } else {
      const found = toProblem(err);
      log.warn({ err, model, version }, "a model could not be imported");
      await reporter.report(options.claimMs);
      await hosting.failImport({ ...held, reason: found.rawMessage });
    }
  } finally {
    await reporter.stop();
  }
}

async function fetchModel(job: ModelImport, options: OneImport, reporter: Reporter): Promise<void> {
  const { hosting, sources, keys, claim, signal } = options;
  const { organizationId, organization, model, version, pinned } = job;
  const token =
    job.sealedToken === undefined
      ? ""
      : keys.unseal(job.sealedToken, modelTokenContext(organizationId, model, pinned));
  const source = await pinPatiently(
    () => pinSource(sources, pinned, { organization, token, signal }),
    signal,
  );
  const run = new ImportRun({
    ...options,
    organizationId,
    source,
    stored: await hosting.listImported(job),
  });
  reporter.follow(run);
  const artifact = await run.fetchAll();
  await reporter.stop();
  await reporter.report(options.claimMs);
  signal.throwIfAborted();
  const finished = await hosting.finishImport({ organizationId, model, version, claim, artifact });
  if (finished.outcome !== "finished" && finished.outcome !== "lost") {
    throw new Error(`the files of an import are not as they were stored: ${finished.outcome}`);
  }
}

/** Pins a source that was there when the import was asked for, and may be away for a while. */
async function pinPatiently(
  pin: () => Promise<PinnedSource>,
  signal: AbortSignal,
): Promise<PinnedSource> {
  const backoff = new Backoff(PIN_RETRY_PAUSE_MS, MAX_PIN_RETRY_PAUSE_MS);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await pin();
    } catch (err) {
      signal.throwIfAborted();
      if (toProblem(err).reason !== "SOURCE_UNAVAILABLE" || attempt === MAX_PIN_ATTEMPTS) {
        throw err;
      }
      await backoff.pause(signal);
    }
  }
}

/** Reports a run to the database while it goes on. */
class Reporter {
  readonly #held: Held;
  readonly #options: OneImport;
  readonly #onLost: () => void;
  readonly #timer: Timer;
  readonly #samples: { readonly atMs: number; readonly bytes: number }[] = [];
  #run: ImportRun | undefined;

  constructor(held: Held, options: OneImport, onLost: () => void) {
    this.#held = held;
    this.#options = options;
    this.#onLost = onLost;
    this.#timer = new Timer(
      IMPORT_REPORT_INTERVAL_MS,
      () => this.report(options.claimMs),
      (err) => options.log.warn({ err }, "the progress of an import could not be stored"),
    );
  }

  follow(run: ImportRun): void {
    this.#run = run;
  }

  async stop(): Promise<void> {
    await this.#timer[Symbol.asyncDispose]();
  }

  /** Renews the claim for so long; 0 gives it up. */
  async report(ttlMs: number): Promise<void> {
    const { hosting, now } = this.#options;
    const bytesDone = this.#run?.bytesDone ?? 0;
    const stored = this.#run?.takeStored() ?? [];
    const nowMs = now();
    this.#samples.push({ atMs: nowMs, bytes: bytesDone });
    this.#samples.splice(0, Math.max(0, this.#samples.length - MAX_SPEED_SAMPLES));
    const [first = { atMs: nowMs, bytes: bytesDone }] = this.#samples;
    const bytesPerMs = (bytesDone - first.bytes) / (nowMs - first.atMs || 1);
    const bytesPerSecond = Math.max(0, Math.round(bytesPerMs * 1_000));
    try {
      const progress = { bytesDone, bytesPerSecond, stored };
      if (!(await hosting.reportImport({ ...this.#held, nowMs, ttlMs, ...progress }))) {
        this.#onLost();
      }
    } catch (err) {
      this.#run?.untake(stored);
      throw err;
    }
  }
}
