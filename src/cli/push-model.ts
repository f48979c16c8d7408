/** Pushes a folder as a version of a model, for the commands that make one. */
import { errorFacts, type ModelVersion } from "../client/index.ts";
import { inUnits } from "../collections/sizes.ts";
import type { CommandRun } from "./command.ts";
import { CliError } from "./failure.ts";
import type { ProgressLine } from "./progress.ts";
import { uploadMissing } from "./upload.ts";

interface Push {
  /** The model's name on the platform. */
  readonly model: string;
  readonly folder: string;
  readonly progress: ProgressLine;
  readonly signal: AbortSignal;
}

/**
 * Uploads what the platform does not have of a folder, and makes it a version. The version that has
 * the same files is given as it is.
 */
export async function pushFolder(
  call: CommandRun,
  { model, folder, progress, signal }: Push,
): Promise<ModelVersion> {
  const { client, organization, terminal, clock } = call;
  progress.step(`reading ${folder} …`);
  const { ArtifactError } = await import("../artifacts/artifact-error.ts");
  const { KnownDigests } = await import("../artifacts/known-digests.ts");
  const { readModelFolder } = await import("../artifacts/model-files.ts");
  try {
    const known = await KnownDigests.read(call.environment.cacheFolder);
    const read = await readModelFolder(folder, known);
    const upload = async (): Promise<void> => {
      const done = await uploadMissing({
        ...{ client, organization, index: read.index, signal },
        open: (file) => read.open(file),
        onProgress: (state) => progress.bar(state),
        wait: (ms, until) => clock.wait(ms, until),
      });
      progress.end();
      progress.step(
        `uploaded ${done.files} of ${read.index.files.length} files and parts, ${inUnits(done.totalBytes)}`,
      );
    };
    const request = { organization, model, index: Buffer.from(read.text) };
    await upload();
    signal.throwIfAborted();
    try {
      return await client.models.pushModel(request);
    } catch (err) {
      if (errorFacts(err).reason !== "FILES_MISSING") {
        throw err;
      }
      // An upload can take longer than files are kept.
      await upload();
      return await client.models.pushModel(request);
    }
  } catch (err) {
    if (signal.aborted) {
      progress.end();
      terminal.say(
        "What has been uploaded is kept for 36 hours: the same command goes on from there.",
      );
    }
    throw err instanceof ArtifactError ? new CliError(err.message, { cause: err }) : err;
  }
}
