/**
 * `tessera deployment logs`: the output of a deployment's workers. Following
 * survives broken connections: lines are numbered, and the next request resumes
 * after the last one shown.
 */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError } from "commander";
import { type DeploymentLogLine, DeploymentLogLineSchema } from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { NAME_OR_HERE, nameOrHere } from "../here.ts";
import { jsonText } from "../output.ts";
import { plain } from "../plain.ts";
import { followStream, type StreamProgress } from "../reconnect.ts";
import { parsePastMoment } from "../times.ts";

interface LogsFlags {
  readonly follow?: boolean;
  readonly tail: number;
  readonly search?: string;
  readonly level?: string;
  readonly task?: string;
  readonly revision?: number;
  readonly since?: string;
  readonly until?: string;
}

/** Largest value of `logs --tail`. */
const MAX_TAIL_LINES = 10_000;

const LEVELS = ["info", "warn", "error"];

export function logsCommand(actions: CloudActions): Command {
  return callCommand<LogsFlags>("logs", actions, {
    description: "Show what the workers of a deployment write; the newest 10,000 lines are kept.",
    arguments: [NAME_OR_HERE],
    options: [
      option("-f, --follow", "go on with the lines to come, until Ctrl-C"),
      option("--tail <count>", "how many of the last lines").default(100).argParser(tailOf),
      option("--search <text>", "only lines with this text, in upper or lower case"),
      option("--level <level>", "only lines of this level or a worse one").choices(LEVELS),
      option("--task <id>", "only lines of this task"),
      option("--revision <number>", "only lines of this revision").argParser(revisionOf),
      option("--since <time>", "only lines from then on: 90m (ago), or a time with a zone"),
      option("--until <time>", "only lines from before then"),
    ],
    examples: [
      "tessera deployment logs summarizer --tail 500",
      "tessera deployment logs summarizer --follow --level warn",
      "tessera deployment logs summarizer --search timeout --since 2h",
      "tessera deployment logs summarizer --output json | jq .text",
    ],
    run: async (call, flags, [given]) => {
      const name = await nameOrHere(given);
      using interruption = call.terminal.streams.interruption();
      await new Reading(call, name, interruption.signal).run(flags, filterOf(flags, call));
    },
  });
}

function tailOf(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count > MAX_TAIL_LINES) {
    throw new InvalidArgumentError(`Give a whole number from 0 to ${MAX_TAIL_LINES}.`);
  }
  return count;
}

function revisionOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    throw new InvalidArgumentError("Give the number of a revision.");
  }
  return Number(text);
}

type LogFilter = ReturnType<typeof filterOf>;

function filterOf(
  { search = "", level = "", task = "", revision = 0, since, until }: LogsFlags,
  { clock }: CommandRun,
) {
  const nowMs = clock.now();
  return {
    search,
    minLevel: level,
    taskId: task,
    revision,
    ...(since !== undefined && { startTime: parsePastMoment("--since", since, nowMs) }),
    ...(until !== undefined && { endTime: parsePastMoment("--until", until, nowMs) }),
  };
}

class Reading {
  readonly #call: CommandRun;
  readonly #name: string;
  readonly #signal: AbortSignal;
  /** The number of the last line shown. */
  #last = 0n;

  constructor(call: CommandRun, name: string, signal: AbortSignal) {
    this.#call = call;
    this.#name = name;
    this.#signal = signal;
  }

  async run({ follow = false, tail }: Pick<LogsFlags, "follow" | "tail">, filter: LogFilter) {
    await followStream(this.#call, this.#signal, async (progress) => {
      await this.#read({ follow, tail, ...filter }, progress);
      return !follow;
    });
  }

  async #read(
    { follow, tail, ...filter }: { follow: boolean; tail: number } & LogFilter,
    { signal, onHeader, onMessage }: StreamProgress,
  ): Promise<void> {
    const { client, organization } = this.#call;
    const from = this.#last === 0n ? { tail } : { afterSequence: this.#last };
    const lines = client.deployments.watchDeploymentLogs(
      { organization, deployment: this.#name, follow, ...filter, ...from },
      // While following there is no timeout, and a broken connection is not the end.
      { signal, ...(follow && { timeoutMs: 0, onHeader }) },
    );
    for await (const line of lines) {
      onMessage();
      this.#last = line.sequence;
      this.#show(line);
    }
  }

  #show(line: DeploymentLogLine): void {
    const { terminal, output } = this.#call;
    if (output === "json") {
      // One line of JSON per log line, so that they can be processed as a stream.
      terminal.answer(JSON.stringify(JSON.parse(jsonText(DeploymentLogLineSchema, line))));
      return;
    }
    terminal.answer(logText(line));
  }
}

/** `08:30:12.345 r3 n1/1a2b text`: time, revision, the worker with its node, text. */
function logText({ time, revision, node, worker, stream, text }: DeploymentLogLine): string {
  const at = time === undefined ? "" : new Date(timestampMs(time)).toISOString().slice(0, 23);
  // The id of a worker begins with the name of its node, but for one that has joined.
  const isNamed = worker.startsWith(`${node}/`);
  const where = worker === "" ? node : isNamed ? worker : `${node}/${worker}`;
  const mark = stream === "stdout" ? " " : stream === "stderr" ? "!" : "*";
  return `${at.replace("T", " ")}Z r${revision} ${plain(where)} ${mark} ${plain(text)}`;
}
