/** The program of `process.ts`: serves a service until its parent tells it to stop, or kills it. */
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

const [servicePath = "", database = ":memory:"] = process.argv.slice(2);
const { config } = readServeConfig(servicePath, { port: "0", database }, {});
const service = await serveService({ ...config, logLevel: "silent" }, { token: undefined });

let turning: NodeJS.Immediate | undefined;
let longestUs = 0;

/**
 * The longest turn of the event loop since the last question, in processor time of its thread:
 * what other programs of the machine take does not count. The first question begins it.
 */
function longestTurnMs(): number {
  const foundMs = longestUs / 1_000;
  longestUs = 0;
  if (turning === undefined) {
    let lastUs = usedUs();
    const turn = (): void => {
      const nowUs = usedUs();
      longestUs = Math.max(longestUs, nowUs - lastUs);
      lastUs = nowUs;
      turning = setImmediate(turn);
    };
    turn();
  }
  return foundMs;
}

function usedUs(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

process.on("message", async (message) => {
  if (message === "stop") {
    await service.stop();
    process.exit();
  } else if (message === "turns") {
    process.send?.({ longestTurnMs: longestTurnMs() });
  } else {
    process.send?.({ peakBytes: process.resourceUsage().maxRSS * 1024 });
  }
});
process.on("disconnect", () => process.exit());
process.send?.({ port: service.port });
