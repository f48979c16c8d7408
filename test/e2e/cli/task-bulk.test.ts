import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type CancelTasksRequest,
  type DeleteTasksRequest,
  OrganizationTaskService,
  type RetryTasksRequest,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { type Answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

let answering: Answering;
let person: Person;
let cancels: CancelTasksRequest[];
let retries: RetryTasksRequest[];
let deletions: DeleteTasksRequest[];

/** 1,500 tasks in two shares; the second has one that started meanwhile. */
function answer({ dryRun, pageToken }: Pick<CancelTasksRequest, "dryRun" | "pageToken">) {
  if (pageToken === "") {
    return { changed: 1_000, nextPageToken: "second" };
  }
  const message = "task 1 is already running: add abort=true to stop it";
  const skipped = [{ reason: "TASK_ALREADY_STARTED", count: 1, message }];
  return dryRun ? { changed: 500 } : { changed: 499, skipped };
}

beforeEach(async () => {
  person = new Person();
  [cancels, retries, deletions] = [[], [], []];
  answering = await answeringCalls((router) => {
    router.service(OrganizationTaskService, {
      cancelTasks(req) {
        cancels.push(req);
        return answer(req);
      },
      deleteTasks(req) {
        deletions.push(req);
        return answer(req);
      },
      retryTasks(req) {
        retries.push(req);
        return answer(req);
      },
    });
  });
});
afterEach(async () => {
  person[Symbol.dispose]();
  await answering[Symbol.asyncDispose]();
});

const run = (...args: string[]) =>
  person.run(["task", ...args], {
    env: { SERVICE_CLOUD_API_KEY: "tsrp_x", SERVICE_CLOUD_API_ENDPOINT: answering.url },
  });

describe("tessera task cancel-all", () => {
  it("counts with --dry-run, and changes nothing", async () => {
    expect(await run("cancel-all", "work", "-d", "a", "-d", "b", "--dry-run")).toMatchObject({
      code: 0,
      stdout: "1500 tasks would be cancelled\n",
    });
    expect(cancels.map(({ dryRun }) => dryRun)).toEqual([true, true]);
    expect(cancels[0]?.filter).toMatchObject({ deployments: ["a", "b"], endpoint: "work" });
  });

  it("asks for a confirmation, and says what it did and what it left", async () => {
    const asked = await run("cancel-all", "--all");
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("add --yes")]);
    expect(cancels.every(({ dryRun }) => dryRun)).toBe(true);
    const { code, stdout } = await run("cancel-all", "--all", "--abort", "--yes");
    expect([code, stdout]).toEqual([
      0,
      "Cancelled 1499 tasks\nskipped 1 (TASK_ALREADY_STARTED): task 1 is already running: add abort=true to stop it\n",
    ]);
    expect(cancels.at(-1)).toMatchObject({ abort: true, pageToken: "second", dryRun: false });
  });

  it("says that nothing chooses the tasks", async () => {
    const { code, stderr } = await run("cancel-all");
    expect([code, stderr]).toEqual([2, expect.stringContaining("give a filter, or --all")]);
    expect(cancels).toEqual([]);
  });
});

describe("tessera task retry-all", () => {
  it("refuses a state in which no task can be retried", async () => {
    const { code, stderr } = await run("retry-all", "--status", "running");
    expect([code, stderr]).toEqual([2, expect.stringContaining("success, failure, cancelled")]);
  });

  it("chooses by error, state and age, and repeats all calls under one key", async () => {
    const flags = ["--error", "disk", "--status", "failure", "--status", "cancelled"];
    const { code, stdout } = await run(
      ...["retry-all", ...flags, "--newer-than", "2h", "--older-than", "1h", "--yes"],
      ...["-o", "json"],
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      changed: 1_499,
      skipped: [{ reason: "TASK_ALREADY_STARTED", count: 1 }],
    });
    const { filter, idempotencyKey } = retries.at(-1) as RetryTasksRequest;
    expect(filter).toMatchObject({
      errorContains: "disk",
      statuses: [TaskStatus.FAILURE, TaskStatus.CANCELLED],
    });
    const { createdFrom, createdBefore } = filter ?? {};
    if (createdFrom === undefined || createdBefore === undefined) {
      throw new Error("the times were not sent");
    }
    expect(timestampMs(createdBefore) - timestampMs(createdFrom)).toBe(3_600_000);
    expect(new Set(retries.map((one) => one.idempotencyKey))).toEqual(new Set([idempotencyKey]));
    expect(idempotencyKey).toMatch(/./);
  });
});

describe("tessera task delete-all", () => {
  it("deletes what the filter chooses, and says how many", async () => {
    const { code, stdout } = await run("delete-all", "work", "--status", "queued", "--yes");
    expect([code, stdout.split("\n")[0]]).toEqual([0, "Deleted 1499 tasks"]);
    expect(deletions.at(-1)).toMatchObject({
      filter: { endpoint: "work", statuses: [TaskStatus.QUEUED], all: false },
      ...{ abort: false, dryRun: false },
    });
    expect((await run("delete-all")).stderr).toContain("give a filter, or --all");
  });
});
