/** Whose token may join a machine, and what it is given. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WorkerPlace } from "../../../src/client/index.ts";
import { artifact, World } from "../hosting/world.ts";
import { joinedMember } from "../start/member.ts";
import { json, TestWorker } from "./test-worker.ts";

const SECRETS = { API_KEY: "of the production" };
const WORKER = { access: ["worker"], deployments: ["secret"] };

let world: World;
const workers: TestWorker[] = [];

/** A call of a person. */
async function rpc(method: string, body: object, cookie: Record<string, string>) {
  const answer = await world.platform.call(`/tessera.v1.${method}`, body, cookie);
  return [answer.status, answer.json] as const;
}

async function newToken(cookie: Record<string, string>, fields: object) {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  return rpc("TokenService/CreateToken", { name: "t", expiresAt, ...fields }, cookie);
}

/** Somebody who was invited as an admin, and how they lose that. */
async function admin(email: string) {
  const cookie = await joinedMember(world.platform, world.cookie, { email, role: "admin" });
  const demote = async (): Promise<void> => {
    const [, { members }] = await rpc("OrganizationService/ListMembers", {}, world.cookie);
    const { userId } = (members as { email: string; userId: string }[]).find(
      (one) => one.email === email,
    ) as { userId: string };
    const demoted = { userId, role: "ROLE_MEMBER" };
    expect((await rpc("OrganizationService/UpdateMember", demoted, world.cookie))[0]).toBe(200);
  };
  return { cookie, demote };
}

async function register(token: string, deployment: string): Promise<TestWorker> {
  const worker = new TestWorker(world.platform.url, token);
  workers.push(worker);
  return worker.register({ deployment });
}

async function handedOut(): Promise<object[]> {
  const filter = { action: "worker.secrets" };
  const [, { auditEvents = [] }] = await rpc(
    "OrganizationService/ListAuditEvents",
    filter,
    world.cookie,
  );
  return auditEvents as object[];
}

beforeAll(async () => {
  world = await World.start();
  const remote = { settings: { place: WorkerPlace.REMOTE } };
  await world.deploy("secret", await artifact("echo"), { ...remote, secrets: SECRETS });
  await world.deploy("plain", await artifact("echo"), remote);
  for (const name of ["secret", "plain"]) {
    await world.until(name, ({ statusReason }) => statusReason.includes("waits for a worker"));
  }
});
afterAll(async () => {
  for (const worker of workers) {
    await worker[Symbol.asyncDispose]();
  }
  await world[Symbol.asyncDispose]();
});

const denied = { code: "permission_denied", message: expect.stringContaining("secrets") };

describe("a token with worker access", () => {
  it("is made by nobody who may not use the secrets that its machines are given", async () => {
    const cookie = await joinedMember(world.platform, world.cookie, { email: "m@example.com" });
    const fields = { access: ["TOKEN_ACCESS_WORKER"], deployments: ["secret"] };
    expect(await newToken(cookie, fields)).toEqual([403, expect.objectContaining(denied)]);
    // Nor by changing another.
    const endpoint = { access: ["TOKEN_ACCESS_PROTECTED_ENDPOINT"], deployments: ["secret"] };
    const [status, { token }] = await newToken(cookie, endpoint);
    expect(status).toBe(200);
    const { tokenId } = token as { tokenId: string };
    const update = { token: { tokenId, ...fields }, updateMask: "access" };
    expect(await rpc("TokenService/UpdateToken", update, cookie)).toEqual([
      403,
      expect.objectContaining(denied),
    ]);
  });

  it("is neither rotated nor widened by an owner who is no admin any more, and may be narrowed", async () => {
    const { cookie, demote } = await admin("former@example.com");
    const { id: tokenId } = await world.platform.createToken(cookie, WORKER);
    await demote();
    expect(await rpc("TokenService/RotateToken", { tokenId }, cookie)).toEqual([
      403,
      expect.objectContaining(denied),
    ]);
    const change = (fields: object, updateMask: string) =>
      rpc("TokenService/UpdateToken", { token: { tokenId, ...fields }, updateMask }, cookie);
    const wide = await change(
      { allDeployments: true, deployments: [] },
      "allDeployments,deployments",
    );
    expect(wide).toEqual([403, expect.objectContaining(denied)]);
    expect((await change({ allowedNetworks: ["10.0.0.0/8"] }, "allowedNetworks"))[0]).toBe(200);
  });

  it("brings no secrets when its owner may not use them any more", async () => {
    const { cookie, demote } = await admin("owner@example.com");
    const both = { access: ["worker"], deployments: ["secret", "plain"] };
    const { value } = await world.platform.createToken(cookie, both);
    const before = await register(value, "secret");
    expect(before.registered?.settings?.env).toEqual(SECRETS);
    const worker = await before.open();
    await demote();
    expect(String(await worker.ended)).toMatch(/token/i);
    await expect(register(value, "secret")).rejects.toThrow("API_KEY");
    await expect(
      worker.register({ deployment: "secret", resumeSession: worker.session }),
    ).rejects.toThrow("which the owner of this token (owner@example.com) may not use");
    expect((await register(value, "plain")).registered?.settings?.env).toEqual({});
  });

  it("leaves a note in the audit log of what its machine was given, once for each machine", async () => {
    const { id, value } = await world.platform.createToken(world.cookie, {
      ...{ ...WORKER, name: "of the gpus" },
    });
    const before = (await handedOut()).length;
    await register(value, "secret");
    await register(value, "secret");
    const events = await handedOut();
    expect(events.length).toBe(before + 1);
    expect(events[0]).toMatchObject({
      actor: "ada@example.com",
      subject: "secret",
      details: { secrets: "API_KEY", revision: "1", machine: "elsewhere", token: "of the gpus" },
    });
    expect(JSON.stringify(events)).not.toContain(SECRETS.API_KEY);
    expect(id).not.toBe("");
  });
});

describe("a number that no honest worker sends", () => {
  const HUGE = 2n ** 64n - 1n;

  it.each([
    ["a heartbeat", { sequence: HUGE }],
    ["memory", { sequence: 1n, memoryBytes: HUGE }],
  ])("ends its stream as an invalid argument: %s", async (_, value) => {
    const { value: token } = await world.platform.createToken(world.cookie, WORKER);
    const worker = await (await register(token, "secret")).open();
    worker.send({ case: "heartbeat", value });
    expect(String(await worker.ended)).toContain("[invalid_argument]");
  });

  it("ends its session where it is the id of a call", async () => {
    const { value: token } = await world.platform.createToken(world.cookie, WORKER);
    const worker = await (await register(token, "secret")).open();
    worker.results(json(HUGE, "forged"));
    expect(String(await worker.ended)).toContain("a result that the protocol does not have");
  });

  it("is refused in what it holds", async () => {
    const { value } = await world.platform.createToken(world.cookie, WORKER);
    const worker = new TestWorker(world.platform.url, value);
    workers.push(worker);
    const held = [{ id: HUGE, taskId: "t", attempt: 1, endpoint: "work" }];
    await expect(worker.register({ deployment: "secret", held })).rejects.toThrow(
      "[invalid_argument]",
    );
  });
});
