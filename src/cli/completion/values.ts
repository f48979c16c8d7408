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

interface CompletedValues {
  readonly candidates: readonly CompletedWord[];
  /**
   * What stands before the name of a file or folder in the value, such as `image=@` or nothing;
   * undefined where the value has no such name.
   */
  readonly filesAfter?: string | undefined;
}

export async function valuesOf(place: ValuePlace, actions: CloudActions): Promise<CompletedValues> {
  const choices = place.of.argChoices;
  if (choices !== undefined) {
    return { candidates: choices.map((word) => ({ word, about: "" })) };
  }
  const filesAfter = filesAfterOf(place);
  const read = filesAfter === undefined ? readerOf(place) : undefined;
  return { candidates: read === undefined ? [] : await read(actions, place), filesAfter };
}

const FILES = /^(?:path|file|folder|place|glob|service)$/;
/** Values that may name a file behind an `@`, and what stands before it. */
const FILES_AFTER_AT: { readonly [name: string]: RegExp } = {
  arguments: /^(?:[^@=]+=)?@/,
  "--secret": /^[^@=]+=@/,
  NAME: /^[^@=]+=@/,
};

function filesAfterOf(place: ValuePlace): string | undefined {
  if (FILES.test(placeholderOf(place))) {
    return "";
  }
  return FILES_AFTER_AT[nameOf(place) ?? ""]?.exec(place.typed)?.[0];
}

/** `--task` or `endpoint`. */
function nameOf({ of }: ValuePlace): string | undefined {
  return "flags" in of ? of.long : of.name();
}

/** `path` of `--output-file <path>`, `service` of `[service]`. */
function placeholderOf({ of }: ValuePlace): string {
  return "flags" in of ? (/[<[]([\w.]+)/.exec(of.flags)?.[1] ?? "") : of.name();
}

type Read = (actions: CloudActions, place: ValuePlace) => Promise<CompletedWord[]>;

function readerOf(place: ValuePlace): Read | undefined {
  const [group, command] = place.path;
  if (group === "admin") {
    // Its commands work on the data of this machine, not on the platform of the login.
    return undefined;
  }
  switch (nameOf(place)) {
    case "--deployment":
    case "deployment":
      return deployments;
    case "model":
      return models;
    case "schedule":
      return schedules;
    case "--organization":
      return organizations;
    case "endpoint":
      return group === "deployment" ? deploymentEndpoints : endpoints;
    case "arguments":
      return group === "schedule" ? undefined : parameters;
    case "token":
      return tokens;
    case "member":
    case "--actor":
      return members;
    case "invitation":
      return invitations;
    case "revision":
    case "base":
    case "--to":
      return revisions;
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
    pageOf(flags),
  );
  return deployments.map(({ name, status = "" }) => ({ word: name, about: status }));
}

async function schedules(actions: CloudActions, place: ValuePlace): Promise<CompletedWord[]> {
  const [deployment = ""] = place.args;
  const { schedules = [] } = await ask<{ schedules?: Named[] }>(
    actions,
    `/api/v1/deployments/${encodeURIComponent(deployment)}/schedules`,
    pageOf(place.flags),
  );
  return schedules.map(({ name }) => ({ word: name, about: "" }));
}

async function models(actions: CloudActions, { flags }: ValuePlace): Promise<CompletedWord[]> {
  const { models = [] } = await ask<{ models?: Named[] }>(actions, "/api/v1/models", pageOf(flags));
  return models.map(({ name }) => ({ word: name, about: "" }));
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

/** What of a deployment can be paused, or is. */
async function deploymentEndpoints(
  actions: CloudActions,
  { flags, args, path }: ValuePlace,
): Promise<CompletedWord[]> {
  const { endpoints = [], paused_endpoints = [] } = await ask<PausableDeployment>(
    actions,
    `/api/v1/deployments/${encodeURIComponent(args[0] ?? "")}`,
    ofOrganization(flags),
  );
  return path[1] === "resume"
    ? paused_endpoints.map(({ endpoint }) => ({ word: endpoint, about: "paused" }))
    : endpoints
        .filter(({ kind }) => kind !== "api")
        .map(({ name, kind }) => ({ word: name, about: kind }));
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

/** A token by its name where only one has it, else by its id, as commands take it. */
async function tokens(actions: CloudActions, { flags }: ValuePlace): Promise<CompletedWord[]> {
  const { tokens = [] } = await ask<{ tokens?: ListedToken[] }>(
    actions,
    "/api/v1/tokens",
    pageOf(flags),
  );
  const count = Map.groupBy(tokens, ({ name }) => name);
  return tokens.map(({ token_id, name, hint }) => {
    const isByName = count.get(name)?.length === 1 && !/\s/.test(name);
    return isByName
      ? { word: name, about: `${hint}…` }
      : { word: token_id, about: `${name}, ${hint}…` };
  });
}

async function members(actions: CloudActions, { flags }: ValuePlace): Promise<CompletedWord[]> {
  const { members = [] } = await ask<{ members?: Person[] }>(
    actions,
    "/api/v1/members",
    pageOf(flags),
  );
  return members.map(({ email, display_name = "" }) => ({ word: email, about: display_name }));
}

async function invitations(actions: CloudActions, { flags }: ValuePlace): Promise<CompletedWord[]> {
  const { invitations = [] } = await ask<{ invitations?: Person[] }>(
    actions,
    "/api/v1/invitations",
    ofOrganization(flags),
  );
  return invitations.map(({ email }) => ({ word: email, about: "" }));
}

async function revisions(
  actions: CloudActions,
  { flags, args }: ValuePlace,
): Promise<CompletedWord[]> {
  const { revisions = [] } = await ask<{ revisions?: ListedRevision[] }>(
    actions,
    `/api/v1/deployments/${encodeURIComponent(args[0] ?? "")}/revisions`,
    pageOf(flags),
  );
  return revisions.map(({ revision, created_by = "" }) => ({
    word: String(revision),
    about: created_by,
  }));
}

/** The parameters of an endpoint that are not given yet, as `name=`. */
async function parameters(actions: CloudActions, place: ValuePlace): Promise<CompletedWord[]> {
  const [endpoint, ...given] = place.args;
  const connection = hurried(await clientOptions(actions, place.flags));
  const { routes } = await fetchSchema(connection);
  const { properties = {} } = (routes.find(({ name }) => name === endpoint)?.input ?? {}) as {
    readonly properties?: { readonly [name: string]: { readonly description?: string } };
  };
  return Object.entries(properties)
    .filter(([name]) => !given.some((argument) => argument.startsWith(`${name}=`)))
    .map(([name, { description = "" }]) => ({ word: `${name}=`, about: description }));
}

/** The first page of a list in the organization of the flags. */
function pageOf(flags: ValuePlace["flags"]): Readonly<Record<string, string>> {
  return { ...ofOrganization(flags), page_size: String(MAX_COMPLETED_NAMES) };
}

function ofOrganization({ organization }: ValuePlace["flags"]): Readonly<Record<string, string>> {
  return organization === undefined ? {} : { organization };
}

interface ListedToken {
  readonly token_id: string;
  readonly name: string;
  readonly hint: string;
}

interface Person {
  readonly email: string;
  readonly display_name?: string;
}

interface ListedRevision {
  readonly revision: string | number;
  readonly created_by?: string;
}

interface Named {
  readonly name: string;
  readonly display_name?: string;
  readonly status?: string;
}

interface PausableDeployment {
  readonly endpoints?: readonly { readonly name: string; readonly kind: string }[];
  readonly paused_endpoints?: readonly { readonly endpoint: string }[];
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
