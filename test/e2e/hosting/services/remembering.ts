import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { api, service } from "tessera-platform";
import * as z from "zod";

const notes = join(process.env.TESSERA_CACHE ?? "", "notes");

export default service({
  name: "remembering",
  endpoints: {
    remember: api({ input: { text: z.string() } }, async ({ text }) => {
      await writeFile(notes, text);
      return process.pid;
    }),
    recall: api({}, () => readFile(notes, "utf8").catch(() => "nothing")),
    /** What another path has. */
    read: api({ input: { path: z.string() } }, ({ path }) => readFile(path, "utf8")),
  },
});
