import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type GetTaskStatsRequest,
  OrganizationTaskService,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { type Answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

let answering: Answering;
let person: Person;
let asked: GetTaskStatsRequest[];

const WORK = {
  queued: 12,
  running: 3,
  oldestQueuedAge: durationFromMs(754_000),
  succeeded: 540,
  failed: 6,
  finishedPerMinute: 9.0983,
  queueTime: {
    p50: durationFromMs(300),
    p95: durationFromMs(481),
    p99: durationFromMs(12_345),
  },
  runTime: {
    p50: durationFromMs(20_000),
    p95: durationFromMs(240_000),
    p99: durationFromMs(3 * 3_600_000),
  },
};

beforeEach(async () => {
  person = new Person();
  asked = [];
  answering = await answeringCalls((router) => {
    router.service(OrganizationTaskService, {
      getTaskStats(req) {
        asked.push(req);
        const endpoints = [
          { endpoint: "", stats: { cancelled: 1 } },
          { endpoint: "work", stats: WORK },
        ];
        const total = { ...WORK, cancelled: 1 };
        return { total, deployments: [{ deployment: "reader", total, endpoints }] };
      },
    });
  });
});
afterEach(async () => {
  person[Symbol.dispose]();
  await answering[Symbol.asyncDispose]();
});

const run = (...args: string[]) =>
  person.run(["task", "stats", ...args], {
    env: { SERVICE_CLOUD_API_KEY: "tsrp_x", SERVICE_CLOUD_API_ENDPOINT: answering.url },
  });

describe("tessera task stats", () => {
  it("shows a line for each endpoint, and one for all", async () => {
    const { code, stdout } = await run();
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n").map(cellsOf)).toEqual([
      cellsOf(
        "DEPLOYMENT  ENDPOINT  QUEUED  OLDEST  RUNNING  SUCCEEDED  FAILED  CANCELLED  PER MIN  QUEUE P50/P95/P99  RUN P50/P95/P99",
      ),
      ["reader", "(others)", "0", "-", "0", "0", "0", "1", "0", "-", "-"],
      [
        ...["reader", "work", "12", "13m", "3", "540", "6", "0", "9.1"],
        ...["0.3s / 0.48s / 12s", "20s / 4m / 3h"],
      ],
      [
        ...["all", "-", "12", "13m", "3", "540", "6", "1", "9.1"],
        ...["0.3s / 0.48s / 12s", "20s / 4m / 3h"],
      ],
    ]);
    expect(asked[0]).toMatchObject({ organization: "", deployments: [] });
    expect(asked[0]?.window && durationMs(asked[0].window)).toBe(3_600_000);
  });

  it("asks for deployments and a time", async () => {
    await run("-d", "reader", "-d", "writer", "--since", "24h", "--organization", "acme");
    expect(asked[0]).toMatchObject({ organization: "acme", deployments: ["reader", "writer"] });
    expect(asked[0]?.window && durationMs(asked[0].window)).toBe(86_400_000);
  });

  it("writes JSON as REST does, and refuses what is no duration", async () => {
    const { stdout } = await run("-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      total: { queued: 12, finished_per_minute: 9.0983, oldest_queued_age: "754s" },
      deployments: [{ deployment: "reader", endpoints: [{ endpoint: "" }, { endpoint: "work" }] }],
    });
    expect(await run("--since", "soon")).toMatchObject({ code: 2 });
  });
});

/** The cells of a line of a table, two spaces apart. */
function cellsOf(line: string): string[] {
  return line.split(/ {2,}/);
}
