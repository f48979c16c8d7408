/** Says, as another user, how much of the disk a process holds, or why that cannot be measured. */
import { heldBy } from "../../src/pool/held.ts";

const [pid = "", folder = "", user = ""] = process.argv.slice(2);
process.setuid?.(Number(user));
heldBy([Number(pid)], { scratchFolder: folder }).then(
  ({ diskBytes }) => console.log(String(diskBytes)),
  (err: Error) => console.log(err.message),
);
