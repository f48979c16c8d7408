/** A platform with one organization and its admin, and nodes on it, on real databases. */
import { rmSync } from "node:fs";
import { pino } from "pino";
import { announceChanges, ChangeFeed } from "../../src/auth/change-feed.ts";
import { FailureLimiter } from "../../src/auth/failures.ts";
import { type KeyRing, loadKeys } from "../../src/auth/keys.ts";
import { newSession } from "../../src/auth/session-cookie.ts";
import { createTokenValue, parseTokenValue } from "../../src/auth/token-format.ts";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import { UseRecorder } from "../../src/auth/token-uses.ts";
import { Verifier } from "../../src/auth/verifier.ts";
import { type Problem, toProblem } from "../../src/errors.ts";
import type { Accounts } from "../../src/storage/accounts/accounts.ts";
import type { Deed } from "../../src/storage/accounts/deed.ts";
import type { TokenFields, TokenKind } from "../../src/storage/accounts/tokens.ts";
import type { Notifier } from "../../src/storage/notifier.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { newSchema, openPostgres } from "../storage/postgres/databases.ts";
import { TestFolder } from "../storage/sqlite/databases.ts";

export const ACME = "0190acme-0000-7000-8000-000000000001";
export const ADA = "0190ada0-0000-7000-8000-000000000001";
const LOG = pino({ level: "silent" });
const newId = createIdSource();

export interface Clock {
  nowMs: number;
  /** Moves both clocks. */
  pass(ms: number): void;
  monotonicMs: number | undefined;
}

/** Two connections to one database: two nodes, or a node and `tessera admin`. */
export interface Databases extends AsyncDisposable {
  readonly one: Storage;
  readonly other: Storage;
}

async function sqlite(): Promise<Databases> {
  const folder = new TestFolder();
  const path = folder.file();
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder.path, { recursive: true, force: true }));
  const one = stack.use(new SqliteStorage(path));
  await one.start();
  const other = stack.use(new SqliteStorage(path, { ownsQueue: false }));
  await other.start();
  return { one, other, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function postgres(): Promise<Databases> {
  const schema = newSchema();
  const stack = new AsyncDisposableStack();
  const one = stack.use(await openPostgres({ schema }));
  const other = stack.use(await openPostgres({ schema }));
  return { one, other, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

export const DATABASES: Readonly<Record<string, () => Promise<Databases>>> = {
  SQLite: sqlite,
  Postgres: postgres,
};

export function deed(nowMs = Date.now()): Deed {
  return { by: { name: "ada@example.com", id: ADA, address: "" }, nowMs, eventId: newId() };
}

/** The organization `acme` with Ada as its admin, and the keys of the platform. */
export async function setUp(accounts: Accounts): Promise<{ keysPath: string } & Disposable> {
  const outcome = await accounts.setUp({
    ...deed(),
    organizationId: ACME,
    organization: "acme",
    userId: ADA,
    email: "ada@example.com",
    displayName: "Ada",
    passwordHash: "none",
  });
  if (outcome.outcome !== "done") {
    throw new Error(outcome.outcome);
  }
  const folder = new TestFolder();
  return {
    keysPath: folder.file("keys.json"),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

export interface NodeOptions {
  readonly keys: KeyRing;
  readonly notifier?: Notifier;
  readonly clock?: Clock;
}

/** One node: what `tessera start` puts together, and a count of the questions it asks. */
export class Node implements AsyncDisposable {
  readonly asked = { credentials: 0, sessions: 0, uses: 0 };
  readonly keys: KeyRing;
  readonly changes: ChangeFeed;
  readonly verifier: Verifier;
  readonly uses: UseRecorder;
  /** As handlers use them: this node forgets before a deed returns. */
  readonly accounts: Accounts;

  constructor(accounts: Accounts, { keys, notifier, clock }: NodeOptions) {
    const counted: Accounts = {
      ...accounts,
      findCredential: (parameters) => {
        this.asked.credentials += 1;
        return accounts.findCredential(parameters);
      },
      findSession: (parameters) => {
        this.asked.sessions += 1;
        return accounts.findSession(parameters);
      },
      recordUses: (parameters) => {
        this.asked.uses += 1;
        return accounts.recordUses(parameters);
      },
    };
    const monotonicMs = (): number => clock?.monotonicMs ?? performance.now();
    this.keys = keys;
    this.changes = new ChangeFeed({ accounts, notifier, log: LOG, monotonicMs });
    this.uses = new UseRecorder({ accounts: counted, log: LOG });
    this.verifier = new Verifier({
      accounts: counted,
      keys,
      changes: this.changes,
      uses: this.uses,
      failures: new FailureLimiter({ monotonicMs }),
      log: LOG,
      now: () => clock?.nowMs ?? Date.now(),
      monotonicMs,
    });
    this.accounts = announceChanges(accounts, this.changes);
  }

  static async start(accounts: Accounts, options: NodeOptions): Promise<Node> {
    const node = new Node(accounts, options);
    await node.changes.start();
    return node;
  }

  bearer(value: string, address = "192.0.2.1") {
    return this.verifier.authenticate({
      authorization: `Bearer ${value}`,
      cookie: undefined,
      address,
    });
  }

  cookie(value: string, address = "192.0.2.1") {
    const cookie = `tessera_session=${value}`;
    return this.verifier.authenticate({ authorization: undefined, cookie, address });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.verifier[Symbol.asyncDispose]();
    await this.changes[Symbol.asyncDispose]();
    await this.uses[Symbol.asyncDispose]();
  }
}

export const DEVELOPER: TokenFields = {
  name: "laptop",
  description: "",
  access: {
    ...NO_ACCESS,
    developerOperations: true,
  },
  allDeployments: false,
  deployments: [],
  expiresAtMs: Date.now() + 3_600_000,
  notBeforeMs: undefined,
  allowedNetworks: [],
};

export interface NewToken {
  readonly kind?: TokenKind;
  readonly userId?: string;
  readonly fields?: Partial<TokenFields>;
}

/** Makes a token as TokenService does; answers its value and id. */
export async function createToken(
  accounts: Accounts,
  keys: KeyRing,
  { kind = "personal", userId = ADA, fields = {} }: NewToken = {},
): Promise<{ readonly value: string; readonly tokenId: string }> {
  const tokenId = newId();
  const value = createTokenValue(kind === "personal" ? "p" : "o");
  const created = await accounts.createToken({
    ...deed(),
    organizationId: ACME,
    tokenId,
    kind,
    userId: kind === "personal" ? userId : undefined,
    fields: { ...DEVELOPER, ...fields },
    secret: secretOf(value, keys),
    limit: 1_000,
    personalLimit: 1_000,
  });
  if (created.outcome !== "created") {
    throw new Error(created.outcome);
  }
  return { value, tokenId };
}

export function secretOf(value: string, keys: KeyRing) {
  const { digest, keyId } = keys.digest(value);
  return { digest, digestKeyId: keyId, hint: parseTokenValue(value)?.hint ?? "" };
}

/** Adds a member to `acme`; answers their id. */
export async function addMember(accounts: Accounts, email: string): Promise<string> {
  const userId = newId();
  const invitationId = newId();
  await accounts.invite({
    ...deed(),
    organizationId: ACME,
    invitationId,
    digest: invitationId,
    email,
    role: "member",
    expiresAtMs: Date.now() + 60_000,
    limit: 10,
  });
  const newUser = { email, displayName: "", passwordHash: "none" };
  await accounts.acceptInvitation({ ...deed(), invitationId, userId, newUser });
  return userId;
}

/** Signs Ada in; answers the cookie's value and the session's id. */
export async function signIn(
  accounts: Accounts,
  userId = ADA,
): Promise<{ readonly value: string; readonly sessionId: string }> {
  const { value, session } = newSession(Date.now());
  await accounts.openSession({ ...deed(), userId, session });
  return { value, sessionId: session.sessionId };
}

export function openKeys(path: string): KeyRing {
  return loadKeys({ path });
}

/** What an action is refused with; undefined when it is not. */
export async function refusal(action: () => unknown): Promise<Problem | undefined> {
  try {
    await action();
  } catch (err) {
    return toProblem(err);
  }
  return undefined;
}

/** A clock that moves only when it is told to. */
export function newClock(): Clock {
  return {
    nowMs: Date.now(),
    monotonicMs: 0,
    pass(ms) {
      this.nowMs += ms;
      this.monotonicMs = (this.monotonicMs ?? 0) + ms;
    },
  };
}
