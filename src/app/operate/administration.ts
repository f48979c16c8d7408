/**
 * What the operator does on the platform's machine, straight on its data. A
 * node that runs meanwhile reads of it in the changes that every deed leaves,
 * within a second.
 */

import { loadKeys } from "../../auth/keys.ts";
import { rotatedKeys, rotateKeys } from "../../auth/keys-file.ts";
import { faultOfEmail, faultOfOrganizationName, normalizeEmail } from "../../auth/names.ts";
import { checkPassword, hashPassword } from "../../auth/passwords.ts";
import { randomBase62 } from "../../auth/random.ts";
import { reseal } from "../../auth/reseal.ts";
import { MAX_DRAINED_MACHINES } from "../../hosting/membership.ts";
import type { Accounts } from "../../storage/accounts/accounts.ts";
import type { Deed } from "../../storage/accounts/deed.ts";
import type {
  ListedOrganization,
  OrganizationRecord,
} from "../../storage/accounts/organizations.ts";
import type { User } from "../../storage/accounts/people.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import type { NodeRecord } from "../../storage/hosting/nodes.ts";

/**
 * Characters of a password that the platform makes up: 119 bits, and still short enough to
 * type.
 */
const GENERATED_PASSWORD_CHARACTERS = 20;

/** Organizations read in one query when the operator lists them all. */
const MAX_LISTED_ORGANIZATIONS = 500;

interface AdministrationOptions {
  /** Ended with it: the storage. */
  readonly resources: AsyncDisposable;
  readonly accounts: Accounts;
  readonly hosting: HostingStorage;
  readonly keys: KeyRotation;
  /** Other nodes may use the database. */
  readonly shared: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

/** A person with the password that was set; `generated` when nobody had chosen one. */
export interface AdminCredentials {
  readonly email: string;
  readonly generated: string | undefined;
}

/** How many personal tokens of a person have ended, and how many can be used still. */
export interface PasswordReset {
  readonly endedTokens: number;
  readonly keptTokens: number;
}

export interface ListedNode extends NodeRecord {
  /** Its machine takes no new work. */
  readonly isDrained: boolean;
}

export class Administration implements AsyncDisposable {
  readonly #options: AdministrationOptions;

  constructor(options: AdministrationOptions) {
    this.#options = options;
  }

  /** Makes the first person, organization and admin. Without a password, one is generated. */
  async setUp(parameters: {
    readonly organization: string;
    readonly email: string;
    readonly displayName?: string;
    readonly password?: string;
  }): Promise<AdminCredentials> {
    const { organization, displayName = "" } = parameters;
    const { accounts, newId } = this.#options;
    const email = checkedEmail(parameters.email);
    checkOrganizationName(organization);
    const { password, generated } = choose(parameters.password);
    const { outcome } = await accounts.setUp({
      ...this.#deed(),
      organizationId: newId(),
      organization,
      userId: newId(),
      email,
      displayName,
      passwordHash: await hashPassword(password),
    });
    if (outcome !== "done") {
      throw new Error(
        "the platform is set up already: sign in and invite people, or set a password with tessera admin reset-password",
      );
    }
    return { email, generated };
  }

  /** Creates an organization; its admin is a person who has an account. */
  async createOrganization(parameters: {
    readonly name: string;
    readonly adminEmail: string;
    readonly displayName?: string;
  }): Promise<OrganizationRecord> {
    const { name, displayName = "" } = parameters;
    const { accounts, newId } = this.#options;
    const email = checkedEmail(parameters.adminEmail);
    checkOrganizationName(name);
    const user = await accounts.findUser({ email });
    if (user === undefined) {
      throw new Error(
        `there is no person with the e-mail address ${email}: have them invited to an organization first`,
      );
    }
    const organizationId = newId();
    const { userId } = user;
    const made = { organizationId, name, displayName, userId };
    const created = await accounts.createOrganization({ ...this.#deed(), ...made });
    if (created.outcome !== "created") {
      throw new Error(`the name ${name} is taken: tessera admin organizations lists them all`);
    }
    return created.organization;
  }

  /** Whether an organization may have monitoring tokens. */
  setMonitoring(name: string, enabled: boolean): Promise<OrganizationRecord> {
    return this.#update(name, { monitoringEnabled: enabled });
  }

  /** Whether an organization's admins may see links of invitations for people without an account. */
  setInvitationLinks(name: string, enabled: boolean): Promise<OrganizationRecord> {
    return this.#update(name, { invitationLinksEnabled: enabled });
  }

  async #update(
    name: string,
    fields: { readonly monitoringEnabled?: boolean; readonly invitationLinksEnabled?: boolean },
  ): Promise<OrganizationRecord> {
    const { accounts } = this.#options;
    const found = await accounts.findOrganization({ name });
    const { organizationId } = found ?? {};
    const updated =
      organizationId === undefined
        ? undefined
        : await accounts.updateOrganization({
            ...this.#deed(),
            organizationId,
            ...fields,
          });
    if (updated === undefined) {
      throw new Error(
        `there is no organization ${JSON.stringify(name)}: tessera admin organizations lists them`,
      );
    }
    return updated;
  }

  /** All organizations, by name. */
  async organizations(): Promise<ListedOrganization[]> {
    const { accounts } = this.#options;
    const listed: ListedOrganization[] = [];
    let after: string | undefined;
    do {
      const page = await accounts.listOrganizations({
        limit: MAX_LISTED_ORGANIZATIONS,
        ...(after && { after }),
      });
      listed.push(...page.items);
      after = page.next;
    } while (after !== undefined);
    return listed;
  }

  /**
   * Sets a person's password, and ends all their sessions, and their personal
   * tokens when that is asked for. Without a password, one is generated.
   */
  async resetPassword(parameters: {
    readonly email: string;
    readonly password?: string;
    readonly revokeTokens?: boolean;
  }): Promise<AdminCredentials & PasswordReset> {
    const { accounts, now } = this.#options;
    const { revokeTokens = false } = parameters;
    const email = checkedEmail(parameters.email);
    const user = await accounts.findUser({ email });
    if (user === undefined) {
      throw new Error(`there is no person with the e-mail address ${email}`);
    }
    const { password, generated } = choose(parameters.password);
    const passwordHash = await hashPassword(password);
    const { userId } = user;
    const deed = this.#deed();
    const changed = await accounts.setPassword({ ...deed, userId, passwordHash, revokeTokens });
    const { count } = await accounts.listPersonalTokens({ userId, nowMs: now(), limit: 0 });
    return { email, generated, endedTokens: changed?.endedTokens ?? 0, keptTokens: count };
  }

  /** Makes a person an operator of the platform, or ends that. */
  async setOperator(
    address: string,
    operator: boolean,
  ): Promise<Pick<User, "email" | "emailVerified">> {
    const { accounts } = this.#options;
    const email = checkedEmail(address);
    const user = await accounts.findUser({ email });
    if (user === undefined) {
      throw new Error(
        `there is no person with the e-mail address ${email}: have them invited to an organization first`,
      );
    }
    await accounts.setOperator({ ...this.#deed(), userId: user.userId, operator });
    return user;
  }

  /** The operators, by e-mail address. */
  operators(): Promise<User[]> {
    return this.#options.accounts.listOperators();
  }

  /** The nodes that live, by id. */
  async nodes(): Promise<ListedNode[]> {
    const { hosting, now } = this.#options;
    const nodes = await hosting.listNodes({ nowMs: now() });
    const drained = await hosting.listDrained({ organizationId: undefined });
    const names = new Set(drained.map(({ machine }) => machine));
    return nodes.map((node) => ({ ...node, isDrained: names.has(node.machine) }));
  }

  /** Has the nodes of a machine take no new work, or takes them back. */
  async setDrained(machine: string, isDrained: boolean): Promise<void> {
    const { hosting } = this.#options;
    const key = { organizationId: undefined, machine };
    const drained = await hosting.listDrained(key);
    const known = [...(await this.nodes()), ...drained].map((one) => one.machine);
    if (!known.includes(machine)) {
      throw new Error(
        `no node lives on a machine ${JSON.stringify(machine)}, and it is not drained: tessera admin nodes lists them`,
      );
    }
    if (!isDrained) {
      await hosting.resumeMachine({ ...this.#deed(), ...key });
    } else {
      const limit = MAX_DRAINED_MACHINES;
      const { outcome } = await hosting.drainMachine({ ...this.#deed(), ...key, limit });
      if (outcome === "limit") {
        throw new Error(`${limit} machines are drained: take back those that are gone for good`);
      }
    }
  }

  /** See `rotate`. */
  rotateKeys(request: RotationRequest): Promise<Rotated> {
    const { accounts, hosting, keys, shared } = this.#options;
    return rotate(keys, { accounts, hosting, shared, deed: () => this.#deed(), ...request });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.resources[Symbol.asyncDispose]();
  }

  #deed(): Deed {
    const { now, newId } = this.#options;
    return { by: { name: "operator", id: "", address: "" }, nowMs: now(), eventId: newId() };
  }
}

function checkOrganizationName(name: string): void {
  const fault = faultOfOrganizationName(name);
  if (fault !== undefined) {
    throw new Error(`the organization's name ${JSON.stringify(name)} ${fault}`);
  }
}

function checkedEmail(text: string): string {
  const email = normalizeEmail(text);
  const fault = faultOfEmail(email);
  if (fault !== undefined) {
    throw new Error(`the e-mail address ${fault}`);
  }
  return email;
}

function choose(given: string | undefined): {
  readonly password: string;
  readonly generated: string | undefined;
} {
  if (given !== undefined) {
    checkPassword(given);
    return { password: given, generated: undefined };
  }
  const generated = randomBase62(GENERATED_PASSWORD_CHARACTERS);
  return { password: generated, generated };
}

// A rotation of the platform's keys: new ones come first, the old ones stay
// behind them, so that everything made with them is still verified and opened;
// then every sealed value is sealed again. Digests of tokens move to the new
// key by themselves, each when its token is used next.
//
// No node may make anything with a key that another node does not know: that
// one would refuse it. Nodes that share a file of keys are told to read it
// again, before anything is sealed. Keys in the environment are added behind
// the current ones on every node first, and only then moved before them.

/** Where the keys are. */
type KeyRotation =
  | { readonly path: string }
  /** In the environment, which this program cannot change. */
  | { readonly env: string };

interface RotationRequest {
  /** Make no new keys, only seal again with the current one. */
  readonly resealOnly: boolean;
  /** There are no nodes that have the keys in a file of their own. */
  readonly oneFile: boolean;
}

interface RotationOptions extends RotationRequest {
  readonly accounts: Accounts;
  readonly hosting: HostingStorage;
  /** Other nodes may use the database. */
  readonly shared: boolean;
  readonly deed: () => Deed;
}

type Rotated =
  /** Values that were sealed again, and those that no key opens. */
  | { readonly outcome: "rotated"; readonly resealed: number; readonly unreadable: number }
  /** What to set as `TESSERA_KEYS` on every node, one after the other; nothing has changed yet. */
  | { readonly outcome: "to_set"; readonly prepared: string; readonly rotated: string };

/** Throws a message that says what to do. */
async function rotate(
  keys: KeyRotation,
  { accounts, hosting, shared, deed, resealOnly, oneFile }: RotationOptions,
): Promise<Rotated> {
  if (!resealOnly) {
    if ("env" in keys) {
      return { outcome: "to_set", ...rotatedKeys(keys.env, "TESSERA_KEYS") };
    }
    if (shared && !oneFile) {
      throw new Error(
        `other nodes may share this database, and would not know the new keys: if there are none, or they read this very file, add --one-file; else set TESSERA_KEYS on all of them to the content of ${keys.path}, and rotate with that`,
      );
    }
    rotateKeys(keys.path);
  }
  const ring = loadKeys("path" in keys ? { path: keys.path, create: false } : keys);
  await accounts.announceKeys(deed());
  return { outcome: "rotated", ...(await reseal({ accounts, hosting, keys: ring })) };
}
