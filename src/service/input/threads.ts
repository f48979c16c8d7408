/**
 * A small pool of threads that read large JSON bodies and forms: a body within all bounds can
 * take a tenth of a second to be scanned, parsed and checked, and the serving thread
 * would answer nobody meanwhile. The threads start with the first such body.
 *
 * The bytes of a body move to a thread and back, with the verdict and the files that
 * were in it: objects would cost the serving thread as much to receive as to parse. Bodies wait in a bounded queue. A thread that takes too long is ended
 * with its body; the next body gets a new one.
 */
import { availableParallelism } from "node:os";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { type FieldViolation, problem, type Reason, shuttingDown } from "../../errors.ts";
import type { FormTexts } from "./form-fields.ts";
import type { Lifted } from "./lift.ts";
import type { CheckedFields, ReadEndpoint, ReadPayload } from "./object-reader.ts";
import type { ReadingJob, ReadingOutcome } from "./thread.ts";

/** Threads that read large bodies at most; one core is left to the serving thread. */
const MAX_READER_THREADS = 2;

/** Large bodies that may wait for a thread; further ones are refused with SERVER_BUSY. */
const MAX_WAITING_BODIES = 128;

/** How long a thread may take for one body; checks against schemas have a limit of their own. */
const READING_TIMEOUT_MS = 30_000;

/** Memory for the values of one body: a reader that needs more is ended. */
const MAX_READER_HEAP_MIB = 512;

/** The `retry-after` of bodies that are refused because others are being read. */
const READING_RETRY_AFTER_MS = 1_000;

export interface ReaderThreadsOptions {
  /** A thread failed, other than by taking too long. */
  onFailed(err: unknown): void;
  /** Default: 30 s. */
  readonly timeoutMs?: number;
  /** Default: as many as there are cores besides one, at most 2. */
  readonly size?: number;
  /** Default: 128. */
  readonly maxWaiting?: number;
}

interface Waiting {
  readonly job: ReadingJob;
  readonly resolve: (outcome: Succeeded) => void;
  readonly reject: (err: unknown) => void;
}

type Succeeded = Exclude<ReadingOutcome, { readonly reason: Reason } | { readonly defect: string }>;

export class ReaderThreads implements AsyncDisposable {
  readonly #options: ReaderThreadsOptions;
  readonly #size: number;
  readonly #queue: Waiting[] = [];
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();
  readonly #endpoints = new WeakMap<ReadEndpoint, string>();

  constructor(options: ReaderThreadsOptions) {
    this.#options = options;
    this.#size =
      options.size ?? Math.min(MAX_READER_THREADS, Math.max(1, availableParallelism() - 1));
  }

  /** Reads arguments; the data may have moved away then, and belong to nobody else. Rejects as `ObjectReader.read` throws; SERVER_BUSY when others are too many. */
  async read(endpoint: ReadEndpoint, data: Uint8Array, isNamed = false): Promise<ReadPayload> {
    const text = this.#textOf(endpoint);
    const outcome = await this.#read({ kind: "arguments", endpoint: text, isNamed, data });
    if (!("files" in outcome)) {
      throw new Error("a thread took arguments for a message");
    }
    return "json" in outcome
      ? outcome
      : { json: "", files: outcome.files, jsonBytes: outcome.data };
  }

  /** Reads the texts of a form. Rejects as `ObjectReader.readTexts` throws; else as `read`. */
  async readTexts(
    endpoint: ReadEndpoint,
    form: { readonly texts: FormTexts; readonly violations: readonly FieldViolation[] },
  ): Promise<CheckedFields> {
    const { texts, violations } = form;
    const text = this.#textOf(endpoint);
    const outcome = await this.#read({ kind: "form", endpoint: text, texts, violations });
    if (!("checked" in outcome)) {
      throw new Error("a thread took a form for something else");
    }
    return outcome.checked;
  }

  /** Takes the arguments out of a message. Rejects as `liftArguments` throws; else as `read`. */
  async lift(data: Uint8Array): Promise<Lifted> {
    const outcome = await this.#read({ kind: "lift", data });
    if (!("lifted" in outcome)) {
      throw new Error("a thread took a message for arguments");
    }
    return outcome.lifted;
  }

  /**
   * Encodes a message anew, with its arguments as its body: of this type in binary form, or in
   * JSON. Rejects as `rewritten` throws; else as `read`.
   */
  async rewrite(data: Uint8Array, typeName: string | undefined): Promise<Uint8Array> {
    const outcome = await this.#read({ kind: "rewrite", typeName, data });
    if (!("rewritten" in outcome)) {
      throw new Error("a thread did not rewrite a message");
    }
    return outcome.rewritten;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { reject } of this.#queue.splice(0)) {
      reject(shuttingDown());
    }
    await Promise.all([...this.#all].map((thread) => thread.terminate()));
  }

  #textOf(endpoint: ReadEndpoint): string {
    let text = this.#endpoints.get(endpoint);
    if (text === undefined) {
      const { name, kind, input, check, json, files, arrays, rootArgument } = endpoint;
      text = JSON.stringify({ name, kind, input, check, json, files, arrays, rootArgument });
      this.#endpoints.set(endpoint, text);
    }
    return text;
  }

  #read(job: ReadingJob): Promise<Succeeded> {
    if (this.#queue.length >= (this.#options.maxWaiting ?? MAX_WAITING_BODIES)) {
      return Promise.reject(busy("too many large bodies wait to be read: try again"));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ job, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    while (this.#queue.length > 0 && (this.#idle.length > 0 || this.#all.size < this.#size)) {
      const thread = this.#idle.pop() ?? this.#start();
      this.#run(thread, this.#queue.shift() as Waiting);
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
      name: "tessera-reader",
      resourceLimits: { maxOldGenerationSizeMb: MAX_READER_HEAP_MIB },
    });
    thread.unref();
    thread.on("error", (err) => this.#options.onFailed(err));
    thread.once("exit", () => {
      this.#all.delete(thread);
      const at = this.#idle.indexOf(thread);
      if (at >= 0) {
        this.#idle.splice(at, 1);
      }
      this.#next();
    });
    this.#all.add(thread);
    return thread;
  }

  #run(thread: Worker, { job, resolve, reject }: Waiting): void {
    const { timeoutMs = READING_TIMEOUT_MS, onFailed } = this.#options;
    const late = setTimeout(() => void thread.terminate(), timeoutMs);
    const onExit = (): void => {
      clearTimeout(late);
      reject(busy("the body takes too long, or too much memory, to be read: send less"));
    };
    thread.once("exit", onExit);
    thread.once("message", (outcome: ReadingOutcome) => {
      clearTimeout(late);
      thread.off("exit", onExit);
      this.#idle.push(thread);
      this.#next();
      if ("reason" in outcome) {
        const { reason, message, violations } = outcome;
        reject(problem(reason, message, { violations }));
      } else if ("defect" in outcome) {
        onFailed(new Error(outcome.defect));
        reject(new Error("a body could not be read"));
      } else {
        resolve(outcome);
      }
    });
    if (job.kind === "form") {
      thread.postMessage(job);
      return;
    }
    const { buffer, byteLength } = job.data;
    const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
    // A view would be copied with all of its buffer, which holds other bodies, too.
    const data = isAlone ? (job.data as Uint8Array<ArrayBuffer>) : new Uint8Array(job.data);
    thread.postMessage({ ...job, data } satisfies ReadingJob, [data.buffer]);
  }
}

function busy(message: string): Error {
  return problem("SERVER_BUSY", message, { retryAfterMs: READING_RETRY_AFTER_MS });
}
