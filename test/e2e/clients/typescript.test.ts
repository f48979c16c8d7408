/** The cases that every client of ours passes, by the TypeScript client. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveService } from "../../../src/app/serve.ts";
import {
  type AnyService,
  createClient,
  type DeploymentClient,
  DeploymentError,
  InvalidArgumentsError,
  type Progress,
  type RemoteTask,
  type SubmitOptions,
} from "../../../src/client/index.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

interface Raised {
  readonly kind: string;
  readonly fields?: readonly string[];
  readonly code?: string;
  readonly reason?: string;
  readonly message?: string;
}

interface GivenFile {
  readonly name: string;
  readonly type: string;
  readonly text?: string;
  readonly base64?: string;
}

interface Step {
  readonly call?: string;
  readonly submit?: string;
  readonly task?: readonly [endpoint: string, id: string];
  readonly wait?: true;
  readonly get?: true;
  readonly status?: true;
  readonly cancel?: true;
  readonly delete?: true;
  readonly update?: { readonly priority: number; readonly start_now?: true };
  readonly retry?: true;
  readonly until?: string;
  readonly abort?: boolean;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly options?: { readonly delay?: number };
  readonly progress?: Progress;
  readonly gives?: unknown;
  readonly gives_like?: object;
  readonly gives_file?: GivenFile;
  readonly raises?: Raised;
}

interface Table {
  readonly token: string;
  readonly cases: readonly {
    readonly name: string;
    readonly token?: string | null;
    readonly steps: readonly Step[];
  }[];
}

const TABLE = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8")) as Table;

/** What the table calls the errors. */
const KINDS: Readonly<Record<string, string>> = {
  BadArguments: "InvalidArgumentsError",
  EndpointNotFound: "UnknownEndpointError",
  Unauthenticated: "TokenError",
  CallFailed: "CallFailedError",
  TaskFailed: "TaskFailedError",
  TaskCancelled: "TaskCancelledError",
  TaskNotFound: "TaskNotFoundError",
  NotFinished: "TaskNotFinishedError",
  AlreadyStarted: "TaskStartedError",
  AlreadyFinished: "TaskFinishedError",
};

let service: Awaited<ReturnType<typeof serveService>>;
beforeAll(async () => {
  const path = fileURLToPath(new URL("service.ts", import.meta.url));
  const { config } = readServeConfig(path, { port: "0", database: ":memory:" }, {});
  const quick = { workers: 1, logLevel: "silent", graceMs: 300, drainMs: 300 };
  service = await serveService({ ...config, ...quick }, { token: TABLE.token });
});
afterAll(() => service.stop());

describe("the TypeScript client", () => {
  it.each(TABLE.cases)("$name", async ({ token = TABLE.token, steps }) => {
    const client = createClient({
      url: `http://127.0.0.1:${service.port}`,
      ...(token !== null && { token }),
    });
    let task: RemoteTask | undefined;
    for (const step of steps) {
      const seen: Progress[] = [];
      const done = run(step, { client, task, seen });
      if (step.raises) {
        const err = await done.then(
          () => expect.fail("it gave something"),
          (thrown: unknown) => thrown,
        );
        expectRaised(err, step.raises);
        continue;
      }
      const given = await done;
      task = given.task;
      await expectGiven(given.value, step);
      if (step.progress) {
        expect(seen).toContainEqual(step.progress);
      }
    }
  });
});

interface Scene {
  readonly client: DeploymentClient<AnyService>;
  readonly task: RemoteTask | undefined;
  readonly seen: Progress[];
}

interface Given {
  readonly task: RemoteTask | undefined;
  readonly value?: unknown;
}

async function run(step: Step, { client, task, seen }: Scene): Promise<Given> {
  const args = filesIn(step.arguments ?? {}) as Record<string, unknown>;
  if (step.call !== undefined) {
    return { task, value: await endpoint(client, step.call)(args) };
  }
  if (step.submit !== undefined) {
    return { task: await endpoint(client, step.submit).submit(args, submitOptions(step)) };
  }
  if (step.task) {
    const [name, id] = step.task;
    return { task: endpoint(client, name).task(id) };
  }
  if (task === undefined) {
    throw new Error("no task was chosen");
  }
  if (step.wait) {
    const onProgress = (progress: Progress) => void seen.push(progress);
    return { task, value: await task.wait(step.progress ? { onProgress } : {}) };
  }
  if (step.get) {
    return { task, value: await task.get() };
  }
  if (step.status) {
    return { task, value: (await task.getStatus()).value };
  }
  if (step.until !== undefined) {
    for (let wait = 0; (await task.getStatus({ wait })).value !== step.until; wait = 1_000) {
      // The next change may be the one.
    }
    return { task };
  }
  if (step.update) {
    const { priority, start_now: startsNow } = step.update;
    await task.update({ priority, ...(startsNow && { runAt: null }) });
    return { task };
  }
  if (step.delete) {
    await task.delete({ abort: step.abort ?? false });
    return { task };
  }
  if (step.cancel) {
    await task.cancel({ abort: step.abort ?? false });
    return { task };
  }
  return { task: await task.retry() };
}

function endpoint(client: DeploymentClient<AnyService>, name: string) {
  const found = client[name];
  if (found === undefined) {
    throw new Error(`${name} cannot be an endpoint`);
  }
  return found;
}

function submitOptions({ options }: Step): SubmitOptions {
  return options?.delay === undefined ? {} : { delay: options.delay * 1000 };
}

/** Files where the table has them. */
function filesIn(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(filesIn);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if ("$file" in value) {
    const { name, type, text = "" } = value.$file as GivenFile;
    return new File([text], name, { type });
  }
  if ("$bytes" in value) {
    return Buffer.from(String(value.$bytes));
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filesIn(each)]));
}

async function expectGiven(value: unknown, step: Step): Promise<void> {
  if ("gives" in step) {
    expect(value).toEqual(step.gives);
  }
  if (step.gives_like) {
    expect(value).toMatchObject(step.gives_like);
  }
  if (step.gives_file) {
    const { name, type, base64 = "" } = step.gives_file;
    expect(value).toBeInstanceOf(File);
    const file = value as File;
    expect({ name: file.name, type: file.type }).toEqual({ name, type });
    expect(Buffer.from(await file.arrayBuffer()).toString("base64")).toBe(base64);
  }
}

function expectRaised(err: unknown, { kind, fields, code, reason, message }: Raised): void {
  expect(err).toBeInstanceOf(DeploymentError);
  const raised = err as DeploymentError;
  expect(raised.name).toBe(KINDS[kind]);
  if (fields) {
    expect(raised).toBeInstanceOf(InvalidArgumentsError);
    expect(raised.violations.map(({ field }) => field)).toEqual(fields);
  }
  expect(raised).toMatchObject({ ...(code && { code }), ...(reason && { reason }) });
  expect(raised.message).toContain(message ?? "");
}
