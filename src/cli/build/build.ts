/** `tessera build`: packs a service and its dependencies into one artifact file. */
import { statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Command } from "commander";
import type { BuildStep, BuiltArtifact } from "../../artifacts/build-options.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import {
  BUILD_STEPS,
  buildService,
  PROBE_OPTION,
  PYTHON_OPTIONS,
  type PythonFlags,
  probeOf,
  READY_TIMEOUT_OPTION,
  readyTimeoutOf,
} from "../building.ts";
import type { Surroundings } from "../command.ts";
import { deployPlan } from "../deploy/plan.ts";
import { usageError } from "../failure.ts";
import { fields } from "../output.ts";
import { table } from "../table.ts";

interface BuildFlags extends PythonFlags {
  readonly output?: string;
  readonly include?: readonly string[];
  readonly env?: readonly string[];
  readonly probe?: string;
  readonly readyTimeout?: string;
  readonly json?: boolean;
}

const HELP = `
The artifact has the code in one module, the packages and data files that it
reads, and what the service says of itself. The service is loaded from it to
prove that nothing is missing, in Python by importing it (--probe start also
constructs it); the same source always gives the same digest.

Examples:
  $ tessera build service.ts                          writes summarizer-0f3a….tessera here
  $ tessera build service.ts --output dist/           writes it into a folder
  $ tessera build service.ts --include 'models/*.onnx'  adds files that only running code can name
  $ tessera build llm/                                of a folder, what its tessera.yaml names
  $ tessera build service.ts --json                   for scripts: name, digest, file, sizes, endpoints`;

export function buildCommand(surroundings: Surroundings): Command {
  const command = new Command("build");
  for (const each of [...PYTHON_OPTIONS, PROBE_OPTION, READY_TIMEOUT_OPTION]) {
    command.addOption(each);
  }
  return command
    .description("Build one self-contained artifact of a service, for deploying it.")
    .argument(
      "<service>",
      "file that exports a service: TypeScript, JavaScript or Python; or a folder with a tessera.yaml",
    )
    .option("-o, --output <path>", "file, or folder, to write to (default: the current folder)")
    .option(
      "--include <glob>",
      "add files or folders, from the service's folder; repeatable",
      repeated,
    )
    .option(
      "--env <NAME=value>",
      "set a variable while the service is loaded; repeatable",
      repeated,
    )
    .option("--json", "answer in JSON")
    .addHelpText("after", HELP)
    .action((path: string, flags: BuildFlags) => run(path, flags, surroundings));
}

/** Collects a repeatable option. */
function repeated(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

async function run(
  path: string,
  flags: BuildFlags,
  { env: variables, streams }: Surroundings,
): Promise<void> {
  using interruption = streams.interruption();
  const { signal } = interruption;
  const say = (text: string): void => {
    if (streams.interactive) {
      streams.stderr.write(`${text} …\n`);
    }
  };
  const { source, program, include, packages, image, settings } = await deployPlan(path, {
    ...{ wait: true, git: false, output: "table" },
    ...(flags.include !== undefined && { include: flags.include }),
  });
  const env = { ...settings.env, ...environment(flags.env ?? []) };
  const probing = { ...readyTimeoutOf(flags.readyTimeout), probe: probeOf(flags.probe) };
  const onStep = (step: BuildStep): void => say(BUILD_STEPS[step]);
  const named = { include, packages, ...(image !== undefined && { image }) };
  const options = { ...named, env, onStep, signal, ...probing };
  const built = await buildService(program ?? source.path, options, { flags, env: variables });
  for (const warning of built.warnings) {
    streams.stderr.write(`warning: ${warning}\n`);
  }
  say("packing");
  const { fileNameOf } = await import("../../artifacts/index-file.ts");
  const { packArtifact } = await import("../../artifacts/pack.ts");
  const file = placeFor(flags.output ?? ".", fileNameOf(built.index.name, built.digest));
  await packArtifact(built, file, { signal });
  const written = { file, size: statSync(file).size };
  const text = flags.json === true ? asJson(built, written) : asText(built, written);
  streams.stdout.write(`${text}\n`);
}

function environment(variables: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    variables.map((variable) => {
      const [, name, value] = /^(\w+)=(.*)$/s.exec(variable) ?? [];
      if (name === undefined || value === undefined) {
        // Not quoted, because it is often a secret.
        throw usageError("--env takes NAME=value", "such as --env MODEL=small");
      }
      return [name, value];
    }),
  );
}

function placeFor(output: string, name: string): string {
  const isFolder =
    output.endsWith("/") || statSync(output, { throwIfNoEntry: false })?.isDirectory() === true;
  return resolve(isFolder ? join(output, name) : output);
}

interface Written {
  readonly file: string;
  /** In bytes. */
  readonly size: number;
}

function asJson({ index, digest }: BuiltArtifact, { file, size }: Written): string {
  const { name, files, platform, service } = index;
  const answer = {
    name,
    digest,
    file,
    size,
    files: files.length,
    unpacked_size: totalOf(files),
    ...(platform !== undefined && { platform }),
    endpoints: offered(service).map(({ name, kind }) => ({ name, kind })),
  };
  return JSON.stringify(answer, null, 2);
}

/** The endpoints of a service, and its servers by their paths. */
function offered({ endpoints, mounts = [] }: ServiceManifest) {
  return [...endpoints, ...mounts.map((mount) => ({ ...mount, name: mount.path, kind: "server" }))];
}

function asText({ index, digest }: BuiltArtifact, { file, size }: Written): string {
  const { name, files, platform = "", service } = index;
  const facts = fields([
    ["name", name],
    ["digest", digest],
    ["file", relative("", file)],
    ["size", `${inUnits(size)}, unpacked ${inUnits(totalOf(files))} in ${files.length} files`],
    ["platform", platform],
  ]);
  const rows = offered(service).map(({ name, kind, timeoutMs, concurrency }) => [
    ...[name, kind, `${timeoutMs / 1000} s`, String(concurrency)],
  ]);
  return `${facts}\n\n${table(["ENDPOINT", "KIND", "TIMEOUT", "CONCURRENCY"], rows, { empty: "" }).text()}`;
}

function totalOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}
