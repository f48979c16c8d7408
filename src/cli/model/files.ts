/** `tessera model push` and `pull`: a folder to the platform, and back. */
import { randomUUID } from "node:crypto";
import { rename, rm, stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Command } from "commander";
import type { IndexedFile } from "../../artifacts/index-file.ts";
import { ModelState, type ModelVersion, ModelVersionSchema } from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { CliError, usageError } from "../failure.ts";
import { ProgressLine } from "../progress.ts";
import { pushFolder } from "../push-model.ts";
import { versionText } from "./view.ts";

const NAME = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

interface PushFlags {
  readonly name?: string;
}

export function pushCommand(actions: CloudActions): Command {
  return callCommand<PushFlags>("push", actions, {
    description:
      "Push a folder as the next version of a model. Files that the platform has are not sent; one that broke off goes on.",
    arguments: [["<folder>", "the folder of the weights"]],
    options: [option("--name <name>", "the model's name (default: that of the folder)")],
    examples: ["tessera model push ./reader", "tessera model push ./checkpoint-900 --name reader"],
    run: async (call, { name }, [folder = ""]) => {
      const model = name ?? basename(resolve(folder)).toLowerCase();
      if (!NAME.test(model) || model.length > 63) {
        throw usageError(
          `${JSON.stringify(model)} is no name of a model`,
          "name it with --name: words of a-z and 0-9, joined by - _ or .",
        );
      }
      call.show(ModelVersionSchema, await push(call, model, folder), versionText);
    },
  });
}

async function push(call: CommandRun, model: string, folder: string): Promise<ModelVersion> {
  const { terminal } = call;
  using interruption = terminal.streams.interruption();
  const { signal } = interruption;
  const progress = new ProgressLine(terminal.streams, { quiet: call.output === "json" });
  try {
    return await pushFolder(call, { model, folder, progress, signal });
  } finally {
    progress.end();
  }
}

export function pullCommand(actions: CloudActions): Command {
  return callCommand("pull", actions, {
    description: "Write a version of a model into a new folder.",
    arguments: [
      ["<model>", "the model's name, with @ and a version (default: the newest that is ready)"],
      ["<folder>", "a folder that does not exist yet"],
    ],
    examples: ["tessera model pull reader ./reader", "tessera model pull reader@3 ./reader-3"],
    run: async (call, _flags, [named = "", folder = ""]) => {
      if ((await stat(folder).catch(() => undefined)) !== undefined) {
        throw usageError(`${folder} exists already`, "name a folder that does not");
      }
      const version = await findVersion(call, named);
      await pull(call, version, folder);
      call.show(ModelVersionSchema, version, versionText);
    },
  });
}

/** The version that `NAME` or `NAME@VERSION` names. */
async function findVersion(call: CommandRun, named: string): Promise<ModelVersion> {
  const { model, version } = parseVersion(named);
  const { organization } = call;
  const { versions } = await call.client.models.getModel({ organization, model });
  const found = versions.find((each) =>
    version === 0 ? each.state === ModelState.READY : each.version === version,
  );
  if (found?.state !== ModelState.READY) {
    throw new CliError(`${named} is not there, or not ready`, {
      hint: `tessera model get ${model} shows its versions`,
    });
  }
  return found;
}

/** Parses `NAME` or `NAME@VERSION`; the version is 0 where none is named. */
export function parseVersion(named: string): { readonly model: string; readonly version: number } {
  const [, model, version] = /^([^@]+)(?:@(\d{1,9}))?$/.exec(named) ?? [];
  if (model === undefined || version === "0") {
    throw usageError(`${JSON.stringify(named)} is no model`, "name it as NAME or NAME@VERSION");
  }
  return { model, version: Number(version ?? 0) };
}

async function pull(call: CommandRun, found: ModelVersion, folder: string): Promise<void> {
  const { client, organization, terminal } = call;
  const { model, version } = found;
  using interruption = terminal.streams.interruption();
  const { signal } = interruption;
  const progress = new ProgressLine(terminal.streams, { quiet: call.output === "json" });
  const named = { organization, model, version };
  async function* read(sha256: string): AsyncGenerator<Uint8Array> {
    const pieces = client.models.readModel({ ...named, sha256 }, { signal, timeoutMs: 0 });
    for await (const { chunk } of pieces) {
      yield chunk;
    }
  }
  const { ArtifactError } = await import("../../artifacts/artifact-error.ts");
  const { digestOf } = await import("../../artifacts/index-file.ts");
  const { verifyModelIndex } = await import("../../artifacts/model-index.ts");
  const { placed } = await import("../../artifacts/parts.ts");
  const { writeFiles } = await import("../../artifacts/unpack.ts");
  const { verified } = await import("../../artifacts/verified.ts");
  const unfinished = `${resolve(folder)}.${randomUUID()}.partial`;
  try {
    const chunks: Uint8Array[] = [];
    for await (const chunk of read("")) {
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString();
    if (digestOf(text) !== found.digest) {
      throw new ArtifactError("the index is not the one of this version");
    }
    const { files } = verifyModelIndex(text).index;
    const state = { files: 0, totalFiles: files.length, bytes: 0 };
    const totalBytes = Number(found.sizeBytes);
    const open = async function* (file: IndexedFile): AsyncGenerator<Uint8Array> {
      for await (const chunk of verified(read(file.sha256), file)) {
        state.bytes += chunk.length;
        progress.bar({ ...state, totalBytes }, "downloading");
        yield chunk;
      }
      state.files += 1;
    };
    await writeFiles(placed(files), open, unfinished);
    await rename(unfinished, folder);
  } catch (err) {
    await rm(unfinished, { recursive: true, force: true });
    throw err instanceof ArtifactError ? new CliError(err.message, { cause: err }) : err;
  } finally {
    progress.end();
  }
}
