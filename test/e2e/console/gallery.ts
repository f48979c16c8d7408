/**
 * A platform with something on every page of the console, and with a hostile text in every field
 * that a service or a person can set.
 */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import { createModelIndex } from "../../../src/artifacts/model-index.ts";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { artifact, World } from "../hosting/world.ts";
import { administration, cookieOf, PASSWORD } from "../start/platform.ts";

/** Who looks at a page: people of acme, one of another organization, and one of none. */
export const PEOPLE = {
  admin: "ada@example.com",
  member: `${"m".repeat(64)}@${"long.".repeat(10)}example.com`,
  stranger: "eve@example.com",
  newcomer: "joan@example.com",
} as const;

export type Role = keyof typeof PEOPLE;

/** Markup that takes a page over where it is not shown as text. */
export const MARKUP = `<script>document.title = "taken"</script>`;
/** Text from right to left, begun by an override that it does not end. */
export const BACKWARDS = "\u202eמימין לשמאל";
/** The longest name that people and tokens may have. */
export const NAME = `${MARKUP}${BACKWARDS}`.padEnd(100, "w");

const DEPLOYMENT = "h".repeat(63);
/** The webhook of that deployment. */
export const WEBHOOK = "w".repeat(63);
const TASK_ENDPOINTS = ["fail", "finish", "linger", "page"] as const;

/** The ids that paths of pages name. */
export interface GalleryIds {
  readonly deployment: string;
  /** A task for each endpoint of the hostile service: failed, succeeded, running, with a file. */
  readonly tasks: Readonly<Record<(typeof TASK_ENDPOINTS)[number], string>>;
  /** The code of a login of another machine. */
  readonly userCode: string;
}

export class Gallery implements AsyncDisposable {
  readonly world: World;
  readonly ids: GalleryIds;

  private constructor(world: World, ids: GalleryIds) {
    this.world = world;
    this.ids = ids;
  }

  static async open(): Promise<Gallery> {
    const world = await World.start();
    await world.deployed(DEPLOYMENT, await artifact("hostile"), {
      settings: { env: { ["V".repeat(64)]: "1" }, maxWorkers: 1, minWorkers: 1 },
    });
    await world.deploy("broken", await artifact("echo", BROKEN), {
      settings: { env: { WHY: `${NAME}${NAME}` } },
    });
    await fillOrganization(world);
    await pushModel(world);
    await schedule(world);
    await hook(world);
    const tasks = await submitTasks(world);
    await world.until("broken", ({ status }) => status === DeploymentStatus.FAILED);
    const { json } = await world.platform.call("/api/v1/login:startDevice", {
      host_name: "laptop",
    });
    return new Gallery(world, { deployment: DEPLOYMENT, tasks, userCode: String(json.user_code) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}

/** Ends with an error while a worker loads it. */
const BROKEN = Object.fromEntries([
  ["const VERSION", "if (process.env.WHY) throw new Error(process.env.WHY);\nconst VERSION"],
]);

/** People, an invitation, tokens, and what they are called. */
async function fillOrganization({ platform, folder, cookie }: World): Promise<void> {
  const call = async (path: string, body: object, headers = cookie) => {
    const answer = await platform.call(path, body, headers);
    expect(answer.status, `${path}: ${JSON.stringify(answer.json)}`).toBe(200);
    return answer;
  };
  const join = async (email: string) => {
    const { json } = await call("/api/v1/members:invite", { email });
    const [, code] = String(json.url).split("#code=");
    const body = { invitation_code: code, password: PASSWORD, display_name: NAME };
    return call("/api/v1/auth:acceptInvitation", body, {});
  };
  await call("/api/v1/auth:changeDisplayName", { display_name: NAME });
  await join(PEOPLE.member);
  const stranger = await join(PEOPLE.stranger);
  await using operator = await administration(folder);
  await operator.createOrganization({ name: "rivals", adminEmail: PEOPLE.stranger });
  for (const leaving of [stranger, await join(PEOPLE.newcomer)]) {
    await call("/api/v1/members:leave", { organization: "acme" }, cookieOf(leaving));
  }
  await call("/api/v1/members:invite", { email: `i${PEOPLE.member.slice(1)}` });
  const patched = await fetch(`${platform.url}/api/v1/organizations/acme`, {
    method: "PATCH",
    headers: { ...cookie, "content-type": "application/json" },
    body: JSON.stringify({ display_name: NAME }),
  });
  expect(patched.status).toBe(200);
  for (const kind of ["personal", "organization"]) {
    const fields = { kind, description: `${NAME}${NAME}`, access: ["protected_endpoint"] };
    await platform.createToken(cookie, { ...fields, name: NAME, deployments: [DEPLOYMENT] });
  }
}

/** A version of a model, with a warning. */
async function pushModel({ client }: World): Promise<void> {
  const bytes = Buffer.from("weights");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  await client.deployments.uploadFile(
    (async function* () {
      const header = { sha256, sizeBytes: BigInt(bytes.length) };
      yield { part: { case: "header" as const, value: header } };
      yield { part: { case: "chunk" as const, value: bytes } };
    })(),
  );
  const file = { path: `${"w".repeat(100)}.bin`, size: bytes.length, sha256, executable: false };
  const { text } = createModelIndex([file]);
  await client.models.pushModel({ model: "reader", index: Buffer.from(text) });
}

/** Of the longest name, at a time that no test sees. */
async function schedule({ client }: World): Promise<void> {
  const schedule = { name: "s".repeat(63), endpoint: "finish", cron: "0 0 29 2 *" };
  await client.schedules.createSchedule({ deployment: DEPLOYMENT, schedule });
}

/** Of the longest name, and of nobody: nothing leaves the machine. */
async function hook({ client }: World): Promise<void> {
  const webhook = { name: WEBHOOK, url: `https://${"r".repeat(60)}.invalid/` };
  await client.webhooks.createWebhook({ deployment: DEPLOYMENT, webhook });
}

async function submitTasks(world: World): Promise<GalleryIds["tasks"]> {
  await world.call(DEPLOYMENT, `/${"call".repeat(15)}`, { body: {} });
  const submitted = TASK_ENDPOINTS.map(async (endpoint) => {
    const { status, text, json } = await world.call(DEPLOYMENT, `/${endpoint}/submit`, {
      body: {},
    });
    expect(status, text).toBe(202);
    const id = String(json.task_id);
    if (endpoint !== "linger") {
      await world.call(DEPLOYMENT, `/${endpoint}/get?task_id=${id}&wait=30`);
    }
    return [endpoint, id] as const;
  });
  return Object.fromEntries(await Promise.all(submitted)) as GalleryIds["tasks"];
}
