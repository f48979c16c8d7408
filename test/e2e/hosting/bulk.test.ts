/** CancelTasks and RetryTasks on a platform whose queues and workers run. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Task, TaskStatus, type TesseraClient } from "../../../src/client/index.ts";
import { timeOfTaskId } from "../../../src/tasks/id.ts";
import { newPostgres } from "../start/databases.ts";
import { artifact, until, World } from "./world.ts";

const organization = "acme";
const deployment = "acme/tape";
/** The most that one call of SubmitTasks takes. */
const BATCH = 1_000;

const DATABASES = [
  ["SQLite", async () => ({})],
  ["Postgres", async () => ({ database: await newPostgres() })],
] as const;

/** A task that does not start. */
const later = {
  endpoint: "quick",
  input: { case: "arguments", value: { take: 1 } },
  delay: { seconds: 3_600n, nanos: 0 },
} as const;

describe.each(DATABASES)("many tasks of an organization on %s", (_, options) => {
  let world: World;
  let client: TesseraClient;
  beforeAll(async () => {
    world = await World.start(await options());
    await world.deployed("tape", await artifact("tape"));
    client = await world.callerClient();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function list(endpoint: string, ...statuses: TaskStatus[]): Promise<readonly Task[]> {
    const asked = { organization, endpoint, statuses, pageSize: BATCH };
    return (await client.organizationTasks.listOrganizationTasks(asked)).tasks;
  }

  it("are cancelled call by call, as long as there is a next page", async () => {
    for (const length of [BATCH, BATCH, 100]) {
      await client.tasks.submitTasks({ deployment, tasks: Array.from({ length }, () => later) });
    }
    const request = { organization, filter: { endpoint: "quick" } };
    const counted = await client.organizationTasks.cancelTasks({ ...request, dryRun: true });
    expect(counted).toMatchObject({ changed: 2_100, skipped: [], nextPageToken: "" });
    let changed = 0;
    let pageToken = "";
    let calls = 0;
    do {
      const answer = await client.organizationTasks.cancelTasks({ ...request, pageToken });
      changed += answer.changed;
      pageToken = answer.nextPageToken;
      calls += 1;
      expect(answer.skipped).toEqual([]);
    } while (pageToken !== "");
    expect([changed, calls > 1]).toEqual([2_100, true]);
    expect(await list("quick", TaskStatus.QUEUED)).toEqual([]);
    expect(await client.organizationTasks.cancelTasks(request)).toMatchObject({ changed: 0 });
  });

  it("that run are cancelled where the call says so, and skipped otherwise", async () => {
    await client.tasks.submitTask({ deployment, endpoint: "record" });
    await until(
      () => list("record", TaskStatus.RUNNING),
      ({ length }) => length === 1,
    );
    const chosen = { organization, filter: { statuses: [TaskStatus.RUNNING] } };
    const refused = await client.organizationTasks.cancelTasks(chosen);
    expect(refused).toMatchObject({
      changed: 0,
      skipped: [{ reason: "TASK_ALREADY_STARTED", count: 1 }],
    });
    const aborted = await client.organizationTasks.cancelTasks({ ...chosen, abort: true });
    expect(aborted).toMatchObject({ changed: 1, skipped: [] });
    expect(await list("record", TaskStatus.CANCELLED)).toHaveLength(1);
  });

  it("wait while their endpoint is paused, through a deploy, and start when it is resumed", async () => {
    const { deployments, tasks } = client;
    const named = { deployment: "tape", endpoint: "still" };
    for (const [endpoint, message] of [
      ["letGo", "is an api"],
      ["loud", "has no endpoint"],
    ] as const) {
      const refused = deployments.pauseEndpoint({ ...named, endpoint });
      await expect(refused).rejects.toThrow(message);
    }
    const paused = await deployments.pauseEndpoint(named);
    expect(paused.pausedEndpoints).toMatchObject([{ endpoint: "still" }]);
    const submit = (endpoint: string, seconds = 0n) =>
      tasks.submitTask({ deployment, endpoint, wait: { seconds, nanos: 0 } });
    const first = (await submit("still")).task;
    expect(first).toMatchObject({ status: TaskStatus.QUEUED });
    // The node that answers may not have heard of the pause yet, which the storage holds.
    await until(
      () => tasks.getTask({ deployment, taskId: first?.taskId ?? "" }),
      ({ waitsFor }) => waitsFor.includes("paused"),
    );
    await world.deployed("tape", await artifact("tape"));
    await submit("still");
    // One of another endpoint comes after them and ends; they have not begun.
    expect((await submit("label", 20n)).task?.status).toBe(TaskStatus.SUCCESS);
    expect(await list("still", TaskStatus.QUEUED)).toHaveLength(2);
    expect((await deployments.resumeEndpoint(named)).pausedEndpoints).toEqual([]);
    await until(
      () => list("still", TaskStatus.SUCCESS),
      ({ length }) => length === 2,
    );
  });

  it("are deleted with all that is known of them; those that run only where the call says so", async () => {
    const { tasks, organizationTasks, organizations } = client;
    const { task } = await tasks.submitTask({ deployment, ...later });
    const { taskId: changed = "" } = task ?? {};
    await tasks.updateTask({ deployment, taskId: changed, priority: 7, tags: ["urgent"] });
    await tasks.deleteTask({ deployment, taskId: changed });
    await tasks.submitTasks({ deployment, tasks: Array.from({ length: 600 }, () => later) });
    await tasks.submitTask({ deployment, endpoint: "record" });
    const [running] = await until(
      () => list("record", TaskStatus.RUNNING),
      ({ length }) => length === 1,
    );
    const taskId = running?.taskId ?? "";
    await expect(tasks.deleteTask({ deployment, taskId })).rejects.toThrow("is running");
    const filter = { deployments: ["tape"], endpoint: "quick", statuses: [TaskStatus.QUEUED] };
    const counted = await organizationTasks.deleteTasks({ organization, filter, dryRun: true });
    expect(counted).toMatchObject({ changed: 600, skipped: [] });
    const deleted = await organizationTasks.deleteTasks({ organization, filter });
    expect(deleted).toMatchObject({ changed: 600, skipped: [], nextPageToken: "" });
    expect(await list("quick", TaskStatus.QUEUED)).toEqual([]);
    await tasks.deleteTask({ deployment, taskId, abort: true });
    await expect(tasks.getTask({ deployment, taskId })).rejects.toThrow("was deleted on");
    await expect(tasks.deleteTask({ deployment, taskId })).rejects.toThrow("was deleted on");
    const { auditEvents } = await organizations.listAuditEvents({ action: "task" });
    expect(auditEvents).toMatchObject([
      { action: "task.delete", subject: "tape", details: { task: taskId } },
      {
        action: "task.delete_all",
        details: { tasks: "600", deployments: "tape", endpoint: "quick", statuses: "queued" },
      },
      { action: "task.delete", subject: "tape", details: { task: changed } },
      { action: "task.update", details: { task: changed, changed: "priority tags" } },
    ]);
  });

  it("that failed are retried, and once with one key however often the call is repeated", async () => {
    for (let number = 0; number < 3; number++) {
      await client.tasks.submitTask({ deployment, endpoint: "hiss" });
    }
    const failed = await until(
      () => list("hiss", TaskStatus.FAILURE),
      ({ length }) => length === 3,
    );
    // Not the new ones, which fail as well.
    const createdBefore = timestampFromMs(timeOfTaskId(failed[0]?.taskId ?? "") + 1);
    const request = { organization, filter: { endpoint: "hiss", createdBefore } };
    const counted = await client.organizationTasks.retryTasks({ ...request, dryRun: true });
    expect(counted.changed).toBe(3);
    expect(await list("hiss")).toHaveLength(3);
    for (const _ of ["a call", "its repetition"]) {
      const idempotencyKey = "after the power cut";
      const answer = await client.organizationTasks.retryTasks({ ...request, idempotencyKey });
      expect(answer).toMatchObject({ changed: 3, skipped: [] });
    }
    const all = await list("hiss");
    const retried = all.filter(({ retryOf }) => retryOf !== "").map(({ retryOf }) => retryOf);
    expect(retried.toSorted()).toEqual(failed.map(({ taskId }) => taskId).toSorted());
  });
});
