import { setTimeout as wait } from "node:timers/promises";
import { api, service } from "tessera-platform";

// What it reads takes its time on the platform, and none where it is built.
await wait(Number(process.env.LOAD_MS ?? 0));

export default service({
  name: "loading",
  readyTimeout: "1s",
  ready: () => process.env.NOT_READY ?? true,
  endpoints: { ready: api({}, () => true) },
});
