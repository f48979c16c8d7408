/** `tessera model import`: has the platform fetch a model, and follows it. */
import type { Command } from "commander";
import { ModelState, type ModelVersion, ModelVersionSchema } from "../../client/index.ts";
import { type CommandRun, callCommand, option, type Surroundings } from "../command.ts";
import { hubToken } from "../deploy/models.ts";
import { readSecrets } from "../deploy/secrets.ts";
import { CliError } from "../failure.ts";
import { ProgressLine } from "../progress.ts";
import { followStream } from "../reconnect.ts";
import { stateText, versionText } from "./view.ts";

interface ImportFlags {
  readonly name?: string;
  readonly tokenFile?: string;
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

/** How long a source may take to say what it has. */
const IMPORT_CALL_TIMEOUT_MS = 150_000;

export function importCommand(surroundings: Surroundings): Command {
  return callCommand<ImportFlags>("import", surroundings, {
    description:
      "Have the platform fetch a model: pinned to its commit, once, in the background. The same again goes on where one broke off.",
    arguments: [
      [
        "<source>",
        "hf://OWNER/NAME, with @ and a branch, tag or commit; s3://BUCKET/PREFIX; https://…#sha256=…",
      ],
    ],
    options: [
      option("--name <name>", "the model's name (default: the last part of the source)"),
      option(
        "--token-file <file>",
        "a token of Hugging Face, for a gated or private repository, or - for standard input (default: HF_TOKEN)",
      ),
      option("--no-wait", "do not wait until it is fetched"),
    ],
    examples: [
      "tessera model import hf://Qwen/Qwen3-0.6B",
      "tessera model import hf://meta-llama/Llama-3.2-1B --token-file ~/.cache/huggingface/token",
      "tessera model import hf://acme/reader@v2 --name reader --no-wait",
      "pass show hugging-face | tessera model import hf://acme/private --token-file -",
    ],
    run: async (call, { name = "", tokenFile, wait }, [source = ""]) => {
      const { organization } = call;
      const file = tokenFile === "-" ? undefined : tokenFile;
      const { token = "" } =
        tokenFile === undefined
          ? { token: hubToken(source, surroundings.env) }
          : await readSecrets([{ name: "token", file }], call.terminal);
      const begun = await call.client.models.importModel(
        { organization, source, model: name, token },
        { timeoutMs: IMPORT_CALL_TIMEOUT_MS },
      );
      const version = wait ? await waitForModel(call, begun) : begun;
      call.show(ModelVersionSchema, version, versionText);
      if (!wait) {
        call.done(`It goes on: tessera model get ${version.model}`);
      }
    },
  });
}

/** Follows an import with its progress; rejects with the reason of one that failed. */
async function waitForModel(call: CommandRun, begun: ModelVersion): Promise<ModelVersion> {
  const { organization, client, terminal } = call;
  const { model, version } = begun;
  using interruption = terminal.streams.interruption();
  const { signal } = interruption;
  const progress = new ProgressLine(terminal.streams, { quiet: call.output === "json" });
  let last = begun;
  try {
    await followStream(call, signal, async ({ signal, onHeader, onMessage }) => {
      if (last.state !== ModelState.IMPORTING) {
        return true;
      }
      const named = { organization, model, version };
      for await (const next of client.models.watchModel(named, {
        signal,
        onHeader,
        timeoutMs: 0,
      })) {
        onMessage();
        last = next;
        progress.step(`${model}: ${stateText(next)}`);
      }
      return last.state !== ModelState.IMPORTING;
    });
  } catch (err) {
    progress.end();
    if (signal.aborted) {
      terminal.say(`It goes on: tessera model get ${model}`);
    }
    throw err;
  }
  progress.end();
  if (last.state === ModelState.FAILED) {
    throw new CliError(`${model}@${version} could not be imported: ${last.reason}`, {
      hint: "what was stored is kept for 36 hours: the same command goes on from there",
    });
  }
  return last;
}
