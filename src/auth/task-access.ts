/**
 * The access of a task: a text that opens reading of one task for a quarter of an hour, where no
 * header can be sent, such as by a browser's `EventSource`. It is signed, not stored, so every node
 * that has the platform's keys reads it.
 *
 * It is no right of its own but that of its maker: at each use they are looked up as they
 * stand now. So it ends with their token or session, needs the same networks, and never opens more.
 * What is signed are the kind of the maker, and the ids of organization, maker, deployment and task.
 */
import { scryptSync } from "node:crypto";
import { type Problem, problem } from "../errors.ts";
import { derivedKey } from "./keys.ts";
import type { Principal } from "./principal.ts";
import { SignedText } from "./signed-text.ts";

/** How long the access of a task can be used after it was made. */
const TASK_ACCESS_LIFETIME_MS = 15 * 60_000;

/** With what an access begins. */
export const TASK_ACCESS_PREFIX = "tsra_";

/** For secret scanners. A match is an access if its version is known. */
export const TASK_ACCESS_PATTERN = /\btsra_[\w-]{136}(?![\w-])/;

/** What keys are derived for. */
const PURPOSE = "tessera task access v1";

/** Their numbers are what is signed: none is ever used again for another kind. */
const KINDS = ["anonymous", "shared", "token", "session"] as const;

/** Who made an access; ids are empty where the kind has none. */
export interface Maker {
  readonly kind: (typeof KINDS)[number];
  readonly organizationId: string;
  /** Of the token or the session. */
  readonly id: string;
}

/** What an access opens, and for whom. */
export interface OpenedAccess {
  readonly maker: Maker;
  /** Empty for `tessera serve`, which has one deployment. */
  readonly deploymentId: string;
  readonly taskId: string;
  readonly expiresAtMs: number;
}

/** Finds who made an access, as they stand now. Errors: TOKEN_INVALID; those of the lookup. */
export type RecallMaker = (maker: Maker, address: string) => Principal | Promise<Principal>;

interface TaskAccessOptions {
  /** The keys of the installation, the current one first. */
  readonly keys: (purpose: string) => readonly Uint8Array[];
  readonly recall: RecallMaker;
  readonly now: () => number;
}

/** What an access is made for. */
interface TaskToOpen {
  readonly principal: Principal;
  readonly taskId: string;
  readonly deployment: {
    readonly deploymentId: string;
    readonly authorization: boolean;
  };
}

/** Makes and reads accesses of tasks. */
export class TaskAccess {
  readonly #options: TaskAccessOptions;
  readonly #text: SignedText;

  constructor(options: TaskAccessOptions) {
    this.#options = options;
    const { keys } = options;
    this.#text = new SignedText({ prefix: TASK_ACCESS_PREFIX, purpose: PURPOSE, keys });
  }

  /** Makes an access for a caller who may read the task; it ends no later than their credential. */
  make({ principal, taskId, deployment }: TaskToOpen): {
    readonly access: string;
    readonly expiresAtMs: number;
  } {
    const { deploymentId, authorization } = deployment;
    // Where nobody needs a credential, none has to stand behind it.
    const maker = authorization ? makerOf(principal) : NOBODY;
    const ends =
      "expiresAtMs" in principal && authorization
        ? principal.expiresAtMs
        : Number.POSITIVE_INFINITY;
    const expiresAt = Math.floor(
      Math.min(this.#options.now() + TASK_ACCESS_LIFETIME_MS, ends) / 1_000,
    );
    const expiresAtMs = expiresAt * 1_000;
    const ids = [maker.organizationId, maker.id, deploymentId, taskId] as const;
    const access = this.#text.sign({ kind: KINDS.indexOf(maker.kind), expiresAtMs, ids });
    return { access, expiresAtMs };
  }

  /** Reads an access. Errors: TOKEN_INVALID for one that was altered, or whose time is over. */
  open(text: string): OpenedAccess {
    const read = this.#text.read(text);
    const kind = read && KINDS[read.kind];
    if (read === undefined || kind === undefined) {
      throw problem(
        "TOKEN_INVALID",
        "the access is not valid: it was cut or altered, or comes from another server; make another one for the task",
      );
    }
    const { expiresAtMs, ids } = read;
    if (this.#options.now() >= expiresAtMs) {
      throw problem(
        "TOKEN_INVALID",
        "the access has expired, a quarter of an hour after it was made at the latest: make another one for the task",
      );
    }
    const [organizationId, id, deploymentId, taskId] = ids;
    return { maker: { kind, organizationId, id }, deploymentId, taskId, expiresAtMs };
  }

  /** Who made it, as they stand now. Errors: see `RecallMaker`. */
  holder({ maker }: OpenedAccess, address: string): Principal | Promise<Principal> {
    return this.#options.recall(maker, address);
  }
}

const NOBODY: Maker = { kind: "anonymous", organizationId: "", id: "" };

function makerOf(principal: Principal): Maker {
  switch (principal.kind) {
    case "token":
      return {
        kind: "token",
        organizationId: principal.organizationId,
        id: principal.tokenId,
      };
    case "session":
      return { kind: "session", organizationId: "", id: principal.sessionId };
    default:
      return { ...NOBODY, kind: principal.kind };
  }
}

/** The problem of an access whose maker may not read the task any more. */
export function accessEnded(cause: unknown): Problem {
  return problem(
    "TOKEN_INVALID",
    "the access has ended: its maker may not read this task any more, or not from this network",
    { cause },
  );
}

/**
 * The accesses of `tessera serve`, whose secret is its shared token; who knows that may call
 * everything. A person may have chosen it, so it is stretched first (scrypt, RFC 7914): an access
 * must not be a means to try guesses of it. Without a token everyone may read everything.
 */
export function sharedTaskAccess(token: string | undefined, now: () => number): TaskAccess {
  let key: Uint8Array | undefined;
  const keyOf = (purpose: string): Uint8Array => {
    key ??= derivedKey(scryptSync(token ?? "", purpose, 32), purpose);
    return key;
  };
  const kind = token === undefined ? "anonymous" : "shared";
  return new TaskAccess({
    keys: (purpose) => [keyOf(purpose)],
    recall: () => ({ kind }),
    now,
  });
}
