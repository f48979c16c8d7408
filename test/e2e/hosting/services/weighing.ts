import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, modelPath, service } from "tessera-platform";
import * as z from "zod";

const VERSION = "one";

let weights: Buffer | undefined;

/** Read by the first call: where the service is built, there are none. */
function read(): Buffer {
  weights ??= readFileSync(join(modelPath("reader"), "weights.safetensors"));
  return weights;
}

export default service({
  name: "weighing",
  models: { reader: "hf://acme/reader" },
  endpoints: {
    weigh: api({}, () => [VERSION, read().length, read().subarray(0, 4).toString("hex")]),
    /** What libraries of Hugging Face find. */
    hub: api({}, () => {
      const folder = join(process.env.HF_HUB_CACHE ?? "", "models--acme--reader");
      const commit = readFileSync(join(folder, "refs/main"), "utf8");
      const config = readFileSync(join(folder, "snapshots", commit, "config.json"), "utf8");
      return [
        process.env.HF_HUB_OFFLINE,
        commit,
        config,
        readlinkSync(join(folder, "snapshots", commit)),
      ];
    }),
    write: api({ input: { path: z.string() } }, ({ path }) => {
      try {
        writeFileSync(join(modelPath("reader"), path), "other weights");
        return "written";
      } catch (err) {
        return String((err as NodeJS.ErrnoException).code);
      }
    }),
  },
});
