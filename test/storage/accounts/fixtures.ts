/** A platform for tests: a clock that moves by hand, ids in order, and short ways to what tests begin with. */
import { expect } from "vitest";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import type { Accounts } from "../../../src/storage/accounts/accounts.ts";
import type { Deed } from "../../../src/storage/accounts/deed.ts";
import type { AuditRecord } from "../../../src/storage/accounts/organizations.ts";
import type { Role } from "../../../src/storage/accounts/people.ts";
import type {
  NewSecret,
  TokenFields,
  TokenKind,
  TokenRecord,
} from "../../../src/storage/accounts/tokens.ts";

export const DAY_MS = 86_400_000;

/** Everything that a token must say, without any access beyond developer operations. */
export const FIELDS: TokenFields = {
  name: "laptop",
  description: "",
  access: {
    ...NO_ACCESS,
    developerOperations: true,
  },
  allDeployments: false,
  deployments: [],
  expiresAtMs: 4_000_000_000_000,
  notBeforeMs: undefined,
  allowedNetworks: [],
};

export const ENDPOINT_ACCESS = {
  ...NO_ACCESS,
  protectedEndpoint: true,
};

export const MONITORING_ACCESS = {
  ...NO_ACCESS,
  monitoring: true,
};

export class Platform {
  readonly accounts: Accounts;
  nowMs = 1_800_000_000_000;
  #ids = 0;

  constructor(accounts: Accounts) {
    this.accounts = accounts;
  }

  /** Ids are in the order in which they were made. */
  newId(of: string): string {
    this.#ids += 1;
    return `${of}-${String(this.#ids).padStart(6, "0")}`;
  }

  deed(name = "operator"): Deed {
    const by = { name, id: "", address: "203.0.113.9" };
    return { by, nowMs: this.nowMs, eventId: this.newId("event") };
  }

  session(digest = this.newId("session-digest")) {
    return { sessionId: this.newId("session"), digest, expiresAtMs: this.nowMs + DAY_MS };
  }

  secret(sealed?: string): NewSecret {
    const digest = this.newId("digest");
    return { digest, digestKeyId: "key-1", hint: "tsrp_abcd", ...(sealed && { sealed }) };
  }

  /** The first organization, `acme`, with `ada@example.com` as its admin. */
  async setUp(): Promise<{ organizationId: string; userId: string }> {
    const organizationId = this.newId("organization");
    const userId = this.newId("user");
    const { outcome } = await this.accounts.setUp({
      ...this.deed(),
      organizationId,
      organization: "acme",
      userId,
      email: "ada@example.com",
      displayName: "Ada",
      passwordHash: "hash of a password",
    });
    expect(outcome).toBe("done");
    return { organizationId, userId };
  }

  /** An invitation by mail, unless its link is `shown`. */
  async invite(organizationId: string, email: string, role: Role = "member", shown = false) {
    const digest = this.newId("invitation-digest");
    const answer = await this.accounts.invite({
      ...this.deed("ada@example.com"),
      organizationId,
      invitationId: this.newId("invitation"),
      digest,
      email,
      role,
      expiresAtMs: this.nowMs + 7 * DAY_MS,
      mailed: !shown,
      limit: 100,
    });
    if (answer.outcome !== "invited") {
      throw new Error(`not invited: ${answer.outcome}`);
    }
    return { ...answer.invitation, digest };
  }

  /** A person joins by an invitation; answers their id. Without `userId` they are new. */
  async join(
    organizationId: string,
    email: string,
    options: { role?: Role; userId?: string; shown?: boolean } = {},
  ) {
    const { role, shown } = options;
    const { invitationId } = await this.invite(organizationId, email, role, shown);
    const userId = options.userId ?? this.newId("user");
    const newUser = { email, displayName: "", passwordHash: "hash of another password" };
    const { outcome } = await this.accounts.acceptInvitation({
      ...this.deed(email),
      invitationId,
      userId,
      ...(options.userId === undefined && { newUser }),
    });
    expect(outcome).toBe("joined");
    return userId;
  }

  async deployment(organizationId: string, name: string): Promise<string> {
    const deploymentId = this.newId("deployment");
    const { outcome } = await this.accounts.createDeployment({
      ...this.deed(),
      organizationId,
      deploymentId,
      name,
      authorization: true,
      limit: 100,
    });
    expect(outcome).toBe("created");
    return deploymentId;
  }

  /** What `createToken` is asked with. */
  newToken(organizationId: string, options: TokenOptions = {}) {
    const { kind = "organization", userId, fields, secret = this.secret() } = options;
    const { limit = 100, personalLimit = 100 } = options;
    return {
      ...this.deed("ada@example.com"),
      organizationId,
      tokenId: this.newId("token"),
      kind,
      userId,
      fields: { ...FIELDS, ...fields },
      secret,
      limit,
      personalLimit,
    };
  }

  async token(
    organizationId: string,
    options: TokenOptions = {},
  ): Promise<{ token: TokenRecord; secret: NewSecret }> {
    const parameters = this.newToken(organizationId, options);
    const answer = await this.accounts.createToken(parameters);
    if (answer.outcome !== "created") {
      throw new Error(`no token: ${answer.outcome}`);
    }
    return { token: answer.token, secret: parameters.secret };
  }

  /** The newest events of an organization, newest first. */
  async audit(organizationId: string, limit = 100): Promise<AuditRecord[]> {
    const { items } = await this.accounts.listAuditEvents({ organizationId, limit });
    return items;
  }

  /** What `work` told the nodes to forget, as `kind id`. */
  async changesOf(work: () => Promise<unknown>): Promise<string[]> {
    const { latest } = await this.accounts.listChanges({ afterSequence: 0, limit: 0 });
    await work();
    const { changes } = await this.accounts.listChanges({ afterSequence: latest, limit: 1_000 });
    return changes.map(({ kind, id }) => `${kind} ${id}`);
  }
}

interface TokenOptions {
  readonly kind?: TokenKind;
  readonly userId?: string;
  readonly fields?: Partial<TokenFields>;
  readonly secret?: NewSecret;
  readonly limit?: number;
  readonly personalLimit?: number;
}

/** Pages of a list, one after the other, until there is no next. */
export async function allPages<Item>(
  list: (after: string | undefined) => Promise<{ items: Item[]; next: string | undefined }>,
): Promise<Item[][]> {
  const pages: Item[][] = [];
  let after: string | undefined;
  do {
    const page = await list(after);
    pages.push(page.items);
    after = page.next;
  } while (after !== undefined);
  return pages;
}
