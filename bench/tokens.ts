/**
 * Benchmark of authentication: CPU time and queries of the verifier for each
 * kind of credential, and how long another node accepts a deleted token. It
 * runs in this process, on its own database.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { announceChanges, ChangeFeed } from "../src/auth/change-feed.ts";
import { FailureLimiter } from "../src/auth/failures.ts";
import { type KeyRing, loadKeys } from "../src/auth/keys.ts";
import type { Credentials } from "../src/auth/principal.ts";
import { newSession } from "../src/auth/session-cookie.ts";
import { createTokenValue, parseTokenValue } from "../src/auth/token-format.ts";
import { NO_ACCESS } from "../src/auth/token-rules.ts";
import { UseRecorder } from "../src/auth/token-uses.ts";
import { Verifier } from "../src/auth/verifier.ts";
import type { Accounts } from "../src/storage/accounts/accounts.ts";
import type { Deed } from "../src/storage/accounts/deed.ts";
import type { Notifier } from "../src/storage/notifier.ts";
import { PostgresNotifier } from "../src/storage/postgres/notifier.ts";
import { PostgresStorage } from "../src/storage/postgres/storage.ts";
import { SqliteStorage } from "../src/storage/sqlite/storage.ts";
import { createIdSource } from "../src/tasks/id.ts";
import { figure, table } from "./table.ts";

const ORGANIZATION = "organization";
const USER = "user";
const ADDRESS = "192.0.2.1";
const log = pino({ level: "silent" });
const newId = createIdSource();

export interface TokensOptions {
  /** A file for SQLite, or the URL of a Postgres. */
  readonly database: string;
  /** For the keys. */
  readonly folder: string;
  /** Calls of each kind that costs no query. */
  readonly calls: number;
  /** Tokens that are deleted on one node and used on another. */
  readonly deletions: number;
}

export async function benchTokens(
  options: TokensOptions,
  write: (text: string) => void,
): Promise<void> {
  const { database } = options;
  const isPostgres = database.startsWith("postgres");
  const open = (ownsQueue: boolean) =>
    isPostgres ? new PostgresStorage(database) : new SqliteStorage(database, { ownsQueue });
  await using storage = open(true);
  await storage.start();
  await using other = open(false);
  await other.start();
  const keys = loadKeys({ path: join(options.folder, "keys.json") });
  await setUp(storage.accounts);
  write(await benchCosts(storage.accounts, keys, options));
  const notify = async (channel: string): Promise<void> => {
    await (storage instanceof PostgresStorage ? storage.notify(channel) : undefined);
  };
  const pairs = isPostgres ? [false, true] : [false];
  for (const hints of pairs) {
    await using stack = new AsyncDisposableStack();
    const notifiers = [0, 1].map(() => {
      const notifier = hints ? stack.use(new PostgresNotifier(database, { notify })) : undefined;
      notifier?.start();
      return notifier;
    });
    await sleep(1_000);
    const near = stack.use(await Node.start(storage.accounts, keys, notifiers[0]));
    const far = stack.use(await Node.start(other.accounts, keys, notifiers[1]));
    write(await benchDeletions({ near, far, keys, hints }, options.deletions));
  }
}

async function benchCosts(
  accounts: Accounts,
  keys: KeyRing,
  { calls }: TokensOptions,
): Promise<string> {
  await using node = await Node.start(accounts, keys, undefined);
  const plain = await createToken(accounts, keys);
  const bound = await createToken(accounts, keys, ["10.0.0.0/8", "192.0.2.0/24"]);
  const many: { readonly value: string }[] = [];
  for (let index = 0; index < 2_000; index += 1) {
    many.push(await createToken(accounts, keys));
  }
  const { value: cookie, session } = newSession(Date.now());
  await accounts.openSession({ ...deed(), userId: USER, session });
  const unknown = createTokenValue("p");
  const rows = [
    await node.measure("a token, known", calls, () => bearer(plain.value)),
    await node.measure("one bound to networks, known", calls, () => bearer(bound.value)),
    await node.measure("a session, known", calls, () => ({
      ...bearer(""),
      authorization: undefined,
      cookie: `tessera_session=${cookie}`,
    })),
    await node.measure("a wrong checksum", calls / 10, () => bearer(`${unknown.slice(0, -1)}!`)),
    await node.measure("a token that nobody has, asked before", calls / 10, () => bearer(unknown)),
  ];
  await using fresh = await Node.start(accounts, keys, undefined);
  const value = (index: number): string => many[index % many.length]?.value ?? "";
  rows.push(
    await fresh.measure("2,000 tokens, each for the first time", many.length, (index) =>
      bearer(value(index)),
    ),
    await fresh.measure("2,000 tokens in turn, known", calls, (index) => bearer(value(index))),
  );
  return `\n${table(["credential", "CPU µs", "queries per call"], rows)}`;
}

/** A verifier as the composition root builds it, with a count of its queries. */
class Node implements AsyncDisposable {
  readonly accounts: Accounts;
  readonly verifier: Verifier;
  readonly #changes: ChangeFeed;
  readonly #uses: UseRecorder;
  #queries = 0;

  constructor(accounts: Accounts, keys: KeyRing, notifier: Notifier | undefined) {
    this.#changes = new ChangeFeed({ accounts, notifier, log });
    this.#uses = new UseRecorder({ accounts, log });
    this.accounts = announceChanges(accounts, this.#changes);
    this.verifier = new Verifier({
      accounts: {
        ...accounts,
        findCredential: (parameters) => {
          this.#queries += 1;
          return accounts.findCredential(parameters);
        },
        findSession: (parameters) => {
          this.#queries += 1;
          return accounts.findSession(parameters);
        },
      },
      keys,
      changes: this.#changes,
      uses: this.#uses,
      failures: new FailureLimiter(),
      log,
    });
  }

  static async start(
    accounts: Accounts,
    keys: KeyRing,
    notifier: Notifier | undefined,
  ): Promise<Node> {
    const node = new Node(accounts, keys, notifier);
    await node.#changes.start();
    return node;
  }

  /** One row: CPU time and queries of a call, after as many again to warm up when they are known. */
  async measure(
    name: string,
    calls: number,
    credentials: (index: number) => Credentials,
  ): Promise<string[]> {
    const isKnown = name.includes("known") || name.includes("before");
    if (isKnown) {
      await this.#run(calls, credentials);
    }
    const queries = this.#queries;
    const before = process.cpuUsage();
    await this.#run(calls, credentials);
    const { user, system } = process.cpuUsage(before);
    const perCall = (this.#queries - queries) / calls;
    return [name, figure((user + system) / calls, 2), figure(perCall, perCall < 0.01 ? 4 : 2)];
  }

  async #run(calls: number, credentials: (index: number) => Credentials): Promise<void> {
    for (let index = 0; index < calls; index += 1) {
      try {
        const answer = this.verifier.authenticate(credentials(index));
        if (answer instanceof Promise) {
          await answer;
        } else if (index % 1_000 === 0) {
          // The feed reads between calls, as it does on a server.
          await new Promise((resolve) => setImmediate(resolve));
        }
      } catch {
        // The refusal is what is measured.
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.verifier[Symbol.asyncDispose]();
    await this.#changes[Symbol.asyncDispose]();
    await this.#uses[Symbol.asyncDispose]();
  }
}

interface Deletions {
  readonly near: Node;
  readonly far: Node;
  readonly keys: KeyRing;
  readonly hints: boolean;
}

/** Deletes tokens at random times on one node, and asks the other until it refuses them. */
async function benchDeletions({ near, far, keys, hints }: Deletions, count: number) {
  const delays = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { value, tokenId } = await createToken(near.accounts, keys);
      // Each uses its own address, so that the rate limit per address does not apply.
      const credentials = { ...bearer(value), address: `10.0.${index >> 8}.${index & 255}` };
      await sleep(500 + Math.random() * count * 100);
      await far.verifier.authenticate(credentials);
      await near.accounts.deleteToken({ ...deed(), organizationId: ORGANIZATION, tokenId });
      const deletedMs = performance.now();
      while (await isAccepted(far, credentials)) {
        await sleep(2);
      }
      return performance.now() - deletedMs;
    }),
  );
  const sorted = delays.toSorted((a, b) => a - b);
  const at = (part: number): string =>
    figure(sorted[Math.min(count - 1, Math.floor(part * count))] ?? Number.NaN);
  return (
    `\na deleted token on another node, ${hints ? "with" : "without"} hints, ${count} times: ` +
    `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms\n`
  );
}

async function isAccepted(node: Node, credentials: Credentials): Promise<boolean> {
  try {
    await node.verifier.authenticate(credentials);
    return true;
  } catch {
    return false;
  }
}

function bearer(value: string): Credentials {
  return { authorization: `Bearer ${value}`, cookie: undefined, address: ADDRESS };
}

function deed(): Deed {
  return { by: { name: "bench", id: USER, address: "" }, nowMs: Date.now(), eventId: newId() };
}

async function setUp(accounts: Accounts): Promise<void> {
  await accounts.setUp({
    ...deed(),
    organizationId: ORGANIZATION,
    organization: "acme",
    userId: USER,
    email: "ada@example.com",
    displayName: "",
    passwordHash: "none",
  });
}

async function createToken(
  accounts: Accounts,
  keys: KeyRing,
  allowedNetworks: readonly string[] = [],
): Promise<{ readonly value: string; readonly tokenId: string }> {
  const value = createTokenValue("p");
  const tokenId = newId();
  const { digest, keyId } = keys.digest(value);
  await accounts.createToken({
    ...deed(),
    organizationId: ORGANIZATION,
    tokenId,
    kind: "personal",
    userId: USER,
    fields: {
      name: "bench",
      description: "",
      access: {
        ...NO_ACCESS,
        developerOperations: true,
      },
      allDeployments: false,
      deployments: [],
      expiresAtMs: Date.now() + 3_600_000,
      notBeforeMs: undefined,
      allowedNetworks,
    },
    secret: { digest, digestKeyId: keyId, hint: parseTokenValue(value)?.hint ?? "" },
    limit: 1_000_000,
    personalLimit: 1_000_000,
  });
  return { value, tokenId };
}
