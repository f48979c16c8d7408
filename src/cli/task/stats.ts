/** `tessera task stats`: numbers of tasks by deployment and endpoint. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type GetTaskStatsResponse,
  GetTaskStatsResponseSchema,
  type TaskPercentiles,
  type TaskStats,
} from "../../client/index.ts";
import { type CloudActions, callCommand, option, repeatable } from "../command.ts";
import { parseDuration, shortTime } from "../durations.ts";
import { type Table, table } from "../table.ts";
import { toDuration } from "../times.ts";

interface StatsFlags {
  readonly deployment?: readonly string[];
  readonly since: string;
}

export function statsCommand(actions: CloudActions): Command {
  return callCommand<StatsFlags>("stats", actions, {
    description: "Count the tasks of an organization, and show how long they wait and run.",
    options: [
      repeatable("-d, --deployment <name>", "only tasks of this deployment"),
      option("--since <duration>", "what of the past is counted: 1m to 24h").default("1h"),
    ],
    examples: [
      "tessera task stats",
      "tessera task stats --deployment summarizer --since 24h",
      "tessera task stats --output json | jq .total.queued",
    ],
    run: async (call, { deployment = [], since }) => {
      const answer = await call.client.organizationTasks.getTaskStats({
        organization: call.organization,
        deployments: [...deployment],
        window: toDuration(parseDuration("--since", since)),
      });
      call.show(GetTaskStatsResponseSchema, answer, statsTable);
    },
  });
}

const TITLES = [
  ...["DEPLOYMENT", "ENDPOINT", "QUEUED", "OLDEST", "RUNNING", "SUCCEEDED", "FAILED"],
  ...["CANCELLED", "PER MIN", "QUEUE P50/P95/P99", "RUN P50/P95/P99"],
];

/** A line for each endpoint, and one for all of them together. */
function statsTable({ deployments, total }: GetTaskStatsResponse): Table {
  const rows = deployments.flatMap(({ deployment, endpoints }) =>
    endpoints.map(({ endpoint, stats }) => [
      deployment,
      endpoint || "(others)",
      ...numbersOf(stats),
    ]),
  );
  return table(TITLES, [...rows, ["all", "", ...numbersOf(total)]], {
    empty: "No tasks",
    drop: ["CANCELLED", "OLDEST", "PER MIN"],
  });
}

function numbersOf(stats: TaskStats | undefined): readonly string[] {
  if (stats === undefined) {
    return TITLES.slice(2).map(() => "");
  }
  const { queued, oldestQueuedAge, running, succeeded, failed, cancelled } = stats;
  return [
    String(queued),
    oldestQueuedAge === undefined ? "" : shortTime(durationMs(oldestQueuedAge)),
    ...[running, succeeded, failed, cancelled].map(String),
    String(Number(stats.finishedPerMinute.toPrecision(3))),
    percentiles(stats.queueTime),
    percentiles(stats.runTime),
  ];
}

function percentiles(found: TaskPercentiles | undefined): string {
  const { p50, p95, p99 } = found ?? {};
  return p50 === undefined || p95 === undefined || p99 === undefined
    ? ""
    : [p50, p95, p99].map((each) => shortTime(durationMs(each))).join(" / ");
}
