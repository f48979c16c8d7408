/**
 * The credential verifier of a platform: authenticates by API token, else by
 * session cookie, else as anonymous.
 *
 * A token passes these checks, cheapest first:
 *
 * 1. Length, form and checksum, without any lookup.
 * 2. The lookup cache (lookup-cache.ts). A hit returns synchronously, without a
 *    promise.
 * 3. The rate limit on failures per address, before the database. Only
 *    well-formed values that the database did not find count, so that a program
 *    with one stale token does not lock out its neighbours.
 * 4. One query.
 *
 * The token of a machine (machine-token.ts) is checked by its signature, and the value of its
 * launcher's token by its id, from the same cache.
 *
 * What depends on the time or the caller is checked at every use: expiry, start
 * and networks. Every bad credential gets the same error.
 *
 * A bad token is refused even where no token is required: a caller sends one on
 * purpose. A bad session cookie counts as no cookie: browsers send it on their
 * own, and a person whose session has ended must be able to sign in again.
 */
import { hash, randomBytes } from "node:crypto";
import { type Problem, problem, toProblem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { bearerToken } from "./bearer.ts";
import { CachedSession, CachedToken } from "./cached-credentials.ts";
import type { ChangeFeed, Forgotten } from "./change-feed.ts";
import type { FailureLimiter } from "./failures.ts";
import type { KeyRing } from "./keys.ts";
import { LookupCache } from "./lookup-cache.ts";
import { MachineTokens, machinePrincipal } from "./machine-token.ts";
import { digestCode } from "./one-time-codes.ts";
import type { Authenticate, Credentials, Principal, TokenPrincipal } from "./principal.ts";
import { readSessionCookie } from "./session-cookie.ts";
import type { Maker, RecallMaker } from "./task-access.ts";
import { parseTokenValue, TOKEN_LENGTH } from "./token-format.ts";
import type { UseRecorder } from "./token-uses.ts";

/** `Bearer`, and some white space. */
const MAX_SCHEME_CHARACTERS = 32;

/**
 * Writes after lookups that are under way at a time, of replaced digests and uses of sessions;
 * further ones wait for the next lookup.
 */
const MAX_BACKGROUND_WRITES = 8;

/**
 * Age of a session's recorded use at which the next lookup records another one. Lookups of a
 * session in use come every half minute.
 */
const SESSION_USE_RECORD_INTERVAL_MS = 5 * 60_000;

const ANONYMOUS: Principal = { kind: "anonymous" };
const SIGNED_OUT: Principal = { kind: "anonymous", signedOut: true };

/** Where a credential comes from. */
type From = Pick<Credentials, "address" | "again">;

/** The outcome of verifying a token. */
type Verification = "valid" | "invalid" | "expired" | "network" | "rate_limited" | "unavailable";

interface VerifierOptions {
  readonly accounts: Pick<
    Accounts,
    | "findCredential"
    | "findCredentialOf"
    | "findSession"
    | "findSessionOf"
    | "recordSessionUse"
    | "replaceDigest"
  >;
  readonly keys: KeyRing;
  readonly changes: ChangeFeed;
  readonly uses: UseRecorder;
  readonly failures: FailureLimiter;
  readonly log: Log;
  /**
   * The public URL is https, so only `Secure` session cookies count, however a
   * request arrived. Default false.
   */
  readonly secureCookies?: boolean;
  /** Called for every verified token. */
  readonly onVerified?: (verification: Verification) => void;
  readonly now?: () => number;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

export class Verifier implements AsyncDisposable {
  readonly #options: VerifierOptions;
  readonly #now: () => number;
  readonly #tokens: LookupCache<CachedToken>;
  readonly #sessions: LookupCache<CachedSession>;
  readonly #machines: MachineTokens;
  readonly #unlisten: () => void;
  readonly #writing = new Set<Promise<unknown>>();
  /** A salt that makes fingerprints worthless outside this process. */
  readonly #salt = randomBytes(16).toString("latin1");

  constructor(options: VerifierOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#machines = new MachineTokens((purpose) => options.keys.derived(purpose));
    const freshness = {
      isFresh: () => options.changes.isFresh(),
      monotonicMs: options.monotonicMs ?? (() => performance.now()),
    };
    this.#tokens = new LookupCache(freshness);
    this.#sessions = new LookupCache(freshness);
    this.#unlisten = options.changes.listen((changes) => this.forget(changes));
  }

  /**
   * Errors: TOKEN_MISSING, TOKEN_INVALID; RATE_LIMITED after too many failures from the
   * address; STORAGE_UNAVAILABLE when the token could not be checked.
   */
  readonly authenticate: Authenticate = (credentials) => {
    const { authorization, cookie, secure = false } = credentials;
    if (authorization !== undefined) {
      return this.#authenticateToken(authorization, credentials);
    }
    const value = readSessionCookie(cookie, secure || this.#options.secureCookies === true);
    return value === undefined ? ANONYMOUS : this.#authenticateSession(value, credentials);
  };

  /**
   * Who made the access of a task, by the checks of their credential. It is found by its id, which
   * the platform has signed. Errors: TOKEN_INVALID; STORAGE_UNAVAILABLE.
   */
  readonly recall: RecallMaker = (maker, address) => {
    switch (maker.kind) {
      case "anonymous":
        return ANONYMOUS;
      case "token":
        return this.#recallToken({ ...maker, tokenId: maker.id }, address);
      case "session":
        return this.#recallSession(maker);
      case "shared":
        throw this.#refused("invalid");
    }
  };

  /** Drops cached credentials that these changes invalidate. */
  forget(changes: readonly Forgotten[]): void {
    if (changes.some(({ kind }) => kind === "keys" || kind === "everything")) {
      this.#reloadKeys();
    }
    this.#tokens.forget(changes);
    this.#sessions.forget(changes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unlisten();
    await Promise.all(this.#writing);
  }

  #authenticateToken(authorization: string, from: From): Principal | Promise<Principal> {
    const { address } = from;
    const longest = Math.max(TOKEN_LENGTH, this.#machines.length) + MAX_SCHEME_CHARACTERS;
    const value = authorization.length <= longest ? bearerToken(authorization) : undefined;
    if (!value) {
      throw this.#refused("invalid");
    }
    const said = this.#machines.read(value);
    if (said !== undefined) {
      return this.#authenticateMachine(said, address);
    }
    const fingerprint = this.#fingerprint(value);
    const recalled = this.#tokens.recall(fingerprint);
    if (recalled) {
      return this.#useToken(recalled, address);
    }
    if (recalled === null || parseTokenValue(value) === undefined) {
      throw this.#refused("invalid");
    }
    return this.#askFor(value, fingerprint, from).then((token) => this.#useToken(token, address));
  }

  #authenticateMachine(
    said: Parameters<typeof machinePrincipal>[0],
    address: string,
  ): Principal | Promise<Principal> {
    if (this.#now() >= said.expiresAtMs) {
      throw this.#refused("expired");
    }
    const launcher = this.#recallToken(said, address);
    return launcher instanceof Promise
      ? launcher.then((found) => machinePrincipal(said, found))
      : machinePrincipal(said, launcher);
  }

  /** By its current value, or that of a generation. */
  #recallToken(
    { organizationId, tokenId, generation }: Parameters<Accounts["findCredentialOf"]>[0],
    address: string,
  ): TokenPrincipal | Promise<TokenPrincipal> {
    const key = `token ${organizationId} ${tokenId} ${generation}`;
    const recalled = this.#tokens.recall(key);
    if (recalled !== undefined) {
      return this.#useToken(recalled ?? undefined, address);
    }
    const find = async () => {
      const found = await this.#options.accounts.findCredentialOf({
        ...{ organizationId, tokenId },
        ...(generation !== undefined && { generation }),
      });
      return found && new CachedToken(found);
    };
    const found = this.#tokens.share(key) ?? this.#tokens.ask(key, find);
    return found.then((token) => this.#useToken(token, address));
  }

  #recallSession({ id: sessionId }: Maker): Principal | Promise<Principal> {
    const use = (session: CachedSession | null | undefined): Principal => {
      if (!session?.isUsable(this.#now())) {
        throw credentialInvalid();
      }
      return session.principal;
    };
    const key = `session ${sessionId}`;
    const recalled = this.#sessions.recall(key);
    if (recalled !== undefined) {
      return use(recalled);
    }
    const find = async () => {
      const nowMs = this.#now();
      const found = await this.#options.accounts.findSessionOf({ sessionId, nowMs });
      return found && new CachedSession(found);
    };
    return (this.#sessions.share(key) ?? this.#sessions.ask(key, find)).then(use);
  }

  async #askFor(value: string, fingerprint: string, from: From): Promise<CachedToken | undefined> {
    try {
      return await (this.#tokens.share(fingerprint) ??
        this.#limited(from, () => this.#tokens.ask(fingerprint, () => this.#findToken(value))));
    } catch (err) {
      const isLimited = toProblem(err).reason === "RATE_LIMITED";
      this.#options.onVerified?.(isLimited ? "rate_limited" : "unavailable");
      throw err;
    }
  }

  #useToken(token: CachedToken | undefined, address: string): TokenPrincipal {
    const nowMs = this.#now();
    const refusal = token === undefined ? "invalid" : token.refusal(nowMs, address);
    if (token === undefined || refusal !== undefined) {
      throw this.#refused(refusal ?? "invalid");
    }
    this.#options.onVerified?.("valid");
    if (token.use(nowMs, address)) {
      this.#options.uses.note(token.principal, nowMs, address);
    }
    return token.principal;
  }

  #refused(verification: Verification): Problem {
    this.#options.onVerified?.(verification);
    return credentialInvalid();
  }

  async #findToken(value: string): Promise<CachedToken | undefined> {
    const { accounts, keys } = this.#options;
    const digests = keys.digests(value);
    const found = await accounts.findCredential({
      digests: digests.map(({ digest }) => digest),
      nowMs: this.#now(),
    });
    if (found === undefined) {
      return undefined;
    }
    const [current] = digests;
    if (found.digest !== current.digest) {
      this.#replaceDigest(found.digest, current);
    }
    return new CachedToken(found);
  }

  #authenticateSession(value: string, from: From): Principal | Promise<Principal> {
    const digest = digestCode(value);
    const recalled = this.#sessions.recall(digest);
    if (recalled !== undefined) {
      return this.#useSession(recalled);
    }
    const found =
      this.#sessions.share(digest) ??
      this.#limited(from, () =>
        this.#sessions.ask(digest, () => this.#findSession(digest, from.address)),
      );
    return found.then((session) => this.#useSession(session));
  }

  /** Looks up a credential under the limit on failures of its address. */
  #limited<Found>(
    { address, again = false }: From,
    look: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    return again
      ? look()
      : this.#options.failures.attempt(address, look, (found) => found === undefined);
  }

  #useSession(session: CachedSession | null | undefined): Principal {
    return session?.isUsable(this.#now()) ? session.principal : SIGNED_OUT;
  }

  async #findSession(digest: string, address: string): Promise<CachedSession | undefined> {
    const nowMs = this.#now();
    const found = await this.#options.accounts.findSession({ digest, nowMs });
    if (found === undefined) {
      return undefined;
    }
    if (nowMs - (found.usedAtMs ?? 0) >= SESSION_USE_RECORD_INTERVAL_MS) {
      const use = { sessionId: found.sessionId, timeMs: nowMs, address };
      this.#inBackground(
        () => this.#options.accounts.recordSessionUse(use),
        "the last use of a session was not recorded",
      );
    }
    return new CachedSession(found);
  }

  #fingerprint(value: string): string {
    return hash("sha256", this.#salt + value, "base64");
  }

  /** A failure is retried at the token's next lookup. */
  #replaceDigest(digest: string, next: { readonly digest: string; readonly keyId: string }): void {
    const replacement = { digest, newDigest: next.digest, newDigestKeyId: next.keyId };
    this.#inBackground(
      () => this.#options.accounts.replaceDigest(replacement),
      "a digest under an old key was not replaced",
    );
  }

  /** Writes what no call waits for; skipped while too many wait. */
  #inBackground(write: () => Promise<unknown>, failure: string): void {
    if (this.#writing.size >= MAX_BACKGROUND_WRITES) {
      return;
    }
    const writing: Promise<unknown> = write()
      .catch((err: unknown) => this.#options.log.warn({ err }, failure))
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  #reloadKeys(): void {
    try {
      this.#options.keys.reload();
    } catch (err) {
      this.#options.log.error({ err }, "the platform's keys cannot be read again");
    }
  }
}

/** The one error for every bad credential. */
function credentialInvalid(): Problem {
  return problem(
    "TOKEN_INVALID",
    "the token is not valid: it may be mistyped, expired or deleted, or not be meant for this time or network; send the header Authorization: Bearer <token> with a valid one",
  );
}
