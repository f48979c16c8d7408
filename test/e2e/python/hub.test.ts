/** The view of models with the libraries of Hugging Face themselves, which have no network. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelEnvironment } from "../../../src/pool/launch/models.ts";
import { leftOut } from "../../needed.ts";
import {
  type Environment,
  environment,
  pythonMissing,
  run,
} from "../clients/python-environment.ts";

const skipped = leftOut(pythonMissing);
const [ONE, TWO] = [1, 2].map((layers) => Array.from({ length: 5 }, () => layers));
const [FIRST, SECOND] = ["1".repeat(40), "2".repeat(40)];

/**
 * For each revision, or an error: the layers in the configuration, by each of the ways to it, which
 * are also the number of a word for the tokenizer, and that of the weights.
 */
const READ = `
import json, sys
from pathlib import Path
from huggingface_hub import hf_hub_download, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer
repository, *revisions = sys.argv[1:]
found = {}
def weights(path):
    with safe_open(path, "np") as tensors:
        return tensors.get_tensor("layers").tolist()
for revision in revisions:
    named = {} if revision == "none" else {"revision": revision}
    layers = lambda path: json.loads(Path(path).read_text())["num_hidden_layers"]
    try:
        found[revision] = [
            layers(hf_hub_download(repository, "config.json", **named)),
            layers(Path(snapshot_download(repository, **named)) / "config.json"),
            AutoConfig.from_pretrained(repository, **named).num_hidden_layers,
            *AutoTokenizer.from_pretrained(repository, **named)("hello")["input_ids"],
            *weights(hf_hub_download(repository, "model.safetensors", **named)),
        ]
    except LocalEntryNotFoundError as error:
        found[revision] = type(error).__name__
print(json.dumps(found))
`;

/** One tensor of one byte; https://github.com/huggingface/safetensors#format. */
function safetensors(value: number): Buffer {
  const header = JSON.stringify({ layers: { dtype: "U8", shape: [1], data_offsets: [0, 1] } });
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, Buffer.from(header), Buffer.from([value])]);
}

describe.skipIf(skipped)(`models for the libraries of Hugging Face${skipped}`, () => {
  let made: Environment;
  let folder: string;
  beforeAll(async () => {
    if (skipped) {
      return;
    }
    made = await environment({ name: "hub", packages: ["huggingface_hub", "transformers"] });
    folder = mkdtempSync(join(tmpdir(), "tessera-hub-"));
    for (const [name, layers] of [
      ["first", 1],
      ["second", 2],
    ] as const) {
      mkdirSync(join(folder, name));
      const file = (path: string, content: object | Buffer): void =>
        writeFileSync(
          join(folder, name, path),
          Buffer.isBuffer(content) ? content : JSON.stringify(content),
        );
      file("config.json", { model_type: "bert", num_hidden_layers: layers });
      const model = { type: "WordLevel", vocab: { "[UNK]": 0, hello: layers }, unk_token: "[UNK]" };
      file("tokenizer.json", { version: "1.0", added_tokens: [], model });
      file("tokenizer_config.json", { tokenizer_class: "PreTrainedTokenizerFast" });
      file("model.safetensors", safetensors(layers));
    }
  }, 600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const read = async (
    models: Readonly<Record<string, readonly [commit: string, revision?: string]>>,
    revisions: readonly string[],
  ) => {
    const scratch = mkdtempSync(join(folder, "scratch-"));
    const view = modelEnvironment(
      Object.entries(models).map(([name, [commit, revision]]) => ({
        ...{ name, path: join(folder, name), repository: "acme/reader", commit },
        ...(revision && { revision }),
      })),
      scratch,
    );
    const env = { ...view, HOME: scratch, HF_ENDPOINT: "http://127.0.0.1:9" };
    return JSON.parse(await run(made.python, ["-c", READ, "acme/reader", ...revisions], { env }));
  };

  it("are found by the revision that the deploy has pinned, by its commit, and without one", async () => {
    const said = await read({ first: [FIRST, "v1.0"] }, ["none", "main", "v1.0", FIRST, "v2.0"]);
    expect(said).toEqual({
      ...{ none: ONE, main: ONE, "v1.0": ONE, [FIRST]: ONE },
      "v2.0": "LocalEntryNotFoundError",
    });
  }, 120_000);

  it("are found in two revisions of one repository at once", async () => {
    const both = { first: [FIRST, "refs/pr/1"], second: [SECOND] } as const;
    const said = await read(both, ["none", "refs/pr/1", FIRST, SECOND]);
    expect(said).toEqual({
      ...{ none: TWO, "refs/pr/1": ONE, [FIRST]: ONE, [SECOND]: TWO },
    });
  }, 120_000);
});
