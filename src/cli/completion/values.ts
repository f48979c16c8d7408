/**
 * Candidates for the value of a flag or an argument: fixed choices, and what the platform has.
 * Requests to the platform have a short timeout; any failure gives no candidates.
 */
import { type ClientOptions, Connection, fetchSchema } from "../../client/deployment.ts";
import type { CloudActions } from "../command.ts";
import { currentContext } from "../context.ts";
import { clientOptions } from "../target.ts";
import type { CompletedWord, WordPlace } from "./words.ts";

/** How long the answer to a completion may take: a person has pressed a key and waits. */
const COMPLETION_TIMEOUT_MS = 1_500;
/** Names that a completion reads at most: nobody looks through more. */
const MAX_COMPLETED_NAMES = 200;

type ValuePlace = Extract<WordPlace, { kind: "value" }>;

export interface CompletedValues {
  readonly candidates: readonly CompletedWord[];
  /** Whether the value is the name of a file or folder. */
  readonly files: boolean;
}

export async function valuesOf(place: ValuePlace, actions: CloudActions): Promise<CompletedValues> {
  const choices = place.of.argChoices;
  if (choices !== undefined) {
    return { candidates: choices.map((word) => ({ word, about: "" })), files: false };
  }
  const read = readerOf(place);
  if (read === undefined) {
    return { candidates: [], files: FILES.test(placeholderOf(place)) };
  }
  return { candidates: await read(actions, place), files: false };
}

const FILES = /^(?:path|file|folder|place|glob|service|arguments)$/;

/** `path` of `--output-file <path>`, `service` of `[service]`. */
function placeholderOf({ of }: ValuePlace): string {
  return "flags" in of ? (/[<[]([\w.]+)/.exec(of.flags)?.[1] ?? "") : of.name();
}

type Read = (actions: CloudActions, place: ValuePlace) => Promise<CompletedWord[]>;

function readerOf({ of, path }: ValuePlace): Read | undefined {
  const name = "flags" in of ? of.long : of.name();
  const [group, command] = path;
  if (group === "admin") {
    // Its commands work on the data of this machine, not on the platform of the login.
    return undefined;
  }
  switch (name) {
    case "--deployment":
    case "deployment":
      return deployments;
    case "--organization":
      return organizations;
    case "endpoint":
      return endpoints;
    case "task":
    case "--task":
      return tasks;
    case "name":
      if (group === "deployment" && command !== "create") {
        return deployments;
      }
      return group === "org" && command !== "create" ? organizations : undefined;
    case "--name":
      return group === "deploy" ? deployments : undefined;
    default:
      return undefined;
  }
}

async function deployments(actions: CloudActions, { flags }: ValuePlace): Promise<CompletedWord[]> {
  const { deployments = [] } = await ask<{ deployments?: Named[] }>(
    actions,
    "/api/v1/deployments",
    {
      ...(flags.organization !== undefined && { organization: flags.organization }),
      page_size: String(MAX_COMPLETED_NAMES),
    },
  );
  return deployments.map(({ name, status = "" }) => ({ word: name, about: status }));
}

async function organizations(actions: CloudActions): Promise<CompletedWord[]> {
  const { organizations = [] } = await ask<{ organizations?: Named[] }>(
    actions,
    "/api/v1/organizations",
    {},
  );
  return organizations.map(({ name, display_name = "" }) => ({ word: name, about: display_name }));
}

async function endpoints(actions: CloudActions, place: ValuePlace): Promise<CompletedWord[]> {
  const isForTasks = place.path[0] === "task";
  const connection = hurried(await clientOptions(actions, place.flags));
  const { routes } = await fetchSchema(connection);
  return routes
    .filter(({ is_task }) => !isForTasks || is_task)
    .map(({ name, is_task, description }) => ({
      word: name,
      about: description ?? (is_task ? "task" : "api"),
    }));
}

async function tasks(actions: CloudActions, { flags, args }: ValuePlace): Promise<CompletedWord[]> {
  const { url, deployment = "", token } = await clientOptions(actions, flags);
  const connection = hurried({ url, ...(token !== undefined && { token }) });
  const { tasks = [] } = await get<{ tasks?: ListedTask[] }>(connection, "/api/v1/tasks", {
    ...{ deployment, page_size: String(MAX_COMPLETED_NAMES) },
    ...(args[0] !== undefined && { endpoint: args[0] }),
  });
  return tasks.map(({ task_id, endpoint, status }) => ({
    word: task_id,
    about: `${endpoint}, ${status}`,
  }));
}

interface Named {
  readonly name: string;
  readonly display_name?: string;
  readonly status?: string;
}

interface ListedTask {
  readonly task_id: string;
  readonly endpoint: string;
  readonly status: string;
}

/** Asks the platform of the login. */
async function ask<T>(
  actions: CloudActions,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<T> {
  const { endpoint, apiToken } = await currentContext(actions.readEnvironment());
  return await get<T>(hurried({ url: endpoint, token: apiToken }), path, query);
}

/** A connection for a person who waits: with a short timeout, and without retries. */
function hurried(options: ClientOptions): Connection {
  return new Connection({ ...options, timeout: COMPLETION_TIMEOUT_MS, retries: 0 });
}

async function get<T>(
  connection: Connection,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<T> {
  return await connection.send(
    `${path}?${new URLSearchParams(query)}`,
    { repeatable: true },
    async (response) => (await response.json()) as T,
  );
}
