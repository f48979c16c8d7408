/** Settings of `tessera worker`, as data; docs/configuration.md is generated from them. */
import { MAX_SILENCE_LIMIT_MS } from "../protocol/silence.ts";
import { PYTHON_SETTINGS } from "./python.ts";
import { optional, type Settings, setting } from "./settings.ts";
import { SANDBOX_SETTING, START_SETTINGS } from "./start-settings.ts";
import * as values from "./values.ts";

/** Every setting of `tessera worker`, in the order in which they are shown. */
export const WORKER_SETTINGS = {
  join: optional({
    flag: "--join <url>",
    variable: "TESSERA_JOIN",
    shownDefault: "required",
    parse: values.platform,
    summary: "address of the platform, https:// unless it is on this machine",
    reason: "the token, the secrets and the arguments of calls travel to it",
  }),
  token: optional({
    flag: "--token <token>",
    variable: "TESSERA_WORKER_TOKEN",
    shownDefault: "required",
    parse: values.text,
    isSecret: () => true,
    summary: "token with worker access (tessera token create --access worker)",
    reason: "other users of the machine can see a command line, so pass it in the environment",
  }),
  deployment: optional({
    flag: "--deployment <name>",
    variable: "TESSERA_DEPLOYMENT",
    shownDefault: "required",
    parse: values.line,
    summary: "deployment whose calls the workers run, in the organization of the token",
    reason: "a token may be for several",
  }),
  workers: setting({
    flag: "--workers <number>",
    variable: "TESSERA_WORKERS",
    fallback: "1",
    parse: values.integer(1, 64),
    summary: "number of workers, each a process with the limits of the deployment",
    reason: "a model often takes a whole GPU; more where the machine has room for several",
  }),
  labels: START_SETTINGS.labels,
  silenceLimit: optional({
    flag: "--silence-limit <time>",
    variable: "TESSERA_SILENCE_LIMIT",
    shownDefault: "the platform's, 15s",
    parse: values.duration(15_000, MAX_SILENCE_LIMIT_MS),
    summary:
      "how long the platform may hear nothing of the workers before it gives their tasks to others, such as 2h; they go on meanwhile, but for the last third of it, at most a minute, in which they end",
    reason:
      "tasks of a machine that dies run again after it; set it to how long a platform that is away should cost none of them",
  }),
  until: optional({
    flag: "--until <time>",
    variable: "TESSERA_UNTIL",
    shownDefault: "it stays",
    parse: values.moment,
    summary:
      "when this machine ends, such as 2027-01-31T18:00:00Z: the workers take no call that might not end before, and leave",
    reason: "jobs of a cluster, and machines that a launcher starts, have an end",
  }),
  dataFolder: setting({
    flag: "--data <folder>",
    variable: "TESSERA_DATA",
    fallback: "./.tessera-worker",
    parse: values.line,
    summary: "folder for the code of revisions and the packages of services in Python",
    reason:
      "fetched once for each revision; it may be deleted while no worker runs, and its mode is 0700",
  }),
  maxCache: START_SETTINGS.maxCache,
  maxModels: START_SETTINGS.maxModels,
  sandbox: SANDBOX_SETTING,
  ...PYTHON_SETTINGS,
  allowEgress: START_SETTINGS.allowEgress,
  logLevel: {
    ...START_SETTINGS.logLevel,
    reason: "what the service itself writes is in the platform's log",
  },
} as const satisfies Settings;
