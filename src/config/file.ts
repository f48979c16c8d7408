/** The configuration file: a JSON object of settings. */
import { existsSync, readFileSync, statSync } from "node:fs";
import type { ConfigFile, Settings } from "./settings.ts";
import { ConfigError } from "./values.ts";

/** Read if it exists and no other file was named. */
const DEFAULT_FILE = "tessera.json";

/** Settings file of `tessera start`; a larger one is not a file of settings. */
const MAX_SETTINGS_FILE_BYTES = 1024 * 1024;

/**
 * Reads the configuration file; its keys are those of `table`. `named` is the
 * path that the operator gave, and that file has to exist. Throws a
 * `ConfigError`.
 */
export function readConfigFile(named: string | undefined, table: Settings): ConfigFile | undefined {
  const path = named ?? DEFAULT_FILE;
  if (named === undefined && !existsSync(path)) {
    return undefined;
  }
  const entries = Object.entries(parse(path, readText(path)));
  for (const [key] of entries) {
    if (!Object.hasOwn(table, key)) {
      const known = Object.keys(table).join(", ");
      throw new ConfigError(
        `${path}: there is no setting ${JSON.stringify(key)}; there are ${known}`,
      );
    }
  }
  const texts = Object.fromEntries(entries.map(([key, value]) => [key, toText(path, key, value)]));
  const secrets = Object.keys(texts).filter((key) => table[key]?.isSecret?.(texts[key] ?? ""));
  if (secrets.length > 0 && process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new ConfigError(
      `${path} holds ${secrets.join(" and ")} and can be read by others: run chmod 600 ${path}, or set ${secrets.map((key) => table[key]?.variable).join(" and ")} in the environment instead`,
    );
  }
  return { path, texts };
}

function readText(path: string): string {
  try {
    if (statSync(path).size > MAX_SETTINGS_FILE_BYTES) {
      throw new ConfigError(`${path} is too large for a file of settings: it may have 1 MiB`);
    }
    return readFileSync(path, "utf8");
  } catch (err) {
    if (err instanceof ConfigError) {
      throw err;
    }
    const reason = err instanceof Error ? err.message : String(err);
    throw new ConfigError(`the configuration ${path} cannot be read: ${reason}`, { cause: err });
  }
}

function parse(path: string, text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (err) {
    // The parser's message shows a piece of the text, which may be a secret.
    const position = /position \d+(?: \(line \d+ column \d+\))?/.exec(String(err))?.[0];
    throw new ConfigError(`${path} is not JSON${position ? `, at ${position}` : ""}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ConfigError(`${path} must be a JSON object such as {"port": 3000}`);
  }
  return value;
}

/** The text of a value; lists may be written as lists, numbers as numbers. */
function toText(path: string, key: string, value: unknown): string {
  if (typeof value === "string" || typeof value === "number") {
    return String(value);
  }
  if (Array.isArray(value) && value.every((entry) => typeof entry === "string")) {
    return value.join(",");
  }
  throw new ConfigError(`${path}: ${key} must be a text, a number or a list of texts`);
}
