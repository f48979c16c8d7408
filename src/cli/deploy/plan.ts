/** The plan of a deploy, merged from flags and `tessera.yaml`. */
import { open, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { BuildOptions } from "../../artifacts/build-options.ts";
import type { ProgramService } from "../../artifacts/program.ts";
import { type PythonFlags, probeOf } from "../building.ts";
import {
  type GivenSettings,
  NAME_PATTERN,
  type SettingsFlags,
  settingsOf,
} from "../deployment/settings.ts";
import { usageError } from "../failure.ts";
import { FILE_NAME } from "../here.ts";
import { type SecretSource, secretSources } from "./secrets.ts";
import {
  type GivenModels,
  type GivenSchedule,
  readTesseraFile,
  type TesseraFile,
} from "./tessera-yaml.ts";

export interface DeployFlags extends SettingsFlags, PythonFlags {
  readonly name?: string;
  readonly file?: string;
  readonly include?: readonly string[];
  readonly probe?: string;
  readonly secret?: readonly string[];
  readonly removeSecret?: readonly string[];
  /** False with `--no-git`. */
  readonly git: boolean;
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

type SourceKind = "service" | "program" | "artifact" | "manifest";

export interface DeployPlan {
  /**
   * A service's module, the settings of one that is a program, an artifact file, or the manifest of
   * a service as JSON.
   */
  readonly source: { readonly kind: SourceKind; readonly path: string };
  /** The service that is a program. */
  readonly program: ProgramService | undefined;
  /** Undefined: the service's own name. */
  readonly name: string | undefined;
  readonly authorization: boolean | undefined;
  readonly settings: GivenSettings;
  readonly include: readonly string[];
  /** System packages besides those that its code names. */
  readonly packages: readonly string[];
  /** The container image that it runs in, before the one that its code names. */
  readonly image: string | undefined;
  /** Where models are, by the names that the service has for them; they go before those in the code. */
  readonly models: GivenModels;
  /** The schedules that the file declares; undefined: those of before stay. */
  readonly schedules: readonly GivenSchedule[] | undefined;
  /** How a service in Python is built. */
  readonly python: PythonFlags;
  /** How it is tried when it is built. */
  readonly probing: Pick<BuildOptions, "probe" | "readyTimeoutMs">;
  /** Secrets that are set by this deploy. */
  readonly secrets: readonly SecretSource[];
  /** Secrets that the service needs, set now or earlier. */
  readonly neededSecrets: readonly string[];
  readonly removedSecrets: readonly string[];
  /** A `tessera.yaml` beside the service that is not used, because it is for another one. */
  readonly unread: string | undefined;
}

/** RFC 1123, section 2.1, in lower case, because names are part of hosts. */
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Makes the plan. Flags override the file. Throws a usage error for contradictions. */
export async function deployPlan(
  path: string | undefined,
  flags: DeployFlags,
): Promise<DeployPlan> {
  const { file, from, unread } = await settingsFile(path, flags.file);
  const name = flags.name ?? file.name;
  const program = programOf({ file, from }, name);
  if (program !== undefined && path !== undefined && (await kindOfPlace(path)) !== "folder") {
    throw usageError(
      `${from} has a command, and ${path} is a service of its own: leave one of them out`,
    );
  }
  const servicePath = program?.source ?? (await serviceOf(path, { file, from }));
  const kind = program === undefined ? await kindOf(servicePath) : "program";
  const source = { kind, path: servicePath };
  const include = flags.include ?? file.include;
  if (!["service", "program"].includes(kind) && flags.include !== undefined) {
    throw usageError(`--include is for building, and nothing is built of ${servicePath}`);
  }
  const settings = { ...file.settings, ...settingsOf(flags) };
  const { minWorkers, maxWorkers } = settings;
  if (minWorkers !== undefined && maxWorkers !== undefined && minWorkers > maxWorkers) {
    throw usageError("there would be more workers at least than at most");
  }
  const removedSecrets = flags.removeSecret ?? [];
  if (!removedSecrets.every((name) => NAME_PATTERN.test(name))) {
    throw usageError("--remove-secret takes the name of a secret");
  }
  return {
    source,
    program,
    name: name === undefined ? undefined : checkedName(name),
    authorization: flags.authorization ?? file.authorization,
    settings,
    include,
    packages: file.packages,
    image: file.image,
    models: file.models,
    schedules: file.schedules,
    python: flags,
    probing: { ...buildingTime(settings), probe: probeOf(flags.probe) },
    secrets: secretSources(flags.secret ?? []),
    neededSecrets: [...new Set([...file.secrets, ...tokensOf(file.models)])],
    removedSecrets,
    unread,
  };
}

/** The secrets that open the sources of models. */
function tokensOf(models: GivenModels): string[] {
  return Object.values(models).flatMap(({ token }) => (token === undefined ? [] : [token]));
}

/** How long it may take to load here, while it is built: as long as its workers. */
function buildingTime({ readyTimeout }: GivenSettings): Pick<BuildOptions, "readyTimeoutMs"> {
  const readyTimeoutMs = readyTimeout === undefined ? 0 : durationMs(readyTimeout as Duration);
  return readyTimeoutMs === 0 ? {} : { readyTimeoutMs };
}

/** Checks a deployment's name before anything is built or uploaded. */
export function checkedName(name: string): string {
  if (!DNS_LABEL.test(name)) {
    throw usageError(
      `the name ${JSON.stringify(name)} must be 1 to 63 lower case letters, digits and hyphens, with a letter or digit at both ends`,
      "give the deployment another name than the service's: --name",
    );
  }
  return name;
}

interface Settings {
  readonly file: TesseraFile;
  /** Undefined when no file is used. */
  readonly from: string | undefined;
  /** A file beside the service that is for another one. */
  readonly unread?: string;
}

const NO_SETTINGS: TesseraFile = {
  settings: {},
  secrets: [],
  include: [],
  packages: [],
  models: {},
};

async function settingsFile(
  path: string | undefined,
  given: string | undefined,
): Promise<Settings> {
  if (given === undefined && path !== undefined && (await kindOfPlace(path)) !== "folder") {
    return await settingsBeside(path);
  }
  const from = given ?? join(path ?? ".", FILE_NAME);
  if (given === undefined && (await kindOfPlace(from)) !== "file") {
    throw usageError(
      `there is no ${from}`,
      "name the service, such as service.ts, or write that file",
    );
  }
  return { file: await readTesseraFile(from), from };
}

/** The settings in the folder of a service, where they are for this one. */
async function settingsBeside(path: string): Promise<Settings> {
  const from = join(dirname(path), FILE_NAME);
  if ((await kindOfPlace(from)) !== "file") {
    return { file: NO_SETTINGS, from: undefined };
  }
  const file = await readTesseraFile(from);
  return file.service !== undefined && resolve(dirname(path), file.service) === resolve(path)
    ? { file, from }
    : { file: NO_SETTINGS, from: undefined, unread: from };
}

/** What is served of a file or a folder. */
interface Served {
  readonly servicePath: string;
  /** Reads the service that is a program; undefined: it has code. */
  readonly program?: () => Promise<ProgramService>;
  /** The variables of its workers that the settings name. */
  readonly env: { readonly [name: string]: string };
}

/** The service in a file, with its settings beside it, or what those of a folder say that it is. */
export async function servedIn(path: string): Promise<Served> {
  const read = () => settingsFile(path, undefined);
  const given = await read();
  const { env = {} } = given.file.settings;
  const { name } = given.file;
  const program = async (): Promise<ProgramService> =>
    programOf(await read(), name) ?? notAProgram(given);
  return programOf(given, name) === undefined
    ? { servicePath: await serviceOf(path, given), env }
    : { servicePath: resolve(path), program, env };
}

function notAProgram({ from }: Settings): never {
  throw usageError(`${from} has no command any more: serve it anew`);
}

/** The service that is a program, as a file says. Throws a usage error for one without a name. */
function programOf(
  { file, from = FILE_NAME }: Settings,
  name: string | undefined,
): ProgramService | undefined {
  if (file.program === undefined) {
    return undefined;
  }
  if (name === undefined) {
    throw usageError(
      `${from} has a command and no name`,
      "add a line such as name: llm, which is the name of the service",
    );
  }
  const source = resolve(from);
  const own = checkedName(file.name ?? name);
  return { ...file.program, name: own, source, folder: dirname(source) };
}

async function serviceOf(path: string | undefined, { file, from }: Settings): Promise<string> {
  if (path !== undefined && (await kindOfPlace(path)) !== "folder") {
    return path;
  }
  if (file.service === undefined) {
    throw usageError(
      `${from} does not say which file the service is`,
      "add a line such as service: service.ts, or a command, such as command: [./server]",
    );
  }
  return resolve(dirname(from ?? "."), file.service);
}

async function kindOfPlace(path: string): Promise<"file" | "folder" | undefined> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch {
    // Opening it later reports the error.
    return undefined;
  }
}

/** Recognizes an artifact by its first bytes (gzip), under any name, and a manifest by its ending. */
async function kindOf(path: string): Promise<SourceKind> {
  if (path.endsWith(".tessera")) {
    return "artifact";
  }
  if (path.endsWith(".json")) {
    return "manifest";
  }
  try {
    await using file = await open(path);
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return buffer.readUInt16BE() === 0x1f8b ? "artifact" : "service";
  } catch {
    // The build reports the error.
    return "service";
  }
}
