/**
 * `tessera deployment logs`: what a deployment's workers write. To follow goes
 * on over broken connections: every line has a number, and the next request
 * begins after the last one that was shown.
 */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError } from "commander";
import { type DeploymentLogLine, DeploymentLogLineSchema } from "../../client/index.ts";
import {
  type CallFlags,
  type CloudActions,
  type CommandRun,
  callCommand,
  option,
} from "../command.ts";
import { isPassing } from "../failure.ts";
import { jsonText } from "../output.ts";
import { plain } from "../plain.ts";
import { NAME } from "./view.ts";

interface LogsFlags extends CallFlags {
  readonly follow?: boolean;
  readonly tail: number;
}

const MAX_TAIL = 10_000;
const PAUSE_MS = { first: 500, longest: 10_000 };

export function logsCommand(actions: CloudActions): Command {
  return callCommand<LogsFlags>("logs", actions, {
    description: "Show what the workers of a deployment write; the newest 10,000 lines are kept.",
    arguments: [NAME],
    options: [
      option("-f, --follow", "go on with the lines to come, until Ctrl-C"),
      option("--tail <count>", "how many of the last lines").default(100).argParser(tailOf),
    ],
    examples: [
      "tessera deployment logs summarizer --tail 500",
      "tessera deployment logs summarizer --follow",
      "tessera deployment logs summarizer --output json | jq .text",
    ],
    run: async (call, flags, [name = ""]) => {
      using interruption = call.terminal.streams.interruption();
      await new Reading(call, name, interruption.signal).run(flags);
    },
  });
}

function tailOf(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count > MAX_TAIL) {
    throw new InvalidArgumentError(`Give a whole number from 0 to ${MAX_TAIL}.`);
  }
  return count;
}

class Reading {
  readonly #call: CommandRun;
  readonly #name: string;
  readonly #signal: AbortSignal;
  /** The number of the last line that was shown. */
  #last = 0n;
  #pauseMs = PAUSE_MS.first;
  /** Whether the server has begun an answer: one that never did is the wrong one. */
  #hasAnswered = false;
  #isLost = false;

  constructor(call: CommandRun, name: string, signal: AbortSignal) {
    this.#call = call;
    this.#name = name;
    this.#signal = signal;
  }

  async run({ follow = false, tail }: Pick<LogsFlags, "follow" | "tail">): Promise<void> {
    for (;;) {
      try {
        await this.#read({ follow, tail });
        if (!follow) {
          return;
        }
      } catch (err) {
        this.#signal.throwIfAborted();
        if (!follow || !this.#hasAnswered || !isPassing(err)) {
          throw err;
        }
        this.#sayLost();
      }
      // A server that stops ends its streams, and another one takes over.
      await this.#call.clock.wait(this.#pauseMs, this.#signal);
      this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS.longest);
    }
  }

  async #read({ follow, tail }: { readonly follow: boolean; readonly tail: number }) {
    const { client, organization } = this.#call;
    const from = this.#last === 0n ? { tail } : { afterSequence: this.#last };
    const lines = client.deployments.watchDeploymentLogs(
      { organization, name: this.#name, follow, ...from },
      // As long as it is followed, without the time limit of other calls.
      {
        signal: this.#signal,
        ...(follow && { timeoutMs: 0 }),
        onHeader: () => {
          this.#hasAnswered = true;
        },
      },
    );
    for await (const line of lines) {
      this.#pauseMs = PAUSE_MS.first;
      this.#isLost = false;
      this.#last = line.sequence;
      this.#show(line);
    }
  }

  /** Once until lines come again: it may last. */
  #sayLost(): void {
    if (!this.#isLost) {
      this.#isLost = true;
      this.#call.done("The connection is lost: trying again until Ctrl-C …");
    }
  }

  #show(line: DeploymentLogLine): void {
    const { terminal, output } = this.#call;
    if (output === "json") {
      // One line each, so that they can be read as they come.
      terminal.answer(JSON.stringify(JSON.parse(jsonText(DeploymentLogLineSchema, line))));
      return;
    }
    terminal.answer(logText(line));
  }
}

/** `08:30:12.345 r3 1a2b/0 text`: when, which revision, which worker of which node, what. */
export function logText({ time, revision, node, worker, stream, text }: DeploymentLogLine): string {
  const at = time === undefined ? "" : new Date(timestampMs(time)).toISOString().slice(0, 23);
  const where = worker === "" ? node : `${node}/${worker}`;
  const mark = stream === "stdout" ? " " : stream === "stderr" ? "!" : "*";
  return `${at.replace("T", " ")}Z r${revision} ${plain(where)} ${mark} ${plain(text)}`;
}
