/**
 * Parses the arguments of a call: JSON objects (`{"a":1}`, a file `@args.json`,
 * or `-` for standard input) and pairs. Later ones override earlier ones.
 *
 * The value of a pair is JSON if it parses as JSON, and text otherwise;
 * `key=@photo.png` sends a file, and a repeated key makes a list.
 */
import { openAsBlob } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { parseExactly } from "../../collections/exact-json.ts";
import { usageError } from "../failure.ts";
import type { Streams } from "../terminal.ts";

type Arguments = Record<string, unknown>;

/** The help text after the examples of commands that take arguments. */
export const ARGUMENTS_NOTE = `

Arguments:
  '{"text":"…"}'     an object of JSON
  @arguments.json    the same, from a file; - from standard input
  sentences=2        JSON where the value reads as JSON, and text otherwise;
                     a number as text: code='"007"'
  image=@photo.png   a file; given again, a list of files`;

/** The argument in commander's notation, with its description. */
export const ARGUMENTS = ["[arguments...]", "JSON, @file, - or key=value (see below)"] as const;

/** Arguments of a call that the command line reads from standard input. */
const MAX_STDIN_BYTES = 64 * 1024 * 1024;

/** Parses all arguments. Throws a usage error that names the invalid one. */
export async function readArguments(
  given: readonly string[],
  stdin: Streams["stdin"],
): Promise<Arguments> {
  const args: Arguments = {};
  const paired = new Set<string>();
  for (const text of given) {
    if (text === "-") {
      Object.assign(args, parseObject("standard input", await readAll(stdin)));
    } else if (text.startsWith("@")) {
      Object.assign(args, parseObject(text, await readText(text.slice(1))));
    } else if (text.trimStart().startsWith("{")) {
      Object.assign(args, parseObject("the JSON", text));
    } else {
      await takePair(args, paired, text);
    }
  }
  return args;
}

async function takePair(args: Arguments, paired: Set<string>, text: string): Promise<void> {
  const at = text.indexOf("=");
  if (at < 1) {
    throw usageError(
      `${JSON.stringify(text)} is no argument: give key=value, key=@file, '{"key": …}', @file.json or -`,
    );
  }
  const key = text.slice(0, at);
  const value = await readValue(text.slice(at + 1));
  if (!paired.has(key)) {
    args[key] = value;
    paired.add(key);
    return;
  }
  const earlier = args[key];
  args[key] = [...(Array.isArray(earlier) ? earlier : [earlier]), value];
}

async function readValue(text: string): Promise<unknown> {
  if (text.startsWith("@")) {
    return openFile(text.slice(1));
  }
  try {
    return parseExactly(text);
  } catch {
    // Not JSON, so it is text.
    return text;
  }
}

/** Opens a file that is streamed when it is sent. */
async function openFile(path: string): Promise<File> {
  const blob = await found(path, async () => {
    if (!(await stat(path)).isFile()) {
      throw usageError(`${path} is not a file`);
    }
    return openAsBlob(path);
  });
  return new File([blob], basename(path));
}

function readText(path: string): Promise<string> {
  return found(path, () => readFile(path, "utf8"));
}

async function found<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (err) {
    if (err instanceof Error && "code" in err) {
      const missing = err.code === "ENOENT" ? "does not exist" : `cannot be read (${err.code})`;
      throw usageError(`the file ${path} ${missing}`);
    }
    throw err;
  }
}

async function readAll(stdin: Streams["stdin"]): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    size += bytes.length;
    if (size > MAX_STDIN_BYTES) {
      throw usageError("standard input is too long for arguments: send large things as files");
    }
  }
  return Buffer.concat(chunks).toString();
}

function parseObject(where: string, text: string): Arguments {
  let json: unknown;
  try {
    json = parseExactly(text);
  } catch (err) {
    throw usageError(`${where} is not JSON: ${err instanceof Error ? err.message : err}`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw usageError(`${where} must be an object of arguments, such as {"text": "…"}`);
  }
  return json as Arguments;
}
