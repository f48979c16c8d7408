/**
 * Validates the messages of a worker. User code runs in the same process as the
 * worker's program, so any message may be forged. A validated message has the
 * types and members that the protocol declares; nothing more is guaranteed.
 */
import type { Attachments } from "../../protocol/attachments.ts";
import {
  type Chunk,
  type LogLevel,
  MAX_CHUNKS_PER_MESSAGE,
  MAX_EXPOSITION_BYTES,
  MAX_INLINE_RESULT_BYTES,
  MAX_LOG_TEXT_CHARACTERS,
  MAX_NOT_READY_CHARACTERS,
  MAX_REFUSAL_CHARACTERS,
  type WorkerMessage,
} from "../../protocol/messages.ts";
import { faultOfUnit, MAX_UNITS_PER_CALL, type Units } from "../../protocol/units.ts";
import { readHead } from "./check-head.ts";
import { readSentManifest } from "./check-manifest.ts";
import { readMetrics } from "./check-metrics.ts";
import { readResults } from "./check-results.ts";
import { type Fields, isFields, listOf } from "./untrusted.ts";

const LEVELS: ReadonlySet<unknown> = new Set<LogLevel>(["debug", "info", "warn", "error"]);

/** Versions of the protocol that a host may name. */
const MAX_PROTOCOLS = 16;

/** UTF-8 bytes per UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3;

/**
 * A copy of the message; undefined for anything outside the protocol. What is wrong with its
 * references to attachments is the `fault` of these, afterwards.
 */
export function readWorkerMessage(
  message: unknown,
  attachments: Attachments,
): WorkerMessage | undefined {
  if (!isFields(message)) {
    return undefined;
  }
  switch (message.type) {
    case "hello":
      return readHello(message);
    case "ready": {
      const manifest = readSentManifest(message.manifest, attachments);
      return manifest && { type: "ready", manifest };
    }
    case "refused": {
      const text = shortText(message.message, attachments, MAX_REFUSAL_CHARACTERS);
      return text === undefined ? undefined : { type: "refused", message: text };
    }
    case "readiness": {
      const { said } = message;
      return typeof said === "string" && said.length <= MAX_NOT_READY_CHARACTERS
        ? { type: "readiness", said }
        : undefined;
    }
    case "results": {
      const results = readResults(message.results, attachments);
      return results && { type: "results", results };
    }
    case "chunks": {
      const chunks = readChunks(message.chunks, attachments);
      return chunks && { type: "chunks", chunks };
    }
    case "progress":
      return readProgress(message);
    case "usage":
      return readUsage(message);
    case "log":
      return readLog(message, attachments);
    case "metrics":
      return readMetrics(message, attachments);
    case "exposition": {
      const text = attachments.text(message.text, MAX_EXPOSITION_BYTES);
      return text === undefined ? undefined : { type: "exposition", text };
    }
    case "pong":
      return typeof message.sequence === "number"
        ? { type: "pong", sequence: message.sequence }
        : undefined;
    default:
      return undefined;
  }
}

function readHello({ protocols, language, version, sdk }: Fields): WorkerMessage | undefined {
  const spoken = listOf(protocols, MAX_PROTOCOLS, (each) =>
    Number.isSafeInteger(each) ? (each as number) : undefined,
  );
  const about = [language, version, sdk];
  const isText = about.every((each) => typeof each === "string" && each.length <= 100);
  return spoken !== undefined && isText
    ? { type: "hello", protocols: spoken, host: `the host of ${language} ${version} (${sdk})` }
    : undefined;
}

function readProgress({ id, fraction, message }: Fields): WorkerMessage | undefined {
  return isCallId(id) &&
    typeof fraction === "number" &&
    fraction >= 0 &&
    fraction <= 1 &&
    typeof message === "string"
    ? { type: "progress", id, fraction, message }
    : undefined;
}

function readLog(sent: Fields, attachments: Attachments): WorkerMessage | undefined {
  const { id, level } = sent;
  const message = shortText(sent.message, attachments, MAX_LOG_TEXT_CHARACTERS);
  if (!isCallId(id) || !LEVELS.has(level) || message === undefined) {
    return undefined;
  }
  const skipped = sent.skipped ?? 0;
  if (typeof skipped !== "number" || !Number.isSafeInteger(skipped) || skipped < 0) {
    return undefined;
  }
  const left = skipped > 0 && { skipped };
  const line = { type: "log" as const, id, level: level as LogLevel, message, ...left };
  if (sent.fieldsJson === undefined) {
    return line;
  }
  const fieldsJson = shortText(sent.fieldsJson, attachments, MAX_LOG_TEXT_CHARACTERS);
  return isJsonObject(fieldsJson) ? { ...line, fieldsJson } : undefined;
}

function shortText(
  value: unknown,
  attachments: Attachments,
  maxCharacters: number,
): string | undefined {
  const text = attachments.text(value, maxCharacters * MAX_BYTES_PER_CHARACTER);
  return text !== undefined && text.length <= maxCharacters ? text : undefined;
}

function readUsage({ id, units }: Fields): WorkerMessage | undefined {
  if (!isCallId(id) || !isFields(units)) {
    return undefined;
  }
  const amounts = Object.entries(units);
  const isGood =
    amounts.length <= MAX_UNITS_PER_CALL &&
    amounts.every(([name, amount]) => faultOfUnit(name, amount) === undefined);
  return isGood ? { type: "usage", id, units: Object.fromEntries(amounts) as Units } : undefined;
}

function isCallId(id: unknown): id is number {
  return Number.isSafeInteger(id);
}

function isJsonObject(text: unknown): text is string {
  try {
    return typeof text === "string" && isFields(JSON.parse(text));
  } catch {
    // Not JSON.
    return false;
  }
}

/**
 * Validates the chunks of streamed results that a worker sends. Whether a chunk is of a call
 * under way, in its order and within its window, only the execution knows (`received-chunks.ts`).
 */
function readChunks(chunks: unknown, attachments: Attachments): Chunk[] | undefined {
  return listOf(chunks, MAX_CHUNKS_PER_MESSAGE, (one) => readChunk(one, attachments));
}

function readChunk(value: unknown, attachments: Attachments): Chunk | undefined {
  if (!isFields(value) || !isCount(value.id) || !isCount(value.sequence)) {
    return undefined;
  }
  const { id, sequence } = value;
  const data = readData(value.data, attachments);
  if (data === undefined || value.response === undefined) {
    return data === undefined ? undefined : { id, sequence, data };
  }
  const response = readHead(value.response, attachments);
  return response && sequence === 1 ? { id, sequence, data, response } : undefined;
}

function readData(value: unknown, attachments: Attachments): Chunk["data"] | undefined {
  if (typeof value === "string") {
    return value;
  }
  const data = attachments.take(value, MAX_INLINE_RESULT_BYTES);
  // A copy, because the bytes that came are a view that would keep the whole message alive.
  return data && new Uint8Array(data);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
