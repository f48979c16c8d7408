/**
 * Reads secrets for a deployment from a prompt, a file or standard input.
 * Values are never taken from the command line, which every other process of
 * the machine can see, and are never shown.
 */
import { readFile, stat } from "node:fs/promises";
import { MAX_VARIABLE_BYTES, NAME_PATTERN } from "../deployment/settings.ts";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import type { Terminal } from "../terminal.ts";

/** The source of a secret's value. */
export interface SecretSource {
  readonly name: string;
  /** Undefined: prompt, or standard input. */
  readonly file: string | undefined;
}

/** Parses the flags: `NAME` or `NAME=@file`. */
export function secretSources(given: readonly string[]): SecretSource[] {
  return given.map((text) => {
    const [, name, file] = /^(\w+)(?:=@(.+))?$/s.exec(text) ?? [];
    if (name === undefined || !NAME_PATTERN.test(name)) {
      // Not quoted, because it may be the secret itself.
      throw usageError(
        "a secret is given as NAME, whose value is asked for, or as NAME=@file",
        "its value does not belong on the command line, where others can see it",
      );
    }
    return { name, file };
  });
}

/** Reads the values, by name. At most one can come from standard input. */
export async function readSecrets(
  sources: readonly SecretSource[],
  terminal: Terminal,
): Promise<Record<string, string>> {
  const asked = sources.filter(({ file }) => file === undefined);
  if (!terminal.interactive && asked.length > 1) {
    const names = asked.map(({ name }) => name).join(", ");
    throw usageError(
      `only one secret can come from standard input, and ${names} would`,
      "give the others as NAME=@file",
    );
  }
  const values: Record<string, string> = {};
  for (const source of sources) {
    values[source.name] = await readSecret(source, terminal);
  }
  return values;
}

async function readSecret({ name, file }: SecretSource, terminal: Terminal): Promise<string> {
  if (file !== undefined) {
    return withoutLineEnd(`the file of secret ${name}`, await readSmallFile(name, file));
  }
  if (terminal.interactive) {
    return withoutLineEnd(
      `secret ${name}`,
      Buffer.from(await terminal.askSecret(`Secret ${name}`)),
    );
  }
  return withoutLineEnd(
    `secret ${name}, from standard input,`,
    await readAll(terminal.streams.stdin),
  );
}

async function readSmallFile(name: string, file: string): Promise<Buffer> {
  try {
    // The size is checked before reading.
    const { size } = await stat(file);
    return size > MAX_VARIABLE_BYTES + 2
      ? Buffer.alloc(MAX_VARIABLE_BYTES + 3)
      : await readFile(file);
  } catch (err) {
    const { code = "unknown reason" } = err as NodeJS.ErrnoException;
    throw new CliError(`the file ${plain(file)} of secret ${name} cannot be read: ${code}`, {
      cause: err,
    });
  }
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    size += chunk.length;
    if (size > MAX_VARIABLE_BYTES + 2) {
      break;
    }
  }
  return Buffer.concat(chunks);
}

/** Decodes the text without a final line break, which editors and `echo` add. */
function withoutLineEnd(what: string, bytes: Buffer): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch {
    throw usageError(`${what} is not text in UTF-8: encode it, such as by base64`);
  }
  if (text === "") {
    throw usageError(`${what} is empty`);
  }
  if (text.includes("\0")) {
    throw usageError(`${what} has a NUL character, which no environment can hold`);
  }
  if (Buffer.byteLength(text) > MAX_VARIABLE_BYTES) {
    throw usageError(`${what} is longer than ${MAX_VARIABLE_BYTES} bytes`);
  }
  return text;
}
