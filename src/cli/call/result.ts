/**
 * Writes results, streamed to `--output-file` or to standard output. A file is
 * written atomically (temporary file, then rename).
 */
import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { stripVTControlCharacters } from "node:util";
import type { OpenResult } from "../../client/deployment.ts";
import { parseExactly } from "../../collections/exact-json.ts";
import { inUnits } from "../../collections/sizes.ts";
import { option } from "../command.ts";
import { CliError } from "../failure.ts";
import type { DeploymentTarget } from "../target.ts";

export interface ResultFlags {
  readonly outputFile?: string;
}

export const OUTPUT_FILE = option(
  "--output-file <path>",
  "write the result there (default: to standard output)",
);

/** Writes a streamed result. */
export async function writeResult(
  { terminal, signal }: Pick<DeploymentTarget, "terminal" | "signal">,
  result: OpenResult,
  { outputFile }: ResultFlags,
): Promise<void> {
  const source = Readable.fromWeb(result.stream as Parameters<typeof Readable.fromWeb>[0]);
  if (outputFile !== undefined) {
    await writeFile(source, outputFile, signal);
    terminal.say(`Wrote ${outputFile}`);
    return;
  }
  const { stdout } = terminal.streams;
  const readable = /^(?:application\/json|text\/)/.test(result.type);
  const onTerminal = "isTTY" in stdout && stdout.isTTY === true;
  if (!readable && onTerminal) {
    source.destroy();
    const size = result.size === undefined ? "" : `, ${inUnits(result.size)}`;
    throw new CliError(`the result is a file (${result.type}${size}), and this is a terminal`, {
      hint: `write it to a file: --output-file ${result.name || "result"}`,
    });
  }
  if (!readable) {
    await pipeline(source, stdout, { end: false, signal });
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of source) {
    signal.throwIfAborted();
    chunks.push(Buffer.from(chunk as Uint8Array));
  }
  const text = Buffer.concat(chunks).toString();
  terminal.answer(onTerminal ? forPeople(text, result.type) : text);
}

/** Writes the pieces of a streamed result as they come: texts as they are, other values in a line each. */
export async function writePieces(
  { terminal, signal }: Pick<DeploymentTarget, "terminal" | "signal">,
  pieces: AsyncIterable<unknown>,
  { outputFile, isText }: ResultFlags & { readonly isText: boolean },
): Promise<void> {
  const { stdout } = terminal.streams;
  const onTerminal = outputFile === undefined && "isTTY" in stdout && stdout.isTTY === true;
  const source = Readable.from(textsOf(pieces, { isText, onTerminal }), { highWaterMark: 1 });
  if (outputFile === undefined) {
    await pipeline(source, stdout, { end: false, signal });
    return;
  }
  await writeFile(source, outputFile, signal);
  terminal.say(`Wrote ${outputFile}`);
}

async function* textsOf(
  pieces: AsyncIterable<unknown>,
  { isText, onTerminal }: { readonly isText: boolean; readonly onTerminal: boolean },
) {
  let isLine = true;
  for await (const piece of pieces) {
    const text = isText ? String(piece) : `${JSON.stringify(piece)}\n`;
    yield onTerminal ? printable(text) : text;
    isLine = text.endsWith("\n");
  }
  if (onTerminal && !isLine) {
    yield "\n";
  }
}

/** Formats text for people: indented JSON, without control characters. */
function forPeople(text: string, type: string): string {
  return printable(type.startsWith("application/json") ? indented(text) : text);
}

function indented(json: string): string {
  try {
    return JSON.stringify(parseExactly(json), null, 2);
  } catch {
    // It has numbers that only Python writes.
    return json;
  }
}

function printable(shown: string): string {
  return stripVTControlCharacters(shown).replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, " ");
}

async function writeFile(source: Readable, path: string, signal: AbortSignal): Promise<void> {
  const fresh = `${path}.${randomBytes(6).toString("hex")}.part`;
  try {
    await pipeline(source, createWriteStream(fresh, { flags: "wx" }), { signal });
    await rename(fresh, path);
  } catch (err) {
    await rm(fresh, { force: true });
    if (err instanceof Error && "code" in err && "syscall" in err) {
      throw new CliError(`${path} cannot be written: ${err.code}`, { cause: err });
    }
    throw err;
  }
}
