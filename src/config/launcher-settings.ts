/** Settings of `tessera launcher`, as data; docs/configuration.md is generated from them. */
import { list, optional, type Settings, setting } from "./settings.ts";
import { START_SETTINGS } from "./start-settings.ts";
import * as values from "./values.ts";
import { WORKER_SETTINGS } from "./worker-settings.ts";

/** What machines are started on. */
export const LAUNCH_ON = ["exec", "ssh", "slurm", "kubernetes", "ray"] as const;

export type LaunchOn = (typeof LAUNCH_ON)[number];

/** Every setting of `tessera launcher`, in the order in which they are shown. */
export const LAUNCHER_SETTINGS = {
  join: { ...WORKER_SETTINGS.join, reason: "its machines join it too, at the same address" },
  token: optional({
    flag: "--token <token>",
    variable: "TESSERA_LAUNCH_TOKEN",
    shownDefault: "required",
    parse: values.text,
    isSecret: () => true,
    summary: "token with launch access (tessera token create --access launch)",
    reason:
      "it says for which deployments machines are started; other users of the machine can see a command line, so pass it in the environment",
  }),
  on: optional({
    flag: "--on <cluster>",
    variable: "TESSERA_LAUNCH_ON",
    shownDefault: "required",
    parse: values.oneOf(LAUNCH_ON),
    summary: `what machines are started on: ${LAUNCH_ON.join(", ")}`,
    reason: "exec runs a command here, which may start anything",
  }),
  hosts: list({
    flag: "--host <host>",
    variable: "TESSERA_LAUNCH_HOSTS",
    parse: values.line,
    summary: "with ssh: a host, such as user@gpu-1, that has one machine at a time; repeatable",
    reason: "the names of hosts are those of ssh, with its configuration and keys",
  }),
  template: optional({
    flag: "--pod <file>",
    variable: "TESSERA_LAUNCH_POD",
    shownDefault: "required with kubernetes",
    parse: values.line,
    summary: "with kubernetes: the Pod of a machine, as YAML or JSON",
    reason: "image, resources, node selector, queue of Kueue: all that a cluster wants of a Pod",
  }),
  options: list({
    flag: "--option <text>",
    variable: "TESSERA_LAUNCH_OPTIONS",
    parse: values.line,
    summary:
      "an argument for ssh, sbatch or kubectl, such as --option=--partition=gpu, or with ray a field of each job, such as --option=entrypoint_num_gpus=1; repeatable",
    reason: "clusters differ in what they ask for",
  }),
  maxMachines: setting({
    flag: "--max <number>",
    variable: "TESSERA_LAUNCH_MAX",
    fallback: "10",
    parse: values.integer(1, 1_000),
    summary: "most machines that are there at a time for each deployment",
    reason: "a bound of what they cost, whatever is wanted",
  }),
  workers: {
    ...WORKER_SETTINGS.workers,
    summary: "number of workers that each machine brings",
  },
  labels: {
    ...START_SETTINGS.labels,
    summary:
      "a label of the machines, such as gpu=h200, or several with commas; repeatable: for deployments that require others none is started",
    reason: "none: the machines are like any other",
  },
  lifetime: setting({
    flag: "--lifetime <time>",
    variable: "TESSERA_LAUNCH_LIFETIME",
    fallback: "1h",
    parse: values.duration(120_000, 7 * 86_400_000),
    summary:
      "how long a machine lives at most, from its start on; it takes no call that might not end before, and another one takes its place",
    reason:
      "machines that were forgotten end by themselves; choose hours where starts are slow, tasks are long, or the cluster has a queue",
  }),
  joinWithin: setting({
    flag: "--join-within <time>",
    variable: "TESSERA_LAUNCH_JOIN_WITHIN",
    fallback: "15m",
    parse: values.duration(1_000, 86_400_000),
    summary: "how long a machine may take until a worker of it takes calls, from when it runs",
    reason: "one that never joins costs as much as others; models may load for minutes",
  }),
  dataFolder: setting({
    flag: "--data <folder>",
    variable: "TESSERA_LAUNCH_DATA",
    fallback: "./.tessera-launcher",
    parse: values.line,
    summary: "with exec: folder of the machines that run here",
    reason: "a launcher that starts again finds its machines by it; its mode is 0700",
  }),
  logLevel: {
    ...START_SETTINGS.logLevel,
    reason: "each start and each end of a machine is a line",
  },
} as const satisfies Settings;
