/** `tessera serve` from its source, as a process beside the platform of `npm start`, which it ends with. */
import { main } from "../src/main.ts";

process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
process.channel?.unref();
process.exitCode = await main(["serve", ...process.argv.slice(2)]);
