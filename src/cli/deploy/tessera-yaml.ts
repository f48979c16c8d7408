/**
 * The parser of `tessera.yaml`, the deployment settings beside a service. The
 * whole file is validated first, and every error names its line: otherwise a
 * misspelt key would be a missing setting.
 */
import { readFile, stat } from "node:fs/promises";
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from "yaml";
import type { ProgramService } from "../../artifacts/program.ts";
import type { ScheduleSchema } from "../../client/index.ts";
import {
  faultOfLabel,
  type GivenSettings,
  MAX_CLI_WORKERS,
  MAX_VARIABLE_BYTES,
  NAME_PATTERN,
  type Parsed,
  SETTINGS,
} from "../deployment/settings.ts";
import { CliError, ExitCode, usageError } from "../failure.ts";
import { MAX_TESSERA_YAML_BYTES } from "../here.ts";
import { plain } from "../plain.ts";
import { CATCH_UPS, OVERLAPS } from "../schedule/words.ts";

/** The parsed file; paths are relative to it. */
export interface TesseraFile {
  readonly service?: string;
  readonly name?: string;
  readonly authorization?: boolean;
  readonly settings: GivenSettings;
  /** Names only. */
  readonly secrets: readonly string[];
  readonly include: readonly string[];
  /** System packages, by the names of Debian. */
  readonly packages: readonly string[];
  /** The container image that is the root of its workers. */
  readonly image?: string;
  readonly models: GivenModels;
  /** The program that is the service, instead of a file with code. */
  readonly program?: GivenProgram;
  /** Absent: those of before stay. */
  readonly schedules?: readonly GivenSchedule[];
}

/** A schedule as the platform takes it. */
export type GivenSchedule = MessageInitShape<typeof ScheduleSchema>;

/** A program that listens on a port of its own. */
type GivenProgram = Omit<ProgramService, "name" | "source" | "folder">;

/** Models by the names that the service has for them. */
export interface GivenModels {
  readonly [name: string]: {
    /** Absent: as the code says. */
    readonly source?: string;
    /** A secret of the deployment, which opens a gated repository. */
    readonly token?: string;
  };
}

const KEYS = ["service", "name", "authorization", ...SETTINGS.map(({ key }) => key)];
const LISTS = ["secrets", "include", "packages", "image", "models", "schedules"] as const;
/** What a schedule may say. */
const SCHEDULE = [
  ...["endpoint", "cron", "time_zone", "arguments", "overlap", "catch_up", "paused"],
] as const;
/** Of a service that is a program; all others say these in their code. */
const PROGRAM = [
  ...["command", "port", "health", "timeout", "concurrency", "concurrency_per_key"],
  ...["rate_per_key", "queue", "metrics", "openapi"],
] as const;
/** Port of a program. */
const MAX_PORT = 65_535;
/** Requests and WebSockets that one worker takes at a time, or of one key, as for every mounted server. */
const MAX_CONCURRENCY = 10_000;

/** Reads the file. Throws a usage error that names the faulty line. */
export async function readTesseraFile(path: string): Promise<TesseraFile> {
  return parseTesseraFile(await readText(path), path);
}

async function readText(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_TESSERA_YAML_BYTES) {
      throw usageError(`${path} is larger than ${MAX_TESSERA_YAML_BYTES} bytes`);
    }
    return await readFile(path, "utf8");
  } catch (err) {
    if (err instanceof CliError) {
      throw err;
    }
    const { code } = err as NodeJS.ErrnoException;
    throw new CliError(
      code === "ENOENT" ? `${path} does not exist` : `${path} cannot be read: ${code}`,
      { exitCode: ExitCode.usage, cause: err },
    );
  }
}

/** Parses the text of a file; messages name `path`. */
export function parseTesseraFile(text: string, path: string): TesseraFile {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    stringKeys: true,
    prettyErrors: false,
  });
  const fail: Fail = (at, message) => {
    const { line, col } = lines.linePos(typeof at === "number" ? at : (at.range?.[0] ?? 0));
    throw usageError(`${path}:${line}:${col}: ${plain(message)}`);
  };
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    fail(error.pos[0], error.message);
  }
  const { contents } = document;
  if (!isMap(contents)) {
    return fail(contents ?? 0, `must have keys, such as service: ${KEYS.join(", ")}`);
  }
  const values = entries(contents, [...KEYS, ...LISTS, ...PROGRAM], fail);
  const read = <T>(key: string, as: (node: Node, key: string, fail: Fail) => T): T | undefined => {
    const node = values.get(key);
    return node === undefined ? undefined : as(node, key, fail);
  };
  const service = read("service", someText);
  const name = read("name", someText);
  const authorization = read("authorization", truth);
  const image = read("image", someText);
  const scheduled = read("schedules", schedules);
  const given = program(read);
  const [of, misplaced] = [...values].find(([key]) => PROGRAM.some((each) => each === key)) ?? [];
  if (misplaced !== undefined && given === undefined) {
    fail(misplaced, `${of} is of a program: add command, or say it in the code of the service`);
  }
  if (given !== undefined && service !== undefined) {
    fail(
      values.get("command") as Node,
      "there is service as well as command: leave one out; code mounts a program by mounts in TypeScript, and by mount(path, command=[…]) in Python",
    );
  }
  return {
    ...(service !== undefined && { service }),
    ...(name !== undefined && { name }),
    ...(authorization !== undefined && { authorization }),
    settings: settings(read),
    secrets: read("secrets", names) ?? [],
    include: read("include", texts) ?? [],
    packages: read("packages", texts) ?? [],
    ...(image !== undefined && { image }),
    models: read("models", models) ?? {},
    ...(scheduled !== undefined && { schedules: scheduled }),
    ...(given !== undefined && { program: given }),
  };
}

/** Throws a usage error at a node or an offset. */
type Fail = (at: Node | number, message: string) => never;

type Read = <T>(key: string, as: (node: Node, key: string, fail: Fail) => T) => T | undefined;

/** The settings that are maps in the file. */
const MAPS: Readonly<Record<string, (node: Node, key: string, fail: Fail) => GivenSettings>> = {
  workers,
  env: (...at) => ({ env: variables(...at) }),
  requires: (...at) => ({ requires: requirements(...at) }),
};

function settings(read: Read): GivenSettings {
  return Object.assign(
    {},
    ...SETTINGS.map((one) => {
      const asMap = MAPS[one.key];
      if (asMap !== undefined) {
        return read(one.key, asMap);
      }
      return "parse" in one
        ? read(one.key, (node, key, fail) => parsedScalar(one.parse, node, key, fail))
        : {};
    }),
  );
}

/** Returns the members of a map; fails for unknown keys. */
function entries(map: YAMLMap, known: readonly string[] | undefined, fail: Fail) {
  const found = new Map<string, Node>();
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : "";
    if (known !== undefined && !known.includes(name)) {
      fail(key as Node, `${JSON.stringify(name)} is not a key; there are ${known.join(", ")}`);
    }
    if (value === null || (isScalar(value) && value.value === null)) {
      fail((value ?? key) as Node, `${name} has no value`);
    }
    found.set(name, value as Node);
  }
  return found;
}

function program(read: Read): GivenProgram | undefined {
  const command = read("command", commandLine);
  const port = read("port", upTo(MAX_PORT));
  const health = read("health", someText);
  const timeout = read("timeout", someText);
  const concurrency = read("concurrency", upTo(MAX_CONCURRENCY));
  const concurrencyPerKey = read("concurrency_per_key", upTo(MAX_CONCURRENCY));
  const ratePerKey = read("rate_per_key", someText);
  const queue = read("queue", truth);
  const metrics = read("metrics", someText);
  const openapi = read("openapi", someText);
  return (
    command && {
      command,
      ...(port !== undefined && { port }),
      ...(health !== undefined && { health }),
      ...(timeout !== undefined && { timeout }),
      ...(concurrency !== undefined && { concurrency }),
      ...(concurrencyPerKey !== undefined && { concurrencyPerKey }),
      ...(ratePerKey !== undefined && { ratePerKey }),
      ...(queue !== undefined && { queue }),
      ...(metrics !== undefined && { metrics }),
      ...(openapi !== undefined && { openapi }),
    }
  );
}

/** A program with its arguments; a number keeps its notation. */
function commandLine(node: Node, key: string, fail: Fail): string[] {
  const example = `${key} must be a list of the program and its arguments, such as ["vllm", "serve", "--port", "8000"]`;
  if (!isSeq(node) || node.items.length === 0) {
    return fail(node, example);
  }
  return node.items.map((item) => {
    const { value, source } = isScalar(item) ? item : {};
    if (isMap(item) && isScalar(item.items[0]?.key) && item.items[0].key.value === "port") {
      fail(item, `${key}: {port} needs quotes, as "{port}"`);
    }
    return typeof value === "string"
      ? value
      : typeof value === "number"
        ? (source ?? String(value))
        : fail(item as Node, example);
  });
}

/** A whole number from 1. */
function upTo(most: number) {
  return (node: Node, key: string, fail: Fail): number => {
    const value = isScalar(node) ? Number(node.value) : 0;
    return isScalar(node) && Number.isInteger(node.value) && value >= 1 && value <= most
      ? value
      : fail(node, `${key} must be a whole number from 1 to ${most}`);
  };
}

function schedules(node: Node, key: string, fail: Fail): GivenSchedule[] {
  if (!isMap(node)) {
    return fail(node, `${key} must have names with an endpoint and a cron, such as nightly: {…}`);
  }
  return [...entries(node, undefined, fail)].map(([name, value]) => {
    if (!isMap(value)) {
      return fail(value, `${name} must have endpoint and cron`);
    }
    const given = entries(value, SCHEDULE, fail);
    const at = (field: string) => `${key}.${name}.${field}`;
    const text = (field: string): string =>
      someText(given.get(field) ?? fail(value, `${at(field)} is missing`), at(field), fail);
    const word = <Meaning>(field: string, words: Readonly<Record<string, Meaning>>) => {
      const found = given.get(field);
      const said = isScalar(found) ? String(found.value) : "";
      return found === undefined || Object.hasOwn(words, said)
        ? words[said]
        : fail(found, `${at(field)} must be one of ${Object.keys(words).join(", ")}`);
    };
    const [overlap, catchUp] = [word("overlap", OVERLAPS), word("catch_up", CATCH_UPS)];
    const [args, paused] = [given.get("arguments"), given.get("paused")];
    if (args !== undefined && !isMap(args)) {
      fail(args, `${at("arguments")} must be a map of the arguments`);
    }
    return {
      ...{ name, endpoint: text("endpoint"), cron: text("cron") },
      timeZone: given.has("time_zone") ? text("time_zone") : "UTC",
      arguments: (args?.toJSON() ?? {}) as JsonObject,
      ...(overlap !== undefined && { overlap }),
      ...(catchUp !== undefined && { catchUp }),
      ...(paused !== undefined && { paused: truth(paused, at("paused"), fail) }),
    };
  });
}

/** What the platform takes for the name of a model in a service, and for where it is. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
const MODEL_SOURCE = /^(?:hf|s3|https|model|bentoml):\/\/[!-~]{1,2040}$/;

function models(node: Node, key: string, fail: Fail): GivenModels {
  if (!isMap(node)) {
    return fail(node, `${key} must have names with sources, such as qwen: hf://Qwen/Qwen3-0.6B`);
  }
  const found = [...entries(node, undefined, fail)].map(([name, value]) => {
    if (!MODEL_NAME.test(name)) {
      return fail(value, `${JSON.stringify(name)} must be letters, digits, - and _`);
    }
    return [name, isMap(value) ? gatedModel(value, name, fail) : modelSource(value, name, fail)];
  });
  return Object.fromEntries(found);
}

function modelSource(node: Node, name: string, fail: Fail): GivenModels[string] {
  const source = someText(node, name, fail);
  return MODEL_SOURCE.test(source)
    ? { source }
    : fail(
        node,
        `${name} must be hf://OWNER/NAME, s3://BUCKET/PREFIX, https://…#sha256=…, model://NAME@VERSION or bentoml://NAME:VERSION`,
      );
}

/** A model with the secret that opens its source. */
function gatedModel(map: YAMLMap, name: string, fail: Fail): GivenModels[string] {
  const given = entries(map, ["source", "token"], fail);
  const [source, token] = [given.get("source"), given.get("token")];
  if (token === undefined) {
    return fail(map, `${name} must have a token: a name of secrets, whose value opens the source`);
  }
  const secret = someText(token, `${name}.token`, fail);
  if (!NAME_PATTERN.test(secret) || /^hf_/.test(secret)) {
    // Not quoted, because it may be the token itself.
    fail(token, `${name}.token must be the name of a secret; its value is given by --secret`);
  }
  return {
    ...(source !== undefined && modelSource(source, `${name}.source`, fail)),
    token: secret,
  };
}

function someText(node: Node, key: string, fail: Fail): string {
  return isScalar(node) && typeof node.value === "string" && node.value !== ""
    ? node.value
    : fail(node, `${key} must be text`);
}

function truth(node: Node, key: string, fail: Fail): boolean {
  return isScalar(node) && typeof node.value === "boolean"
    ? node.value
    : fail(node, `${key} must be true or false`);
}

function parsedScalar<T>(
  parse: (text: string) => Parsed<T>,
  ...[node, key, fail]: readonly [Node, string, Fail]
): T {
  const text = isScalar(node) ? (node.source ?? "") : "";
  const read = parse(text);
  return "value" in read ? read.value : fail(node, `${key} ${read.fault}`);
}

function workers(node: Node, key: string, fail: Fail): GivenSettings {
  if (!isMap(node)) {
    return fail(node, `${key} must have min and max`);
  }
  const given = entries(node, ["min", "max"], fail);
  const count = (name: "min" | "max", lowest: number): number | undefined => {
    const at = given.get(name);
    if (at === undefined) {
      return undefined;
    }
    const value = isScalar(at) ? at.value : undefined;
    return Number.isInteger(value) && Number(value) >= lowest && Number(value) <= MAX_CLI_WORKERS
      ? Number(value)
      : fail(at, `${key}.${name} must be a whole number from ${lowest} to ${MAX_CLI_WORKERS}`);
  };
  const [minWorkers, maxWorkers] = [count("min", 0), count("max", 1)];
  if (minWorkers !== undefined && maxWorkers !== undefined && minWorkers > maxWorkers) {
    fail(given.get("min") ?? node, `${key}.min is more than ${key}.max`);
  }
  return {
    ...(minWorkers !== undefined && { minWorkers }),
    ...(maxWorkers !== undefined && { maxWorkers }),
  };
}

function variables(node: Node, key: string, fail: Fail): Record<string, string> {
  if (!isMap(node)) {
    return fail(node, `${key} must have names with their values`);
  }
  const given: Record<string, string> = {};
  for (const [name, value] of entries(node, undefined, fail)) {
    if (!NAME_PATTERN.test(name)) {
      fail(value, `${key}: ${JSON.stringify(name)} is no name of a variable`);
    }
    if (!isScalar(value) || typeof value.value === "boolean") {
      return fail(value, `${key}.${name} must be text: put it in quotes`);
    }
    // A number keeps its notation: 010 is not 8.
    const text = typeof value.value === "string" ? value.value : (value.source ?? "");
    if (Buffer.byteLength(text) > MAX_VARIABLE_BYTES || text.includes("\0")) {
      fail(value, `${key}.${name} must be at most ${MAX_VARIABLE_BYTES} bytes without NUL`);
    }
    given[name] = text;
  }
  return given;
}

function requirements(node: Node, key: string, fail: Fail): Record<string, string> {
  if (!isMap(node)) {
    return fail(node, `${key} must have labels with their values, such as gpu: "*"`);
  }
  const given: Record<string, string> = {};
  for (const [name, value] of entries(node, undefined, fail)) {
    const label = isScalar(value) ? value : undefined;
    const text = typeof label?.value === "string" ? label.value : (label?.source ?? "");
    const fault = faultOfLabel(name, text);
    if (fault !== undefined) {
      fail(value, `${key}.${name} ${fault}`);
    }
    given[name] = text;
  }
  return given;
}

function texts(node: Node, key: string, fail: Fail): string[] {
  return isSeq(node)
    ? node.items.map((item) => someText(item as Node, `each of ${key}`, fail))
    : fail(node, `${key} must be a list`);
}

function names(node: Node, key: string, fail: Fail): string[] {
  if (!isSeq(node)) {
    return fail(node, `${key} must be a list of names; values are given by --secret`);
  }
  return node.items.map((item) => {
    const name = isScalar(item) ? String(item.value) : "";
    return NAME_PATTERN.test(name)
      ? name
      : fail(item as Node, `each of ${key} must be a name; its value is given by --secret`);
  });
}
