/** Cache entries of the verifier: tokens and sessions, prepared for the checks of every call. */
import { Networks } from "../collections/networks.ts";
import type { SessionRecord } from "../storage/accounts/people.ts";
import type { TokenCredential } from "../storage/accounts/tokens.ts";
import type { Forgotten } from "./change-feed.ts";
import type { Cacheable } from "./lookup-cache.ts";
import type { SessionPrincipal, TokenPrincipal } from "./principal.ts";

/** Uses of a token from one address closer together than this are stored as one. */
const USE_RESOLUTION_MS = 30_000;

/** A cached token with its parsed networks. */
export class CachedToken implements Cacheable {
  readonly principal: TokenPrincipal;
  readonly #notBeforeMs: number;
  /** When it stops being valid; 0 for a token that never was. */
  readonly #endsAtMs: number;
  readonly #networks: Networks | undefined;
  /** The use that was told last. */
  #used = { atMs: Number.NEGATIVE_INFINITY, address: "" };

  constructor(found: TokenCredential) {
    const { tokenKind, access, user, allowedNetworks } = found;
    this.principal = Object.freeze({
      kind: "token",
      tokenId: found.tokenId,
      generation: found.generation,
      tokenKind,
      tokenName: found.tokenName,
      organizationId: found.organizationId,
      organization: found.organization,
      access,
      allDeployments: found.allDeployments,
      deployments: found.deployments,
      expiresAtMs: found.expiresAtMs,
      allowedNetworks,
      user,
    });
    const isOrphan = tokenKind === "personal" && user === undefined;
    const isOff = access.monitoring && !found.monitoringEnabled;
    this.#endsAtMs = isOrphan || isOff ? 0 : found.expiresAtMs;
    this.#notBeforeMs = found.notBeforeMs ?? 0;
    this.#networks = allowedNetworks.length > 0 ? new Networks(allowedNetworks) : undefined;
  }

  /** Why the token is refused now, from this address; undefined when it is valid. */
  refusal(nowMs: number, address: string): "invalid" | "expired" | "network" | undefined {
    if (nowMs < this.#notBeforeMs || nowMs >= this.#endsAtMs) {
      return this.#endsAtMs > 0 && nowMs >= this.#endsAtMs ? "expired" : "invalid";
    }
    return (this.#networks?.includes(address) ?? true) ? undefined : "network";
  }

  /** Notes a use. True for one worth storing: the first, from another address, or half a minute later. */
  use(nowMs: number, address: string): boolean {
    if (address === this.#used.address && nowMs - this.#used.atMs < USE_RESOLUTION_MS) {
      return false;
    }
    this.#used = { atMs: nowMs, address };
    return true;
  }

  dependsOn(forgotten: Forgotten): boolean {
    const { tokenId, user, organizationId, deployments } = this.principal;
    switch (forgotten.kind) {
      case "token":
        return tokenId === forgotten.id;
      case "user":
        return user?.userId === forgotten.id;
      case "organization":
        return organizationId === forgotten.id;
      case "deployment":
        return deployments.some(({ deploymentId }) => deploymentId === forgotten.id);
      case "everything":
        return true;
      case "session":
      case "keys":
        return false;
    }
  }
}

/** A cached session. */
export class CachedSession implements Cacheable {
  readonly principal: SessionPrincipal;

  constructor(found: SessionRecord) {
    this.principal = Object.freeze({
      kind: "session",
      sessionId: found.sessionId,
      userId: found.userId,
      email: found.email,
      displayName: found.displayName,
      memberships: found.memberships,
      operator: found.operator,
      authenticatedAtMs: found.authenticatedAtMs,
      expiresAtMs: found.expiresAtMs,
    });
  }

  /** Whether the session has not expired. */
  isUsable(nowMs: number): boolean {
    return nowMs < this.principal.expiresAtMs;
  }

  dependsOn(forgotten: Forgotten): boolean {
    const { sessionId, userId, memberships } = this.principal;
    switch (forgotten.kind) {
      case "session":
        return sessionId === forgotten.id;
      case "user":
        return userId === forgotten.id;
      case "organization":
        return memberships.some(({ organizationId }) => organizationId === forgotten.id);
      case "everything":
        return true;
      case "token":
      case "deployment":
      case "keys":
        return false;
    }
  }
}
