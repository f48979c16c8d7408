/** Settings of `tessera serve` and `tessera dev`, as data; docs/configuration.md is generated from them. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { MAX_READY_TIMEOUT_MS, MIN_READY_TIMEOUT_MS, MODEL_NAME } from "../protocol/manifest.ts";
import { list, optional, type Setting, type Settings, setting, toggle } from "./settings.ts";
import { DATA_SETTINGS, START_SETTINGS } from "./start-settings.ts";
import { TRACING_SETTINGS } from "./tracing.ts";
import * as values from "./values.ts";
import { ConfigError, type Parse } from "./values.ts";

/** A token that every client can send in a header. Never quoted. */
const token: Parse<string> = (text, name) => {
  if (!/^[!-~]{8,1024}$/.test(text)) {
    throw new ConfigError(
      `${name} must have 8 to 1024 characters: ASCII letters, digits and punctuation, no spaces`,
    );
  }
  return text;
};

const readable: Parse<string> = (text, name) => {
  const path = resolve(text);
  if (text === "" || !existsSync(path)) {
    throw new ConfigError(
      `${name} ${JSON.stringify(text)} does not exist: give a file or a folder that workers may read`,
    );
  }
  return path;
};

const modelFolder: Parse<readonly [name: string, path: string]> = (text, name) => {
  const [, model = "", folder = ""] = /^([^=]*)=(.+)$/.exec(text) ?? [];
  const path = resolve(folder);
  if (!MODEL_NAME.test(model) || !existsSync(path)) {
    throw new ConfigError(
      `${name} ${JSON.stringify(text)} must be the name of a model and a folder that exists, such as qwen=./weights`,
    );
  }
  return [model, path];
};

/** A setting of `tessera start` without its variable: `npm start` runs both in one environment. */
function flagOnly<Value>({ variable: _, ...rest }: Setting<Value>): Setting<Value> {
  return rest;
}

const { flag: _, ...LOG_LEVEL } = START_SETTINGS.logLevel;

/** Every setting of `tessera serve`, in the order in which they are shown. */
export const SERVE_SETTINGS = {
  port: { ...flagOnly(START_SETTINGS.port), reason: "the one that tools of developers use most" },
  host: flagOnly(START_SETTINGS.host),
  workers: optional({
    flag: "-w, --workers <count>",
    shownDefault: "as a BentoML file says, or the cores, from 2 to 4",
    parse: values.integer(1, 256),
    summary: "number of worker processes",
    reason:
      "at least two, so that one remains when the other is busy or dies; more than the cores gain nothing",
  }),
  database: optional({
    flag: "-d, --database <path>",
    shownDefault: "memory, gone at exit",
    parse: values.database,
    summary: "SQLite file that keeps the queue, or the address of a Postgres",
    reason: "a service that is being developed leaves no files behind",
  }),
  // Not parsed where there is no Postgres: it may then be meant for another program.
  directDatabase: optional({ ...DATA_SETTINGS.directDatabase, parse: values.text }),
  blobs: optional({
    flag: "--blobs <place>",
    shownDefault: "beside the database",
    parse: values.text,
    summary: "folder, or s3://bucket/prefix, for files above 256 KiB",
    reason: "credentials for S3 come from the usual AWS sources",
  }),
  migrate: flagOnly(START_SETTINGS.migrate),
  token: optional({
    flag: "--token <token>",
    variable: "TESSERA_TOKEN",
    shownDefault: "none",
    parse: token,
    isSecret: () => true,
    summary: "ask every caller for this bearer token",
    reason: "other users of the machine can see a command line, so pass it in the environment",
  }),
  cors: setting({
    flag: "--cors <origin>",
    fallback: "",
    repeatable: true,
    parse: values.origins,
    summary:
      "let pages of this origin call from a browser, such as http://localhost:5173; * is all; repeatable",
    reason: "none: otherwise a page could reach whatever its reader's browser can",
  }),
  allowRead: list({
    flag: "--allow-read <path>",
    parse: readable,
    summary: "let workers read this file or folder; repeatable",
    reason: "none: where it is deployed, a service reads nothing but its own files",
  }),
  model: list({
    flag: "--model <name=folder>",
    parse: modelFolder,
    summary: "where the files of a model of the service are, such as qwen=./weights; repeatable",
    reason: "none: a deploy pins models and brings them, and here they are files of yours",
  }),
  allowAddons: toggle({
    flag: "--allow-addons",
    summary: "let workers load native code, which no other limit holds",
    reason: "native code bypasses the permissions of workers",
  }),
  allowWorkers: toggle({
    flag: "--allow-workers",
    summary: "let workers start threads, which may get round the other limits",
    reason: "few services need them",
  }),
  allowProcesses: toggle({
    flag: "--allow-processes",
    summary: "let workers in Node start processes, which no other limit holds",
    reason: "where it is deployed, a service starts none unless it asks for some (processes)",
  }),
  env: list({
    flag: "--env <name>",
    parse: values.text,
    summary: "give workers this variable of the environment, or NAME=value; repeatable",
    reason: "none: a shell often holds keys of other programs",
  }),
  python: optional({
    flag: "--python <path>",
    shownDefault: "VIRTUAL_ENV, .venv beside the service, python3",
    parse: values.text,
    summary: "interpreter of a service in Python",
    reason: "the packages that the service has while it is developed",
  }),
  readyTimeout: setting({
    flag: "--ready-timeout <time>",
    fallback: "1h",
    parse: values.duration(MIN_READY_TIMEOUT_MS, MAX_READY_TIMEOUT_MS),
    summary: "how long the service may take to load, such as 10m",
    reason: "a first load may fetch a model; nothing else waits for it",
  }),
  watch: toggle({
    flag: "--watch",
    summary: "reload the service when its source changes; the queue stays",
    reason: "`tessera dev` does, unless it is given --no-watch",
  }),
  logLevel: {
    ...LOG_LEVEL,
    reason: "calls are logged at info on a terminal, and at debug otherwise",
  },
  ...TRACING_SETTINGS,
} as const satisfies Settings;
