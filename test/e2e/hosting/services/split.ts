import { api, service, task } from "tessera-platform";
import * as z from "zod";

/** Who started the worker: this node, or an agent. */
const startedBy = async (): Promise<number> => process.ppid;

/** An api that runs on the node, while what needs a GPU runs where there is one. */
export default service({
  name: "split",
  endpoints: {
    ask: api({ place: "local", output: z.int() }, startedBy),
    see: api({ requires: { gpu: "*" }, output: z.int() }, startedBy),
    learn: task({ requires: { gpu: "*" }, output: z.int() }, startedBy),
  },
});
