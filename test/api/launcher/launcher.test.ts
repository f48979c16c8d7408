import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { LauncherService } from "../../../gen/tessera/v1/launcher_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { WorkerService } from "../../../gen/tessera/v1/worker_pb.js";
import { MACHINE_TOKEN_PATTERN } from "../../../src/auth/machine-token.ts";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import type { NodeWorkers } from "../../../src/storage/hosting/nodes.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import {
  type Company,
  type MadeToken,
  newCompany,
  newDeployment,
  newMember,
  newToken,
} from "../../server/rpc/world.ts";
import { newSchema } from "../../storage/postgres/databases.ts";

const LAUNCHER = "019aa51c-0000-7000-8000-000000000001";
const OTHER = "019aa51c-0000-7000-8000-000000000002";
const MACHINE = "019aa51c-0000-7000-8000-0000000000aa";
const LAUNCH = {
  ...NO_ACCESS,
  launch: true,
};
const METHODS = LauncherService.method;

describe.each(DATABASES)("launchers on $database", ({ database, open }) => {
  let platform: TestPlatform;
  let company: Company;
  let name: string;
  let deploymentId: string;
  let token: MadeToken;
  beforeAll(async () => {
    // It lists nodes, which are of the whole database.
    platform = await TestPlatform.start(await open(newSchema()));
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    name = await newDeployment(platform, company);
    deploymentId = await idOf(name);
    token = await launchToken([name]);
  });

  async function idOf(deployment: string): Promise<string> {
    const { organizationId } = company;
    const found = await platform.accounts.findDeployment({ organizationId, name: deployment });
    return found?.deploymentId ?? "";
  }

  const launchToken = (deployments: readonly string[], fields = {}) =>
    newToken(platform, company, { access: LAUNCH, deployments, ...fields });

  const report = (launcher: string, { headers } = token, facts: object = {}) =>
    platform.call(
      METHODS.reportLaunches,
      { launcher, on: "exec", hostname: "here", reports: [{ deploymentId, ...facts }] },
      { headers },
    );

  const machineToken = (fields: object = {}, { headers } = token) =>
    platform.call(
      METHODS.createMachineToken,
      { launcher: LAUNCHER, deploymentId, machine: MACHINE, ...fields },
      { headers },
    );

  const launches = async () => {
    const { headers } = company.admin;
    return (await platform.call(METHODS.listLaunches, {}, { headers })).body.launches ?? [];
  };

  /** What a node says of a deployment's workers. */
  async function nodeSays(nodeId: string, said: Partial<NodeWorkers>, of = deploymentId) {
    const { organizationId } = company;
    const key = { organizationId, deploymentId: of };
    const { hosting } = platform.storage;
    const nowMs = platform.now();
    await hosting.beat({ nodeId, nowMs, ttlMs: 600_000 });
    const facts = { revision: 1, targetRevision: 1, version: 1, workers: 0 };
    const reports = [{ ...key, status: "waiting" as const, reason: "", ...facts }];
    await hosting.reportDeployments({ nowMs, nodeId, reports });
    const workers = [{ ...key, workers: [], omitted: 0, ...said }];
    expect(await hosting.reportWorkers({ nodeId, reports: workers })).toEqual([of]);
  }

  it("a deployment is one launcher's, until that ends", async () => {
    expect((await report(LAUNCHER)).body.deploymentIds).toEqual([deploymentId]);
    expect((await report(OTHER)).body.deploymentIds).toEqual([]);
    const { headers } = token;
    await platform.call(METHODS.endLaunches, { launcher: OTHER }, { headers });
    expect((await report(OTHER)).body.deploymentIds).toEqual([]);
    await platform.call(METHODS.endLaunches, { launcher: LAUNCHER }, { headers });
    expect((await report(OTHER)).body.deploymentIds).toEqual([deploymentId]);
  });

  // Where nodes share a database, its clock decides, which no test moves.
  it.runIf(database === "SQLite")("a silent launcher loses its deployments", async () => {
    await report(LAUNCHER);
    platform.advance(29_000);
    await report(LAUNCHER);
    platform.advance(29_000);
    expect((await report(OTHER)).body.deploymentIds).toEqual([]);
    expect(await launches()).toHaveLength(1);
    platform.advance(1_000);
    expect(await launches()).toEqual([]);
    expect((await report(OTHER)).body.deploymentIds).toEqual([deploymentId]);
    expect((await report(LAUNCHER)).body.deploymentIds).toEqual([]);
  });

  it("nobody takes the id of a launcher with another token", async () => {
    await report(LAUNCHER);
    const other = await launchToken([name]);
    expect((await report(LAUNCHER, other)).body.deploymentIds).toEqual([]);
    expect((await machineToken({}, other)).outcome).toBe("LAUNCHER_REPLACED");
  });

  it("a launcher holds no deployment that its token is not for", async () => {
    const other = await launchToken([await newDeployment(platform, company)]);
    expect((await report(LAUNCHER, other)).body.deploymentIds).toEqual([]);
    expect((await machineToken({}, other)).outcome).toBe("DEPLOYMENT_NOT_FOUND");
    const rival = await newCompany(platform);
    const foreign = await newToken(platform, rival, { access: LAUNCH, allDeployments: true });
    expect((await report(LAUNCHER, foreign)).body.deploymentIds).toEqual([]);
    expect(await launches()).toEqual([]);
  });

  it("members see what a launcher does", async () => {
    expect(await launches()).toEqual([]);
    await nodeSays("a", { wanted: 2 });
    const facts = { machines: 2, starting: 1, joined: 1, failed: 3, reason: "no quota" };
    await report(LAUNCHER, token, facts);
    expect(await launches()).toEqual([
      { deployment: name, on: "exec", hostname: "here", workersWanted: 2, ...facts },
    ]);
  });

  it("what a launcher says is one plain line, and its kind is a word", async () => {
    const reason = "sbatch: \u001b[31mno quota\u001b[0m\r\n\u202Efor you\u0000 ";
    await report(LAUNCHER, token, { reason });
    expect(await launches()).toMatchObject([{ reason: "sbatch: no quota for you" }]);
    for (const facts of [{ on: "Slurm is\nfine" }, { on: "" }, { on: "x".repeat(64) }]) {
      const { headers } = token;
      const said = { launcher: LAUNCHER, hostname: "here", ...facts };
      const { outcome } = await platform.call(METHODS.reportLaunches, said, { headers });
      expect([outcome, facts]).toEqual(["REQUEST_INVALID", facts]);
    }
    const long = await report(LAUNCHER, token, { reason: "x".repeat(2_001) });
    expect(long.outcome).toBe("REQUEST_INVALID");
  });

  it("a machine's token joins workers to its deployment, and does nothing else", async () => {
    expect((await machineToken()).outcome).toBe("LAUNCHER_REPLACED");
    await report(LAUNCHER);
    const { body } = await machineToken();
    expect(body.value).toMatch(MACHINE_TOKEN_PATTERN);
    expect(Date.parse(body.expiresAt)).toBeGreaterThan(platform.now() + 3_500_000);
    const headers = { authorization: `Bearer ${body.value}` };
    const call = async (...[method, message]: Parameters<TestPlatform["call"]>) =>
      (await platform.call(method, message, { headers })).outcome;
    const join = { deployment: name, protocolMin: 1, protocolMax: 1 };
    // Nothing is hosted here: it is let through, and finds that nothing runs.
    expect(await call(WorkerService.method.register, join)).toBe("DEPLOYMENT_STOPPED");
    const denied = "ACCESS_DENIED";
    expect(await call(METHODS.reportLaunches, { launcher: LAUNCHER, on: "exec" })).toBe(denied);
    expect(await call(METHODS.watchWorkersWanted, {})).toBe(denied);
    expect(await call(METHODS.listLaunches, {})).toBe(denied);
    expect(await call(DeploymentService.method.listDeployments, {})).toBe(denied);
    expect(await call(TokenService.method.listTokens, {})).toBe(denied);
    const { outcome } = await platform.call(WorkerService.method.register, join, token);
    expect(outcome).toBe(denied);
  });

  it("a machine's token ends with its time, its launcher's token, and the deployment of that", async () => {
    await report(LAUNCHER);
    const made = async (fields: object = {}) => {
      const { value } = (await machineToken(fields)).body;
      return { headers: { authorization: `Bearer ${value}` } };
    };
    const me = async (options: { headers: Record<string, string> }) =>
      (await platform.call(AuthService.method.getCurrentPrincipal, {}, options)).outcome;
    const short = await made({ lifetime: "60s" });
    const hour = await made();
    expect([await me(short), await me(hour)]).toEqual(["ok", "ok"]);
    platform.advance(60_000);
    expect([await me(short), await me(hour)]).toEqual(["TOKEN_INVALID", "ok"]);
    const { organizationId } = company;
    const { tokenId } = token;
    const change = async (fields: object) =>
      await platform.accounts.updateToken({ ...platform.deed(), organizationId, tokenId, fields });
    const other = await newDeployment(platform, company);
    await change({ deployments: [other] });
    const { headers } = company.admin;
    const update = { token: { tokenId, deployments: [name] }, updateMask: "deployments" };
    await platform.call(TokenService.method.updateToken, update, { headers });
    expect(await me(hour)).toBe("ok");
    const moved = { token: { tokenId, deployments: [other] }, updateMask: "deployments" };
    await platform.call(TokenService.method.updateToken, moved, { headers });
    expect(await me(hour)).toBe("TOKEN_INVALID");
    await platform.call(TokenService.method.updateToken, update, { headers });
    expect(await me(hour)).toBe("ok");
    await platform.call(TokenService.method.deleteToken, { tokenId }, { headers });
    expect(await me(hour)).toBe("TOKEN_INVALID");
  });

  it("a machine's token ends with the value of its launcher's token that it was made with", async () => {
    await report(LAUNCHER);
    const made = async ({ headers } = token) => {
      const { value } = (await machineToken({}, { ...token, headers })).body;
      return { authorization: `Bearer ${value}` };
    };
    const me = async (...all: { authorization: string }[]) => {
      const asked = all.map((headers) =>
        platform.call(AuthService.method.getCurrentPrincipal, {}, { headers }),
      );
      return (await Promise.all(asked)).map(({ outcome }) => outcome);
    };
    const rotate = async (grace: string) => {
      const { tokenId } = token;
      const { headers } = company.admin;
      const { body } = await platform.call(
        TokenService.method.rotateToken,
        { tokenId, grace },
        { headers },
      );
      return { ...token, headers: { authorization: `Bearer ${body.value}` } };
    };
    const first = await made();
    const renewed = await rotate("600s");
    const [late, second] = [await made(), await made(renewed)];
    expect(await me(first, late, second)).toEqual(["ok", "ok", "ok"]);
    platform.advance(600_000);
    expect(await me(first, late, second)).toEqual(["TOKEN_INVALID", "TOKEN_INVALID", "ok"]);
    const last = await rotate("0s");
    await report(LAUNCHER, last);
    expect(await me(second, await made(last))).toEqual(["TOKEN_INVALID", "ok"]);
  });

  it("a machine's token ends no later than its launcher's", async () => {
    const expiresAtMs = platform.now() + 600_000;
    token = await launchToken([name], { expiresAtMs });
    await report(LAUNCHER);
    const { body } = await machineToken({ lifetime: "604800s" });
    expect(Date.parse(body.expiresAt)).toBe(expiresAtMs);
  });

  it("an altered token of a machine is none", async () => {
    await report(LAUNCHER);
    const { value } = (await machineToken()).body;
    for (const text of [value.slice(0, -1), `${value}A`, value.replace("tsrl_", "tsra_")]) {
      const headers = { authorization: `Bearer ${text}` };
      const { outcome } = await platform.call(
        AuthService.method.getCurrentPrincipal,
        {},
        { headers },
      );
      expect([outcome, text]).toEqual(["TOKEN_INVALID", text]);
    }
  });

  it("only who may use secrets makes a launch token, and it stands alone", async () => {
    const fields = {
      name: "launcher",
      access: ["TOKEN_ACCESS_LAUNCH"],
      deployments: [name],
      expiresAt: new Date(platform.now() + 86_400_000).toISOString(),
    };
    const create = async (more: object, headers = company.admin.headers) =>
      (await platform.call(TokenService.method.createToken, { ...fields, ...more }, { headers }))
        .outcome;
    const member = await newMember(platform, company);
    expect(await create({}, member.headers)).toBe("ACCESS_DENIED");
    expect(await create({})).toBe("ok");
    expect(await create({ deployments: [] })).toBe("REQUEST_INVALID");
    const access = ["TOKEN_ACCESS_LAUNCH", "TOKEN_ACCESS_WORKER"];
    expect(await create({ access })).toBe("REQUEST_INVALID");
    const worth = { deployments: [name], access: ["TOKEN_ACCESS_WORKER"] };
    const developer = await newToken(platform, company);
    expect(await create(worth, developer.headers as never)).toBe("ACCESS_DENIED");
    expect(await create({}, developer.headers as never)).toBe("ACCESS_DENIED");
  });

  describe("what is wanted", () => {
    let client: Client<typeof LauncherService>;
    beforeEach(() => {
      client = createClient(LauncherService, createGrpcTransport({ baseUrl: platform.origin }));
    });

    /** Follows with a token; `next` gives what changed. */
    function follow({ headers } = token) {
      const leaving = new AbortController();
      const messages = client
        .watchWorkersWanted({}, { headers, signal: leaving.signal })
        [Symbol.asyncIterator]();
      const next = async () => {
        const { done, value } = await messages.next();
        if (done) {
          throw new Error("the stream has ended");
        }
        return value.deployments.map(({ deployment, workers, machines, requires }) => ({
          ...{ deployment, workers, requires },
          machines: machines.map(({ machine, ready }) => [machine, ready]),
        }));
      };
      return { next, [Symbol.dispose]: () => leaving.abort() };
    }

    it("is what the nodes want together, at most the maximum, with the machines that have joined", async () => {
      const { organizationId } = company;
      const settings = { maxWorkers: 5, requires: { gpu: "h200" } };
      const named = { organizationId, name, settings };
      await platform.accounts.updateDeployment({ ...platform.deed(), ...named });
      using followed = follow();
      const requires = settings.requires;
      const facts = { deployment: name, requires };
      expect(await followed.next()).toEqual([{ ...facts, workers: 0, machines: [] }]);
      await nodeSays("a", { wanted: 2 });
      expect(await followed.next()).toEqual([{ ...facts, workers: 2, machines: [] }]);
      await nodeSays("b", { wanted: 9, launched: [{ machine: MACHINE, ready: true }] });
      expect(await followed.next()).toEqual([
        { ...facts, workers: 5, machines: [[MACHINE, true]] },
      ]);
      await nodeSays("b", {});
      expect(await followed.next()).toEqual([{ ...facts, workers: 2, machines: [] }]);
    });

    it("is told of the deployments of the token alone, and of those alone that have changed", async () => {
      const other = await newDeployment(platform, company);
      await newDeployment(platform, company);
      const both = await launchToken([name, other]);
      using followed = follow(both);
      const first = await followed.next();
      expect(first.map(({ deployment }) => deployment)).toEqual([name, other].toSorted());
      await nodeSays("c", { wanted: 1 }, await idOf(other));
      expect(await followed.next()).toMatchObject([{ deployment: other, workers: 1 }]);
    });

    it("ends with the token", async () => {
      using followed = follow();
      await followed.next();
      const { headers } = company.admin;
      const { tokenId } = token;
      await platform.call(TokenService.method.deleteToken, { tokenId }, { headers });
      await expect(followed.next()).rejects.toThrow(/not valid/);
    });
  });
});
