/** A thread that reads large JSON, one body at a time: the thread's side of `threads.ts`. */
import { parentPort } from "node:worker_threads";
import { giveBack } from "../../collections/bytes.ts";
import { type FieldViolation, Problem, type Reason } from "../../errors.ts";
import type { FileValue } from "../../protocol/messages.ts";
import type { FormTexts } from "./form-fields.ts";
import { type Lifted, liftArguments } from "./lift.ts";
import { type CheckedFields, ObjectReader, type ReadPayload } from "./object-reader.ts";
import { rewritten } from "./rewrite.ts";

/** Endpoints whose compiled schemas a thread keeps; the one that was used longest ago goes first. */
const MAX_COMPILED_ENDPOINTS = 64;

/**
 * How long one check of arguments against a schema may take in a reader thread: nobody waits for
 * it but the callers with large bodies.
 */
const THREAD_CHECK_TIMEOUT_MS = 2_000;

/** A body to read. */
export type ReadingJob =
  | ({ readonly data: Uint8Array } & (
      | {
          readonly kind: "arguments";
          /** The endpoint as JSON, by which its compiled schema is found again. */
          readonly endpoint: string;
          /** See `ObjectReader.read`. */
          readonly isNamed: boolean;
        }
      /** A message in JSON, whose arguments are taken out. */
      | { readonly kind: "lift" }
      /** A message whose arguments become its body: of this type in binary form, or in JSON. */
      | { readonly kind: "rewrite"; readonly typeName: string | undefined }
    ))
  /** The texts of a form; see `ObjectReader.readTexts`. */
  | {
      readonly kind: "form";
      readonly endpoint: string;
      readonly texts: FormTexts;
      readonly violations: readonly FieldViolation[];
    };

/** What came of it. */
export type ReadingOutcome =
  | ReadPayload
  /** Their JSON is the body itself, which goes back to where it came from. */
  | { readonly data: Uint8Array; readonly files: readonly FileValue[] }
  | { readonly checked: CheckedFields }
  | { readonly lifted: Lifted }
  | { readonly rewritten: Uint8Array }
  | {
      readonly reason: Reason;
      readonly message: string;
      readonly violations: readonly FieldViolation[];
    }
  | { readonly defect: string };

const readers = new Map<string, ObjectReader>();

function readerOf(endpoint: string): ObjectReader {
  const reader =
    readers.get(endpoint) ?? new ObjectReader(JSON.parse(endpoint), THREAD_CHECK_TIMEOUT_MS);
  readers.delete(endpoint);
  readers.set(endpoint, reader);
  for (const oldest of readers.keys()) {
    if (readers.size <= MAX_COMPILED_ENDPOINTS) {
      break;
    }
    readers.delete(oldest);
  }
  return reader;
}

function outcomeOf(job: ReadingJob): ReadingOutcome {
  try {
    switch (job.kind) {
      case "lift":
        return { lifted: liftArguments(job.data) };
      case "rewrite":
        return { rewritten: rewritten(job.data, job.typeName) };
      case "form":
        return { checked: readerOf(job.endpoint).readTexts(job.texts, job.violations) };
      default: {
        const { data } = job;
        const reader = readerOf(job.endpoint);
        const { text, ...read } = reader.readPart(data, job.isNamed);
        if (text === undefined) {
          return { data, files: read.files };
        }
        giveBack(data);
        return { json: text, ...read };
      }
    }
  } catch (err) {
    if (err instanceof Problem) {
      const { reason, rawMessage, violations } = err;
      return { reason, message: rawMessage, violations };
    }
    return { defect: err instanceof Error ? (err.stack ?? err.message) : String(err) };
  }
}

parentPort?.on("message", (job: ReadingJob) => {
  const outcome = outcomeOf(job);
  const files = "files" in outcome ? outcome.files : [];
  const { arrays = [] } = "json" in outcome ? outcome : {};
  const bodies = "data" in outcome ? [outcome.data] : [];
  const all = [...bodies, ...[...files, ...arrays].map(({ data }) => data)];
  const whole = all.filter(({ buffer, byteLength }) => {
    return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  });
  parentPort?.postMessage(
    outcome,
    whole.map(({ buffer }) => buffer as ArrayBuffer),
  );
});
