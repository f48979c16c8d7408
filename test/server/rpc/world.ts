/** Two organizations that know nothing of each other, their people, and every kind of credential. */

import { newSecret } from "../../../src/api/token/secret.ts";
import { hashPassword } from "../../../src/auth/passwords.ts";
import { newSession } from "../../../src/auth/session-cookie.ts";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import type { NewSecret, TokenFields, TokenKind } from "../../../src/storage/accounts/tokens.ts";
import type { TestPlatform } from "./platform.ts";

export interface Person {
  readonly userId: string;
  readonly email: string;
  /** Of a session. */
  readonly headers: { readonly cookie: string };
}

export interface Company {
  readonly organizationId: string;
  readonly name: string;
  readonly admin: Person;
}

export interface MadeToken {
  readonly tokenId: string;
  readonly value: string;
  readonly headers: { readonly authorization: string };
}

/** What everybody here signs in with. */
export const PASSWORD = "a password for Tests";

const passwordHash = await hashPassword(PASSWORD);

let names = 0;

/** A name that nothing else has. */
export function newName(kind = "org"): string {
  names += 1;
  return `${kind}-${names}-${process.pid}`;
}

const DEVELOPER = {
  ...NO_ACCESS,
  developerOperations: true,
};

/** Makes an organization with an admin, past the API. */
export async function newCompany(platform: TestPlatform): Promise<Company> {
  const { accounts, newId } = platform;
  const name = newName();
  const organizationId = newId();
  const admin = { userId: newId(), email: `admin@${name}.example` };
  const first = await accounts.needsSetup();
  const { session, headers } = makeSession(platform);
  const made = { organizationId, userId: admin.userId };
  if (first) {
    await accounts.setUp({
      ...platform.deed(),
      ...made,
      organization: name,
      email: admin.email,
      displayName: "",
      passwordHash,
      session,
    });
    return { organizationId, name, admin: { ...admin, headers } };
  }
  await newPerson(platform, await anyOrganization(platform), admin);
  await accounts.createOrganization({ ...platform.deed(), ...made, name, displayName: "" });
  // As the operator does for those who send their links by themselves.
  const links = { organizationId, invitationLinksEnabled: true };
  await accounts.updateOrganization({ ...platform.deed(), ...links });
  await accounts.openSession({ ...platform.deed(), userId: admin.userId, session });
  return { organizationId, name, admin: { ...admin, headers } };
}

/** People come by invitation; this one is there for those who found an organization of their own. */
async function anyOrganization({ accounts }: TestPlatform): Promise<string> {
  const { items } = await accounts.listOrganizations({ limit: 1 });
  return items[0]?.organizationId ?? "";
}

async function newPerson(
  platform: TestPlatform,
  organizationId: string,
  { userId, email }: { readonly userId: string; readonly email: string },
): Promise<void> {
  await join(platform, organizationId, { userId, email, isNew: true });
  const left = { organizationId, userId, left: true };
  await platform.accounts.removeMember({ ...platform.deed(), ...left });
}

async function join(
  platform: TestPlatform,
  organizationId: string,
  person: { readonly userId: string; readonly email: string; readonly isNew: boolean },
): Promise<void> {
  const { accounts, newId } = platform;
  const { userId, email, isNew } = person;
  const invitationId = newId();
  await accounts.invite({
    ...platform.deed(),
    organizationId,
    invitationId,
    digest: newId(),
    email,
    role: "member",
    expiresAtMs: platform.now() + 60_000,
    mailed: true,
    limit: 1_000,
  });
  await accounts.acceptInvitation({
    ...platform.deed(),
    invitationId,
    userId,
    ...(isNew && { newUser: { email, displayName: "", passwordHash } }),
  });
}

/** A new person who is a member of the organization, and signed in. */
export async function newMember(
  platform: TestPlatform,
  { organizationId }: Pick<Company, "organizationId">,
): Promise<Person> {
  const userId = platform.newId();
  const email = `${newName("member")}@people.example`;
  await join(platform, organizationId, { userId, email, isNew: true });
  const { session, headers } = makeSession(platform);
  await platform.accounts.openSession({ ...platform.deed(), userId, session });
  return { userId, email, headers };
}

function makeSession(platform: TestPlatform) {
  const { value, session } = newSession(platform.now());
  platform.secrets.add(value);
  return { session, headers: { cookie: `__Host-tessera_session=${value}` } };
}

export interface TokenOptions extends Partial<TokenFields> {
  readonly kind?: TokenKind;
  readonly userId?: string;
}

/** Makes a token past the API, also one that the API would refuse. Default: an organization's, with developer operations. */
export async function newToken(
  platform: TestPlatform,
  { organizationId }: Pick<Company, "organizationId">,
  { kind = "organization", userId, ...fields }: TokenOptions = {},
): Promise<MadeToken> {
  const { accounts, keys, newId } = platform;
  const tokenId = newId();
  const access = fields.access ?? DEVELOPER;
  const made: { value: string; secret: NewSecret } = newSecret(keys, {
    organizationId,
    tokenId,
    kind,
    access,
  });
  platform.secrets.add(made.value);
  const created = await accounts.createToken({
    ...platform.deed(),
    organizationId,
    tokenId,
    kind,
    userId,
    limit: 100_000,
    personalLimit: 100_000,
    secret: made.secret,
    fields: {
      name: newName("token"),
      description: "",
      allDeployments: false,
      deployments: [],
      expiresAtMs: platform.now() + 3_600_000,
      notBeforeMs: undefined,
      allowedNetworks: [],
      ...fields,
      access,
    },
  });
  if (created.outcome !== "created") {
    throw new Error(`the token was not created: ${created.outcome}`);
  }
  return { tokenId, value: made.value, headers: { authorization: `Bearer ${made.value}` } };
}

/** Makes a deployment past the API; answers its name. */
export async function newDeployment(
  platform: TestPlatform,
  { organizationId }: Pick<Company, "organizationId">,
  authorization = true,
): Promise<string> {
  const name = newName("app");
  await platform.accounts.createDeployment({
    ...platform.deed(),
    organizationId,
    deploymentId: platform.newId(),
    name,
    authorization,
    limit: 1_000,
  });
  return name;
}
