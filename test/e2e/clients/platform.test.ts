/**
 * Our clients on a platform, where much happens to a caller: a deployment that
 * is starting, a token that expires between submit and get, a revision with
 * another schema under a running client.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient, DeploymentError } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { type Environment, environment, pythonMissing, ROOT } from "./python-environment.ts";

const withoutPython = leftOut(pythonMissing);

/** Long enough for a client to find the deployment starting. */
const STARTS_LATE = {
  'const VERSION = "one";':
    'const VERSION = "one"; await new Promise((resolve) => setTimeout(resolve, 3_000));',
};
const OTHER_SCHEMA = {
  "{ input: { text: z.string() }, output: z.string() },": "{ input: { word: z.string() } },",
  "async ({ text }, ctx": "async ({ word: text }, ctx",
};

/** How long a token lasts whose end a client lives to see. */
const SHORT_MS = 4_000;

/** What came of a step. */
interface Outcome {
  readonly gives?: unknown;
  readonly raises?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** One client's life, in any language. */
interface Caller extends AsyncDisposable {
  /** Resolves when its program can begin: importing its packages can take longer than a deployment. */
  begun(): Promise<void>;
  /** A call without patience, and one that waits until the deployment is ready. */
  starting(token: string): Promise<Outcome[]>;
  /** Submits, asks until the token has expired, and goes on with the other. */
  expiring(token: string, nextToken: string): Promise<Outcome[]>;
  /** Calls with this argument, by one client that lives on. */
  call(token: string, argument: "text" | "word"): Promise<Outcome[]>;
}

let world: World;
let python: Environment;
beforeAll(async () => {
  world = await World.start();
  if (pythonMissing === undefined) {
    python = await environment({ name: "platform", packages: ["anyio>=4", "httpx>=0.27,<1"] });
  }
}, 300_000);
afterAll(() => world[Symbol.asyncDispose]());

async function token(lifeMs = 3_600_000): Promise<string> {
  const made = await world.platform.createToken(world.cookie, {
    access: ["protected_endpoint"],
    all_deployments: true,
    expires_at: new Date(Date.now() + lifeMs).toISOString(),
  });
  return made.value;
}

async function outcome(promise: Promise<unknown>): Promise<Outcome> {
  return promise.then(
    (gives) => ({ gives }),
    (err: unknown) => {
      if (!(err instanceof DeploymentError)) {
        throw err;
      }
      const { name: raises, reason, message } = err;
      return { raises, message, ...(reason !== undefined && { reason }) };
    },
  );
}

function inTypeScript(deployment: string): Caller {
  const make = (options: { token: string | (() => string); retries?: number }) =>
    // biome-ignore lint/suspicious/noExplicitAny: what the endpoints are called is known here
    createClient({ url: world.platform.url, deployment, ...options }) as any;
  // biome-ignore lint/suspicious/noExplicitAny: the same
  let client: any;
  return {
    async begun() {},
    async starting(token) {
      const impatient = await outcome(make({ token, retries: 0 }).say({ text: "a" }));
      return [impatient, await outcome(make({ token, retries: 20 }).say({ text: "a" }))];
    },
    async expiring(token, nextToken) {
      let current = token;
      const task = await make({ token: () => current }).work.submit({ text: "b" });
      let refused = await outcome(task.getStatus());
      while (refused.raises === undefined) {
        refused = await outcome(task.getStatus());
      }
      const refusals = [refused, await outcome(task.get()), await outcome(task.wait())];
      current = nextToken;
      return [...refusals, await outcome(task.wait())];
    },
    async call(token, argument) {
      client ??= make({ token });
      return [await outcome(client.say({ [argument]: "c" }))];
    },
    async [Symbol.asyncDispose]() {},
  };
}

function inPython(deployment: string, kind: "sync" | "async"): Caller {
  const program = fileURLToPath(new URL("platform_program.py", import.meta.url));
  const client = join(ROOT, "clients/python");
  const child = spawn(python.python, [program, kind, world.platform.url, deployment], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      ...process.env,
      PYTHONPATH: `${join(client, "src")}:${join(client, "tests")}`,
      PYTHONDONTWRITEBYTECODE: "1",
    },
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const step = async (given: object): Promise<Outcome[]> => {
    child.stdin.write(`${JSON.stringify(given)}\n`);
    const { value, done } = await lines.next();
    expect(done, "the program has ended").toBe(false);
    return JSON.parse(value as string) as Outcome[];
  };
  return {
    async begun() {
      expect(await lines.next()).toMatchObject({ value: "begun" });
    },
    starting: (token) => step({ step: "starting", token }),
    expiring: (token, next_token) => step({ step: "expiring", token, next_token }),
    call: (token, argument) => step({ step: "call", token, argument }),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      if (child.exitCode === null) {
        await once(child, "exit");
      }
    },
  };
}

const KINDS = [
  {
    kind: "TypeScript",
    skipped: "",
    start: inTypeScript,
    errors: {
      starting: "DeploymentStartingError",
      token: "TokenError",
      schema: "InvalidArgumentsError",
    },
  },
  ...(["sync", "async"] as const).map((kind) => ({
    kind: `Python, ${kind}`,
    skipped: withoutPython,
    start: (deployment: string) => inPython(deployment, kind),
    errors: { starting: "NotReady", token: "Unauthenticated", schema: "SchemaChanged" },
  })),
];

describe.each(KINDS)(
  "$kind, on the platform's host$skipped",
  ({ kind, skipped, start, errors }) => {
    it.skipIf(skipped)(
      "tells a deployment that is starting, a token that expired and a schema that changed, and goes on",
      async () => {
        const name = kind.replace(/\W+/g, "-").toLowerCase();
        const good = await token();
        const late = await artifact("echo", STARTS_LATE);
        await using caller = start(`acme/${name}`);
        await caller.begun();

        await world.deploy(name, late, { authorization: true });
        const [impatient, patient] = await caller.starting(good);
        expect(impatient).toMatchObject({ raises: errors.starting, reason: "NO_WORKER" });
        expect(impatient?.message).toContain("starting");
        expect(patient).toEqual({ gives: "one a" });

        const [status, get, wait, after] = await caller.expiring(await token(SHORT_MS), good);
        for (const refused of [status, get, wait]) {
          expect(refused).toMatchObject({ raises: errors.token, reason: "TOKEN_INVALID" });
        }
        expect(after).toEqual({ gives: "one b" });

        expect(await caller.call(good, "text")).toEqual([{ gives: "one c" }]);
        const { targetRevision } = await world.deploy(name, await artifact("echo", OTHER_SCHEMA));
        await world.until(name, ({ revision }) => revision === targetRevision);
        const [changed] = await caller.call(good, "text");
        expect(changed).toMatchObject({ raises: errors.schema, reason: "ARGUMENTS_INVALID" });
        expect(changed?.message).toContain("word");
        expect(await caller.call(good, "word")).toEqual([{ gives: "one c" }]);
      },
      120_000,
    );
  },
);
