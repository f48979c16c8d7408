/** Models and their versions for people. */
import { type Model, ModelState, type ModelVersion } from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import { fields, moment } from "../output.ts";
import { rateText } from "../progress.ts";
import { type Table, table } from "../table.ts";

const STATES: Readonly<Record<ModelState, string>> = {
  [ModelState.UNSPECIFIED]: "",
  [ModelState.IMPORTING]: "importing",
  [ModelState.READY]: "ready",
  [ModelState.FAILED]: "failed",
};

export function modelTable(models: readonly Model[]): Table {
  return table(
    ["NAME", "VERSION", "STATE", "SIZE", "SOURCE", "CREATED"],
    models.map(({ name, versions: [newest] }) => [
      name,
      newest === undefined ? "" : String(newest.version),
      newest === undefined ? "" : stateText(newest),
      newest === undefined ? "" : inUnits(Number(newest.sizeBytes)),
      newest?.source ?? "",
      moment(newest?.createdAt),
    ]),
    {
      empty: "No models: tessera model push, or tessera model import",
      drop: ["CREATED", "SOURCE"],
    },
  );
}

export function versionTable(versions: readonly ModelVersion[]): Table {
  return table(
    ["VERSION", "STATE", "SIZE", "FILES", "DIGEST", "SOURCE", "USED BY"],
    versions.map((one) => [
      String(one.version),
      one.reason === "" ? stateText(one) : `failed: ${one.reason}`,
      inUnits(Number(one.sizeBytes)),
      String(one.fileCount),
      one.digest.slice(0, 12),
      one.source,
      one.deployments.join(", "),
    ]),
    { empty: "No versions", drop: ["DIGEST", "FILES", "SOURCE"] },
  );
}

export function versionText(version: ModelVersion): string {
  const { model, source, repository, commit, digest, createdBy, reason } = version;
  return fields([
    ["model", `${model}@${version.version}`],
    ["state", stateText(version)],
    ["reason", reason],
    ["size", `${inUnits(Number(version.sizeBytes))} in ${version.fileCount} files`],
    ["source", source],
    ["commit", repository === "" ? "" : `${commit} of ${repository}`],
    ["digest", digest],
    ["created", `${moment(version.createdAt)} by ${createdBy}`],
    ["used by", version.deployments.join(", ")],
    ...version.warnings.map((text): [string, string] => ["warning", text]),
  ]);
}

/** Such as `ready`, or `importing 41 % of 15.2 GiB, 12.0 MiB/s, 2m left`. */
export function stateText(version: ModelVersion): string {
  if (version.state !== ModelState.IMPORTING) {
    return STATES[version.state];
  }
  const [done, size] = [Number(version.bytesDone), Number(version.sizeBytes)];
  const percent = size === 0 ? 100 : Math.floor((done / size) * 100);
  const rate = rateText(Number(version.bytesPerSecond), size - done);
  return `importing ${percent} % of ${inUnits(size)}${rate}`;
}
