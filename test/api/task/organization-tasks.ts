/** Deployments of an organization with tasks in the storage, none of which runs. */
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import type { NewTask } from "../../../src/storage/storage.ts";
import { idBoundary } from "../../../src/tasks/id.ts";
import type { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newDeployment } from "../../server/rpc/world.ts";

/** The access of a token that calls deployments. */
export const CALLS = {
  ...NO_ACCESS,
  protectedEndpoint: true,
};

export interface App {
  readonly name: string;
  readonly deploymentId: string;
}

export class OrganizationTasks {
  readonly #platform: TestPlatform;
  readonly #company: Company;

  constructor(platform: TestPlatform, company: Company) {
    this.#platform = platform;
    this.#company = company;
  }

  async newApp(): Promise<App> {
    const { organizationId } = this.#company;
    const name = await newDeployment(this.#platform, { organizationId });
    const found = await this.#platform.accounts.findDeployment({ organizationId, name });
    return { name, deploymentId: found?.deploymentId ?? "" };
  }

  /** Queues tasks, each a second after the one before; answers their ids. */
  async queue(...apps: readonly (App & Partial<NewTask>)[]): Promise<string[]> {
    const platform = this.#platform;
    const startMs = platform.now() - 60_000;
    const tasks = apps.map(({ name: _, ...task }, index) => {
      const createdAtMs = startMs + index * 1_000;
      return {
        taskId: idBoundary(createdAtMs) + platform.newId().slice(13),
        endpoint: "work",
        arguments: { json: "{}", files: [] },
        ...{ createdAtMs, runAtMs: createdAtMs, expiresAtMs: platform.now() + 600_000 },
        ...{ retentionMs: 600_000, priority: 0, queueLimit: 1_000 },
        ...task,
      };
    });
    await platform.storage.submitTasks({ tasks });
    return tasks.map(({ taskId }) => taskId);
  }

  /** A task that has failed with this message; answers its id. */
  async fail(app: App, message: string): Promise<string> {
    const { storage } = this.#platform;
    const leaseId = this.#platform.newId();
    const nowMs = this.#platform.now();
    await storage.openLease({ leaseId, owner: "test", nowMs, ttlMs: 60_000 });
    const [taskId = ""] = await this.queue({ ...app, leaseId });
    const failure = { reason: "error", code: "internal", message } as const;
    const attempt = { deploymentId: app.deploymentId, taskId, leaseId, attempt: 1 };
    const ends = [{ attempt, end: { status: "failure", failure } }] as const;
    await storage.endAttempts({ nowMs, ends });
    return taskId;
  }
}
