/** The program as `bin/tessera.js` runs it, from its source. */
import { main } from "../../../src/main.ts";

process.exitCode = await main(process.argv.slice(2));
