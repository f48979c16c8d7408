/** `tessera task cancel-all`, `retry-all` and `delete-all`: what they do to the tasks that a filter chooses. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type BulkTasksResponse,
  BulkTasksResponseSchema,
  type TaskFilterSchema,
  TaskStatus,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option, repeatable } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { usageError } from "../failure.ts";
import { ProgressLine } from "../progress.ts";

interface BulkFlags {
  readonly deployment?: readonly string[];
  readonly tag?: readonly string[];
  readonly status?: readonly string[];
  readonly error?: string;
  readonly key?: string;
  readonly newerThan?: string;
  readonly olderThan?: string;
  readonly all?: boolean;
  readonly abort?: boolean;
  readonly dryRun?: boolean;
}

const FILTER_OPTIONS = [
  repeatable("-d, --deployment <name>", "only tasks of this deployment"),
  option("--key <key>", "only tasks with this key, such as a customer"),
  repeatable("--tag <tag>", "only tasks with this tag"),
  option("--newer-than <duration>", "only tasks accepted within this time, such as 2h"),
  option("--older-than <duration>", "only tasks accepted before this time"),
  option("--all", "every task of the organization, where nothing else chooses"),
];
/** The states of tasks that can be retried. */
const ENDED = ["success", "failure", "cancelled"];
const ANY = ["queued", "running", ...ENDED];
const DRY_RUN = option("--dry-run", "only count them");
const ENDPOINT_ARGUMENT = ["[endpoint]", "only tasks of this one"] as const;

type Filter = MessageInitShape<typeof TaskFilterSchema>;

/** Asks the platform for one call's share, from where the call before has stopped. */
type Share = (page: {
  readonly dryRun: boolean;
  readonly pageToken: string;
}) => Promise<BulkTasksResponse>;

export function cancelAllCommand(actions: CloudActions): Command {
  return callCommand<BulkFlags>("cancel-all", actions, {
    description: "Cancel all queued tasks that a filter chooses, over all deployments.",
    arguments: [ENDPOINT_ARGUMENT],
    options: [
      ...FILTER_OPTIONS,
      option("--abort", "also those that run: they are told to stop, then killed"),
      DRY_RUN,
    ],
    asks: true,
    examples: [
      "tessera task cancel-all summarize_batch --deployment summarizer --dry-run",
      "tessera task cancel-all --all --abort --yes",
    ],
    run: async (call, flags, [endpoint]) => {
      const { organization } = call;
      const filter = filterOf(call, flags, endpoint);
      await change(call, flags, "cancel", (page) =>
        call.client.organizationTasks.cancelTasks({
          ...{ organization, filter, abort: flags.abort === true },
          ...page,
        }),
      );
    },
  });
}

export function retryAllCommand(actions: CloudActions): Command {
  return callCommand<BulkFlags>("retry-all", actions, {
    description: "Retry all failed tasks that a filter chooses, over all deployments.",
    arguments: [ENDPOINT_ARGUMENT],
    options: [
      ...FILTER_OPTIONS,
      repeatable(
        "--status <status>",
        `tasks in this state: ${ENDED.join(", ")} (default: failure)`,
      ),
      option("--error <text>", "only tasks whose error contains this text"),
      DRY_RUN,
    ],
    asks: true,
    examples: [
      'tessera task retry-all --error "connection refused" --newer-than 2h',
      "tessera task retry-all summarize_batch --deployment summarizer --yes",
    ],
    run: async (call, flags, [endpoint]) => {
      const { organization } = call;
      const filter = filterOf(call, flags, endpoint);
      // Should an answer be lost, the call can be repeated.
      const idempotencyKey = crypto.randomUUID();
      await change(call, flags, "retry", (page) =>
        call.client.organizationTasks.retryTasks({
          ...{ organization, filter, idempotencyKey },
          ...page,
        }),
      );
    },
  });
}

export function deleteAllCommand(actions: CloudActions): Command {
  return callCommand<BulkFlags>("delete-all", actions, {
    description: "Delete all tasks that a filter chooses, with all that is known of them.",
    arguments: [ENDPOINT_ARGUMENT],
    options: [
      ...FILTER_OPTIONS,
      repeatable(
        "--status <status>",
        `tasks in this state: ${ANY.join(", ")} (default: not running)`,
      ),
      option("--error <text>", "only tasks whose error contains this text"),
      option("--abort", "also those that run: they are stopped first"),
      DRY_RUN,
    ],
    asks: true,
    examples: [
      "tessera task delete-all summarize_batch --deployment summarizer --older-than 7d --dry-run",
      "tessera task delete-all --all --abort --yes",
    ],
    run: async (call, flags, [endpoint]) => {
      const { organization } = call;
      const filter = filterOf(call, flags, endpoint, ANY);
      await change(call, flags, "delete", (page) =>
        call.client.organizationTasks.deleteTasks({
          ...{ organization, filter, abort: flags.abort === true },
          ...page,
        }),
      );
    },
  });
}

function filterOf(
  { clock }: CommandRun,
  flags: BulkFlags,
  endpoint = "",
  states: readonly string[] = ENDED,
): Filter {
  const {
    deployment = [],
    status = [],
    tag = [],
    error = "",
    key = "",
    newerThan,
    olderThan,
  } = flags;
  const { all = false } = flags;
  const nowMs = clock.now();
  const ago = (name: string, text: string) => timestampFromMs(nowMs - parseDuration(name, text));
  const filter = {
    ...{ deployments: [...deployment], endpoint, errorContains: error, key, tags: [...tag], all },
    statuses: status.map((word) => statusOf(word, states)),
    ...(newerThan !== undefined && { createdFrom: ago("--newer-than", newerThan) }),
    ...(olderThan !== undefined && { createdBefore: ago("--older-than", olderThan) }),
  };
  const chooses = [
    endpoint,
    error,
    key,
    newerThan,
    olderThan,
    ...deployment,
    ...status,
    ...tag,
  ].some((part) => part !== undefined && part !== "");
  if (!chooses && !all) {
    throw usageError("it is not said which tasks: give a filter, or --all");
  }
  return filter;
}

function statusOf(word: string, states: readonly string[]): TaskStatus {
  if (!states.includes(word)) {
    throw usageError(`--status ${JSON.stringify(word)} is not one of ${states.join(", ")}`);
  }
  return TaskStatus[word.toUpperCase() as keyof typeof TaskStatus];
}

const WORDS = {
  cancel: { action: "Cancel", past: "Cancelled" },
  retry: { action: "Retry", past: "Retried" },
  delete: { action: "Delete", past: "Deleted" },
} as const;

async function change(
  call: CommandRun,
  { dryRun = false }: BulkFlags,
  verb: keyof typeof WORDS,
  share: Share,
): Promise<void> {
  using progress = new DisposableStack();
  const line = new ProgressLine(call.terminal.streams, { quiet: call.output === "json" });
  progress.defer(() => line.end());
  const counted = await whole(share, true, () => undefined);
  if (!dryRun && counted.changed > 0) {
    const tasks = counted.changed === 1 ? "1 task" : `${counted.changed} tasks`;
    await call.insist(`${WORDS[verb].action} ${tasks}?`);
  }
  const done = dryRun
    ? counted
    : await whole(share, false, ({ changed }) => line.step(`${changed} of ${counted.changed}`));
  line.end();
  call.show(BulkTasksResponseSchema, done, () => sentence(done, verb, dryRun));
}

/** Calls until nothing is left to look at; answers the sums. */
async function whole(
  share: Share,
  dryRun: boolean,
  onShare: (sum: BulkTasksResponse) => void,
): Promise<BulkTasksResponse> {
  const sum = create(BulkTasksResponseSchema);
  let pageToken = "";
  do {
    const one = await share({ dryRun, pageToken });
    sum.changed += one.changed;
    for (const skipped of one.skipped) {
      const same = sum.skipped.find(({ reason }) => reason === skipped.reason);
      if (same === undefined) {
        sum.skipped.push(skipped);
      } else {
        same.count += skipped.count;
      }
    }
    pageToken = one.nextPageToken;
    onShare(sum);
  } while (pageToken !== "");
  return sum;
}

function sentence(
  { changed, skipped }: BulkTasksResponse,
  verb: keyof typeof WORDS,
  dryRun: boolean,
): string {
  const tasks = changed === 1 ? "1 task" : `${changed} tasks`;
  const { past } = WORDS[verb];
  const first = dryRun ? `${tasks} would be ${past.toLowerCase()}` : `${past} ${tasks}`;
  const rest = skipped.map(
    ({ reason, count, message }) => `skipped ${count} (${reason}): ${message}`,
  );
  return [first, ...rest].join("\n");
}
