/**
 * A service that is one program with a port of its own, and no code: the service around it is
 * written here, with the program mounted at `/`. It is one in Python where the program needs an
 * environment of packages, and otherwise one in Node, which needs nothing else of its sandbox.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { faultOfProgram, type Program } from "../protocol/command.ts";
import { type ServiceBundle, ServiceFileError } from "./bundle.ts";
import { type FileSource, inParts, layOut } from "./content.ts";
import { includedFiles } from "./include.ts";
import { ENTRY_NAME } from "./index-file.ts";

export interface ProgramService extends Program {
  /** The name of the service. */
  readonly name: string;
  /** The file that says so, for messages. Its folder is that of the service. */
  readonly source: string;
  readonly folder: string;
  /** How long it may take until an answer begins, such as `2m`. Default: 60 s. */
  readonly timeout?: string;
  /** Requests and WebSockets that one worker takes at a time. Default: 100. */
  readonly concurrency?: number;
  /** Those of one key under way on a node. Default: any number. */
  readonly concurrencyPerKey?: number;
  /** Those of one key that begin on a node, such as `100/min`. Default: any number. */
  readonly ratePerKey?: string;
  /** Whether any request to it may be a task. Default: false. */
  readonly queue?: boolean;
  /** The path at which it exposes metrics in the format of Prometheus. Default: none are read. */
  readonly metrics?: string;
  /** The path at which it has its OpenAPI document. Default: `/openapi.json`. */
  readonly openapi?: string;
}

/** The module of such a service in Python. */
export const PROGRAM_MODULE = "tessera_program.py";

/** Files in the folder of a program, for `--watch`. */
const MAX_WATCHED_FILES = 2_000;

/** Files that say which packages of Python a service needs. */
const REQUIREMENTS = ["uv.lock", "requirements.txt"];

/** Whether its program is found in an environment of Python, rather than in its image or folder. */
export async function isInPython(
  { folder, command }: ProgramService,
  image: string | undefined,
): Promise<boolean> {
  const project = await readFile(join(folder, "pyproject.toml"), "utf8").catch(() => "");
  return (
    REQUIREMENTS.some((name) => existsSync(join(folder, name))) ||
    /^\s*\[project\]/m.test(project) ||
    (image === undefined && /^python3?$/.test(command[0] ?? ""))
  );
}

/** The code in Node. Throws a `ServiceFileError` for a program that cannot be one. */
export function nodeModule({ name, ...mount }: ProgramService): string {
  const options = JSON.stringify({ name, mounts: { "/": mountOptions(mount) }, endpoints: {} });
  return `import { service } from "tessera-platform";\n\nexport default service(${options});\n`;
}

/** The code in Python. Throws a `ServiceFileError` for a program that cannot be one. */
export function pythonModule({ name, ...mount }: ProgramService): string {
  // A text, a number or a list in JSON is one in Python.
  const options = Object.entries(mountOptions(mount))
    .map(([option, value]) => [option.replace(/[A-Z]/g, "_$&").toLowerCase(), value] as const)
    .map(([option, value]) => `${option}=${value === true ? "True" : JSON.stringify(value)}`)
    .join(", ");
  return [
    "from tessera import mount, service",
    ...["", ""],
    `@service(name=${JSON.stringify(name)})`,
    "class Program:",
    `    server = mount("/", ${options})`,
    "",
  ].join("\n");
}

function mountOptions({
  source,
  command,
  port,
  health,
  timeout,
  concurrency,
  concurrencyPerKey,
  ratePerKey,
  queue = false,
  metrics,
  openapi,
}: Omit<ProgramService, "name">): object {
  const fault = faultOfProgram({ command, port, health });
  if (fault !== undefined) {
    throw new ServiceFileError(`${source}: ${fault.option} ${fault.message}`);
  }
  return {
    command,
    ...(port !== undefined && { port }),
    ...(health !== undefined && { health }),
    ...(timeout !== undefined && { timeout }),
    ...(concurrency !== undefined && { concurrency }),
    ...(concurrencyPerKey !== undefined && { concurrencyPerKey }),
    ...(ratePerKey !== undefined && { ratePerKey }),
    ...(queue && { queue }),
    ...(metrics !== undefined && { metrics }),
    ...(openapi !== undefined && { openapi }),
  };
}

/** The service as `tessera serve` runs it, in its folder, with what is on this machine. */
export async function openProgram(service: ProgramService): Promise<ServiceBundle> {
  const servicePath = await realpath(service.source);
  const beside = await readdir(service.folder, { withFileTypes: true });
  const watchFiles = beside
    .filter((entry) => entry.isFile())
    .slice(0, MAX_WATCHED_FILES)
    .map(({ name }) => join(service.folder, name));
  return { code: nodeModule(service), servicePath, watchFiles, warnings: [] };
}

/** The folders of programs for one that is served in its folder: first those of `.venv` there. */
export function withVirtualEnvironment(folder: string, searchPath = ""): string {
  const own = join(folder, ".venv", "bin");
  return existsSync(own) ? `${own}:${searchPath}` : searchPath;
}

/** What is in the artifact of one in Node: its code, and the files that are named. */
export async function programContent(
  service: ProgramService,
  include: readonly string[],
): Promise<ReadonlyMap<string, FileSource>> {
  const { folder } = service;
  const files = await includedFiles(include, folder);
  const code = new Map([[ENTRY_NAME, Buffer.from(nodeModule(service))]]);
  const layout = { root: folder, findPackage: () => undefined, places: new Map() };
  return await inParts(layOut(files, code, layout));
}
